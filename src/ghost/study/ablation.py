"""One phase or two: Ghost with and without the second-order refinement, trained on a single task."""

from ghost.study import offline
from ghost.study.cells import compared, comparison, over, parameters, runs, settings, spread
from ghost.study.declarations import Cell, figure
from ghost.study.offline import GHOST, PLAIN, offline_test, training
from ghost.study.seeds import SEEDS
from ghost.study.tables import Column, Row, code, math, tabulated

# Appendix A, "Ablation". One task has no other task to be pushed away from, so there is no contrastive term; how long
# the early stopping waits is not published.
REGULARISED = {**GHOST, "dropout": 0.1, "noise": 0.02, "validation_share": 0.2, "patience": 30}
DUAL = {"steps": 3, "refinement_steps": 2, "refinement_dt": 0.1, "damping": 0.5, "mass": 1.0}
TASKS = {"cups": "Arrange_cups", "parts": "Move_parts"}  # short name: task

TRAINED = tuple(
    training(f"{phases}_{short}", "ghost", {**REGULARISED, **more, "tasks": [task]}, SEEDS)
    for short, task in TASKS.items()
    for phases, more in (("single", {}), ("dual", DUAL))
)
# With all ten tasks, beside the Ghost of tab:multi_task: the same recipe and seeds.
TEN_TASKS = training("dual_ten_tasks", "ghost", {**offline.TRAINED[PLAIN.experiment].settings, **DUAL})
EXPERIMENTS = (*TRAINED, TEN_TASKS, *map(offline_test, (*TRAINED, TEN_TASKS)))
TESTED = {  # short name: the tests of one phase and of two
    **{short: (f"single_{short}_offline", f"dual_{short}_offline") for short in TASKS},
    "ten_tasks": (PLAIN.tested, f"{TEN_TASKS.name}_offline"),
}
METRICS = {"mse": "Overall MSE", "arm_mse": "Arm MSE", "gripper_mse": "Gripper MSE", "cosine": "Cosine sim."}


def _compared(short: str, metric: str, holm: bool = True, name: str = "") -> dict[str, Cell]:
    """The paper's d is here that of the differences, unlike in its other tables."""
    single, dual = TESTED[short]
    return comparison(dual, single, metric, d="paired_d", d_digits="+z.2f", holm=holm, name=name)


SINGLE, BOTH = "single_cups_offline", "dual_cups_offline"
TRAINED_HERE = parameters(SINGLE, name="single/params"), parameters(BOTH, name="dual/params")
PAPERS = (
    parameters("latency", "ghost", name="single/paper_params"),
    parameters("latency", "ghost_dual", name="dual/paper_params"),
)
# Holm's correction is in the table, which has the whole family.
PAIRED = [_compared(short, "arm_mse", holm=False, name=f"{task}/arm_mse") for short, task in TASKS.items()]
ARTEFACTS = (
    tabulated(
        "ablation",
        (
            "Task",
            "Metric",
            Column("single", "Single", lambda of: spread(TESTED[of[0]][0], of[1], ".3f")),
            Column("dual", "Dual-Phase", lambda of: spread(TESTED[of[0]][1], of[1], ".3f")),
            *compared(lambda of: _compared(*of), {"p": math("p"), "holm_p": "Holm", "d": math("d")}),
        ),
        *(
            [Row(f"{task}/{m}", (code(task) if m == "mse" else "", text), (short, m)) for m, text in METRICS.items()]
            for short, task in TASKS.items()
        ),
        [Row(f"ten_tasks/{m}", ("All ten" if m == "mse" else "", METRICS[m]), ("ten_tasks", m)) for m in METRICS],
        (
            Row("params", ("Parameters (M)", "trained here", *TRAINED_HERE)),
            Row("paper_params", ("", "the paper's size", *PAPERS)),
        ),
        more=(
            Cell("params/change", BOTH, "parameters", "model", "relative_change", "+.0f", "%", SINGLE),
            over("least_of", (f"{task}/gripper_mse/p" for task in TASKS.values()), ".3f", name="gripper/p"),
            runs(SINGLE),
            runs(TESTED["ten_tasks"][1], "ten_tasks/runs"),
            *settings("dual_cups", ("noise", "dropout", "validation_share", "patience", *DUAL)),
            *settings("single_cups", ("steps",), "single/"),
        ),
    ),
    figure("ablation_paired", *(cell for pair in PAIRED for cell in pair.values())),
)
