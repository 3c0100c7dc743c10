// The runs of the audit page: the table, its filters and its order, one run, two runs compared. It stands before page.js,
// whose names it uses, and defines functions alone.
"use strict";

// ---------------------------------------------------------------------------------------------------------- curves

function curve(lines, unit, small) { // lines: [{ values, length, class }], drawn over the same axes; null is a gap
  const values = lines.flatMap((line) => line.values.filter((each) => each !== null));
  if (values.length === 0) return "";
  const width = small ? 100 : 320, height = small ? 24 : 150, left = small ? 2 : 8, top = small ? 2 : 8, bottom = small ? 2 : 30;
  const low = Math.min(...values), high = Math.max(...values), logarithmic = low > 0 && high / low > 20;
  const scaled = (number) => (logarithmic ? Math.log(number) : number), span = scaled(high) - scaled(low) || 1;
  const longest = Math.max(...lines.map((line) => line.length));
  const x = (line, index) => left + ((index * (line.length - 1)) / Math.max(1, line.values.length - 1) / Math.max(1, longest - 1)) * (width - 2 * left);
  const y = (number) => top + (1 - (scaled(number) - scaled(low)) / span) * (height - top - bottom);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: small ? "spark" : "", "data-curve": lines.length });
  for (const line of lines) {
    let path = "";
    line.values.forEach((number, index) => {
      if (number !== null) path += `${index === 0 || line.values[index - 1] === null ? "M" : "L"}${x(line, index).toFixed(1)},${y(number).toFixed(1)}`;
    });
    svg.append(drawn("path", { class: `line ${line.class}`, d: path, "vector-effect": "non-scaling-stroke" }));
    if (line.values.length === 1) svg.append(drawn("circle", { class: "point", cx: x(line, 0), cy: y(line.values[0]), r: 3 }));
  }
  svg.append(drawn("title", {}, `${lines[0].values[0]} to ${lines[0].values.at(-1)} in ${lines[0].length} ${unit}s`));
  if (small) return svg;
  svg.append(drawn("line", { class: "axis", x1: left, x2: width - left, y1: height - bottom + 4, y2: height - bottom + 4 }),
    drawn("text", { x: left, y: height - 10 }, `${unit} 1`), drawn("text", { x: width - left, y: height - 10, "text-anchor": "end" }, String(longest)),
    drawn("text", { x: width / 2, y: height - 10, "text-anchor": "middle" }, `${low} to ${high}${logarithmic ? ", logarithmic" : ""}`));
  return svg;
}

const unitOf = (run) => (run.step === "finetune" ? "update" : "epoch");

function curves(...some) {
  const names = [...new Set(["loss", ...some.flatMap((run) => Object.keys(run.curves))])].filter((name) => some.some((run) => run.curves[name]));
  return names.map((name) => {
    const lines = some.filter((run) => run.curves[name]).map((run) => ({ values: run.curves[name], length: run.length, class: some.indexOf(run) ? "second" : "" }));
    return make("figure", { class: "chart" }, make("figcaption", { class: "soft" }, name), curve(lines, unitOf(some[0]), false));
  });
}

// --------------------------------------------------------------------------------------------------------- one run

const runName = (run) => `${run.experiment}, seed ${run.seed}`;
const record = (run) => $(run.id).querySelector("dl").cloneNode(true);
const alike = (run) => data.runs.filter((other) => other !== run && other.step === run.step);

function showRun(run) {
  const fields = make("dl"), other = make("select", { id: "other", "aria-label": "Compare with" }, make("option", { value: "" }, "compare with another run ..."));
  field(fields, "state", "finished ", ...run.marks.flatMap((mark) => [make("span", { class: "mark" }, mark), " "]));
  field(fields, "device", `${run.device} on ${run.host}`);
  field(fields, "time", `${run.time}, from ${run.start}`);
  field(fields, "memory", `${run.memory} at the peak`);
  field(fields, "cost", run.cost);
  field(fields, "versions", run.software.join(", "));
  for (const each of alike(run)) other.append(make("option", { value: each.id }, `${runName(each)} (${each.id.slice(0, 8)})`));
  other.addEventListener("input", () => { location.hash = `compare/${run.id}/${other.value}`; });
  const drawnCurves = curves(run);
  openPanel(runName(run), fields, other.options.length > 1 ? other : "", ...(drawnCurves.length ? [make("h3", {}, "Training"), ...drawnCurves] : []), make("h3", {}, "Record"), record(run));
}

// -------------------------------------------------------------------------------------------------------- two runs

function flat(value, name = "") { // [[name, text]] of all that a JSON value holds
  if (value === null || typeof value !== "object" || (Array.isArray(value) && !value.some((each) => typeof each === "object"))) return [[name, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([key, each]) => flat(each, name ? `${name}.${key}` : key));
}

function facts(run) {
  const measured = data.cells.flatMap((cell) => cell.points.filter((point) => point.run === run.id && !point.against)
    .map((point) => [`measured: ${[cell.condition, cell.metric].filter(Boolean).join("/")}`, String(point.value)]));
  const said = ["experiment", "seed", "step", "device", "host", "time", "memory", "cost", "start", "commit", "code"].map((key) => [key, String(run[key])]);
  return new Map([...measured, ...said, ["state", ["finished", ...run.marks].join(", ")], ...flat(run.versions).map(([name, text]) => [name, JSON.parse(text)]),
    ...flat(run.settings, "setting"), ...flat(run.facts, "model"), ...flat(run.inputs, "input").map(([name, text]) => [name, JSON.parse(text)])]);
}

function compareRuns(first, second) {
  const [ours, theirs] = [facts(first), facts(second)], names = [...new Set([...ours.keys(), ...theirs.keys()])];
  const row = (name) => make("tr", {}, make("td", {}, name), make("td", {}, ours.get(name) ?? "\u2014"), make("td", {}, theirs.get(name) ?? "\u2014"));
  const differ = names.filter((name) => ours.get(name) !== theirs.get(name)), same = names.filter((name) => ours.get(name) === theirs.get(name));
  const head = make("tr", {}, make("th", {}, "what differs"), ...[[first, "first"], [second, "second-name"]].map(([run, color]) =>
    make("th", {}, make("a", { href: `#${run.id}`, class: color }, runName(run)))));
  const drawnCurves = curves(first, second);
  openPanel(`${runName(first)} and ${runName(second)}`,
    ...(drawnCurves.length ? [make("p", { class: "soft" }, "solid: ", make("span", { class: "first" }, runName(first)), "; dashed: ", make("span", { class: "second-name" }, runName(second))), ...drawnCurves] : []),
    make("table", { id: "compared" }, make("tbody", {}, head, ...differ.map(row))),
    make("details", {}, make("summary", {}, `${same.length} alike`), make("p", {}, same.map((name) => `${name}: ${ours.get(name)}`).join("; "))));
}

// ------------------------------------------------------------------------------------------------------- the table

const picked = () => [...$("run-table").querySelectorAll("input:checked")].map((box) => box.value);
const runRows = () => [...$("run-table").tBodies[0].rows];

function pick() {
  const some = picked();
  $("compare").disabled = some.length !== 2;
  for (const box of $("run-table").querySelectorAll("input")) box.disabled = some.length === 2 && !box.checked;
}

function filterRuns() {
  const words = $("run-search").value.toLowerCase().split(/\s+/).filter(Boolean), state = $("run-state").value, step = $("run-step").value, on = $("run-device").value;
  let shown = 0;
  for (const row of runRows()) {
    const run = runs.get(row.dataset.of), text = row.textContent.toLowerCase(), states = run ? ["finished", ...run.marks] : ["not run"];
    row.hidden = !(words.every((word) => text.includes(word)) && (!state || states.includes(state)) && (!step || row.cells[3].textContent === step) && (!on || run?.device === on));
    if (!row.hidden && run) shown += 1;
  }
  $("run-count").textContent = `${shown} of ${data.runs.length} runs`;
}

function sortRuns(head) {
  const key = head.dataset.sort, falling = head.getAttribute("aria-sort") === "ascending";
  for (const each of head.parentNode.cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const order = (a, b) => {
    const [one, two] = [a, b].map((row) => runs.get(row.dataset.of)?.[key]);
    if (one === undefined || two === undefined) return (one === undefined) - (two === undefined); // not run: always last
    return (one < two ? -1 : one > two ? 1 : 0) * (falling ? -1 : 1);
  };
  $("run-table").tBodies[0].append(...runRows().sort(order));
}

function listRuns() {
  for (const row of runRows()) {
    const run = runs.get(row.dataset.of);
    if (!run) continue;
    row.cells[0].append(make("input", { type: "checkbox", value: run.id, "aria-label": `Compare ${runName(run)}` }));
    if (run.curves.loss) row.cells[9].append(curve([{ values: run.curves.loss, length: run.length, class: "" }], unitOf(run), true));
  }
  for (const head of $("run-table").tHead.rows[0].cells) {
    if (!head.dataset.sort) continue;
    const button = make("button", { type: "button" }, head.textContent);
    button.addEventListener("click", () => sortRuns(head));
    head.replaceChildren(button);
  }
  const different = (texts) => [...new Set(texts)].sort().map((text) => [text, text]);
  choices("run-state", [["finished", "finished"], ["not run", "not run"], ...different(data.runs.flatMap((run) => run.marks))]);
  choices("run-step", different(data.runs.map((run) => run.step)));
  choices("run-device", different(data.runs.map((run) => run.device)));
  $("run-filters").addEventListener("input", filterRuns);
  $("run-table").addEventListener("input", pick);
  $("compare").addEventListener("click", () => { location.hash = `compare/${picked().join("/")}`; });
  $("records").hidden = true; // each is shown with its run
  filterRuns();
}
