"""The commands between Snakemake and DVC: `ghost make` and `ghost trial` of dvc.yaml, `ghost keep` and `ghost pull`."""

import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ghost.errors import GhostError
from ghost.files import canonical, json_text, link, read_json, read_yaml, sha256, write_json, write_text
from ghost.project.dvc import PAPER, RECIPES, TRIAL, Part, files, find_artefact_or_paper, parts
from ghost.project.recipes import recipes
from ghost.project.snapshots import restore, snapshot_path, take
from ghost.report.cells import read_cells
from ghost.runs.records import open_runs
from ghost.study import find_artefact
from ghost.study.builds import Config, load, opened

MADE = Path(".snakemake/made.json")  # the recipes and files of the stages that Snakemake has made here
PARAMETERS = Path("params.yaml")  # of a trial
NOTHING = "nothing"
NOT_MEASURED = ("setting", "series", "module", "runs")  # estimators whose cells are no metrics


def write_recipes() -> None:
    write_json(Path(RECIPES), recipes(load({})))


def make(what: str) -> None:
    """Make a figure, a table or the paper of the build at the root with one Snakemake; none if it has just been made.

    `dvc repro` without a target makes the paper first, and so everything. Each stage behind it then finds its recipe
    and its files as Snakemake left them.
    """
    config, name = load({}), find_artefact_or_paper(what)
    known, recipe = parts(config), recipes(config)
    made = read_json(MADE, {str: object}) if MADE.is_file() else {}
    if made.get(name) == _state(known[name], recipe):
        print(f"{what}: Snakemake has made it already")
        return
    _snakemake(["all"] if name == PAPER else known[name].targets, {})
    chosen = recipe if name == PAPER else (name,)
    write_json(MADE, {**made, **{each: _state(known[each], recipe) for each in chosen}})


def _state(part: Part, recipe: Mapping[str, str]) -> dict[str, Any]:
    return {"recipe": recipe[part.name], "files": {target: sha256(Path(target)) for target in part.made}}


def keep(config: Config) -> str:
    """Write the snapshots of all parts of a build that are there, and give the folder of the build to DVC."""
    known = parts(config)
    there = [part for part in known.values() if part.made and _is_whole(part)]
    if not there:
        raise GhostError(f"nothing to keep in {config.data}; `snakemake all --config scale={config.scale}` makes it")
    count = sum(take(part, config) for part in there)
    kept = _kept(config)
    if there == list(known.values()) or not kept.exists():
        _dvc("add", "--quiet", str(config.data))
    else:  # what was not pulled stays as it was kept
        _dvc("add", "--quiet", *_paths(there, config))
    missing = f"; {len(known) - len(there)} parts are not here" if len(there) < len(known) else ""
    return f"{len(there)} parts of the build {config.scale} kept in {kept}, {count} files{missing}"


def _is_whole(part: Part) -> bool:
    """Whether the runs of a part are there, and not their manifest alone, as after `ghost pull`."""
    runs = open_runs(Path(part.targets[0])) if part.folder else []
    return all((run.folder / name).is_file() for run in runs for name in run.files)


def _kept(config: Config) -> Path:
    """The file by which DVC knows the folder of a build."""
    return config.data.with_suffix(".dvc")


def _paths(chosen: list[Part], config: Config) -> list[str]:
    """What belongs to some parts below the folder of the build, and what `--config` said when it was made."""
    found = [path for part in chosen for path in ([part.folder] if part.folder else part.made)]
    inside = [path for path in found if Path(path).is_relative_to(config.data)]
    return [*inside, *(str(snapshot_path(part, config)) for part in chosen), str(config.memory)]


def pull(what: str, config: Config) -> str:
    """Bring the runs behind a figure or table from DVC's remote, and make them known to Snakemake.

    Of the experiments behind those runs come the manifests alone: Snakemake asks for them, and drawing does not.
    """
    if not _kept(config).exists():
        raise GhostError(f"there is no {_kept(config)}: nobody has kept this build (`ghost keep`)")
    names = find_artefact(what).within([each.name for each in config.experiments]).experiments
    if not names:
        raise GhostError(f"{what} rests on no runs: `snakemake {files(find_artefact(what), config)[0]}` makes it")
    runs = [config.manifest(name).parent for name in names]
    manifests = [config.manifest(name) for name in _needed(names, config)]
    _dvc("pull", "--quiet", *map(str, (config.data / "snapshots", config.memory, *runs, *manifests)))
    return restore(opened(config.scale))


def _needed(names: Iterable[str], config: Config) -> list[str]:
    """The experiments behind some experiments, without these."""
    found, waiting = dict.fromkeys(names), list(names)
    while waiting:
        needs = [need for need in config.experiment(waiting.pop()).needs if need not in found]
        found |= dict.fromkeys(needs)
        waiting += needs
    return [name for name in found if name not in set(names)]


def trial(what: str) -> None:
    """Make a figure or table with the settings of params.yaml in the build `trial`, and write its numbers as metrics.

    Runs of the build at the root that the settings leave as they are serve here too.
    """
    asked = read_yaml(PARAMETERS, {"what": str, "experiments": dict, "steps": dict})
    values: dict[str, dict[str, float]] = {}
    if what != NOTHING:
        wanted = find_artefact(what)
        overrides = {key: asked[key] for key in ("experiments", "steps") if asked[key]}
        config = load({"scale": "trial", **overrides})
        _lend_runs(load({}), config)
        part = parts(config)[wanted.stage]
        _snakemake(part.targets, {"scale": config.scale, **overrides})
        for cell in read_cells(Path(part.targets[-1])).values():
            if cell["estimator"] not in NOT_MEASURED and cell["value"] is not None:
                row, _, metric = cell["id"].removeprefix(f"{wanted.id}/").rpartition("/")
                values.setdefault(row.replace("/", "_") or wanted.label, {})[metric] = cell["value"]
    for old in Path(TRIAL).glob("*.json"):
        old.unlink()
    Path(TRIAL).mkdir(parents=True, exist_ok=True)
    for row, metrics in values.items():
        write_text(Path(TRIAL) / f"{row}.json", json_text(metrics))


def _lend_runs(lender: Config, borrower: Config) -> None:
    """Link the runs of one build into another. A step takes a run that it finds there if its id is the wanted one."""
    for experiment in borrower.experiments:
        for run in lender.manifest(experiment.name).parent.glob("seed*"):
            target = borrower.manifest(experiment.name).parent / run.name
            if not target.exists():
                shutil.copytree(run, target, copy_function=lambda a, b: link(Path(a), Path(b)))


def _snakemake(targets: tuple[str, ...] | list[str], config: Mapping[str, Any]) -> None:
    said = [f"{key}={value if isinstance(value, str) else canonical(value)}" for key, value in config.items()]
    _run("snakemake", *targets, *(["--config", *said] if said else []))


def _dvc(*arguments: str) -> None:
    _run("dvc", *arguments)


def _run(program: str, *arguments: str) -> None:
    """Run a program of our environment. It says itself what went wrong."""
    done = subprocess.run([sys.executable, "-m", program, *arguments], check=False)  # noqa: S603  # our own words
    if done.returncode:
        raise GhostError(f"{program} {arguments[0]} failed (see above)")
