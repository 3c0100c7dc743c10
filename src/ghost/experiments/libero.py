"""LIBERO-10 in closed loop: demonstrations, eight policies and four variants of the attractor, rollouts, table, figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ghost.table import Artefact, Cell, Experiment

# ------------------------------------------------------------------------------------------------------ experiments

FEATURES = "libero_features"
SEEDS = (42, 123, 999, 7, 2024)
TASKS = list(range(10))
EXECUTE = 8
# The paper gives no training settings for LIBERO; these are ours. A window is a sequence of chunks, EXECUTE steps apart.
TRAINING = {"split": "episode", "epochs": 60, "batch_size": 256, "learning_rate": 1e-3, "final_rate": 0.02}
WIDTHS = {"hidden": 512, "d_context": 128, "d_latent": 64}
PHASE = {"phases": 8, "phase": 0.1}
SEQUENCE = {"window": 3, "gap": EXECUTE}
FIELD = {"d_context": 192, "potential_layers": 3, "drift_layers": 2, "steps": 5, "dt": 0.2}
GHOST = {**TRAINING, **WIDTHS, **FIELD}
GHOST_PG = {**GHOST, **PHASE}
GHOST_PZ = {**GHOST_PG, **SEQUENCE, "persistent": True}

# name: decoder, settings, seeds, whether an ensemble of them acts as well
POLICIES: Mapping[str, tuple[str, Mapping[str, Any], tuple[int, ...]]] = {
    "libero_mlp": ("mlp", {**TRAINING, **WIDTHS, "layers": 1}, SEEDS[:1]),
    "libero_mlp_phase": ("mlp_phase", {**TRAINING, **WIDTHS, **PHASE, "layers": 1}, SEEDS[:1]),
    "libero_gru_phase": ("gru_phase", {**TRAINING, **WIDTHS, **PHASE, **SEQUENCE, "d_recurrent": 832}, SEEDS[:1]),
    "libero_ghost": ("ghost", GHOST, SEEDS[:1]),
    "libero_ghost_pg": ("ghost_phase", GHOST_PG, SEEDS),
    "libero_ghost_pz": ("ghost_phase", GHOST_PZ, SEEDS),
}
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any], tuple[int, ...]]] = {
    "libero_push": ("ghost_phase", {**GHOST_PG, "contrastive": 0.2}, SEEDS[:1]),
    "libero_pull": ("ghost_phase", {**GHOST_PG, "pull": 0.1}, SEEDS[:1]),
    "libero_subspace": ("ghost_phase", {**GHOST_PG, "basin_dims": 16}, SEEDS[:1]),
    "libero_quartic": ("ghost_phase", {**GHOST_PG, "quartic": True}, SEEDS[:1]),
}
ENSEMBLES = ("libero_ghost_pg", "libero_ghost_pz")
MISDIRECTED = ("libero_mlp", "libero_gru_phase", "libero_ghost_pg", "libero_ghost_pz")
ROLLOUT = {"backbone": "libero_standin", "tasks": TASKS, "trials": 20, "max_steps": 520, "execute": EXECUTE}
MISDIRECT = {**ROLLOUT, "tasks": [], "misdirect": [[0, 1], [5, 7]], "switch_at": [50, 100, 150]}


def _rollout(name: str, trained: str, settings: Mapping[str, Any], seeds: tuple[int, ...]) -> Experiment:
    return Experiment(name, "rollout", "ghost.rollout", settings, seeds, (FEATURES, trained))


DATA = (
    Experiment(
        "libero_demos",
        "make_demos",
        "ghost.libero.demos",
        {"tasks": TASKS, "attempts": 50, "max_steps": 520, "noise": 0.12, "bursts": 0.01},
    ),
    Experiment(
        FEATURES,
        "cache_features",
        "ghost.backbones.libero_standin",
        {
            "tokens": 64,
            "d_token": 2048,
            "weights_seed": 2026,
            "stride": 1,
            "test_episodes": 4,
            "horizon": 16,
            "d_state": 64,
            "d_action": 7,
            "samples_per_shard": 1024,
        },
        needs=("libero_demos",),
    ),
)
TRAINED = tuple(
    Experiment(name, "train", f"ghost.decoders.{decoder}", settings, seeds, (FEATURES,))
    for name, (decoder, settings, seeds) in {**POLICIES, **VARIANTS}.items()
)
ROLLOUTS = (
    *(_rollout(f"{row.name}_rollout", row.name, ROLLOUT, row.seeds) for row in TRAINED),
    *(_rollout(f"{name}_ensemble_rollout", name, {**ROLLOUT, "ensemble": True}, (0,)) for name in ENSEMBLES),
    *(_rollout(f"{name}_misdirected", name, MISDIRECT, SEEDS[:1]) for name in MISDIRECTED),
)

EXPERIMENTS = (*DATA, *TRAINED, *ROLLOUTS)
ARTEFACTS: tuple[Artefact, ...] = ()
_ = Cell
