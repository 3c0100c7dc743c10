"""`ghost publish`: a trained decoder or a data set as a folder for the Hugging Face hub, with a card that says it all.

A model: the weights (safetensors), config.json, the limits of normalisation where its data have them, the record of its
training. A data set: its files as LeRobot reads them. The card names the numbers that rest on it, the verdicts on the
article's numbers, the stand-ins and what it is for. Nothing is sent anywhere without --to and a token.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from huggingface_hub import DatasetCard, DatasetCardData, EvalResult, HfApi, ModelCard, ModelCardData, get_token
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.utils._validators import validate_repo_id
from yaml import YAMLError

from ghost.audit.affected import Query, affected
from ghost.audit.build import Build
from ghost.claims.ledger import read_ledger
from ghost.claims.report import judge
from ghost.data.lerobot_meta import read_info
from ghost.data.normalisation import FILE as LIMITS
from ghost.errors import GhostError, did_you_mean
from ghost.files import confined, json_text, link, write_text
from ghost.project.place import version
from ghost.runs.records import RECORD, Run
from ghost.study.builds import Config
from ghost.training.checkpoint import MODEL, load_decoder, load_file, read_tensors

DATASET = "dataset"
CARD, CONFIG, NORMALISATION = "README.md", "config.json", "normalisation.json"
LICENCE = "apache-2.0"
SHOWN_CELLS = 40  # a card is read by people
LOADING = """\
```python
from pathlib import Path
from ghost.training.checkpoint import load_file

decoder = load_file(Path("{MODEL}"))  # an nn.Module; decoder.act(batch) returns actions [B, H, d_a]
```
"""


def publish(config: Config, name: str, out: Path, *, seed: int | None, licence: str, to: str) -> str:
    """Prepare the folder of an experiment's run, check its card, and upload it if asked to; returns lines about it."""
    if to:
        check_address(to)
    build = Build.open(config)
    run = chosen(build, name, seed)
    if out.exists() and any(out.iterdir()):
        raise GhostError(f"{out} is not empty; give another folder with --out")
    is_model = f"seed{run.seed}/{MODEL}" in run.files
    card = model_folder(build, run, out, licence) if is_model else dataset_folder(build, run, out, licence)
    write_text(out / CARD, str(card))
    check_card(out / CARD, type(card))
    files = [path for path in out.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    said = f"{out}: run {run.run_id}, {len(files)} files, {size:.1f} MB; its card is valid"
    return f"{said}\n{upload(out, to, 'model' if is_model else 'dataset')}" if to else said


def chosen(build: Build, name: str, seed: int | None) -> Run:
    """The run to publish: a training or a data set of this experiment."""
    can = {known: runs for known, runs in build.manifests.items() if any(map(publishable, runs))}
    if name not in can:
        reason = "has neither weights nor a data set" if name in build.manifests else "is not built"
        raise GhostError(f"{name} {reason} in {build.config.data}{did_you_mean(name, can)}")
    runs = [run for run in can[name] if seed in (None, run.seed)]
    if not runs:
        raise GhostError(f"{name} has no run with seed {seed}; it has {', '.join(str(run.seed) for run in can[name])}")
    return runs[0]


def publishable(run: Run) -> bool:
    return bool({f"seed{run.seed}/{MODEL}", f"seed{run.seed}/{DATASET}/meta/info.json"} & run.files.keys())


def model_folder(build: Build, run: Run, out: Path, licence: str) -> ModelCard:
    """The files of a model, and its card. The copy must act as the original does."""
    link(run.path(MODEL), out / MODEL)
    tensors, facts = read_tensors(out / MODEL)
    copy, original = load_file(out / MODEL).state_dict(), load_decoder(run).state_dict()
    if not all(tensor.equal(copy[key]) for key, tensor in original.items()):
        raise GhostError(f"{out / MODEL} does not load as {run.name} does")
    record = build.records[run.run_id]
    write_text(out / CONFIG, json_text({**facts, "run_id": run.run_id, "experiment": run.folder.name}))
    write_text(out / RECORD, json_text(record))
    for _, below in build.lineage([run.run_id]):
        if f"seed{below.seed}/{DATASET}/{LIMITS}" in below.files:
            link(below.path(f"{DATASET}/{LIMITS}"), out / NORMALISATION)
    count = sum(tensor.numel() for tensor in tensors.values())
    name = facts["module"].rpartition(".")[2]
    cells = numbers(build, run)
    data = ModelCardData(
        license=licence,
        library_name="ghost",
        pipeline_tag="robotics",
        tags=["robotics", "action-decoder", "ghost-attractor-networks", *(["stand-in"] if record["stand_ins"] else [])],
        model_name=f"{run.folder.name}, seed {run.seed}",
        eval_results=list(results(build, cells)) or None,
    )
    sizes = ", ".join(f"{key} {value}" for key, value in facts["sizes"].items())
    text = f"""\
# {run.folder.name}, seed {run.seed}

The decoder `{name}` of the build `{build.config.scale}`: {count:,} parameters; {sizes}. It maps features of a frozen
backbone and the state of a robot to a chunk of actions. It was trained by `{record["step"]}` of Ghost {version()}.

## Intended use

Research on action decoders: to compare with it, and to check the numbers below. It was not made for a robot near
people, and never ran on a real one. It needs the features of the backbone that it was trained with.

{caveats(record)}
## How to load it

{LOADING.format(MODEL=MODEL)}
`{CONFIG}` has the decoder's settings and sizes{normalised(out)}. `{RECORD}` is the record of its training.

{table(build, run, cells)}"""
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{text}")


def dataset_folder(build: Build, run: Run, out: Path, licence: str) -> DatasetCard:
    """The files of a data set in LeRobot's format, and its card."""
    record = build.records[run.run_id]
    if licence == LICENCE and record["module"].endswith(".recorded"):
        raise GhostError(f"{run.folder.name} was recorded elsewhere: name the licence to share it under (--licence)")
    inside = f"seed{run.seed}/{DATASET}/"
    for name in sorted(run.files):
        if name.startswith(inside):
            link(run.path(name.partition("/")[2]), confined(out, name.removeprefix(inside)))
    write_text(out / RECORD, json_text(record))
    info = read_info(out)
    data = DatasetCardData(
        license=licence,
        task_categories=["robotics"],
        tags=["LeRobot", "ghost-attractor-networks", *(["stand-in"] if record["stand_ins"] else [])],
        pretty_name=run.folder.name,
        configs=[{"config_name": "default", "data_files": "data/*/*.parquet"}],
    )
    text = f"""\
# {run.folder.name}

{info["total_episodes"]} episodes, {info["total_frames"]} frames at {info["fps"]} per second, in LeRobot's format
{info["codebase_version"]}. Made by `{record["module"]}` with seed {run.seed}, Ghost {version()}.

## Intended use

Research on action decoders: to repeat the trainings of the build `{build.config.scale}`.

{caveats(record)}
{len(resting(build, run))} numbers of the report rest on it: `ghost audit --run {run.run_id}` lists them.
"""
    return DatasetCard(f"---\n{data.to_yaml()}\n---\n\n{text}")


def caveats(record: dict[str, Any]) -> str:
    """What its numbers cannot say: stand-ins and reduced settings, each by name."""
    lines = [f"- It rests on a stand-in: {name}." for name in record["stand_ins"]]
    for key, values in sorted(record["reduced"].items()):
        lines.append(f"- `{key}` is {values['here']} here and {values['paper']} in the article.")
    said = "\n".join(lines) or "It rests on no stand-in and on no reduced setting."
    return f"## What it rests on\n\n{said}\n"


def normalised(out: Path) -> str:
    said = f", `{NORMALISATION}` the raw values of -1 and 1 of states and actions"
    return said if (out / NORMALISATION).exists() else ""


def numbers(build: Build, run: Run) -> list[dict[str, Any]]:
    """The cells of tables that are about the trainings of the run's experiment and no others: no comparisons."""
    return [
        cell
        for cell in resting(build, run)
        if cell["id"].startswith("tab:") and isinstance(cell["value"], float) and cell["estimator"] != "setting"
        if trainings(build, cell) == {run.folder.name}
    ]


def resting(build: Build, run: Run) -> list[dict[str, Any]]:
    path = build.config.data / "cells.jsonl"
    return [build.cells[name] for name in affected(build, Query(run=run.run_id)).cells] if path.exists() else []


def trainings(build: Build, cell: dict[str, Any]) -> set[str]:
    """The experiments whose weights a cell rests on."""
    below = [run for _, run in build.lineage(cell["runs"])]
    return {run.folder.name for run in below if f"seed{run.seed}/{MODEL}" in run.files}


def results(build: Build, cells: list[dict[str, Any]]) -> Iterator[EvalResult]:
    """The same cells as the hub's metadata have them."""
    for cell in cells[:SHOWN_CELLS]:
        artefact, *_, metric = cell["id"].split("/")
        yield EvalResult(
            task_type="robotics",
            dataset_type=build.config.scale,
            dataset_name=f"Ghost, build {build.config.scale}, {artefact}",
            metric_type=metric,
            metric_value=cell["value"],
            metric_name=cell["id"],
            verified=False,
        )


def table(build: Build, run: Run, cells: list[dict[str, Any]]) -> str:
    """The numbers that rest on the run, with the verdict on what the article prints."""
    ledger = read_ledger()
    said = {verdict.claim: verdict.verdict for verdict in judge(build.config, ledger)}
    verdicts = {name: said[claim.id] for claim in ledger.claims.values() for name in claim.cell[:1] if claim.id in said}
    more = f"n says how many values. `ghost audit --run {run.run_id}` lists all that rests on it."
    lines = [f"## Numbers\n\nThey are about all trainings of `{run.folder.name}`, of which this is one: {more}\n"]
    lines += ["| cell | value | n | verdict on the article's number |", "|---|---|---|---|"]
    for cell in cells[:SHOWN_CELLS]:
        value = " ".join(filter(None, (cell["shown"], cell["unit"])))
        lines.append(f"| `{cell['id']}` | {value} | {cell['n']} | {verdicts.get(cell['id'], '')} |")
    if not cells:
        lines = ["## Numbers\n\nNo number of a table is about it alone."]
    if len(cells) > SHOWN_CELLS:
        lines.append(f"\nand {len(cells) - SHOWN_CELLS} more.")
    return "\n".join(lines) + "\n"


def check_card(path: Path, kind: type[ModelCard] | type[DatasetCard]) -> None:
    """Read the card back as the hub does. The hub's own check of the metadata follows when it is uploaded."""
    try:
        card = kind.load(path)
    except (ValueError, YAMLError) as error:
        raise GhostError(f"{path}: its metadata are not those of a card: {error}") from None
    if not card.data.to_dict().get("license") or not card.text.strip():
        raise GhostError(f"{path}: a card needs a licence and a text")


def check_address(to: str) -> None:
    try:
        validate_repo_id(to)
    except HFValidationError as error:
        raise GhostError(f"--to {to}: {error}") from None
    if "/" not in to:
        raise GhostError(f"--to {to}: give the owner too, as owner/{to}")
    if not get_token():
        raise GhostError("no token for the hub: `hf auth login`, or set HF_TOKEN")


def upload(folder: Path, to: str, kind: str) -> str:
    """Send the folder to a repository of the hub, made private if it is not there."""
    hub = HfApi()
    try:
        hub.create_repo(to, repo_type=kind, private=True, exist_ok=True)
        done = hub.upload_folder(folder_path=folder, repo_id=to, repo_type=kind, commit_message="ghost publish")
    except (HfHubHTTPError, ValueError, OSError) as error:
        raise GhostError(f"the hub did not take {to}: {error}") from None
    return f"uploaded: {done}"
