"""Ghost in the place of a diffusion transformer: the teacher, the decoder distilled from it, and what both cost.

With GR00T N1.5 the experiment `dit` is the fine-tuning of GR00T's own head (ghost.study.groot).
"""

from typing import Any

from ghost.study.ablation import DUAL
from ghost.study.cells import mean, over, parameters, runs, settings
from ghost.study.declarations import Cell, Experiment, figure
from ghost.study.offline import CONTROL_HZ, DECODERS, FEATURES, FIELD, GHOST, TRAINING, offline_test, training
from ghost.study.seeds import SEEDS
from ghost.study.tables import Column, Row, Text, indented, tabulated

ATTENTION = {"layers": 16, "heads": 32, "d_head": 48, "vl_layers": 4, "vl_heads": 32}
EMBODIMENT = {"embodiments": 32, "embodiment": 31}
FLOW = {"euler_steps": 4}
DIT_SIZES = {**ATTENTION, "hidden": 1024, **EMBODIMENT, "future_tokens": 32, "positions": 1024, **FLOW, "dropout": 0.2}
# 15,000 steps of 4 samples, accumulated over 2, at 5e-5: 150 passes over the 800 timesteps
DIT_TRAINING = {**TRAINING, "split": "episode", "epochs": 150, "batch_size": 8, "learning_rate": 5e-5}
DIT = training("dit", "dit", {**DIT_TRAINING, **DIT_SIZES}, SEEDS[:1])
DISTILLED = training("ghost_distilled", "ghost", {**GHOST, "split": "episode", "distillation": 0.5}, SEEDS[:3], DIT)

TIMED: dict[str, dict[str, Any]] = {
    **{d.timed: {"module": f"ghost.decoders.{d.module}", "settings": d.sizes} for d in DECODERS},
    "ghost_dual": {"module": "ghost.decoders.ghost", "settings": {**FIELD, **DUAL}},
    "dit": {"module": DIT.module, "settings": DIT_SIZES},
}
LATENCY = Experiment(
    "latency",
    "evaluate",
    "ghost.evaluations.latency",
    {"rounds": 1000, "warm_up": 20, "threads": 1, "dit_every": 10, "control_hz": CONTROL_HZ, "decoders": TIMED},
    uses=tuple(dict.fromkeys(timed["module"] for timed in TIMED.values())),
    timed=True,
)
EXPERIMENTS = (DIT, DISTILLED, offline_test(DIT), offline_test(DISTILLED), LATENCY)

GHOST_TEST, DIT_TEST = "ghost_distilled_offline", "dit_offline"


def _errors(metric: str, text: Text) -> Row:
    ratio = Cell("", DIT_TEST, metric, "all", "ratio", ".2f", against=GHOST_TEST)
    return Row(metric, (text, mean(GHOST_TEST, metric), mean(DIT_TEST, metric), ratio))


PARAMS = parameters("latency", "ghost", ".1f"), parameters("latency", "dit", ".1f")
LATENCIES = mean("latency", "latency_ms", "ghost", ".2f", "ms"), mean("latency", "latency_ms", "dit", ".0f", "ms")
PREDICTED = mean(GHOST_TEST, "predict_the_mean_mse", name="predict_the_mean/mse")
RATIO = Cell("", DIT_TEST, "parameters", "model", "ratio", ".0f", against=GHOST_TEST)
PAPER_RATIO = mean("latency", "parameters", "dit_over_ghost", ".0f")
LATENCY_RATIO = mean("latency", "latency", "dit_over_ghost", ".0f", name="ratio/latency")
LEAVES = mean("latency", "latency_leaves_ms", "ghost", ".1f", "ms", "Ghost/time_left_ms")
TRAINING_TIME = mean("training_time", "training_s", "learned_potential", ".0f", "s", "learned_potential/training_s")
SHOWN = {0: "left_arm_joint", 7: "left_gripper", 13: "right_arm_joint", 15: "right_gripper"}  # dimensions in the figure
OFFSETS = [mean(DIT_TEST, "offset", f"dimension_{d}", ".2f", name=f"DiT/offset/{text}") for d, text in SHOWN.items()]
ARTEFACTS = (
    tabulated(
        "groot_distill",
        ("Metric", Column("Ghost", "Ghost"), Column("DiT", "DiT"), Column("ratio", "DiT / Ghost")),
        (
            Row("params", ("Parameters (M), trained here", parameters(GHOST_TEST), parameters(DIT_TEST), RATIO)),
            Row("paper_params", ("Parameters (M), the paper's size", *PARAMS, PAPER_RATIO)),
            _errors("mse", "MSE, all dimensions"),
            _errors("arm_mse", indented("arm joints")),
            _errors("gripper_mse", indented("grippers")),
            _errors("lift_mse", indented("lift command")),
            Row("predict_the_mean", (indented("predicting the task's mean"), PREDICTED, PREDICTED)),
            Row("cosine", ("Cosine similarity", mean(GHOST_TEST, "cosine"), mean(DIT_TEST, "cosine"))),
            Row("latency_ms", ("Latency (ms), the paper's size", *LATENCIES, LATENCY_RATIO)),
            Row("runs", ("Training runs", runs(GHOST_TEST, ""), runs(DIT_TEST, ""))),
        ),
        more=(
            *settings(FEATURES, ("train_episodes", "train_timesteps", "test_timesteps")),
            *settings(DIT.name, ("batch_size", "learning_rate"), "DiT/"),
            mean(DIT.name, "updates", "train", ".0f", name="DiT/updates"),
            Cell("ghost_over_dit/arm_mse", GHOST_TEST, "arm_mse", "all", "ratio", ".2f", against=DIT_TEST),
            LEAVES,
            *settings(LATENCY.name, ("control_hz", "threads")),
            TRAINING_TIME,
        ),
        named="{column}/{row}",
    ),
    figure(
        "e2e_trajectory",
        *(
            Cell(f"{name}/curve/{array}", experiment, f"chunk/{array}", estimator="series")
            for name, experiment in (("Ghost", GHOST_TEST), ("DiT", DIT_TEST))
            for array in ("recorded", "predicted")
        ),
        *OFFSETS,
        over("range_of", OFFSETS, ".2f", name="DiT/offset"),
    ),
)
