"""The offline study: the dual-arm data, decoders trained on cached features, their tests, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ghost.study.cells import settings
from ghost.study.declarations import Artefact, Cell, Experiment

# ------------------------------------------------------------------------------------------------------ experiments

FEATURES = "dual_arm_features"
SEEDS = (42, 123, 999, 7, 2024, 314, 555, 1337, 8888, 31415)  # appendix A; five-seed tables take the first five
TASKS = (
    "Arrange_cups",
    "Move_parts",
    "Stack_cups",
    "Tidy_counter",
    "Organize_toys",
    "Organize_tools",
    "Take_book",
    "Tidy_conf_room",
    "Clean_store",
    "Make_toast",
)
# Section IV-D. Every decoder of tab:lightweight is trained alike; only Ghost has terms beside imitation.
TRAINING = {"split": "sample", "epochs": 300, "batch_size": 32, "learning_rate": 3e-4}
WIDTHS = {"hidden": 512, "d_context": 128, "d_latent": 64}
GHOST = {**TRAINING, **WIDTHS, "steps": 5, "dt": 0.2}
# Appendix A, "Ablation". One task has no other task to be pushed away from, so there is no contrastive term; how long
# the early stopping waits is not published.
REGULARISED = {
    **GHOST,
    "dropout": 0.1,
    "noise": 0.02,
    "validation_share": 0.2,
    "patience": 30,
}
DUAL = {"steps": 3, "refinement_steps": 2, "refinement_dt": 0.1, "damping": 0.5, "mass": 1.0}
ABLATION_TASKS = {"cups": "Arrange_cups", "parts": "Move_parts"}  # short name: task


def _training(
    name: str, decoder: str, settings: Mapping[str, Any], seeds: tuple[int, ...] = SEEDS[:5], teacher: str = ""
) -> Experiment:
    needs = (FEATURES, teacher) if teacher else (FEATURES,)
    return Experiment(name, "train", f"ghost.decoders.{decoder}", settings, seeds, needs)


def _evaluation(
    name: str,
    module: str,
    settings: Mapping[str, Any],
    trained: tuple[str, ...] = (),
    seeds: tuple[int, ...] = SEEDS[:5],
) -> Experiment:
    """What is measured on trained decoders, seed by seed; `trained` are the experiments that trained them."""
    needs = (FEATURES, *trained) if trained else ()
    return Experiment(name, "evaluate", f"ghost.evaluations.{module}", settings, seeds, needs)


DATA = (
    Experiment(
        "dual_arm",
        "make_demos",
        "ghost.data.dual_arm",
        {
            "episodes": 2196,
            "steps": 200,
            "fps": 20,
            "robot_seed": 2026,
            "state_noise": 0.01,
            "scene_noise": 0.02,
            "episodes_per_file": 250,
        },
    ),
    Experiment(
        FEATURES,
        "cache_features",
        "ghost.backbones.standin",
        {
            "tokens": 64,
            "d_token": 2048,
            "text_tokens": 16,
            "hidden": 256,
            "weights_seed": 2026,
            "train_per_task": [600, 600, 600, 600, 600, 600, 600, 600, 500, 300],
            "test_per_task": [150, 150, 150, 150, 150, 150, 150, 150, 150, 80],
            "train_episodes": 1800,
            "train_timesteps": 800,
            "test_timesteps": 200,
            "horizon": 17,
            "d_state": 64,
            "d_action": 32,
            "samples_per_shard": 256,
        },
        needs=("dual_arm",),
    ),
)
MULTI_TASK = (
    _training("ghost", "ghost", {**GHOST, "contrastive": 0.2}),  # eq. (loss)
    _training("ghost_bc", "ghost", GHOST),
    _training("ghost_basin", "ghost", {**GHOST, "contrastive": 0.2, "basin": 0.01}),
    _training("ghost_basin_curriculum", "ghost", {**GHOST, "contrastive": 0.2, "curriculum_share": 0.5, "basin": 0.01}),
    _training("cvae", "cvae", {**TRAINING, **WIDTHS, "d_code": 32, "kl": 0.001}),  # weight: not published
    _training("neural_ode", "neural_ode", {**TRAINING, **WIDTHS, "steps": 5, "dt": 0.2}),
    _training("mlp", "mlp", {**TRAINING, **WIDTHS, "layers": 3}),
    _training("transformer", "transformer", {**TRAINING, "d_model": 256, "hidden": 384, "layers": 2, "heads": 8}),
    _training("diffusion", "diffusion", {**TRAINING, **WIDTHS, "d_time": 128, "levels": 18, "consistency": 1.0}),
)
PHASES = tuple(
    _training(f"{phases}_{short}", "ghost", {**REGULARISED, **more, "tasks": [task]}, SEEDS)
    for short, task in ABLATION_TASKS.items()
    for phases, more in (("single", {}), ("dual", DUAL))
)
DISTILLATION = (
    _training(
        "dit",
        "dit",
        {
            # 15,000 steps of 4 samples, accumulated over 2, at 5e-5: 150 passes over the 800 timesteps
            **TRAINING,
            "split": "episode",
            "epochs": 150,
            "batch_size": 8,
            "learning_rate": 5e-5,
            "layers": 16,
            "heads": 32,
            "d_head": 48,
            "vl_layers": 4,
            "vl_heads": 32,
            "hidden": 1024,
            "embodiments": 32,
            "embodiment": 31,
            "future_tokens": 32,
            "positions": 1024,
            "dropout": 0.2,
        },
        SEEDS[:1],
    ),
    _training("ghost_distilled", "ghost", {**GHOST, "split": "episode", "distillation": 0.5}, SEEDS[:3], "dit"),
)
EVALUATIONS = (
    *(
        _evaluation(f"{row.name}_offline", "offline", {"split": row.settings["split"]}, (row.name,), row.seeds)
        for row in (*MULTI_TASK, *DISTILLATION)
    ),
    *(
        _evaluation(
            f"{row.name}_offline",
            "offline",
            {"split": "sample", "tasks": row.settings["tasks"]},
            (row.name,),
            row.seeds,
        )
        for row in PHASES
    ),
    *(
        _evaluation(
            f"{name}_attractor",
            "attractor",
            {"split": "sample", "continued_steps": 20, "embedded_per_task": embedded},
            (name,),
        )
        for name, embedded in (("ghost", 30), ("ghost_basin", 0))  # the figure shows the first one's flow
    ),
    _evaluation(
        "ghost_switching",
        "switching",
        {
            "split": "sample",
            "ghost": "ghost",
            "mlp": "mlp",
            "transitions": 50,
            "hold": 10,
            "longest_interval": 10,
            "embedded": 1430,
        },
        ("ghost", "mlp"),
    ),
    _evaluation("latency", "latency", {"rounds": 1000, "warm_up": 20, "threads": 1, "dit_every": 10}, seeds=(0,)),
)

EXPERIMENTS = (*DATA, *MULTI_TASK, *PHASES, *DISTILLATION, *EVALUATIONS)


# -------------------------------------------------------------------------------------------------------- artefacts


def _mean(
    name: str,
    experiment: str,
    metric: str,
    condition: str = "all",
    digits: str = ".3f",
    published: str = "",
    **more: Any,
) -> Cell:
    return Cell(name, experiment, metric, condition, "mean", digits, published=published, **more)


def _against(
    name: str,
    experiment: str,
    against: str,
    metric: str = "mse",
    condition: str = "all",
    published: Mapping[str, str] | None = None,
    d: str = "cohens_d",
    p_digits: str = ".3f",
    d_digits: str = "+z.1f",
    holm: bool = True,
) -> tuple[Cell, ...]:
    """Everything a comparison of two experiments has: <name>/{p,holm_p,d,change,improved,detectable}.

    `holm`: it belongs to the family of comparisons over which p is corrected, all `holm_p` of the same table.
    """
    printed = published or {}
    cells = (
        ("p", "paired_p", p_digits),
        *((("holm_p", "holm_p", p_digits),) if holm else ()),
        ("d", d, d_digits),
        ("change", "relative_change", "+z.1f"),
        ("improved", "improved_share", ""),
        ("detectable", "detectable", ".5f"),
    )
    return tuple(
        Cell(
            f"{name}/{short}",
            experiment,
            metric,
            condition,
            estimator,
            digits,
            "%" if short == "change" else "",
            printed.get(short, ""),
            against,
        )
        for short, estimator, digits in cells
    )


# label in the table: (experiment, name in `latency`, parameters in millions, MSE, p, d as the paper prints them)
LIGHTWEIGHT = {
    "CVAE": ("cvae", "cvae", "2.1", "0.0184 ± 0.0001", "0.003", "6.2"),
    "Neural_ODE": ("neural_ode", "neural_ode", "2.2", "0.0186 ± 0.0003", "< 0.001", "4.9"),
    "MLP": ("mlp", "mlp", "2.1", "0.0189 ± 0.0005", "0.007", "3.8"),
    "Transformer": ("transformer", "transformer", "2.0", "0.0207 ± 0.0004", "< 0.001", "10.2"),
    "Diffusion": ("diffusion", "diffusion", "2.2", "0.0225 ± 0.0015", "0.003", "4.7"),
    "Ghost_plain": ("ghost", "ghost", "", "", "", ""),  # beyond the paper: eq. (loss) alone
    "Ghost_BC": ("ghost_bc", "ghost", "", "", "", ""),  # beyond the paper: the loss that all the others have
}
LIGHTWEIGHT_GHOST = "ghost_basin_curriculum_offline"


def _lightweight() -> tuple[Cell, ...]:
    rows = {"Ghost": ("ghost_basin_curriculum", "ghost", "2.3", "0.0174 ± 0.0002", "", ""), **LIGHTWEIGHT}
    cells: list[Cell] = [Cell("runs", LIGHTWEIGHT_GHOST, "", estimator="runs")]
    for label, (trained, built, millions, mse, p, d) in rows.items():
        experiment = f"{trained}_offline"
        cells += [
            Cell(f"{label}/params", experiment, "parameters", "model", "millions", ".2f", "M", millions),
            Cell(f"{label}/paper_params", "latency", "parameters", built, "millions", ".1f", "M", millions),
            Cell(f"{label}/test_mse", experiment, "mse", "all", "mean_std", ".4f", published=mse),
            Cell(f"{label}/bootstrap_mse", experiment, "mse", "all", "bootstrap", ".4f"),
            _mean(f"{label}/latency_ms", "latency", "latency_ms", built, ".2f", unit="ms"),
            *(
                Cell(f"{label}/{share}", experiment, share, "worst_task", "largest", ".2f")
                for share in ("share_of_task_mean", "share_of_training_mean")
            ),
        ]
        if label != "Ghost":
            cells += _against(label, experiment, LIGHTWEIGHT_GHOST, published={"p": p, "d": d}, holm=bool(p))
    cells.append(_mean("predict_the_mean/test_mse", LIGHTWEIGHT_GHOST, "predict_the_mean_mse", digits=".4f"))
    layout = ("tokens", "d_token", "d_state", "d_action", "horizon", "train_per_task", "test_per_task")
    cells += [*settings(FEATURES, layout), *settings("ghost", (key for key in GHOST if key != "split"))]
    return tuple(cells)


def _loss_ablation() -> tuple[Cell, ...]:
    rows = {
        "basin": ("ghost_basin", "0.01731 ± 0.00021", {"change": "+0.2", "p": "0.77", "d": "+0.19"}),
        "curriculum": ("ghost_basin_curriculum", "0.01731 ± 0.00021", {"change": "+0.2", "p": "0.84", "d": "+0.16"}),
        "bc": ("ghost_bc", "0.01812 ± 0.00027", {"change": "+4.9", "p": "0.0019", "d": "+3.39"}),
    }
    cells = [Cell("ghost/test_mse", "ghost_offline", "mse", "all", "mean_std", ".5f", published="0.01727 ± 0.00025")]
    for label, (trained, mse, published) in rows.items():
        experiment = f"{trained}_offline"
        cells.append(Cell(f"{label}/test_mse", experiment, "mse", "all", "mean_std", ".5f", published=mse))
        cells += _against(label, experiment, "ghost_offline", published=published, p_digits=".4f", d_digits="+z.2f")
    return tuple(cells)


MULTI_TASK_PUBLISHED = {  # overall, arm joints, cosine
    "Arrange_cups": ("0.033", "0.011", "0.974"),
    "Move_parts": ("0.014", "0.003", "0.985"),
    "Stack_cups": ("0.022", "0.001", "0.969"),
    "Tidy_counter": ("0.006", "0.001", "0.994"),
    "Organize_toys": ("0.038", "0.001", "0.942"),
    "Organize_tools": ("0.011", "0.001", "0.986"),
    "Take_book": ("0.005", "0.001", "0.994"),
    "Tidy_conf_room": ("0.026", "0.001", "0.963"),
    "Clean_store": ("0.008", "0.001", "0.990"),
    "Make_toast": ("0.014", "0.001", "0.980"),
    "mean_of_tasks": ("0.0177", "0.0021", "0.978"),
}


def _multi_task() -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for task, (mse, arm, cosine) in MULTI_TASK_PUBLISHED.items():
        name, digits = ("mean", ".4f") if task == "mean_of_tasks" else (task, ".3f")
        cells += [
            _mean(f"{name}/mse", "ghost_offline", "mse", task, digits, mse),
            _mean(f"{name}/arm_mse", "ghost_offline", "arm_mse", task, digits, arm),
            _mean(f"{name}/cosine", "ghost_offline", "cosine", task, ".3f", cosine),
            _mean(f"{name}/predict_the_mean_mse", "ghost_offline", "predict_the_mean_mse", task, digits),
        ]
        if name != "mean":
            compression = {"Take_book": "25.2", "Tidy_conf_room": "3.9"}.get(task, "")
            cells += [
                _mean(f"{name}/latent_compression", "ghost_switching", "latent_compression", task, ".1f", compression),
                _mean(f"{name}/error_compression", "ghost_switching", "error_compression", task, ".1f", compression),
            ]
    switching = (
        ("boundary", "mse", ".3f", "0.029"),
        ("steady", "mse", ".3f", "0.033"),
        ("intervals", "mse", ".3f", "0.031"),
        ("intervals", "largest_over_smallest", ".2f", ""),
        ("swap", "inflation", ".1f", "74"),
        ("swap", "inflation_of_means", ".1f", "74"),
        ("within_task", "inflation", ".1f", ""),
        ("within_task", "inflation_of_means", ".1f", ""),
        ("ghost", "silhouette", ".2f", "0.11"),
        ("ghost", "silhouette_tsne", ".2f", "0.20"),
        ("mlp", "silhouette", ".2f", "0.11"),
        ("mlp", "silhouette_tsne", ".2f", "0.20"),
    )
    cells += [
        _mean(f"{condition}/{metric}", "ghost_switching", metric, condition, digits, published)
        for condition, metric, digits, published in switching
    ]
    cells += [
        Cell("params", "ghost_offline", "parameters", "model", "millions", ".2f", "M", "2.3"),
        _mean("aggregate_params_ratio", "latency", "aggregate_parameters", "dit_over_ghost", ",.0f", "4,614"),
        Cell("runs", "ghost_offline", "", estimator="runs"),
    ]
    return tuple(cells)


def _groot_distill() -> tuple[Cell, ...]:
    ghost, dit = "ghost_distilled_offline", "dit_offline"
    metrics = {  # metric: (Ghost, DiT, DiT over Ghost as far as the paper prints it)
        "mse": ("0.116", "0.117", ""),
        "arm_mse": ("0.105", "0.051", ""),
        "gripper_mse": ("0.119", "0.137", "1.2"),
        "lift_mse": ("0.263", "1.004", "3.8"),
        "cosine": ("0.872", "0.887", ""),
    }
    cells: list[Cell] = []
    for metric, (ours, theirs, factor) in metrics.items():
        cells += [
            _mean(f"Ghost/{metric}", ghost, metric, published=ours),
            _mean(f"DiT/{metric}", dit, metric, published=theirs),
        ]
        if metric != "cosine":
            cells.append(Cell(f"ratio/{metric}", dit, metric, "all", "ratio", ".2f", published=factor, against=ghost))
    return (
        *cells,
        Cell("Ghost/params", ghost, "parameters", "model", "millions", ".2f", "M", "2.3"),
        Cell("DiT/params", dit, "parameters", "model", "millions", ".2f", "M", "1068.8"),
        Cell("ratio/params", dit, "parameters", "model", "ratio", ".0f", published="462", against=ghost),
        Cell("Ghost/paper_params", "latency", "parameters", "ghost", "millions", ".1f", "M", "2.3"),
        Cell("DiT/paper_params", "latency", "parameters", "dit", "millions", ".1f", "M", "1068.8"),
        _mean("ratio/paper_params", "latency", "parameters", "dit_over_ghost", ".0f", "462"),
        _mean("Ghost/latency_ms", "latency", "latency_ms", "ghost", ".2f", "0.41", unit="ms"),
        _mean("DiT/latency_ms", "latency", "latency_ms", "dit", ".0f", "13", unit="ms"),
        _mean("ratio/latency", "latency", "latency", "dit_over_ghost", ".0f", "32"),
        _mean("predict_the_mean/mse", ghost, "predict_the_mean_mse"),
        Cell("Ghost/runs", ghost, "", estimator="runs"),
        Cell("DiT/runs", dit, "", estimator="runs"),
        *settings(FEATURES, ("train_episodes", "train_timesteps", "test_timesteps")),
        *settings("dit", ("epochs", "batch_size", "learning_rate"), "DiT/"),
    )


ABLATION_PUBLISHED = {  # single, dual, p; d of the arm error from the text
    "cups": {
        "mse": ("0.033 ± 0.002", "0.032 ± 0.002", "0.242"),
        "arm_mse": ("0.009 ± 0.002", "0.007 ± 0.002", "0.046"),
        "gripper_mse": ("0.217 ± 0.008", "0.221 ± 0.006", "0.143"),
        "cosine": ("0.950 ± 0.003", "0.952 ± 0.003", "0.253"),
    },
    "parts": {
        "mse": ("0.030 ± 0.002", "0.026 ± 0.003", "0.010"),
        "arm_mse": ("0.022 ± 0.003", "0.018 ± 0.003", "0.012"),
        "gripper_mse": ("0.100 ± 0.004", "0.097 ± 0.006", "0.117"),
        "cosine": ("0.968 ± 0.002", "0.972 ± 0.004", "0.007"),
    },
}


def _ablation() -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for short, metrics in ABLATION_PUBLISHED.items():
        single, dual = f"single_{short}_offline", f"dual_{short}_offline"
        for metric, (before, after, p) in metrics.items():
            name = f"{ABLATION_TASKS[short]}/{metric}"
            cells += [
                Cell(f"{name}/single", single, metric, "all", "mean_std", ".3f", published=before),
                Cell(f"{name}/dual", dual, metric, "all", "mean_std", ".3f", published=after),
                # the paper's d here is that of the differences, unlike in its other tables
                *_against(name, dual, single, metric, published={"p": p}, d="paired_d", d_digits="+z.2f"),
            ]
    return (
        *cells,
        Cell("single/params", "single_cups_offline", "parameters", "model", "millions", ".2f", "M", "2.32"),
        Cell("dual/params", "dual_cups_offline", "parameters", "model", "millions", ".2f", "M", "2.94"),
        Cell(
            "params/change",
            "dual_cups_offline",
            "parameters",
            "model",
            "relative_change",
            "+.0f",
            "%",
            published="+27",
            against="single_cups_offline",
        ),
        Cell("single/paper_params", "latency", "parameters", "ghost", "millions", ".2f", "M", "2.32"),
        Cell("dual/paper_params", "latency", "parameters", "ghost_dual", "millions", ".2f", "M", "2.94"),
        Cell("runs", "single_cups_offline", "", estimator="runs"),
        *settings("dual_cups", ("noise", "dropout", "validation_share", "patience", *DUAL)),
        *settings("single_cups", ("steps",), "single/"),
    )


def _ablation_paired() -> tuple[Cell, ...]:
    published = {
        "cups": {"p": "0.046", "d": "-0.73", "change": "-17.5", "improved": "8/10"},
        "parts": {"p": "0.012", "d": "-1.00", "change": "-18.4", "improved": "9/10"},
    }
    return tuple(
        cell
        for short, task in ABLATION_TASKS.items()
        for cell in _against(
            f"{task}/arm_mse",
            f"dual_{short}_offline",
            f"single_{short}_offline",
            "arm_mse",
            published=published[short],
            d="paired_d",
            d_digits="+z.2f",
            holm=False,  # the table has the whole family
        )
    )


def _attractor_emergence() -> tuple[Cell, ...]:
    cells: list[Cell] = []
    published = {
        "ghost": {"start": "1.68", "end": "0.55", "contraction": "67", "ratio": "0.62"},
        "ghost_basin": {"start": "0.04", "end": "0.04", "contraction": "", "ratio": "0.015"},
    }
    for name, printed in published.items():
        experiment, percent = f"{name}_attractor", printed["contraction"]
        cells += [
            _mean(f"{name}/start/gradient_norm", experiment, "gradient_norm", "start", ".3f", printed["start"]),
            _mean(f"{name}/end/gradient_norm", experiment, "gradient_norm", "end", ".3f", printed["end"]),
            _mean(f"{name}/contraction", experiment, "contraction_percent", "flow", ".0f", percent, unit="%"),
            _mean(f"{name}/gradient_to_drift", experiment, "gradient_to_drift", "start", ".3f", printed["ratio"]),
            _mean(f"{name}/monotone_share", experiment, "monotone_share", "flow", ".2f"),
            _mean(f"{name}/continued_distance", experiment, "continued_distance", "flow", ".2f"),
            Cell(f"{name}/curve/gradient", experiment, "gradient/mean", estimator="series"),
        ]
    cells.append(Cell("runs", "ghost_attractor", "", estimator="runs"))
    return tuple(cells)


def _attractor_basins() -> tuple[Cell, ...]:
    experiment = "ghost_attractor"
    printed = {"Take_book": "1.72", "Arrange_cups": "3.23"}
    return (
        *(
            _mean(f"{task}/initial_distance", experiment, "initial_distance", task, ".2f", printed.get(task, ""))
            for task in TASKS
        ),
        _mean("smallest_initial_distance", experiment, "smallest_initial_distance", "tasks", ".2f", "1.72"),
        _mean("largest_initial_distance", experiment, "largest_initial_distance", "tasks", ".2f", "3.23"),
        _mean("tasks_falling", experiment, "falling", "tasks", ".1f", "10"),
        _mean("distance_monotone_share", experiment, "distance_monotone_share", "flow", ".2f"),
        Cell("curve/distance", experiment, "distance/mean", estimator="series"),
        Cell("curve/embedding", experiment, "flow/embedding", estimator="series"),
    )


def _e2e_trajectory() -> tuple[Cell, ...]:
    return tuple(
        Cell(f"{name}/curve/{array}", experiment, f"chunk/{array}", estimator="series")
        for name, experiment in (("Ghost", "ghost_distilled_offline"), ("DiT", "dit_offline"))
        for array in ("recorded", "predicted")
    )


ARTEFACTS = (
    Artefact("fig", "attractor_emergence", "plot", _attractor_emergence()),
    Artefact("tab", "groot_distill", "tabulate", _groot_distill()),
    Artefact("fig", "e2e_trajectory", "plot", _e2e_trajectory()),
    Artefact("tab", "multi_task", "tabulate", _multi_task()),
    Artefact("fig", "attractor_basins", "plot", _attractor_basins()),
    Artefact("tab", "lightweight", "tabulate", _lightweight()),
    Artefact("tab", "loss_ablation", "tabulate", _loss_ablation()),
    Artefact("tab", "ablation", "tabulate", _ablation()),
    Artefact("fig", "ablation_paired", "plot", _ablation_paired()),
)
