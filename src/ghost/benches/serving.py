"""The policy server, with Ghost PG at the study's widths on the stand-in backbone, against the same policy without it.

batch       a pass of eight simulators through the policy, against one forward of backbone and decoder on that batch:
            seconds of the processor, of one thread, since others may keep it waiting
episodes    two simulators that share a server, against two that hold the policy themselves, each with passes of one
            row, as rollouts in one process have them: seconds of a clock, in both orders
seen        the same for a policy that sees, on the backbone of pixels, with LIBERO's own stepping and two cameras
            rendered in software: what is served at the article's size, but for the size of the backbone

The server computes with one thread, and two simulators that hold the policy use both cores for it. Where a step of the
simulation is short beside a plan, as in `episodes`, they are the faster ones.

Before it is timed, a served episode is compared with one in the process with passes of the server's rows: to the bit.
"""

import asyncio
import importlib
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
import torch

from ghost.backbones import libero_standin, pixels
from ghost.benches import Pair, Place, interleaved
from ghost.data.features import Sizes
from ghost.decoders.contract import Batch
from ghost.libero.assets import primitive_assets
from ghost.libero.conventions import SCRIPTED, find_convention
from ghost.libero.policy import Acting, Alone, Asked, Policy
from ghost.libero.sensing import Senses
from ghost.libero.stepping import environment
from ghost.libero.tasks import TASKS
from ghost.serving.client import UNIX, Client
from ghost.serving.server import Place as Address
from ghost.serving.server import Server
from ghost.study.libero import POLICIES
from ghost.training.building import build

TASK, STEPS, EXECUTE, REPEATS, WARM_UP, SIMULATORS, ROWS = 5, 64, 8, 7, 3, 2, 8
SIZES = Sizes(64, 160, 64, 16, 7)
CAMERAS = ("observation.images.image", "observation.images.wrist_image")
RUNS = {"features": "bench", "trained": ["bench"], "rows": SIMULATORS}


def measure(place: Place) -> list[Pair]:
    torch.set_num_threads(1)
    policy = made(ROWS)
    env = environment(TASK, primitive_assets())
    env.reset(0, 0)
    raw, told = policy.senses.sense(env), TASKS[TASK].instruction
    pairs = []
    for repeat in range(-WARM_UP, 5 * REPEATS):
        ours_s, reference_s = cpu_s(shared, policy, raw, told), cpu_s(forward, policy, raw, told)
        pairs += [Pair("batch", repeat, ours_s, reference_s, "s")] if repeat >= 0 else []
    os.environ.setdefault("MUJOCO_GL", "osmesa")  # read by the simulators' processes
    return pairs + served("episodes", place.scratch / "blind", False) + served("seen", place.scratch / "seeing", True)


def served(name: str, address: Path, seeing: bool) -> list[Pair]:
    """Episodes on a server that listens at this address, against episodes without one."""
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(address, seeing), daemon=True)
    server.start()
    while not address.exists():
        time.sleep(0.1)
    try:
        with ProcessPoolExecutor(SIMULATORS, multiprocessing.get_context("spawn")) as pool:

            def played(where: str, rows: int = SIMULATORS) -> list[np.ndarray]:
                asked = ([given] * SIMULATORS for given in (where, rows, seeing))
                return list(pool.map(episode, *asked, range(SIMULATORS)))

            if not np.array_equal(played(f"{UNIX}{address}"), played("")):
                raise AssertionError("a served episode is another one")
            return in_both_orders(name, lambda: played(f"{UNIX}{address}"), lambda: played("", 1), REPEATS)
    finally:
        server.terminate()
        server.join()


def cpu_s(act: Callable[..., object], *given: object) -> float:
    """Seconds of the processor."""
    start_s = time.process_time()
    act(*given)
    return time.process_time() - start_s


def in_both_orders(name: str, ours: Callable[[], object], reference: Callable[[], object], repeats: int) -> list[Pair]:
    """Pairs in which ours comes first, then as many in which the reference does: a load that grows meets both alike."""
    there, back = (interleaved(name, *acts, repeats) for acts in ((ours, reference), (reference, ours)))
    return [*there, *(Pair(name, repeats + pair.repeat, pair.reference, pair.ours, pair.unit) for pair in back)]


def made(rows: int, seeing: bool = False) -> Policy:
    """Ghost PG with weights as they are drawn."""
    decoder, given, _ = POLICIES["libero_ghost_pg"]
    module = importlib.import_module(f"ghost.decoders.{decoder}")
    known = {field.name for field in fields(module.Settings)}
    torch.manual_seed(0)
    settings = module.Settings(**{key: value for key, value in given.items() if key in known})
    network = build(module, settings, SIZES).eval().requires_grad_(False)
    if seeing:
        backbone = pixels.start(pixels.Settings(SIZES.tokens, SIZES.d_token, 8, 256, 0, CAMERAS), SIZES, [])
        return Policy([network], backbone.encode, Senses(find_convention("ipec"), CAMERAS, SIZES.d_state), rows)
    backbone = libero_standin.start(libero_standin.Settings(SIZES.tokens, SIZES.d_token, 0), SIZES, [])
    return Policy([network], backbone.encode, Senses(find_convention(SCRIPTED), (), SIZES.d_state), rows)


def shared(policy: Policy, raw: dict[str, np.ndarray], told: str) -> object:
    return policy.plan([Asked(policy.session(seed), raw, told) for seed in range(ROWS)])


@torch.no_grad()
def forward(policy: Policy, raw: dict[str, np.ndarray], told: str) -> object:
    """The same numbers without sessions: what a batch costs at least."""
    seen = policy.senses.observations([raw] * ROWS, [told] * ROWS, np.zeros((ROWS, 2), np.int64))
    tokens = torch.from_numpy(policy.encode(seen).tokens.astype(np.float32))
    target, mask = torch.zeros(ROWS, SIZES.horizon, SIZES.d_action), torch.ones(SIZES.d_action, dtype=torch.bool)
    batch = Batch(tokens, torch.from_numpy(seen.state), target, mask, torch.zeros(ROWS, dtype=torch.int64))
    return policy.decoders[0].plan(batch)


def serve(address: Path, seeing: bool) -> None:
    torch.set_num_threads(1)
    asyncio.run(Server(made(SIMULATORS, seeing), RUNS, EXECUTE).serve(Address(address, "", 0), beside=False))


@cache
def acting(where: str, rows: int, seeing: bool) -> Acting:
    torch.set_num_threads(1)
    policy = made(rows, seeing)
    return Client(where, policy.senses, RUNS) if where else Alone(policy)


def episode(where: str, rows: int, seeing: bool, number: int) -> np.ndarray:
    """The hand's last position [3]."""
    env = environment(TASK, primitive_assets(), "libero" if seeing else "fast")
    policy = acting(where, rows, seeing)
    env.reset(number, seed=number)
    policy.start(number)
    for step in range(STEPS):
        if step % EXECUTE == 0:
            chunk = policy.plan(policy.senses.sense(env), TASKS[TASK].instruction).actions
        env.step(chunk[step % EXECUTE])
        env.success()
    return env.look().hand
