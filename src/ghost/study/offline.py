"""Decoders of equal size, trained on cached features of the dual-arm data: tab:lightweight and tab:loss_ablation.

To add a decoder: write src/ghost/decoders/<module>.py, then a line in COMPARED.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ghost.runs.marks import StandIn
from ghost.study.cells import compared, comparison, largest, mean, over, parameters, runs, settings, spread
from ghost.study.declarations import Cell, Experiment, Tex
from ghost.study.seeds import AS_TRAINED, SEEDS
from ghost.study.tables import Column, Row, math, tabulated

FEATURES = "dual_arm_features"
CONTROL_HZ = 100  # of the robots that the article speaks of
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
ROBOT = {"fps": 20, "robot_seed": 2026, "state_noise": 0.01, "scene_noise": 0.02}
STANDIN = {"tokens": 64, "d_token": 2048, "text_tokens": 16, "hidden": 256, "weights_seed": 2026}  # the backbone
BY_EPISODE = {"train_episodes": 1800, "train_timesteps": 800, "test_timesteps": 200}
SHAPES = {"horizon": 17, "d_state": 64, "d_action": 32}
DRAWN = {  # the samples of the feature cache
    "train_per_task": [600, 600, 600, 600, 600, 600, 600, 600, 500, 300],
    "test_per_task": [150, 150, 150, 150, 150, 150, 150, 150, 150, 80],
    **BY_EPISODE,
    **SHAPES,
    "samples_per_shard": 256,
}
DATA_SET, BACKBONE = "dual-arm data set", "GR00T N1.5 backbone"  # what stands in for them is marked
RECORDED = {"episodes": 2196, "steps": 200, **ROBOT, "episodes_per_file": 250}
DATA = (
    Experiment("dual_arm", "make_demos", "ghost.data.dual_arm", RECORDED, stand_ins=(StandIn(DATA_SET),)),
    Experiment(
        FEATURES,
        "cache_features",
        "ghost.backbones.standin",
        {**STANDIN, **DRAWN},
        needs=("dual_arm",),
        stand_ins=(StandIn(BACKBONE),),
    ),
)


@dataclass(frozen=True)
class Decoder:
    """A decoder that is trained on all ten tasks, tested, timed, and compared with Ghost in tab:lightweight."""

    name: str  # of its row: in the ids of its cells
    text: str  # as the row prints it
    module: str  # below ghost.decoders
    sizes: Mapping[str, Any]  # settings of the module
    losses: Mapping[str, Any] = field(default_factory=dict)  # weights and schedules of terms beside imitation
    variant: str = ""  # the name of its experiment; the module's where it is empty

    @property
    def experiment(self) -> str:
        return self.variant or self.module

    @property
    def tested(self) -> str:
        """The experiment that tests it."""
        return f"{self.experiment}_offline"

    @property
    def timed(self) -> str:
        """Its name in the experiment `latency`, which measures decoders of one module and the same sizes once."""
        return next(d.experiment for d in DECODERS if (d.module, d.sizes) == (self.module, self.sizes))


# Section IV-D. Every decoder is trained alike; only Ghost has terms beside imitation.
TRAINING = {"split": "sample", "epochs": 300, "batch_size": 32, "learning_rate": 3e-4}
PRECISION = {"precision": "float32"}  # or bf16, in a build of your own
WIDTHS = {"hidden": 512, "d_context": 128, "d_latent": 64}
FIELD = {**WIDTHS, "steps": 5, "dt": 0.2}
GHOST = {**TRAINING, **FIELD}
CONTRASTIVE = {"contrastive": 0.2, "temperature": 0.1}  # the temperature is not published
BASIN = {**CONTRASTIVE, "basin": 0.01}

PROPOSED = Decoder(
    "Ghost", "Ghost (proposed)", "ghost", FIELD, {**BASIN, "curriculum_share": 0.5}, "ghost_basin_curriculum"
)
COMPARED = (  # with PROPOSED. Holm's correction is over all of them
    Decoder("CVAE", "CVAE", "cvae", {**WIDTHS, "d_code": 32}, {"kl": 0.001}),  # weight: not published
    Decoder("Neural_ODE", "Neural ODE", "neural_ode", FIELD),
    Decoder("MLP", "MLP", "mlp", {**WIDTHS, "layers": 3}),
    Decoder("Transformer", "Transformer", "transformer", {"d_model": 256, "hidden": 384, "layers": 2, "heads": 8}),
    Decoder(
        "Diffusion", "One-step diffusion", "diffusion", {**WIDTHS, "d_time": 128, "levels": 18}, {"consistency": 1.0}
    ),
)
# Beyond the article's table: Ghost with eq. (loss) alone, with the loss that the others have, and with the basin term.
PLAIN = Decoder("Ghost_plain", "Ghost, plain loss", "ghost", FIELD, CONTRASTIVE)
IMITATING = Decoder("Ghost_BC", "Ghost, imitation only", "ghost", FIELD, {}, "ghost_bc")
WITH_BASIN = Decoder("Ghost_basin", "Ghost, basin term", "ghost", FIELD, BASIN, "ghost_basin")
DECODERS = (PLAIN, IMITATING, WITH_BASIN, PROPOSED, *COMPARED)


def training(
    name: str, decoder: str, settings: Mapping[str, Any], seeds: tuple[int, ...] = SEEDS[:5], *teachers: Experiment
) -> Experiment:
    needs, uses = (FEATURES, *(e.name for e in teachers)), tuple(e.module for e in teachers)
    settings = {**settings, **PRECISION}
    return Experiment(name, "train", f"ghost.decoders.{decoder}", settings, seeds, needs, uses=uses)


def evaluation(name: str, module: str, settings: Mapping[str, Any], *trained: Experiment) -> Experiment:
    """What is measured on trained decoders, seed by seed."""
    needs, uses = (FEATURES, *(e.name for e in trained)), tuple(dict.fromkeys(e.module for e in trained))
    return Experiment(name, "evaluate", f"ghost.evaluations.{module}", settings, AS_TRAINED, needs, uses=uses)


def offline_test(trained: Experiment) -> Experiment:
    """The test of a decoder on samples that it was not trained on, of its own split and tasks."""
    of_training = {key: trained.settings[key] for key in ("split", "tasks") if key in trained.settings}
    return evaluation(f"{trained.name}_offline", "offline", of_training, trained)


TRAINED = {d.experiment: training(d.experiment, d.module, {**TRAINING, **d.sizes, **d.losses}) for d in DECODERS}
EXPERIMENTS = (*DATA, *TRAINED.values(), *map(offline_test, TRAINED.values()))


def _lower(decoder: Decoder) -> Cell | None:
    """How much lower Ghost is, in percent of the other."""
    if decoder not in COMPARED:
        return None
    return Cell("", PROPOSED.tested, "mse", "all", "relative_reduction", "z.1f", "%", decoder.tested)


def row_of(decoder: Decoder) -> Row:
    return Row(decoder.name, (decoder.text,), decoder)


# Of every table that compares decoders, the article's and that of a lab's own data.
MEASURED: tuple[Column | str | Tex, ...] = (
    "Decoder",
    Column("params", "Params (M)", lambda d: parameters(d.tested)),
    Column("test_mse", "Test MSE", lambda d: spread(d.tested, "mse", ".4f")),
    Column("share_of_task_mean", "Worst task", lambda d: largest(d.tested, "share_of_task_mean", "worst_task")),
    *compared(
        lambda d: {} if d is PROPOSED else comparison(d.tested, PROPOSED.tested, holm=d in COMPARED),
        {"p": math("p vs Ghost"), "holm_p": "Holm", "d": math("d vs Ghost")},
    ),
)
SHOWN = (PROPOSED, *COMPARED)  # six decoders
BESIDE = (
    *map(row_of, (PLAIN, IMITATING)),
    Row(
        "predict_the_mean",
        ("Predicting the task's mean", None, mean(PROPOSED.tested, "predict_the_mean_mse", digits=".4f")),
    ),
)
BOTH_LOSSES = r"Ghost ($\mathcal{L}_{\mathrm{BC}} + \lambda_c \mathcal{L}_{\mathrm{con}}$)"
LAYOUT = ("tokens", "d_token", "d_state", "d_action", "horizon", "train_per_task", "test_per_task")
ARTEFACTS = (
    tabulated(
        "lightweight",
        (
            *MEASURED,
            Column("lower", None, _lower),
            Column("paper_params", None, lambda d: parameters("latency", d.timed, ".1f")),
            Column("latency_ms", None, lambda d: mean("latency", "latency_ms", d.timed, ".2f", "ms")),
            Column("share_of_training_mean", None, lambda d: largest(d.tested, "share_of_training_mean", "worst_task")),
        ),
        map(row_of, SHOWN),
        BESIDE,
        more=(
            runs(PROPOSED.tested),
            over("mean_of", (f"{d.name}/paper_params" for d in COMPARED), ".1f", "M", "budget"),
            *settings(FEATURES, LAYOUT),
            *settings("ghost", (key for key in GHOST if key != "split")),
        ),
    ),
    tabulated(
        "loss_ablation",
        (
            "Configuration",
            Column("test_mse", "Test MSE", lambda d: spread(d.tested, "mse", ".5f")),
            *compared(
                lambda d: {} if d is PLAIN else comparison(d.tested, PLAIN.tested, p_digits=".4f", d_digits="+z.2f"),
                {"change": Tex(r"$\Delta$ (\%)", "Δ (%)"), "p": math("p"), "holm_p": "Holm", "d": math("d")},
            ),
        ),
        (
            Row("ghost", (Tex(BOTH_LOSSES, "Ghost (L_BC + λ_c L_con)"),), PLAIN),
            Row("basin", (math("+ basin term"),), WITH_BASIN),
            Row("curriculum", (math("+ curriculum schedule"),), PROPOSED),
            Row("bc", (math("- contrastive (BC only)"),), IMITATING),
        ),
        more=(
            *settings(PLAIN.experiment, CONTRASTIVE),
            *settings(PROPOSED.experiment, ("basin", "curriculum_share")),
        ),
    ),
)
