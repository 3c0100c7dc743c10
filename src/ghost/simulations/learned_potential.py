"""Learned potential: a scalar MLP U_θ(z; c) trained by behaviour cloning alone. Does it grow the basins?

Demonstrator: the three wells of the diagnostic. A demonstration is a start z0 in a square, a context c (the weights of
the wells: all 1, or one of them collapsed), and the action a*, the state in which the demonstrator's gradient flow has
settled `horizon_s` later.

Policy: n Euler steps on U_θ from z0 without drift. The action is the last state. One control step is these n steps.
Loss: the mean of |a - a*|², the behaviour-cloning term, and nothing else. The paper's text here also names
slow-manifold and ghost-structure regularisers, but its method section defines neither and says that none is needed.
Training: Adam on the full batch, with a learning rate that falls to zero along a cosine.

How far the result reaches: no term looks at U_θ, but settled actions are the bottoms of the basins, so the behaviour
itself says where they lie. The loss asks for the settled action after one control step from any start, so training asks
for a switch in one step. The demonstrator's dwell in the ghost is not in the data.

The paper does not give the learning rate, the reach and the number of demonstrations. We tried three settings: 3e-3
with 256 per context over ±2, 3e-3 with 128 over ±1.5, and the study's 1e-3 with 256 over ±1.5. With the first two the
loss spiked and one of three seeds did not switch to B2. The third was run once and kept. So the share of runs that
switch is conditioned on having seen failures.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from ghost.data.results import Measured, Outcome
from ghost.dynamics.integrators import rollout, steps_to_converge
from ghost.dynamics.networks import Potential
from ghost.dynamics.potentials import ACTIVE_WEIGHT, CENTRES, ThreeWells, find_minima, grid, nearest
from ghost.runs.progress import Progress
from ghost.runs.settings import at_least_one, below_one, positive

Demonstrations = tuple[np.ndarray, np.ndarray, np.ndarray]  # z0 [N, 2], c [N, 3], a* [N, 2]

SAME_BASIN = 0.5  # two points this near belong to one basin; the basins lie about 2 apart


@dataclass(frozen=True)
class Settings:
    alpha: float
    sigma: float
    collapsed_weight: float
    reach: float  # half-width of the square that holds the starts z0
    train_per_context: int
    heldout_per_context: int
    horizon_s: float
    demonstrator_dt: float
    hidden: tuple[int, ...]
    epochs: int
    learning_rate: float
    euler_steps: int  # n
    dt: float
    tolerance: float  # a trajectory this near to B2 has switched
    max_control_steps: int
    grid_points: int

    def __post_init__(self) -> None:
        positive(self, "alpha", "sigma", "reach", "demonstrator_dt", "learning_rate", "dt", "tolerance")
        at_least_one(self, "train_per_context", "heldout_per_context", "epochs", "euler_steps", "max_control_steps")
        below_one(self, "collapsed_weight")
        if not self.horizon_s > self.demonstrator_dt:
            raise ValueError(f"horizon_s must exceed demonstrator_dt, got {self.horizon_s}")
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden must hold positive widths, got {self.hidden}")


def run(settings: Settings, *, seed: int, progress: Progress) -> Outcome:
    s = settings
    rng = np.random.default_rng(seed)
    train = demonstrate(s, rng, s.train_per_context)
    heldout = demonstrate(s, rng, s.heldout_per_context)
    model, losses = fit(s, train, seed, progress)
    landscape = copy.deepcopy(model).double()  # the measurements below need more than single precision
    wells, contexts = ThreeWells(s.alpha, s.sigma), all_contexts(s)
    analytic = wells.minima(contexts[0])
    if len(analytic) != len(CENTRES):
        raise ValueError(f"alpha and sigma must give three basins, got {len(analytic)} for {s.alpha}, {s.sigma}")
    analytic = analytic[nearest(analytic, CENTRES)]  # B1, B2, B3
    learned = [learned_minima(landscape, s, c) for c in contexts]
    rest = control(landscape, s, analytic[0], contexts[0])[-1]  # hold in B1 under c1, then switch to c2
    z = control(landscape, s, rest, contexts[1])  # [control steps + 1, 2]
    measured = [
        Measured("train", "final_loss", float(losses[-1]), len(train[0])),
        *heldout_measured(landscape, s, heldout, train[2].mean(axis=0)),
        *basin_measured(analytic, learned),
        *switch_measured(z, learned[1], analytic[1], s.tolerance),
    ]

    lattice = grid(s.reach, s.grid_points)
    arrays = {
        "training/loss": losses,
        "grid/axis": np.linspace(-s.reach, s.reach, s.grid_points),
        "c1/analytic_minima": analytic,
        "c2/analytic_minima": wells.minima(contexts[1]),
        "switch/z": z,
    }
    for name, c, minima in zip(("c1", "c2"), contexts, learned, strict=False):
        with torch.no_grad():
            u = landscape(torch.from_numpy(lattice), context(c, len(lattice))).numpy()
        arrays[f"{name}/u"] = u.reshape(s.grid_points, s.grid_points).astype(np.float32)  # [z_2, z_1]
        arrays[f"{name}/learned_minima"] = minima
    arrays |= {f"model/{name}": value.detach().numpy() for name, value in model.named_parameters()}
    return Outcome(measured, arrays)


def all_contexts(settings: Settings) -> np.ndarray:
    """The well weights [4, 3]: c1 with all basins active, then each basin collapsed in turn (c2 is B1)."""
    active = np.full(len(CENTRES), ACTIVE_WEIGHT)
    return np.vstack([active, active - (ACTIVE_WEIGHT - settings.collapsed_weight) * np.eye(len(CENTRES))])


def demonstrate(settings: Settings, rng: np.random.Generator, per_context: int) -> Demonstrations:
    """Random starts under every context, with the action on which the demonstrator settles; N = 4 per_context."""
    s = settings
    c = np.repeat(all_contexts(s), per_context, axis=0)
    z0 = rng.uniform(-s.reach, s.reach, size=(len(c), 2))
    wells = ThreeWells(s.alpha, s.sigma)
    z = rollout(lambda z: -wells.gradient(z, c), z0, s.demonstrator_dt, round(s.horizon_s / s.demonstrator_dt))
    return z0, c, z[-1]


def act(model: Potential, settings: Settings, z0: Tensor, c: Tensor) -> Tensor:
    """The policy: n Euler steps down U_θ; the action [B, 2] is the last state."""
    potential = model.at(c)
    return rollout(lambda z: -potential.gradient(z), z0, settings.dt, settings.euler_steps)[-1]


def bc_loss(model: Potential, settings: Settings, z0: Tensor, c: Tensor, action: Tensor) -> Tensor:
    """L_BC = |a - a*|², averaged over the demonstrations."""
    return (act(model, settings, z0, c) - action).square().sum(dim=-1).mean()


def fit(
    settings: Settings, demonstrations: Demonstrations, seed: int, progress: Progress
) -> tuple[Potential, np.ndarray]:
    """Train in single precision; returns the network and its loss before each update and after the last."""
    s = settings
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Potential(d_z=2, d_c=3, hidden=s.hidden)
    data = [torch.from_numpy(x).float() for x in demonstrations]
    adam = torch.optim.Adam(model.parameters(), lr=s.learning_rate)
    anneal = torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=s.epochs)
    losses = np.empty(s.epochs + 1)
    for epoch in range(s.epochs):
        loss = bc_loss(model, s, *data)
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        anneal.step()
        losses[epoch] = loss.item()
        progress(epoch + 1, s.epochs, f"loss {losses[epoch]:.4f}")
    with torch.no_grad():
        losses[-1] = bc_loss(model, s, *data).item()
    return model, losses


def learned_minima(model: Potential, settings: Settings, c: np.ndarray) -> np.ndarray:
    """The minima [M, 2] of U_θ(.; c) inside the square that the demonstrations cover."""

    def gradient(z: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return model.gradient(torch.from_numpy(z), context(c, len(z))).numpy()

    def hessian(z: np.ndarray) -> np.ndarray:
        h = 1e-5
        return np.stack([(gradient(z + h * e) - gradient(z - h * e)) / (2 * h) for e in np.eye(2)], axis=-1)

    reach = settings.reach
    # 300 steps of 0.02 are 6 s of the flow; the policy must settle in 1 s.
    return find_minima(gradient, hessian, grid(reach, 17), step=0.02, steps=300, within=reach)


def heldout_measured(
    model: Potential, settings: Settings, heldout: Demonstrations, mean_action: np.ndarray
) -> list[Measured]:
    """The loss on unseen starts, and the share of starts, those beside a ridge, that end in the wrong basin."""
    z0, c, action = heldout
    with torch.no_grad():
        predicted = act(model, settings, torch.from_numpy(z0), torch.from_numpy(c)).numpy()
    squared = np.sum((predicted - action) ** 2, axis=-1)
    mean_squared = np.sum((mean_action - action) ** 2, axis=-1)
    n = len(z0)
    return [
        Measured("heldout", "loss", float(squared.mean()), n),
        Measured("heldout", "median_squared_error", float(np.median(squared)), n),
        Measured("heldout", "wrong_basin_rate", float(np.mean(squared > SAME_BASIN**2)), n),
        Measured("heldout", "predict_the_mean_loss", float(mean_squared.mean()), n),
    ]


def basin_measured(analytic: np.ndarray, learned: list[np.ndarray]) -> list[Measured]:
    """The basins under c1 compared with the demonstrator's, then what each collapsed context removes."""
    distance = distances_to_match(analytic, learned[0])
    measured = [
        Measured("c1", "basins", len(learned[0])),
        *(Measured(f"basin_{k + 1}", "distance", float(d)) for k, d in enumerate(distance)),
        Measured("c1", "largest_distance", float(distance.max()), len(distance)),
    ]
    for k, left in enumerate(learned[1:]):
        gone = not np.any(np.linalg.norm(left - analytic[k], axis=-1) < SAME_BASIN)
        measured += [
            Measured(f"collapse_{k + 1}", "basins", len(left)),
            Measured(f"collapse_{k + 1}", "basins_lost", len(learned[0]) - len(left)),
            Measured(f"collapse_{k + 1}", "collapsed_basin_gone", float(gone)),
        ]
    return measured


def switch_measured(z: np.ndarray, learned: np.ndarray, b2: np.ndarray, tolerance: float) -> list[Measured]:
    """After how many control steps z [T, 2] stays near the learned B2; nan if it does not, or without that basin."""
    steps = final_distance = float("nan")
    candidates = learned[np.linalg.norm(learned - b2, axis=-1) < SAME_BASIN]
    if len(candidates):
        distance = np.linalg.norm(z[:, None] - candidates, axis=-1).min(axis=1)  # [T]
        steps, final_distance = steps_to_converge(distance, tolerance), float(distance[-1])
    return [
        Measured("switch", "control_steps", steps),
        Measured("switch", "reached", float(not np.isnan(steps))),
        Measured("switch", "ends_in", 1 + int(nearest(CENTRES, z[-1]))),
        Measured("switch", "final_distance", final_distance),
    ]


def distances_to_match(analytic: np.ndarray, learned: np.ndarray) -> np.ndarray:
    """The distance [3] of every analytic minimum to the learned one that is matched with it; nan where none is left."""
    cost = np.linalg.norm(learned[:, None] - analytic, axis=-1)  # [learned, analytic]
    i, j = linear_sum_assignment(cost)
    distance = np.full(len(analytic), np.nan)
    distance[j] = cost[i, j]
    return distance


def control(model: Potential, settings: Settings, start: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The start and the action after every control step: [max_control_steps + 1, 2]."""
    with torch.no_grad():
        z = [torch.from_numpy(start)[None]]
        for _ in range(settings.max_control_steps):
            z.append(act(model, settings, z[-1], context(c, 1)))
    return torch.cat(z).numpy()


def context(c: np.ndarray, count: int) -> Tensor:
    """The same context for `count` states, [count, 3]."""
    return torch.from_numpy(c).expand(count, -1)
