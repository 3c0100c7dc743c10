"""One Ghost for ten tasks: its errors, what a change of task does to it, and the attractors of its latent flow."""

from ghost.study.cells import mean, parameters, runs
from ghost.study.declarations import Artefact, Cell, Tex, figure
from ghost.study.offline import PLAIN, TASKS, TRAINED, evaluation
from ghost.study.tables import Column, Row, code, tabulated

FLOW = {"split": "sample", "continued_steps": 20}
COMPARED = {"split": "sample", "ghost": "ghost", "mlp": "mlp"}
CHANGES = {"transitions": 50, "hold": 10, "longest_interval": 10, "embedded": 1430}
EXPERIMENTS = (
    evaluation("ghost_attractor", "attractor", {**FLOW, "embedded_per_task": 30}, TRAINED["ghost"]),
    evaluation("ghost_basin_attractor", "attractor", {**FLOW, "embedded_per_task": 0}, TRAINED["ghost_basin"]),
    evaluation("ghost_switching", "switching", {**COMPARED, **CHANGES}, TRAINED["ghost"], TRAINED["mlp"]),
)


MEASURED = (  # while tasks change: condition, metric, digits
    ("boundary", "mse", ".3f"),
    ("steady", "mse", ".3f"),
    ("intervals", "mse", ".3f"),
    ("intervals", "largest_over_smallest", ".2f"),
    ("swap", "inflation", ".1f"),
    ("swap", "inflation_of_means", ".1f"),
    ("within_task", "inflation", ".1f"),
    ("within_task", "inflation_of_means", ".1f"),
    ("ghost", "silhouette", ".2f"),
    ("ghost", "silhouette_tsne", ".2f"),
    ("mlp", "silhouette", ".2f"),
    ("mlp", "silhouette_tsne", ".2f"),
)


def _multi_task() -> Artefact:
    tested, all_tasks = PLAIN.tested, "mean_of_tasks"

    def error(task: str, metric: str) -> Cell:
        return mean(tested, metric, task, ".4f" if task == all_tasks else ".3f")

    def compression(task: str, metric: str) -> Cell | None:
        return None if task == all_tasks else mean("ghost_switching", metric, task, ".1f")

    return tabulated(
        "multi_task",
        (
            "Task",
            Column("mse", "Overall MSE", lambda task: error(task, "mse")),
            Column("arm_mse", "Arm joints", lambda task: error(task, "arm_mse")),
            Column("cosine", "Cosine sim.", lambda task: mean(tested, "cosine", task)),
            Column("predict_the_mean_mse", "Predicting the mean", lambda task: error(task, "predict_the_mean_mse")),
            Column("latent_compression", None, lambda task: compression(task, "latent_compression")),
            Column("error_compression", None, lambda task: compression(task, "error_compression")),
        ),
        (Row(task, (code(task),), task) for task in TASKS),
        (Row("mean", (Tex(r"\textit{Mean across tasks}", "Mean across tasks"),), all_tasks),),
        more=(
            *(
                mean("ghost_switching", m, condition, digits, name=f"{condition}/{m}")
                for condition, m, digits in MEASURED
            ),
            parameters(tested, name="params"),
            mean("latency", "aggregate_parameters", "dit_over_ghost", ",.0f", name="aggregate_params_ratio"),
            runs(tested),
        ),
    )


def _attractor_emergence() -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for name in ("ghost", "ghost_basin"):
        experiment = f"{name}_attractor"
        cells += [
            mean(experiment, "gradient_norm", "start", name=f"{name}/start/gradient_norm"),
            mean(experiment, "gradient_norm", "end", name=f"{name}/end/gradient_norm"),
            mean(experiment, "contraction_percent", "flow", ".0f", "%", f"{name}/contraction"),
            mean(experiment, "gradient_to_drift", "start", name=f"{name}/gradient_to_drift"),
            mean(experiment, "monotone_share", "flow", ".2f", name=f"{name}/monotone_share"),
            mean(experiment, "continued_distance", "flow", ".2f", name=f"{name}/continued_distance"),
            Cell(f"{name}/curve/gradient", experiment, "gradient/mean", estimator="series"),
        ]
    return (*cells, runs("ghost_attractor"))


def _attractor_basins() -> tuple[Cell, ...]:
    flow = "ghost_attractor"
    return (
        *(mean(flow, "initial_distance", task, ".2f", name=f"{task}/initial_distance") for task in TASKS),
        mean(flow, "smallest_initial_distance", "tasks", ".2f", name="smallest_initial_distance"),
        mean(flow, "largest_initial_distance", "tasks", ".2f", name="largest_initial_distance"),
        mean(flow, "falling", "tasks", ".1f", name="tasks_falling"),
        mean(flow, "distance_monotone_share", "flow", ".2f", name="distance_monotone_share"),
        Cell("curve/distance", flow, "distance/mean", estimator="series"),
        Cell("curve/embedding", flow, "flow/embedding", estimator="series"),
    )


ARTEFACTS = (
    figure("attractor_emergence", *_attractor_emergence()),
    _multi_task(),
    figure("attractor_basins", *_attractor_basins()),
)
