"""One Ghost for ten tasks: its errors, what a change of task does to it, and the attractors of its latent flow."""

from ghost.study.cells import mean, over, parameters, runs, settings, values
from ghost.study.declarations import Cell, Tex, figure
from ghost.study.offline import PLAIN, TASKS, TRAINED, evaluation
from ghost.study.tables import Column, Row, code, tabulated

FLOW = {"split": "sample", "continued_steps": 20}
COMPARED = {"split": "sample", "ghost": "ghost", "mlp": "mlp"}
CHANGES = {"transitions": 50, "hold": 10, "shortest_interval": 2, "longest_interval": 10, "embedded": 1430}
EXPERIMENTS = (
    evaluation("ghost_attractor", "attractor", {**FLOW, "embedded_per_task": 30}, TRAINED["ghost"]),
    evaluation("ghost_basin_attractor", "attractor", {**FLOW, "embedded_per_task": 0}, TRAINED["ghost_basin"]),
    evaluation("ghost_switching", "switching", {**COMPARED, **CHANGES}, TRAINED["ghost"], TRAINED["mlp"]),
)


ALL = "mean_of_tasks"
INFLATION = ("inflation", "inflation_of_means")  # of the error, when the task changes


def _error(task: str, metric: str) -> Cell:
    return mean(PLAIN.tested, metric, task, ".4f" if task == ALL else ".3f")


def _range(metric: str, digits: str) -> Cell:
    """The least and the largest of the tasks' means."""
    return over("range_of", (f"{task}/{metric}" for task in TASKS), digits, name=f"range/{metric}")


def _compression(task: str, metric: str) -> Cell | None:
    return None if task == ALL else mean("ghost_switching", metric, task, ".1f")


def _flow(name: str) -> tuple[Cell, ...]:
    experiment = f"{name}_attractor"
    return (
        *values(experiment, ("start", "end"), ".3f", "gradient_norm", estimator="mean", prefix=f"{name}/"),
        mean(experiment, "contraction_percent", "flow", ".0f", "%", f"{name}/contraction"),
        mean(experiment, "gradient_to_drift", "start", name=f"{name}/gradient_to_drift"),
        mean(experiment, "monotone_share", "flow", ".2f", name=f"{name}/monotone_share"),
        mean(experiment, "continued_distance", "flow", ".2f", name=f"{name}/continued_distance"),
        Cell(f"{name}/curve/gradient", experiment, "gradient/mean", estimator="series"),
    )


ARTEFACTS = (
    figure(
        "attractor_emergence",
        *_flow("ghost"),
        *_flow("ghost_basin"),
        runs("ghost_attractor"),
        *settings("ghost_attractor", ("continued_steps",)),
    ),
    tabulated(
        "multi_task",
        (
            "Task",
            Column("mse", "Overall MSE", lambda task: _error(task, "mse")),
            Column("arm_mse", "Arm joints", lambda task: _error(task, "arm_mse")),
            Column("cosine", "Cosine sim.", lambda task: mean(PLAIN.tested, "cosine", task)),
            Column("predict_the_mean_mse", "Predicting the mean", lambda task: _error(task, "predict_the_mean_mse")),
            Column("latent_compression", None, lambda task: _compression(task, "latent_compression")),
            Column("error_compression", None, lambda task: _compression(task, "error_compression")),
        ),
        (Row(task, (code(task),), task) for task in TASKS),
        (Row("mean", (Tex(r"\textit{Mean across tasks}", "Mean across tasks"),), ALL),),
        more=(
            *values("ghost_switching", ("boundary", "steady", "intervals"), ".3f", "mse", estimator="mean"),
            *values("ghost_switching", "intervals", ".2f", "largest_over_smallest", estimator="mean"),
            *values("ghost_switching", ("swap", "within_task"), ".1f", *INFLATION, estimator="mean"),
            *values("ghost_switching", ("ghost", "mlp"), ".2f", "silhouette", "silhouette_tsne", estimator="mean"),
            *(_range(metric, ".4f") for metric in ("mse", "arm_mse", "cosine")),
            parameters(PLAIN.tested, name="params"),
            Cell("aggregate_params", "latency", "aggregate_parameters", "dit", "millions", ",.0f", "M"),
            mean("latency", "aggregate_parameters", "dit_over_ghost", ",.0f", name="aggregate_params_ratio"),
            runs(PLAIN.tested),
        ),
    ),
    figure(
        "attractor_basins",
        *values("ghost_attractor", TASKS, ".2f", "initial_distance", estimator="mean"),
        mean("ghost_attractor", "smallest_initial_distance", "tasks", ".2f", name="smallest_initial_distance"),
        mean("ghost_attractor", "largest_initial_distance", "tasks", ".2f", name="largest_initial_distance"),
        mean("ghost_attractor", "largest_final_distance", "tasks", ".2f", name="largest_final_distance"),
        mean("ghost_attractor", "falling", "tasks", ".1f", name="tasks_falling"),
        mean("ghost_attractor", "distance_monotone_share", "flow", ".2f", name="distance_monotone_share"),
        Cell("curve/distance", "ghost_attractor", "distance/mean", estimator="series"),
        Cell("curve/embedding", "ghost_attractor", "flow/embedding", estimator="series"),
    ),
)
