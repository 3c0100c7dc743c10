"""Training: its share of the machine's arithmetic, and all seeds in one job against a plain process per seed.

share/<widths>    matrix FLOP/s of an update of Ghost over those of a large matrix product, both on one core. Torch
                  counts the FLOPs from the shapes of all operations, forward and backward.
share/laptop/products   the same for the matrix products of such an update alone, one after the other: the limit if
                  everything else cost nothing
waiting/<widths>  an update, against one after which the loss and Adam's count are read, for which a GPU would stop.
                  In seconds of the core: on a CPU nothing can be gained, and nothing may be lost
seeds             one job that trains five seeds, against one process per seed of `ghost.benches.plain` (autograd and
                  torch.optim.Adam), imports and reading included, on one core
seeds/loss        the last losses of the two, which must agree
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from ghost.benches import Pair, Place, interleaved, python, seconds
from ghost.data.features import FeatureCache, Sizes
from ghost.data.samples import Samples
from ghost.decoders import ghost
from ghost.files import canonical, read_json
from ghost.runs.records import open_runs
from ghost.study.builds import load
from ghost.training.loop import Fit, Training, be_deterministic

WIDTHS = {  # name: (sizes, settings, batch)
    "paper": (Sizes(64, 2048, 64, 17, 32), ghost.Settings(), 32),
    "laptop": (Sizes(8, 256, 64, 17, 32), ghost.Settings(hidden=128, d_context=32, d_latent=16), 64),
}
REPEATS, UPDATES = 12, 10
SEEDS, EPOCHS, SEED_REPEATS = 5, 10, 2
MATRIX = 1024
PRODUCTS = {torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.bmm}


def measure(place: Place) -> list[Pair]:
    be_deterministic()
    return [*(pair for widths in WIDTHS for pair in share(widths)), *all_seeds(place)]


def share(widths: str) -> list[Pair]:
    """FLOP/s of an update, against those of a product of two matrices."""
    sizes, settings, size = WIDTHS[widths]
    samples = Samples(synthetic(sizes, 4 * size), np.arange(4 * size))
    fit = Fit(ghost, settings, Training(1, size, 1e-3), samples, 0, Path("unused"))
    batch, weights = samples.batch(torch.arange(size)), {"bc": 1.0}
    with FlopCounterMode(display=False) as counter:
        fit.step(batch, weights)
    flops = UPDATES * counter.get_total_flops()
    a, b = torch.randn(MATRIX, MATRIX), torch.randn(MATRIX, MATRIX)

    def updates() -> None:
        for _ in range(UPDATES):
            fit.step(batch, weights)

    def large() -> None:
        a @ b

    def waiting() -> None:
        for _ in range(UPDATES):
            fit.step(batch, weights)["loss"].item()
            fit.steps[0].item()

    waited = interleaved(f"waiting/{widths}", updates, waiting, REPEATS, clock=time.process_time)
    taken = interleaved(f"share/{widths}", updates, large, REPEATS, warm_up=2)
    if widths == "laptop":
        taken += interleaved("share/laptop/products", products(lambda: fit.step(batch, weights)), large, REPEATS)
    rates = [Pair(p.name, p.repeat, flops / p.ours, 2 * MATRIX**3 / p.reference, "FLOP/s") for p in taken]
    return [*rates, *waited]


def products(update: Callable[[], object]) -> Callable[[], None]:
    """The matrix products of UPDATES updates, on matrices of the same shapes and strides, and nothing else."""
    seen: list[tuple[Callable[..., Tensor], list[Tensor]]] = []

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function._overloadpacket in PRODUCTS:
                seen.append((function, [torch.randn_like(of) for of in args]))
            return function(*args, **(kwargs or {}))

    with Watch():  # type: ignore[no-untyped-call]
        update()

    def replay() -> None:
        with torch.no_grad():
            for _ in range(UPDATES):
                for function, of in seen:
                    function(*of)

    return replay


def synthetic(sizes: Sizes, samples: int) -> FeatureCache:
    """A cache of noise, in memory."""
    rng = np.random.default_rng(0)
    return FeatureCache(
        state=rng.standard_normal((samples, sizes.d_state), np.float32),
        action=rng.standard_normal((samples, sizes.horizon, sizes.d_action), np.float32),
        action_mask=np.arange(sizes.d_action) < 17,
        task=np.arange(samples) % 10,
        phase=np.zeros(samples, np.int64),
        episode=np.arange(samples),
        timestep=np.zeros(samples, np.int64),
        task_names=tuple(f"task {k}" for k in range(10)),
        sizes=sizes,
        splits={},
        shards=(rng.standard_normal((samples, sizes.tokens, sizes.d_token), np.float32).astype(np.float16),),
        samples_per_shard=samples,
    )


def all_seeds(place: Place) -> list[Pair]:
    scale = load({"scale": place.features.parents[2].name}, place.root)
    experiment: dict[str, Any] = json.loads(canonical(scale.declaration("ghost_bc")))
    experiment["settings"]["epochs"], experiment["seeds"] = EPOCHS, list(range(SEEDS))
    pairs: list[Pair] = []
    losses: list[Pair] = []

    def train(module: str, out: Path, *more: str) -> float:
        options = ("--experiment", json.dumps(experiment), "--needs", str(place.features), "--out", str(out), *more)
        return seconds(lambda: python(module, *options, root=place.root, core=0))

    for repeat in range(SEED_REPEATS):
        folder = place.scratch / f"seeds{repeat}"
        plain = {seed: folder / f"plain{seed}.json" for seed in range(SEEDS)}
        ours_s = train("ghost.steps.train", folder / "manifest.json")
        plain_s = sum(train("ghost.benches.plain", plain[s], "--seed", str(s)) for s in plain)
        pairs.append(Pair("seeds", repeat, ours_s, plain_s, "s"))
        for run in open_runs(folder / "manifest.json"):
            ours, theirs = run.value("train", "loss"), read_json(plain[run.seed])["loss"]
            losses.append(Pair("seeds/loss", len(losses), ours, theirs, "loss"))
    return pairs + losses
