"""Time GR00T's own action head beside our decoders, in GR00T's environment.

The experiment needs the demonstrations and the fine-tuned checkpoint. The head acts on the first observation of the
data set as it would on the robot: with all tokens of Eagle, in the precision of the device, in the Euler steps of its
checkpoint. Eagle itself is not timed. Our decoders act as `ghost.evaluations.latency` describes, in turns with it.
"""

from dataclasses import replace

import numpy as np
import torch

from ghost.backbones.groot import Groot, choose_cameras
from ghost.backbones.groot_environment import attention, dtype, lock
from ghost.backbones.groot_files import CHECKPOINT
from ghost.data.lerobot import LeRobotDataset
from ghost.data.results import Measured, Outcome
from ghost.data.sampling import open_demos
from ghost.evaluations.latency import Settings, TimedHead, evaluate
from ghost.runs.driver import Job, Plan, Unit, main
from ghost.runs.progress import Progress


def time_head(job: Job) -> Plan:
    """Time GR00T's action head and our decoders."""
    (settings,) = job.read(Settings)

    def run(unit: Unit) -> Outcome:
        demos, checkpoint = unit.runs
        asked = checkpoint.record()["settings"]
        model = Groot.load(checkpoint.verified() / CHECKPOINT, asked["embodiment"])
        head, tokens = first_action(model, open_demos(demos), tuple(asked["cameras"]))
        found = evaluate(settings, None, {"dit": head}, seed=unit.seed, progress=Progress("rounds"))
        return replace(found, measured=[*found.measured, Measured("dit", "tokens", tokens)])

    facts = {"attention": attention(), "dtype": str(dtype()).removeprefix("torch.")}
    return Plan(run, facts=facts, lock=lock())


def first_action(model: Groot, dataset: LeRobotDataset, cameras: tuple[str, ...]) -> tuple[TimedHead, int]:
    """The head with the first observation of a data set, and how many tokens of Eagle it reads there."""
    views = [dataset.frames(0, camera, [0])[0] for camera in choose_cameras(cameras, dataset.cameras)]
    features, _ = model.features(model.inputs([dataset.instruction(0)], [views]))  # [1, L, D]
    seen = dataset.episode(0).state[0]
    state = np.zeros((1, model.head.config.max_state_dim), np.float32)
    state[0, : len(seen)] = seen
    given = (torch.from_numpy(values).to(features) for values in (state, model.noise(0, 0, 0)[None]))
    parameters = sum(parameter.numel() for parameter in model.head.parameters())
    inputs = (features, *given)
    return TimedHead(parameters, lambda: model.act(*inputs)), features.shape[1]


if __name__ == "__main__":
    main(time_head)
