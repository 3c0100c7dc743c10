"""The DAG itself, at smoke scale, in a copy of the project: run, run again, edit, break, kill."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pypdf
import pytest

from conftest import SMOKE, call, copy_project
from ghost.report.appendix import anchor
from ghost.study.builds import load

pytestmark = pytest.mark.slow


@pytest.fixture
def edited(project):
    """Edit files of the copy for one test."""
    kept: dict[Path, str] = {}

    def edit(name: str, old: str, new: str) -> None:
        path = project / name
        kept.setdefault(path, path.read_text())
        assert old in path.read_text(), f"{old!r} is not in {name}"
        path.write_text(path.read_text().replace(old, new))

    yield edit
    for path, text in kept.items():
        path.write_text(text)


PLANNED = """
import json, sys
from ghost.project.jobs import read_jobs
jobs, _ = read_jobs(["all"], json.loads(sys.argv[1]))
print(json.dumps([job.name for job in jobs if not job.is_done]))
"""


def planned(project: Path, config: tuple[str, ...] = SMOKE) -> set[str]:
    """Jobs that Snakemake would run, one an experiment: rule and wildcards."""
    values = dict(item.split("=") for item in config[1:])
    site = project.parent / "undivided.yaml"
    site.write_text("grain: {}\n")
    command = (sys.executable, "-c", PLANNED, json.dumps(values))
    return set(json.loads(call(project, *command, GHOST_SITE=str(site)).stdout))


REPORT, SUPPLEMENT = "data/smoke/paper/ghost.pdf", "data/smoke/paper/ghost_supplement.pdf"
TIMED = ("run.json", "audit.html", "inventory.json")  # files that say when and how long something ran
AFTER_CELLS = {"collect", "macros", "typeset", "audit", "inventory"}


def cells(project: Path) -> dict[str, dict]:
    lines = (project / "data/smoke/cells.jsonl").read_text().splitlines()
    return {cell["id"]: cell for cell in map(json.loads, lines)}


def test_everything_is_there(project):
    for label in ("ghost_mechanism", "method", "diagnostic", "switch_speed", "dwell_time"):
        for suffix in ("pdf", "png", "pgf"):
            assert (project / f"data/smoke/figures/{label}.{suffix}").stat().st_size > 1000
    assert "networks.py" in (project / "data/smoke/paper/generated/tab_theory_method_map.tex").read_text()
    assert not (project / "paper/ghost.pdf").exists()  # smoke keeps to its own folder
    assert [path.name for path in (project / "figures").iterdir()] == ["README.md"]


def test_no_pgfplots(project):
    for path in (project / "data/smoke/figures").glob("*.pgf"):
        assert "pgfplots" not in path.read_text()


def test_a_second_run_does_nothing_and_is_quick(project):
    start = time.monotonic()
    done = call(project, "snakemake", "all", *SMOKE)
    assert "nothing to be done" in done.stderr
    assert time.monotonic() - start < 12  # under 4 s on an idle machine; tests share the cores
    assert planned(project) == set()


def test_touching_files_reruns_nothing(project):
    for path in [
        *(project / "src").rglob("*.py"),
        *(project / "data/smoke/runs").rglob("*"),
        project / "paper/main.tex",
    ]:
        path.touch()
    assert planned(project) == set()


def test_editing_one_row_reruns_just_what_depends_on_it(project, edited):
    edited("src/ghost/study/analytic.py", '"dt": 0.16,', '"dt": 0.15,')
    assert planned(project) == {
        "simulate switch_speed",
        "summarize fig_switch_speed",
        "plot switch_speed",
        *AFTER_CELLS,
    }


def test_editing_the_scale_file_does_the_same(project, edited):
    edited("config/smoke.yaml", "mus: 4", "mus: 5")
    assert planned(project) == {"simulate dwell_time", "summarize fig_dwell_time", "plot dwell_time", *AFTER_CELLS}


def test_other_assets_of_libero_are_other_demonstrations(project, tmp_path):
    (tmp_path / "scene.xml").write_text("<mujoco/>")
    found = planned(project, (*SMOKE, f"libero_assets={tmp_path}"))
    assert "make_demos libero_demos" in found
    assert {job.split()[1] for job in found if job not in AFTER_CELLS} & {"switch_speed", "dual_arm", "ghost"} == set()


def test_editing_one_simulation_reruns_just_it(project, edited):
    edited("src/ghost/simulations/ghost_mechanism.py", "s = settings\n", "s = settings\n    print(s)\n")
    assert planned(project) == {
        "simulate ghost_mechanism",
        "summarize fig_ghost_mechanism",
        "plot ghost_mechanism",
        *AFTER_CELLS,
    }


def test_editing_a_network_reruns_what_imports_it(project, edited):
    """The table that names the module shows its hash, so it is made anew too."""
    edited("src/ghost/dynamics/networks.py", "class Drift", "EDITED = 1\n\n\nclass Drift")
    found = planned(project)
    assert {job for job in found if job.startswith("simulate")} == {
        "simulate learned_potential",
        "simulate training_time",
    }
    trained = {job for job in found if job.startswith("train")}
    assert {"train ghost", "train ghost_bc", "train dual_cups"} <= trained
    assert not trained & {"train cvae", "train dit"}
    assert {"plot diagnostic", "summarize tab_theory_method_map", "tabulate theory_method_map", *AFTER_CELLS} <= found
    assert "plot switch_speed" not in found


def test_editing_one_plot_redraws_just_it(project, edited):
    edited("src/ghost/report/plots/dwell_time.py", 'panel(right, "b", "Lemma 1")', 'panel(right, "b", "Lemma")')
    assert planned(project) == {"plot dwell_time", "typeset", "audit", "inventory"}


def test_editing_one_decoder_retrains_just_it(project, edited):
    edited("src/ghost/decoders/cvae.py", "TERMS = (", "EDITED = 1\nTERMS = (")
    found = planned(project)
    assert {job for job in found if job.startswith("train ")} == {"train cvae"}
    assert {job for job in found if job.startswith("evaluate ")} == {"evaluate cvae_offline", "evaluate latency"}
    assert not {job for job in found if job.startswith(("simulate", "make_demos", "cache_features"))}


def test_editing_an_evaluation_retrains_nothing(project, edited):
    edited("src/ghost/evaluations/attractor.py", "def evaluate(", "EDITED = 1\n\n\ndef evaluate(")
    found = planned(project)
    assert not {job for job in found if job.startswith("train")}
    assert {job for job in found if job.startswith("evaluate")} == {
        "evaluate ghost_attractor",
        "evaluate ghost_basin_attractor",
    }


def test_editing_what_the_notebook_calls_executes_it_again(project, edited):
    edited("src/ghost/evaluations/predict.py", "def predict(", "EDITED = 1\n\n\ndef predict(")
    assert "notebook ghost_walkthrough" in planned(project)


def test_new_benchmarks_are_read_again(project, edited):
    edited("data/bench/cache.csv", "sequential,0,", "sequential,0,1")
    artefacts = {"summarize tab_benchmarks", "tabulate benchmarks", "summarize fig_growth", "plot growth"}
    assert planned(project) == {"read_bench benchmarks", *artefacts, *AFTER_CELLS}


def test_a_comment_reruns_nothing(project, edited):
    edited("src/ghost/simulations/switch_speed.py", "import numpy as np\n", "# a remark\nimport numpy as np\n")
    assert planned(project) == set()


def test_editing_a_sentence_only_typesets(project, edited):
    edited("paper/sections/conclusion.tex", "simple requirements", "few requirements")
    assert planned(project) == {"typeset", "inventory"}


def test_every_cell_names_runs_whose_records_are_whole(project):
    known = set()
    for manifest in (project / "data/smoke/runs").glob("*/manifest.json"):
        for run in json.loads(manifest.read_text())["runs"]:
            known.add(run["run_id"])
            record = json.loads((manifest.parent / f"seed{run['seed']}/run.json").read_text())
            assert record["run_id"] == run["run_id"]
            for name, entry in record["outputs"].items():
                content = (manifest.parent / f"seed{run['seed']}" / name).read_bytes()
                assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    for identity, cell in cells(project).items():
        assert set(cell["runs"]) <= known, identity
        assert cell["runs"] or cell["estimator"] == "module", identity
    with (project / "data/smoke/results.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert list(rows[0]) == ["experiment", "seed", "condition", "metric", "value", "n", "run_id"]
    assert {row["run_id"] for row in rows} == known


def test_every_number_in_the_text_of_the_pdfs_is_a_cell(project):
    """The lint keeps typed numbers out of the sources; here what \\cell printed is found in the PDFs."""
    shown = cells(project)
    for name, source, least in ((REPORT, "main", 50), (SUPPLEMENT, "supplement", 20)):
        pages = pypdf.PdfReader(project / name).pages
        text = re.sub(r"\s+", "", "".join(page.extract_text() for page in pages)).replace("−", "-").replace("–", "-")
        used = set()
        for section in re.findall(r"\\input\{(sections/\w+)\}", (project / f"paper/{source}.tex").read_text()):
            written = re.sub(r"(?<!\\)%.*", "", (project / f"paper/{section}.tex").read_text())
            used |= set(re.findall(r"\\cell\{([^}]*)\}", written))
        assert len(used) > least
        for identity in used:
            number = re.sub(r"e([-+])0*(\d+)", lambda m: f"×10{m[1].strip('+')}{m[2]}", shown[identity]["shown"])
            assert number.replace(" ", "") in text, identity


def links(pdf: Path) -> tuple[list[tuple[str, str]], list[str], set[str]]:
    """File and name that links of a PDF go to, addresses that they go to, and the names there are."""
    reader = pypdf.PdfReader(pdf)
    annotations = [annotation.get_object() for page in reader.pages for annotation in page.get("/Annots", [])]
    actions = [annotation["/A"] for annotation in annotations if annotation["/Subtype"] == "/Link"]
    assert {action["/S"] for action in actions} <= {"/GoTo", "/GoToR", "/URI"}
    inside = [
        (str(action.get("/F", pdf.name)), action["/D"] if isinstance(action["/D"], str) else "")
        for action in actions
        if action["/S"] != "/URI"
    ]
    outside = [str(action["/URI"]) for action in actions if action["/S"] == "/URI"]
    return inside, outside, set(reader.named_destinations)


def test_no_link_of_the_report_and_its_supplement_is_dead(project):
    """Within each, from one to the other, and on to the audit page."""
    found = {Path(name).name: links(project / name) for name in (REPORT, SUPPLEMENT)}
    page = (project / "data/smoke/audit.html").read_text()
    targets = set(re.findall(r' id="([^"]*)"', page))
    for name, (inside, outside, _) in found.items():
        assert len(inside) > 20
        for file, place in inside:
            assert (project / "data/smoke/paper" / file).is_file(), file
            assert not place or place in found[file][2], f"{name} -> {file}: {place}"
        for address in outside:
            path, _, fragment = address.partition("#")
            if not path.startswith("https://"):
                assert (project / "data/smoke/paper" / path).resolve() == project / "data/smoke/audit.html"
                assert fragment in targets
    there = [place for file, place in found["ghost.pdf"][0] if file == "ghost_supplement.pdf"]
    back = [place for file, place in found["ghost_supplement.pdf"][0] if file == "ghost.pdf"]
    assert len(there) > 300
    assert {"verdicts", "prov:fig:switch_speed", "prov:tab:lightweight/CVAE/test_mse"} <= set(there)
    artefacts = load({"scale": "smoke"}, project).buildable(tex=True)
    assert len(set(back)) > len(artefacts)  # figures, tables and their pages


def test_every_number_of_the_report_links_to_its_provenance_and_on_to_the_audit_page(project):
    inside = [link for name in (REPORT, SUPPLEMENT) for link in links(project / name)[0]]
    linked = {place.removeprefix("prov:") for _, place in inside if place.startswith("prov:")}
    for path in (project / "data/smoke/paper/generated").glob("tab_*.tex"):
        numbers_of_table = re.findall(r"\\ghostlink\{prov:([^{}]*)\}", path.read_text())
        assert numbers_of_table, path
        assert set(numbers_of_table) <= linked
        rest = re.sub(r"\\ghostlink\{[^{}]*\}\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}", "", path.read_text())
        cells_left = [part for line in rest.splitlines() if "&" in line for part in line.split("&")[1:]]
        assert not [part for part in cells_left if re.search(r"\d", re.sub(r"\\\w+(\{[^{}]*\})?", "", part))], path
    for text in (project / "paper/sections").glob("*.tex"):
        used = re.findall(r"\\cell\{([^}]*)\}", re.sub(r"(?<!\\)%.*", "", text.read_text()))
        assert set(used) <= linked, text
    _, outside, names = links(project / SUPPLEMENT)
    entries = {anchor(identity) for identity in cells(project)}
    assert {f"prov:{name}" for name in entries} <= names
    assert {address.partition("#")[2] for address in outside if "audit.html#" in address} == entries


def test_published_numbers_link_to_their_verdicts(project):
    inside, _, _ = links(project / REPORT)
    _, _, names = links(project / SUPPLEMENT)
    assert len([name for name in names if name.startswith("claim:")]) > 400
    assert ("ghost_supplement.pdf", "claim:fig:switch_speed/gru_a0.30/steps_to_converge") in inside


def test_the_supplement_says_where_the_report_has_a_figure(project):
    """The report's own captions and pages are the other side."""
    reports = [page.extract_text() for page in pypdf.PdfReader(project / REPORT).pages]
    text = " ".join("".join(page.extract_text() for page in pypdf.PdfReader(project / SUPPLEMENT).pages).split())
    number, page = re.search(r"Fig\. ?(\d+), page ?(\d+) ?fig:switch_speed", text).groups()
    assert re.search(rf"Fig\. {number}\.\s+Switching on the tilted double well", reports[int(page) - 1])
    assert "??" not in text


def test_the_report_has_under_16_pages(project):
    """Other builds have other numbers in the same text; what grows with the runs is in the supplement."""
    assert len(pypdf.PdfReader(project / REPORT).pages) < 16


@pytest.mark.parametrize("name", [REPORT, SUPPLEMENT])
def test_the_smoke_pdf_is_stamped_on_every_page(project, name):
    for page in pypdf.PdfReader(project / name).pages:
        assert "Reduced scale (smoke)" in page.extract_text()


def test_a_build_prints_its_own_numbers_beside_another_build(project):
    """The root's figures and tables belong to the laptop build. Here they are wrong, and TeX could find them."""
    before = [(project / name).read_bytes() for name in (REPORT, SUPPLEMENT)]
    copied = [*(project / "data/smoke/paper/generated").iterdir(), *(project / "data/smoke/figures").glob("*.pgf")]
    strangers = [project / path.relative_to(project / "data/smoke") for path in copied]
    for path in strangers:
        path.parent.mkdir(exist_ok=True)
        path.write_text(r"\errmessage{this is of another build}")
    call(project, "snakemake", REPORT, "--forcerun", "typeset", *SMOKE)
    assert [(project / name).read_bytes() for name in (REPORT, SUPPLEMENT)] == before
    for path in strangers:
        path.unlink()


def test_every_figure_and_table_is_built(project):
    for name in (REPORT, SUPPLEMENT):
        assert "not built" not in "".join(page.extract_text() for page in pypdf.PdfReader(project / name).pages)


def test_two_builds_are_byte_identical(project, reference):
    """The analytic runs and all behind them are made anew; whole builds are compared in test_interruptions.py."""
    data = project / "data/smoke"
    kept = {path: json.loads(path.read_text())["determined_by"] for path in (data / "units/simulate").glob("*.json")}
    redone = {path: known["experiment"] for path, known in kept.items() if known["experiment"] != "training_time"}
    assert len(redone) >= 5
    for path, experiment in redone.items():  # a finished unit is done again only when it is gone, and its run with it
        shutil.rmtree(data / "runs" / experiment, ignore_errors=True)
        shutil.rmtree(path.with_suffix(""))
        path.unlink()
    call(project, "snakemake", "all", "--forcerun", "draw", *SMOKE)
    for name, content in reference.items():
        if "/units/" not in name and not name.endswith(TIMED):
            assert (project / name).read_bytes() == content, name


def test_work_divided_among_jobs_gives_the_same_bytes(tmp_path, reference):
    """A seed or two shards a job. Another grain is nothing to do; a further seed is one training."""
    folder, target = copy_project(tmp_path / "divided"), "data/smoke/runs/mlp_offline/manifest.json"
    grain = ("--set-scatter", "seeds=1", "shards=2")
    call(folder, "snakemake", target, *grain, *SMOKE)
    for path in (folder / "data/smoke/runs").glob("*/manifest.json"):
        assert path.read_bytes() == reference[str(path.relative_to(folder))]
    parts = {path.stem for path in (folder / "data/smoke/parts").glob("*/*.json")}
    assert parts == {"seed42", "seed123", *(f"seed0_{k}of3" for k in (1, 2, 3))}
    for other in ((), grain, ("--set-scatter", "seeds=2", "shards=1")):
        assert "Nothing to be done" in call(folder, "snakemake", target, "-n", *other, *SMOKE).stdout
    more = call(folder, "snakemake", target, "-n", *grain, *SMOKE, "experiments={mlp: {seeds: 3}}").stdout
    assert re.findall(r"output: data/smoke/parts/mlp/(\w+).json", more) == ["seed999"]
    wrong = call(folder, "snakemake", "-n", "--set-scatter", "episode=2", *SMOKE, check=False)
    assert "grain: no unit 'episode'; did you mean episodes?" in wrong.stdout + wrong.stderr


def test_audit_names_the_runs_and_their_inputs(project):
    said = call(project, "ghost", "audit", "fig:diagnostic/learned/train/final_loss", "--scale", "smoke").stdout
    assert "estimator  mean_std, src/ghost/report/estimators.py:" in said
    assert "2 runs of learned_potential, in data/smoke/runs/learned_potential" in said
    assert "computed   src/ghost/simulations/learned_potential.py:" in said
    assert "reduced scale" in said
    assert "demonstrator_dt 0.1 (paper: 0.05), epochs 150 (2000)" in said
    listed = call(project, "ghost", "audit", "fig:switch_speed/ghost", "--scale", "smoke").stdout
    assert listed.startswith("fig:switch_speed/ghost/")
    wrong = call(project, "ghost", "audit", "fig:swich_speed/ghost/min_ratio", "--scale", "smoke", check=False)
    assert wrong.returncode == 2
    assert "did you mean fig:switch_speed/ghost/min_ratio" in wrong.stderr
    assert len(wrong.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("scale=laptob",), "no scale 'laptob'; did you mean laptop?"),
        (("scale=smoke", "colour=blue"), "no key 'colour'"),
        (("scale=smoke", "experiments={switch_speed: {dtt: 1}}"), "no setting 'dtt'; did you mean dt"),
        (("scale=smoke", "experiments={switch_speed: {dt: fast}}"), "dt must be float, like 0.16"),
    ],
)
def test_bad_configuration_is_one_line(project, arguments, message):
    done = call(project, "snakemake", "all", "--config", *arguments, check=False)
    assert done.returncode != 0
    said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("Using workflow")]
    assert len(said) == 1, said
    assert message in said[0]


def test_a_bad_value_in_a_row_is_one_line_in_the_jobs_log(project):
    target = "data/smoke/runs/switch_speed/manifest.json"
    config = ("--config", "scale=smoke", "experiments={switch_speed: {dt: -1}}")
    kept = (project / target).read_bytes()
    done = call(project, "snakemake", target, *config, check=False)
    assert done.returncode != 0
    assert "ghost: error: switch_speed: dt must be positive, got -1.0" in done.stderr
    assert "Traceback" not in done.stderr
    (project / target).parent.mkdir(exist_ok=True)
    (project / target).write_bytes(kept)
    call(project, "snakemake", target, *SMOKE)


def test_an_unknown_target_is_named(project):
    done = call(project, "snakemake", "figures/nope.pdf", check=False)
    assert done.returncode != 0
    assert "nope.pdf" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_typed_number_stops_the_report(project, edited):
    edited("paper/sections/dwell_time.tex", "Both parts of the", "It holds for 99 percent. Both parts of the")
    done = call(project, "snakemake", REPORT, *SMOKE, check=False)
    assert done.returncode != 0
    assert re.search(r"dwell_time\.tex:\d+: typed number 99", done.stderr)


def test_broken_latex_is_one_line_with_texs_complaint(project, edited):
    edited("paper/sections/dwell_time.tex", "Both parts of the", r"\nosuchmacro Both parts of the")
    done = call(project, "snakemake", REPORT, *SMOKE, check=False)
    assert done.returncode != 0
    assert "Undefined control sequence" in done.stderr
    assert "nosuchmacro" in done.stderr


def test_without_tex_all_but_the_pdf_is_built(tmp_path, project):
    """All tools of this machine but latexmk and pdflatex."""
    folder = copy_project(tmp_path / "no_tex")
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in (tool for place in os.get_exec_path() if Path(place).is_dir() for tool in Path(place).iterdir()):
        if tool.name not in ("latexmk", "pdflatex") and not (tools / tool.name).is_symlink():
            (tools / tool.name).symlink_to(tool)
    environment = {"PATH": str(tools)}
    plan = call(folder, "snakemake", "all", "-n", *SMOKE, **environment).stdout
    assert "rule audit:" in plan
    assert "rule typeset:" not in plan
    assert "rule draw:" not in plan
    call(folder, "snakemake", "data/smoke/figures/switch_speed.png", *SMOKE, **environment)
    assert (folder / "data/smoke/figures/switch_speed.pdf").exists()
    assert not (folder / "data/smoke/figures/switch_speed.pgf").exists()
    refused = call(folder, "snakemake", "data/smoke/figures/method.pdf", *SMOKE, check=False, **environment)
    assert refused.returncode != 0


def test_a_killed_run_goes_on_to_the_same_cells(tmp_path, reference):
    """SIGKILL to everything in the middle of training; nothing half-written stays, and the next run ends the same."""
    target = "data/smoke/cells/fig_diagnostic.jsonl"
    folder = copy_project(tmp_path / "killed")
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(folder / "src"),
    }
    process = subprocess.Popen(
        ["snakemake", target, *SMOKE], cwd=folder, env=env, start_new_session=True, stderr=subprocess.DEVNULL
    )
    log = folder / "logs/smoke/simulate/learned_potential.log"
    deadline = time.monotonic() + 120
    while not (log.exists() and "[" in log.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (folder / "data/smoke/runs/learned_potential/manifest.json").exists()
    call(folder, "snakemake", "--unlock", *SMOKE)
    call(folder, "snakemake", target, *SMOKE)
    assert (folder / target).read_bytes() == reference[target]


def test_dvc_repro_builds_one_figure_and_then_does_nothing(tmp_path):
    folder = copy_project(tmp_path / "dvc")
    call(folder, "dvc", "repro", "fig_switch_speed")
    assert (folder / "figures/switch_speed.pgf").exists()
    assert not (folder / "figures/dwell_time.pdf").exists()
    assert sorted(path.name for path in (folder / "data/laptop/runs").iterdir()) == ["switch_speed"]
    again = call(folder, "dvc", "repro", "fig_switch_speed")
    assert "Data and pipelines are up to date" in again.stdout + again.stderr
