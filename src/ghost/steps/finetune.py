"""Fine-tune GR00T N1.5 on a data set, once per seed.

The result is one folder with the checkpoint and its processor. The feature cache needs nothing else of GR00T. With
`steps: 0` the weights stay as they are; the horizon and the Euler steps are set all the same. The recipe is in
`ghost.backbones.finetuning`.

An experiment that needs another fine-tuning, and not a data set, takes its weights with other Euler steps.
"""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ghost.backbones.finetuning import STATE, Fit, listed, save
from ghost.backbones.groot import Groot
from ghost.backbones.groot_environment import lock
from ghost.backbones.groot_files import ASSETS, CHECKPOINT, EAGLE, WEIGHTS, check_files, find_files, read_config
from ghost.backbones.recipe import FineTuning, Flow
from ghost.backbones.several_gpus import Share, on_all, visible
from ghost.data.lerobot import LeRobotDataset
from ghost.data.results import Measured, Outcome
from ghost.data.sampling import open_demos
from ghost.files import link, read_json, write_json
from ghost.runs.driver import Job, Plan, Unit, main
from ghost.runs.outside import Place
from ghost.runs.progress import Progress
from ghost.runs.records import Run
from ghost.training.head import FineTunedHead

CURVE = "curve.json"  # the losses, from the process that wrote the checkpoint to the one that records the run


def finetune(job: Job) -> Plan:
    """Fine-tune the action head of GR00T N1.5."""
    if FineTunedHead.made(job.only_run(0)):
        (flow,) = job.read(Flow)
        tuned = job.only_run(0)
        facts = tuned.record()["facts"]  # which weights they were
        return Plan(lambda unit: with_steps(tuned, flow.euler_steps, unit.folder), facts=facts, lock=lock())
    (settings,) = job.read(FineTuning)
    source = find_files(settings.checkpoint, settings.revision, "checkpoint")
    processor = source / EAGLE
    if settings.processor:
        processor = find_files(settings.processor, settings.processor_revision, "processor")
    check_files(source, processor)

    def run(unit: Unit) -> Outcome:
        dataset = open_demos(job.only_run(0))
        dataset.require_normalisation()  # checks that it is there before the long work
        on_all(
            partial(tune, settings, source, processor, dataset.folder, unit.seed, unit.folder),
            visible(settings.batch_size),
        )
        made = read_json(unit.folder / CURVE, {"losses": [float], "parameters": int})
        measured = [Measured("head", "parameters", made["parameters"]), Measured("train", "updates", settings.steps)]
        measured += [Measured("train", "loss", made["losses"][-1])] if made["losses"] else []
        return Outcome(measured, {"training/loss": np.array(made["losses"])}, listed(unit.folder / CHECKPOINT))

    return Plan(run, facts=_facts(settings, source, processor), lock=lock())


def tune(
    settings: FineTuning, source: Path, processor: Path, dataset: Path, seed: int, folder: Path, share: Share
) -> None:
    """The share of one process in a run. The first one writes the checkpoint and the losses."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    model = Groot.load(
        source, settings.embodiment, processor=processor, horizon=settings.horizon, euler_steps=settings.euler_steps
    )
    first = share[0] == 0
    fit = Fit(model, LeRobotDataset.open(dataset), settings, seed, folder / STATE, share=share)
    losses = fit.run(Progress("steps") if first else None)
    if first:
        save(model, processor, folder / CHECKPOINT)
        parameters = sum(parameter.numel() for parameter in model.head.parameters())
        write_json(folder / CURVE, {"losses": losses, "parameters": parameters})


def with_steps(tuned: Run, euler_steps: int, folder: Path) -> Outcome:
    """The checkpoint of another fine-tuning, whose flow has so many steps. No weight depends on them."""
    source, files = tuned.verified() / CHECKPOINT, []
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        name = path.relative_to(source.parent)
        files.append(str(name))
        if path == source / "config.json":
            write_json(folder / name, read_config(source, euler_steps=euler_steps))
        else:
            link(path, folder / name)
    return Outcome([Measured("head", "parameters", tuned.value("head", "parameters"))], files=tuple(files))


def _facts(settings: FineTuning, source: Path, processor: Path) -> dict[str, Any]:
    """Which weights and processor the run starts from: of folders the content, of repositories of the hub the name."""
    weights = (settings.checkpoint, settings.revision)
    own = (settings.processor, settings.processor_revision) if settings.processor else weights
    used = {"checkpoint": (*weights, Place(str(source), WEIGHTS)), "processor": (*own, Place(str(processor), ASSETS))}
    return {
        what: {"sha256": place.content()} | ({} if Path(name).is_dir() else {"name": name, "revision": revision})
        for what, (name, revision, place) in used.items()
    }


if __name__ == "__main__":
    main(finetune)
