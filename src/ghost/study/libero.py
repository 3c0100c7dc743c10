"""LIBERO-10 in closed loop: demonstrations, eight policies, four variants of the attractor, their rollouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ghost.study.cells import settings
from ghost.study.declarations import Artefact, Cell, Experiment

# ------------------------------------------------------------------------------------------------------ experiments

FEATURES = "libero_features"
SEEDS = (42, 123, 999, 7, 2024)
TASKS = list(range(10))
EXECUTE = 8
# The paper gives no training settings for LIBERO; these are ours. A window has sequential chunks, EXECUTE steps apart.
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
PAIRS, SWITCH_AT = [[0, 1], [5, 7]], [50, 100, 150]
MISDIRECT = {**ROLLOUT, "tasks": [], "misdirect": PAIRS, "switch_at": SWITCH_AT}


def _rollout(name: str, trained: str, settings: Mapping[str, Any], seeds: tuple[int, ...]) -> Experiment:
    return Experiment(name, "rollout", "ghost.steps.rollout", settings, seeds, (FEATURES, trained))


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

OFFLINE = tuple(
    Experiment(
        f"{row.name}_offline",
        "evaluate",
        "ghost.evaluations.libero_offline",
        {"samples": 2000, "window": row.settings.get("window", 1), "gap": EXECUTE},
        row.seeds,
        (FEATURES, row.name),
    )
    for row in TRAINED
)

EXPERIMENTS = (*DATA, *TRAINED, *OFFLINE, *ROLLOUTS)


# -------------------------------------------------------------------------------------------------------- artefacts

# name in the table: (training, suffix of its rollouts, overall and T8 success as the paper prints them, in percent)
ROWS = {
    "MLP": ("libero_mlp", "", "68.0", "35"),
    "MLP_Phase": ("libero_mlp_phase", "", "24.5", "25"),
    "GRU_Phase": ("libero_gru_phase", "", "75.0", "70"),
    "Ghost": ("libero_ghost", "", "71.0", "40"),
    "Ghost_PG": ("libero_ghost_pg", "", "81.5", "65"),
    "Ghost_PZ": ("libero_ghost_pz", "", "82.5 ± 2.6", "73"),
    "Ghost_PG_ensemble": ("libero_ghost_pg", "_ensemble", "86.5", "80"),
    "Ghost_PZ_ensemble": ("libero_ghost_pz", "_ensemble", "95.7", "95"),
}
PARAMS = {"MLP": "1.4", "MLP_Phase": "1.4", "GRU_Phase": "3.9", "Ghost": "3.0", "Ghost_PG": "3.0", "Ghost_PZ": "3.0"}
TRADEOFF = {  # label: (training, success, validation MSE, contraction, silhouette)
    "Ghost_PG": ("libero_ghost_pg", "81.5", "0.00939", "40", "0.127"),
    "push": ("libero_push", "74.5", "0.00939", "40", "0.769"),
    "pull": ("libero_pull", "65.5", "0.00874", "85", "-0.287"),
    "subspace": ("libero_subspace", "77.5", "0.00733", "97", "0.063"),
    "quartic": ("libero_quartic", "72.5", "0.00731", "33", "0.110"),
}
MISDIRECTED_PUBLISHED = {  # T0-T1 at N = 50, 100, 150
    "libero_mlp": ("5", "0", "0"),
    "libero_gru_phase": ("10", "5", "25"),
    "libero_ghost_pg": ("30", "5", "25"),
    "libero_ghost_pz": ("30", "15", "30"),
}


def _success(name: str, experiment: str, condition: str = "all", published: str = "") -> Cell:
    return Cell(name, experiment, "success", condition, "success_rate", ".0f", "%", published)


def _libero10() -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for label, (trained, suffix, overall, pots) in ROWS.items():
        experiment = f"{trained}{suffix}_rollout"
        cells += [
            _success(f"{label}/success", experiment, published=overall),
            _success(f"{label}/T8", experiment, "T8", pots),
            Cell(f"{label}/trials", experiment, "success", "all", "trials"),
            Cell(f"{label}/settled", experiment, "settled", "all", "success_rate", ".0f", "%"),
        ]
        if not suffix:
            cells += [
                Cell(f"{label}/spread", experiment, "success", "all", "mean_std", ".2f"),
                Cell(f"{label}/runs", experiment, "", estimator="runs"),
                Cell(f"{label}/params", trained, "parameters", "model", "millions", ".2f", "M", PARAMS[label]),
                Cell(
                    f"{label}/mse", f"{trained}_offline", "mse", "all", "mean_std", ".4f", published=MSE.get(label, "")
                ),
            ]
        if label not in ("MLP", "Ghost") and not suffix:
            cells.append(Cell(f"{label}/phase_accuracy", f"{trained}_offline", "phase_accuracy", "all", "mean", ".2f"))
    pg = "libero_ghost_pg_rollout"
    for name, transitions, share in (("succeeded", "20.7", "9.1"), ("failed", "25.1", "3.6")):
        condition = f"T8/{name}"
        cells += [
            Cell(
                f"T8/{name}/transitions", pg, "transitions", condition, "mean_where_run", ".1f", published=transitions
            ),
            Cell(f"T8/{name}/second_object_share", pg, "second_object_share", condition, "mean_where_run", ".2f"),
            Cell(
                f"T8/{name}/share_of_phase_3",
                pg,
                "share_of_phase_3",
                condition,
                "mean_where_run",
                ".3f",
                published=f"{share} %",
            ),
        ]
    for trained, published in MISDIRECTED_PUBLISHED.items():
        for told, task in PAIRS:
            for index, at in enumerate(SWITCH_AT):
                condition = f"T{told}-T{task}_N{at}"
                printed = published[index] if task == 1 else ""
                name = f"misdirected/{trained.removeprefix('libero_')}/{condition}"
                cells.append(_success(name, f"{trained}_misdirected", condition, printed))
    cells += [
        Cell("misdirected/trials", "libero_mlp_misdirected", "success", "T0-T1_N50", "trials"),
        *settings("libero_mlp_rollout", ("max_steps", "execute", "trials")),
        *settings(FEATURES, ("horizon", "stride")),
        *settings("libero_ghost_pg", ("phases", "epochs", "batch_size", "learning_rate", "d_latent")),
        *settings("libero_ghost_pz", ("window", "epochs"), "Ghost_PZ/"),
        *settings("libero_gru_phase", ("window",), "GRU_Phase/"),
        Cell("demos/episodes", "libero_demos", "episodes", "all", "value", ".0f"),
        Cell("demos/expert_success", "libero_demos", "expert_success", "all", "success_rate", ".0f", "%"),
        Cell("demos/noise", "libero_demos", "noise", estimator="setting", digits="g"),
    ]
    return tuple(cells)


MSE = {"MLP": "0.011", "MLP_Phase": "0.008", "Ghost_PG": "0.0120", "Ghost_PZ": "0.0029"}
SHOWN = ("MLP", "Ghost_PG", "Ghost_PZ", "Ghost_PZ_ensemble")  # in fig:libero_per_task


def _per_task() -> tuple[Cell, ...]:
    return tuple(
        _success(f"{label}/T{task}", f"{ROWS[label][0]}{ROWS[label][1]}_rollout", f"T{task}")
        for label in SHOWN
        for task in TASKS
    )


def _complexity() -> tuple[Cell, ...]:
    pair = {"experiment": "libero_ghost_pg_rollout", "against": "libero_mlp_rollout"}
    cells = [
        Cell("r", metric="success", estimator="complexity_r", digits="z.2f", published="0.86", **pair),
        Cell(
            "slope", metric="success", estimator="complexity_slope", digits="+z.1f", unit="pp", published="10.5", **pair
        ),
        Cell("gap", metric="success", condition="all", estimator="rate_difference", digits="+z.1f", unit="pp", **pair),
    ]
    for task in TASKS:
        name, condition = f"T{task}", f"T{task}"
        cells += [
            Cell(f"{name}/phases", pair["experiment"], "demonstrated_phases", condition, "mean_where_run", ".1f"),
            Cell(
                f"{name}/gap",
                metric="success",
                condition=condition,
                estimator="rate_difference",
                digits="+z.0f",
                **pair,
            ),
        ]
    return tuple(cells)


def _attractor_tradeoff() -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for label, (trained, success, mse, contraction, silhouette) in TRADEOFF.items():
        offline = f"{trained}_offline"
        measured = ("per_step_contraction_percent", "flow", "mean", "z.0f", "%")
        cells += [
            _success(f"{label}/success", f"{trained}_rollout", published=success),
            Cell(f"{label}/trials", f"{trained}_rollout", "success", "all", "trials"),
            Cell(f"{label}/mse", offline, "mse", "all", "mean", ".5f", published=mse),
            Cell(f"{label}/contraction", offline, *measured, published=contraction),
            Cell(f"{label}/silhouette", offline, "silhouette", "flow", "mean", "z.3f", published=silhouette),
        ]
    return tuple(cells)


ARTEFACTS = (
    Artefact("tab", "libero10", "tabulate", _libero10()),
    Artefact("fig", "libero_per_task", "plot", _per_task()),
    Artefact("fig", "libero_complexity", "plot", _complexity()),
    Artefact("tab", "attractor_tradeoff", "tabulate", _attractor_tradeoff()),
)
