"""A build as a Workflow Run RO-Crate (Provenance Run Crate 0.5) that reaches the number.

The workflow, its steps, every run with its inputs, outputs and times, and every cell with the files of raw results that
it is computed from. Files that the crate holds are data entities; larger ones that it leaves out (checkpoints, shards)
are named with their sha256.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ghost.audit.build import Build
from ghost.project.place import version
from ghost.report.appendix import anchor, versus
from ghost.runs.records import MANIFEST

Entity = dict[str, Any]
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/ro/wfrun/provenance/0.5": "Provenance Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
CONTEXT = [
    "https://w3id.org/ro/crate/1.1/context",
    "https://w3id.org/ro/terms/workflow-run/context",
    {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"},
]
WORKFLOW = "Snakefile"
LANGUAGE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
CODE_LICENCE = "https://spdx.org/licenses/Apache-2.0"
TEXT_LICENCE = "https://spdx.org/licenses/CC-BY-4.0"  # of the report and its sources
BIOSCHEMAS = "https://bioschemas.org/profiles"


def crate(build: Build, files: Mapping[str, str]) -> dict[str, Any]:
    """The metadata; `files` are those that the crate holds, as name -> sha256."""
    graph: dict[str, Entity] = {}

    def add(identity: str, kind: str | list[str], **properties: Any) -> Entity:
        known = graph.setdefault(identity, {"@id": identity})
        known["@type"] = kind
        known.update({key: value for key, value in properties.items() if value not in (None, [], "")})
        return {"@id": identity}

    pdfs = [str(path) for path in build.config.pdfs]
    for name, digest in files.items():
        is_text = name in pdfs or name.startswith("paper/")
        add(name, "File", name=name, sha256=digest, license={"@id": TEXT_LICENCE} if is_text else None)
    steps = {experiment.step for experiment in build.config.experiments} | {"summarize"}
    tools = {step: _tool(add, step) for step in sorted(steps)}
    runs = {run_id: _run(add, build, run_id, tools, files) for run_id in build.runs}
    numbers = _numbers(add, build, tools, files)
    times = sorted(record["start"] for record in map(build.records.__getitem__, build.runs))
    ends = sorted(_end(record) for record in map(build.records.__getitem__, build.runs))
    _workflow(add, tools)
    add("#scale-value", "PropertyValue", name="scale", value=build.config.scale, exampleOfWork={"@id": "#scale"})
    for name, of in zip(pdfs, ("report", "supplement"), strict=False):
        if name in files:
            add(name, "File", exampleOfWork={"@id": f"#{of}"})
    results = [name for name in (*pdfs, str(build.config.data / "cells.jsonl")) if name in files]
    main = add(
        "#workflow-run",
        "CreateAction",
        name=f"snakemake all --config scale={build.config.scale}",
        instrument={"@id": WORKFLOW},
        object=[*_held(files, f"config/{build.config.scale}.yaml"), {"@id": "#scale-value"}],
        result=[{"@id": name} for name in results],
        startTime=times[0] if times else None,
        endTime=ends[-1] if ends else None,
        actionStatus={"@id": "http://schema.org/CompletedActionStatus"},
    )
    add(
        "#engine-run",
        "OrganizeAction",
        name="Snakemake runs the steps",
        instrument={"@id": "#snakemake"},
        object=[_control(add, action, tool) for action, tool in (*runs.values(), *numbers)],
        result=main,
        startTime=times[0] if times else None,
        endTime=ends[-1] if ends else None,
    )
    actions = [main, {"@id": "#engine-run"}, *(action for action, _ in (*runs.values(), *numbers))]
    _root(add, build, files, actions, times[-1] if times else "1970-01-01T00:00:00+00:00")
    return {"@context": CONTEXT, "@graph": list(graph.values())}


def _root(add: Any, build: Build, files: Mapping[str, str], actions: list[Entity], date: str) -> None:
    for profile, name in PROFILES.items():
        add(profile, "CreativeWork", name=name, version=profile.rsplit("/", 1)[1])
    add("#contributors", "Organization", name="The Ghost pipeline contributors")
    add(CODE_LICENCE, "CreativeWork", name="Apache License 2.0", identifier="Apache-2.0")
    add(TEXT_LICENCE, "CreativeWork", name="Creative Commons Attribution 4.0 International", identifier="CC-BY-4.0")
    add(
        "ro-crate-metadata.json",
        "CreativeWork",
        about={"@id": "./"},
        conformsTo=[
            {"@id": "https://w3id.org/ro/crate/1.1"},
            {"@id": "https://w3id.org/workflowhub/workflow-ro-crate/1.0"},
        ],
    )
    add(
        "./",
        "Dataset",
        name=f"Ghost Attractor Networks, reproduced ({build.config.scale})",
        description="Every number of the report, the runs behind it, and the report.",
        datePublished=date,
        license={"@id": CODE_LICENCE},
        author={"@id": "#contributors"},
        conformsTo=[{"@id": profile} for profile in PROFILES],
        hasPart=[{"@id": name} for name in files],
        mainEntity={"@id": WORKFLOW},
        mentions=actions,
    )


def _workflow(add: Any, tools: dict[str, Entity]) -> None:
    add("#snakemake", "SoftwareApplication", name="Snakemake", url="https://snakemake.github.io")
    address = {"@id": "https://snakemake.readthedocs.io"}
    add(LANGUAGE, "ComputerLanguage", name="Snakemake", identifier=address, url=address)
    for name, kind in (("scale", "Text"), ("report", "File"), ("supplement", "File")):
        profile = {"@id": f"{BIOSCHEMAS}/FormalParameter/1.0-RELEASE"}
        add(f"#{name}", "FormalParameter", name=name, additionalType=kind, conformsTo=profile)
    add(
        WORKFLOW,
        ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
        name="Ghost: a paper pipeline in which every number can be traced",
        version=version(),
        license={"@id": CODE_LICENCE},
        programmingLanguage={"@id": LANGUAGE},
        conformsTo={"@id": f"{BIOSCHEMAS}/ComputationalWorkflow/1.0-RELEASE"},
        hasPart=list(tools.values()),
        step=[{"@id": f"{WORKFLOW}#{step}"} for step in tools],
        input=[{"@id": "#scale"}],
        output=[{"@id": "#report"}, {"@id": "#supplement"}],
    )


def _tool(add: Any, step: str) -> Entity:
    path = f"src/ghost/steps/{step}.py"
    add(path, ["File", "SoftwareSourceCode"], name=f"python -m ghost.steps.{step}", programmingLanguage="Python")
    add(f"{WORKFLOW}#{step}", "HowToStep", name=f"rule {step}", workExample={"@id": path})
    return {"@id": path}


def _control(add: Any, action: Entity, tool: Entity) -> Entity:
    step = f"{WORKFLOW}#{Path(tool['@id']).stem}"
    control: Entity = add(
        f"#control/{action['@id'].lstrip('#')}", "ControlAction", instrument={"@id": step}, object=action
    )
    return control


def _run(
    add: Any, build: Build, run_id: str, tools: dict[str, Entity], files: Mapping[str, str]
) -> tuple[Entity, Entity]:
    run, record = build.runs[run_id], build.records[run_id]
    tool = tools[record["step"]]
    folder = run.folder / f"seed{run.seed}"
    results = _outputs(add, build, files, run_id)
    for key, value in record["settings"].items():
        add(f"#setting/{run_id}/{key}", "PropertyValue", name=key, value=str(value))
    settings = [{"@id": f"#setting/{run_id}/{key}"} for key in record["settings"]]
    inputs = [entity for name, entry in record["inputs"].items() for entity in _input(add, build, files, name, entry)]
    action = add(
        f"#run/{run_id}",
        "CreateAction",
        name=f"{record['experiment']}, seed {run.seed}",
        instrument=tool,
        object=[*inputs, *settings],
        result=[*results, *_held(files, str(run.folder / MANIFEST)), *_held(files, str(folder / "run.json"))],
        startTime=record["start"],
        endTime=_end(record),
        actionStatus={"@id": "http://schema.org/CompletedActionStatus"},
        description=f"on {record['host']}, {record['cpu']}; commit {record['commit']}",
    )
    return action, tool


def _outputs(add: Any, build: Build, files: Mapping[str, str], run_id: str) -> list[Entity]:
    run, outputs = build.runs[run_id], build.records[run_id]["outputs"]
    folder = run.folder / f"seed{run.seed}"
    return [_file(add, files, str(folder / name), entry["sha256"]) for name, entry in outputs.items()]


def _input(add: Any, build: Build, files: Mapping[str, str], name: str, entry: Mapping[str, str]) -> list[Entity]:
    """The files of a run that was used, or a file that was read."""
    if entry.get("run_id") in build.runs:
        return _outputs(add, build, files, entry["run_id"])
    return [_file(add, files, name, entry["sha256"])]


def _numbers(add: Any, build: Build, tools: dict[str, Entity], files: Mapping[str, str]) -> list[tuple[Entity, Entity]]:
    """An action per figure and table, whose results are its cells, each with the raw results it is computed from."""
    by_artefact: dict[str, list[dict[str, Any]]] = {}
    for identity, cell in build.cells.items():
        by_artefact.setdefault(identity.split("/")[0], []).append(cell)
    made = []
    for artefact, cells in by_artefact.items():
        sources: dict[str, Entity] = {}
        for cell in cells:
            behind = [build.runs[run_id] for run_id in cell["runs"] if run_id in build.runs]
            measured = [str(run.folder / f"seed{run.seed}/measured.csv") for run in behind]
            based = [held for name in measured for held in _held(files, name)]
            sources.update({entity["@id"]: entity for entity in based})
            add(
                f"#cell/{anchor(cell['id'])}",
                "PropertyValue",
                name=cell["id"],
                propertyID=cell["id"],
                value=cell["shown"] if cell["value"] is None else cell["value"],
                unitText=cell["unit"],
                measurementTechnique=cell["estimator"],
                description=" ".join(filter(None, (f"shown as {cell['shown']}, n = {cell['n']}", versus(cell)))),
                isBasedOn=based,
            )
        listing = _held(files, str(build.config.data / "cells" / f"{artefact.replace(':', '_')}.jsonl"))
        action = add(
            f"#numbers/{anchor(artefact)}",
            "CreateAction",
            name=f"the numbers of {artefact}",
            instrument=tools["summarize"],
            object=list(sources.values()),
            result=[*listing, *({"@id": f"#cell/{anchor(cell['id'])}"} for cell in cells)],
            actionStatus={"@id": "http://schema.org/CompletedActionStatus"},
        )
        made.append((action, tools["summarize"]))
    return made


def _held(files: Mapping[str, str], name: str) -> list[Entity]:
    return [{"@id": name}] if name in files else []


def _file(add: Any, files: Mapping[str, str], name: str, digest: str) -> Entity:
    """A file: a data entity if the crate holds it, otherwise its name and hash."""
    if name in files:
        return {"@id": name}
    known: Entity = add(f"#file/{digest}", "CreativeWork", name=name, sha256=digest, description="not in this crate")
    return known


def _end(record: Mapping[str, Any]) -> str:
    end = datetime.fromisoformat(record["start"]) + timedelta(seconds=record["wall_s"])
    return end.isoformat(timespec="seconds")
