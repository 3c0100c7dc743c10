// The audit page's script, with page_runs.js before it. All text goes in as text: nothing of the data is ever read as HTML.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const cells = new Map(data.cells.map((cell) => [cell.anchor, cell]));
const runs = new Map(data.runs.map((run) => [run.id, run]));
const byExperiment = new Map();
for (const run of data.runs) byExperiment.set(run.experiment, [...(byExperiment.get(run.experiment) ?? []), run]);
const $ = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null && child !== ""));
  return node;
}
function drawn(tag, attributes = {}, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text) node.textContent = text;
  return node;
}
const code = (text) => make("code", {}, text);
const link = (cell, text) => make("a", { href: `#${cell.anchor}`, "data-cell": cell.anchor, class: "number" }, text);
const value = (cell) => (cell.unit ? `${cell.shown} ${cell.unit}` : cell.shown);

// ---------------------------------------------------------------------------------------------- tables and figures

function printed() {
  const out = $("printed");
  out.append(make("h2", {}, "Tables as printed"));
  for (const [name, rows] of Object.entries(data.tables)) {
    const body = make("tbody");
    rows.forEach((row, number) => {
      body.append(make("tr", {}, ...row.map((parts) => make(number ? "td" : "th", {},
        ...parts.map((part) => (part.cell ? link(cells.get(part.cell), part.text) : part.text))))));
    });
    out.append(make("h3", {}, name), make("div", { class: "wide", tabindex: 0 }, make("table", { "data-table": name }, body)));
  }
  out.append(make("h2", {}, "Figures and their series"));
  for (const [name, picture] of Object.entries(data.figures)) {
    const own = data.cells.filter((cell) => cell.id.startsWith(`${name}/`));
    const series = own.filter((cell) => cell.estimator === "series");
    const list = (some) => some.flatMap((cell) => [link(cell, cell.id.slice(name.length + 1)), " "]);
    out.append(make("h3", {}, name), make("img", { src: picture, alt: name, loading: "lazy" }),
      make("p", {}, `${series.length} series: `, ...list(series)),
      make("details", {}, make("summary", {}, `${own.length - series.length} numbers`), make("p", {}, ...list(own.filter((cell) => cell.estimator !== "series")))));
  }
  if (data.absent.length) out.append(make("p", { class: "soft" }, `Not built: ${data.absent.join(", ")}`));
}

// ---------------------------------------------------------------------------------------------------------- panel

function plot(cell) {
  if (cell.points.length === 0) return "";
  const width = 560, height = 74, values = cell.points.map((point) => point.value);
  const interval = cell.interval && cell.points.every((point) => !point.against) ? cell.interval : [];
  const low = Math.min(...values, ...interval), high = Math.max(...values, ...interval), span = high - low || 1;
  const x = (number) => 20 + ((number - low) / span) * (width - 40);
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "data-plot": cell.anchor });
  svg.append(drawn("title", {}, `${cell.points.length} values, one for each run`));
  if (interval.length) svg.append(drawn("rect", { class: "band", x: x(interval[0]), y: 8, width: Math.max(1, x(interval[1]) - x(interval[0])), height: 36 }));
  svg.append(drawn("line", { class: "axis", x1: 10, x2: width - 10, y1: 46, y2: 46 }));
  for (const point of cell.points) {
    const dot = drawn("circle", { class: point.against ? "other" : "point", cx: x(point.value), cy: point.against ? 18 : 34, r: 4.5 });
    dot.append(drawn("title", {}, `seed ${point.seed}: ${point.value}`));
    svg.append(dot);
  }
  svg.append(drawn("text", { x: 10, y: 64 }, low.toPrecision(4)), drawn("text", { x: width - 10, y: 64, "text-anchor": "end" }, high.toPrecision(4)));
  return svg;
}

const needs = (name) => [...new Set((byExperiment.get(name) ?? []).flatMap((run) => run.needs))].filter((need) => byExperiment.has(need));

function levels(cell) {
  const depth = new Map(), queue = [...new Set([cell.experiment, cell.against])].filter((name) => byExperiment.has(name)).map((name) => [name, 0]);
  while (queue.length) { // the longest way down decides: what is needed stands below all that need it
    const [name, at] = queue.shift();
    if ((depth.get(name) ?? -1) >= at) continue;
    depth.set(name, at);
    queue.push(...needs(name).map((need) => [need, at + 1]));
  }
  const found = [];
  for (const [name, at] of depth) (found[at] ??= []).push(name);
  return found;
}

function lineage(cell) {
  const found = levels(cell);
  if (found.length === 0) return "";
  const width = 640, step = 62, box = 30, place = new Map();
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${found.length * step}`, width: "100%", role: "img", "data-lineage": found.length });
  svg.append(drawn("title", {}, "what the number rests on, from its runs down"));
  found.forEach((names, depth) => names.forEach((name, index) => place.set(name, [((index + 0.5) * width) / names.length, depth * step + 6, Math.min(200, width / names.length - 10)])));
  for (const [name, [x, y]] of place) {
    for (const need of needs(name)) {
      const [toX, toY] = place.get(need);
      svg.append(drawn("path", { class: "edge", d: `M${x},${y + box} C${x},${(y + box + toY) / 2} ${toX},${(y + box + toY) / 2} ${toX},${toY}` }));
    }
  }
  for (const [name, [x, y, wide]] of place) {
    const used = byExperiment.get(name).filter((run) => name !== cell.experiment && name !== cell.against || cell.runs.includes(run.id));
    svg.append(drawn("rect", { class: "box", x: x - wide / 2, y, width: wide, height: box, rx: 4 }),
      drawn("text", { x, y: y + 13, "text-anchor": "middle" }, name), drawn("text", { x, y: y + 25, "text-anchor": "middle" }, `${used.length} run${used.length === 1 ? "" : "s"}`));
  }
  return svg;
}

function field(list, name, ...content) {
  if (content.some((part) => part !== "" && part !== null)) list.append(make("dt", {}, name), make("dd", {}, ...content));
}

function show(cell) {
  const what = [cell.condition, cell.metric].filter(Boolean).join("/");
  const fields = make("dl");
  field(fields, "value", make("b", { class: "number" }, value(cell)));
  field(fields, "unrounded", code(String(cell.value)));
  field(fields, "estimator", `${[cell.estimator, what && `of ${what}`, cell.versus].filter(Boolean).join(" ")}, n = ${cell.n}`);
  field(fields, "95 % interval", cell.interval ? cell.interval.map((bound) => bound.toPrecision(5)).join(" to ") : "");
  field(fields, "doubts", ...cell.doubts.flatMap((doubt) => [make("span", { class: "mark" }, doubt), " "]));
  for (const claim of cell.claims) field(fields, "article", make("b", {}, claim.published), `: ${claim.verdict}. ${claim.reason}`);
  field(fields, "on the command line", code(`ghost audit ${cell.id}`));
  const list = make("div");
  for (const id of cell.runs) {
    const run = runs.get(id), values = cell.points.filter((point) => point.run === id).map((point) => `${point.against ? "against " : ""}${Number(point.value).toPrecision(5)}`);
    if (!run) continue;
    const more = make("dl");
    field(more, "value", cell.points.filter((point) => point.run === id).map((point) => String(point.value)).join(", "));
    field(more, "its curves", make("a", { href: `#${id}` }, "this run among the runs"));
    list.append(make("details", { "data-run": id }, make("summary", {}, code(id.slice(0, 8)), ` ${run.experiment}, seed ${run.seed}${values.length ? `: ${values.join(", ")}` : ""}`), more, record(run)));
  }
  openPanel(cell.id, fields,
    ...(cell.points.length ? [make("h3", {}, cell.against ? "Values of the runs (open circles: compared with)" : "Values of the runs"), plot(cell)] : []),
    ...(cell.runs.length ? [make("h3", {}, "Runs"), list, make("h3", {}, "What it rests on"), lineage(cell)] : [make("p", {}, "It rests on no run: it is read from the code.")]));
}

function openPanel(title, ...content) {
  $("detail").replaceChildren(make("h2", { id: "panel-title" }, title), ...content);
  if (!$("panel").open) $("panel").showModal();
  $("close").focus();
  $("panel").scrollTop = 0;
}

function tab(name) {
  for (const section of ["numbers", "runs"]) $(section).hidden = section !== name;
  for (const each of $("tabs").children) each.setAttribute("aria-selected", String(each.getAttribute("href") === `#${name}`));
}

function follow() { // what the address names: a part of the page, a cell, a run, or two runs to compare
  const name = decodeURIComponent(location.hash.slice(1)), cell = cells.get(name), [word, ...ids] = name.split("/");
  if (cell) return show(cell);
  const named = word === "compare" ? ids.map((id) => runs.get(id)) : [runs.get(name)];
  if (named.every(Boolean)) {
    tab("runs");
    return named.length === 2 ? compareRuns(...named) : showRun(named[0]);
  }
  if ($("panel").open) $("panel").close();
  if (["numbers", "runs"].includes(name)) tab(name);
}

// -------------------------------------------------------------------------------------------------------- filters

function passes(cell) {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = `${cell.id} ${cell.shown} ${cell.estimator}`.toLowerCase();
  const verdict = $("verdict").value, doubt = $("doubt").value, run = $("run").value, on = $("device").value;
  return words.every((word) => text.includes(word))
    && (!verdict || cell.claims.some((claim) => claim.verdict === verdict))
    && (!doubt || (doubt === "none" ? cell.doubts.length === 0 : cell.doubts.includes(doubt)))
    && (!run || cell.runs.includes(run))
    && (!on || cell.runs.some((id) => runs.has(id) && runs.get(id).device === on));
}

function filter() {
  const shown = new Set(data.cells.filter(passes).map((cell) => cell.anchor));
  for (const row of $("cells").tBodies[0].rows) row.hidden = !shown.has(row.id);
  for (const anchor of $("printed").querySelectorAll("a[data-cell]")) anchor.classList.toggle("dim", !shown.has(anchor.dataset.cell));
  $("count").textContent = `${shown.size} of ${data.cells.length} cells`;
}

let found = -1; // the place of the find that is shown
function find(step) { // search brings the next find into view: first in the tables as printed, then in the list of cells
  document.querySelector(".found")?.classList.remove("found");
  const places = [...$("printed").querySelectorAll("table a[data-cell]:not(.dim)"), ...[...$("cells").tBodies[0].rows].filter((row) => !row.hidden)];
  if (!$("search").value.trim() || places.length === 0) return (found = -1);
  found = (found + step + places.length) % places.length;
  places[found].classList.add("found");
  places[found].scrollIntoView({ block: "center", inline: "nearest" });
}

function choices(id, names) {
  for (const [name, label] of names) $(id).append(make("option", { value: name }, label));
}

printed();
choices("verdict", data.verdicts.map((name) => [name, name]));
choices("doubt", [["none", "no doubts"], ...[...new Set(data.cells.flatMap((cell) => cell.doubts))].sort().map((name) => [name, name])]);
choices("run", data.runs.map((run) => [run.id, `${run.experiment}, seed ${run.seed} (${run.id.slice(0, 8)})`]));
choices("device", [...new Set(data.runs.map((run) => run.device))].sort().map((name) => [name, name]));
for (const more of document.querySelectorAll(".more")) more.open = !matchMedia("(max-width: 40rem)").matches;
for (const id of ["tabs", "filters", "run-filters"]) $(id).hidden = false;
$("filters").addEventListener("input", (event) => {
  filter();
  found = -1;
  if (event.target === $("search")) find(1);
});
for (const form of ["filters", "run-filters"]) $(form).addEventListener("submit", (event) => event.preventDefault());
$("search").addEventListener("keydown", (event) => { if (event.key === "Enter") find(event.shiftKey ? -1 : 1); });
$("close").addEventListener("click", () => $("panel").close());
$("panel").addEventListener("close", () => {
  const name = decodeURIComponent(location.hash.slice(1)), inRuns = $("numbers").hidden;
  if (cells.has(name) || runs.has(name) || name.startsWith("compare/")) history.replaceState(null, "", `${location.pathname}${location.search}${inRuns ? "#runs" : ""}`);
  const places = document.querySelectorAll(`a[data-cell="${CSS.escape(name)}"], tr[data-of="${CSS.escape(name)}"] a`);
  [...places].find((place) => place.offsetParent)?.focus();
});
$("panel").addEventListener("click", (event) => {
  if (event.target === $("panel")) $("panel").close();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !["INPUT", "SELECT"].includes(event.target.tagName)) {
    event.preventDefault();
    $($("numbers").hidden ? "run-search" : "search").focus();
  }
});
window.addEventListener("hashchange", follow);
filter();
listRuns();
tab("numbers");
follow();
