"""LIBERO-10 in closed loop: demonstrations, eight policies, four variants of the attractor, their rollouts."""

from collections.abc import Callable, Mapping
from typing import Any

from ghost.runs.marks import StandIn
from ghost.study import offline, seeds
from ghost.study.cells import compared, mean, over, parameters, rate_comparison, runs, settings, spread
from ghost.study.declarations import ENV_SEED, SEVERAL, Cell, Experiment, figure
from ghost.study.seeds import AS_TRAINED
from ghost.study.tables import Column, Row, Text, math, tabulated

FEATURES = "libero_features"
DEMOS_NAME = "libero_demos"
PHASES_NAME = "libero_phases"
HEAD, HEAD4 = "libero_dit", "libero_dit4"  # GR00T's own head, where the backbone is GR00T (ghost.study.groot)
SEEDS = seeds.SEEDS[:5]
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

# name: decoder, settings, seeds
POLICIES: Mapping[str, tuple[str, Mapping[str, Any], tuple[int, ...]]] = {
    "libero_mlp": ("mlp", {**TRAINING, **WIDTHS, "layers": 1}, SEEDS),
    "libero_mlp_phase": ("mlp_phase", {**TRAINING, **WIDTHS, **PHASE, "layers": 1}, SEEDS),
    "libero_gru_phase": ("gru_phase", {**TRAINING, **WIDTHS, **PHASE, **SEQUENCE, "d_recurrent": 832}, SEEDS),
    "libero_ghost": ("ghost", GHOST, SEEDS),
    "libero_ghost_pg": ("ghost_phase", GHOST_PG, SEEDS),
    "libero_ghost_pz": ("ghost_phase", GHOST_PZ, SEEDS),
}
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any], tuple[int, ...]]] = {
    "libero_push": ("ghost_phase", {**GHOST_PG, **offline.CONTRASTIVE}, SEEDS),
    "libero_pull": ("ghost_phase", {**GHOST_PG, "pull": 0.1}, SEEDS),
    "libero_subspace": ("ghost_phase", {**GHOST_PG, "basin_dims": 16}, SEEDS),
    "libero_quartic": ("ghost_phase", {**GHOST_PG, "quartic": True}, SEEDS),
}
ENSEMBLES = ("libero_ghost_pg", "libero_ghost_pz")
MISDIRECTED = ("libero_mlp", "libero_gru_phase", "libero_ghost_pg", "libero_ghost_pz")
SIMULATION = {"max_steps": 520, "execute": EXECUTE, "stepping": "libero", "rows": 1}
# How others evaluate: steps of an episode, steps until the next plan, trials a task, from official init state 0 on.
# All wait ten steps first, as we do. openpi's is lerobot's and vla-eval's, too; NVIDIA's is that of GR00T N1.5.
PROTOCOLS: Mapping[str, Mapping[str, int]] = {
    "article": {"max_steps": 520, "execute": EXECUTE, "trials": 20, "env_seed": 0},
    "openpi": {"max_steps": 520, "execute": 5, "trials": 50, "env_seed": 0},
    "nvidia": {"max_steps": 1000, "execute": 1, "trials": 5, "env_seed": 0},
}
ROLLOUT = {"backbone": "libero_standin", "tasks": TASKS, "trials": 20, **SIMULATION}
PLAIN = {**ROLLOUT, "env_seed": 0}
ENSEMBLE = {**ROLLOUT, "ensemble": True}
# The article evaluates its ensemble three times, with the env_seeds 0, 0 and 1. Here the same env_seed gives the same
# episodes to the bit, so the third evaluation has another one.
ENV_SEEDS = (0, 1, 2)
BACKBONE = f"ghost.backbones.{ROLLOUT['backbone']}"
PAIRS, SWITCH_AT = [[0, 1], [5, 7]], [50, 100, 150]
MISDIRECT = {**PLAIN, "tasks": [], "misdirect": PAIRS, "switch_at": SWITCH_AT}

ASSETS = StandIn("LIBERO assets", "libero_assets", made="primitives")
DEMONSTRATIONS = StandIn("LIBERO demonstrations")
DEMOS = {"tasks": TASKS, "attempts": 50, "max_steps": 520, "noise": 0.12, "bursts": 0.01}
AGREEMENT = {**DEMOS, "attempts": 2}
STANDIN = {"tokens": 64, "d_token": 2048, "weights_seed": 2026}
DRAWN = {"stride": 1, "test_episodes": 4, "horizon": 16, "d_state": 64, "d_action": 7, "samples_per_shard": 1024}
TRAINED = {
    name: Experiment(name, "train", f"ghost.decoders.{decoder}", {**settings, **offline.PRECISION}, seeds, (FEATURES,))
    for name, (decoder, settings, seeds) in {**POLICIES, **VARIANTS}.items()
}


def rollout_of(
    trained: str,
    settings: Mapping[str, Any],
    *uses: str,
    suffix: str = "rollout",
    seeds: tuple[int, ...] = AS_TRAINED,
) -> Experiment:
    """What was trained acts, with the code of these modules."""
    name, module, needs = f"{trained}_{suffix}", "ghost.steps.rollout", (FEATURES, trained)
    return Experiment(name, "rollout", module, settings, seeds, needs, uses=uses, stand_ins=(ASSETS,))


def _rollout(suffix: str, trained: Experiment, settings: Mapping[str, Any], seeds: tuple[int, ...]) -> Experiment:
    return rollout_of(trained.name, settings, trained.module, BACKBONE, suffix=suffix, seeds=seeds)


def _offline(trained: Experiment) -> Experiment:
    settings = {"samples": 2000, "window": trained.settings.get("window", 1), "gap": EXECUTE}
    name, module, needs = f"{trained.name}_offline", "ghost.evaluations.libero_offline", (FEATURES, trained.name)
    return Experiment(name, "evaluate", module, settings, AS_TRAINED, needs, uses=(trained.module,))


EXPERIMENTS = (
    Experiment(DEMOS_NAME, "make_demos", "ghost.libero.demos", DEMOS, stand_ins=(DEMONSTRATIONS, ASSETS)),
    # Seed 0 is that of the demonstrations on which the rule was chosen.
    Experiment(PHASES_NAME, "make_demos", "ghost.libero.agreement", AGREEMENT, (1, 2, 3), stand_ins=(ASSETS,)),
    Experiment(
        FEATURES,
        "cache_features",
        BACKBONE,
        {**STANDIN, **DRAWN},
        needs=(DEMOS_NAME,),
        stand_ins=(StandIn(offline.BACKBONE),),
    ),
    *TRAINED.values(),
    *map(_offline, TRAINED.values()),
    *(_rollout("rollout", trained, PLAIN, AS_TRAINED) for trained in TRAINED.values()),
    *(_rollout("ensemble_rollout", TRAINED[name], ENSEMBLE, ENV_SEEDS) for name in ENSEMBLES),
    *(_rollout("misdirected", TRAINED[name], MISDIRECT, SEEDS[:1]) for name in MISDIRECTED),
)


# Of a row are its rollouts, whose name begins with that of the training.
SINGLE = (
    Row("MLP", ("MLP", parameters("libero_mlp"), "no", "none"), "libero_mlp"),
    Row("MLP_Phase", ("MLP, phase", parameters("libero_mlp_phase"), "yes", "none"), "libero_mlp_phase"),
    Row("GRU_Phase", ("GRU, phase", parameters("libero_gru_phase"), "yes", "recurrent"), "libero_gru_phase"),
    Row("Ghost", ("Vanilla Ghost", parameters("libero_ghost"), "no", "ODE"), "libero_ghost"),
    Row("Ghost_PG", ("Ghost PG", parameters("libero_ghost_pg"), "yes", "ODE"), "libero_ghost_pg"),
    Row("Ghost_PZ", ("Ghost PG, persistent", parameters("libero_ghost_pz"), "yes", "ODE"), "libero_ghost_pz"),
)
TOGETHER = (
    Row("Ghost_PG_ensemble", ("Ghost PG, ensemble", None, "yes", "ODE"), "libero_ghost_pg_ensemble"),
    Row("Ghost_PZ_ensemble", ("persistent, ensemble", None, "yes", "ODE"), "libero_ghost_pz_ensemble"),
)
# Only where the backbone has a head of its own: the article never shows how good it is by itself.
OWN_HEAD = tuple(
    Row(name, (("GR00T's head, ", steps, " steps"), parameters(head, "head"), "no", "none"), head)
    for name, head in (("GR00T_head", HEAD), ("GR00T_head_4", HEAD4))
    for steps in settings(head, ("euler_steps",), f"{name}/")
)


def _success(experiment: str, condition: str = "all", name: str = "") -> Cell:
    return Cell(name, experiment, "success", condition, "success_rate", ".0f", "%")


def _of_t8(end: str) -> tuple[Cell, Cell]:
    """How inferred phases run through episodes with two pots. The article's "Phase 3" is the second object's."""
    pg, condition = "libero_ghost_pg_rollout", f"T8/{end}"
    return (
        Cell(f"{condition}/transitions", pg, "transitions", condition, "mean_where_run", ".1f"),
        Cell(f"{condition}/second_object_share", pg, "second_object_percent", condition, "mean_where_run", ".1f", "%"),
    )


def _one(make: Callable[[str], Cell]) -> Callable[[str], Cell | None]:
    """Of single policies, not of ensembles."""
    return lambda policy: make(policy) if policy in TRAINED else None


def _gap(name: str, condition: str, estimator: str, digits: str, unit: str = "pp") -> Cell:
    """Ghost PG's success compared with the MLP's."""
    pg, mlp = "libero_ghost_pg_rollout", "libero_mlp_rollout"
    return Cell(name, pg, "success", condition, estimator, digits, unit, mlp)


def _to_reference(reference: str, gain: str) -> tuple[Column, ...]:
    """Each policy against the one that the article compares with, in the trials that both met."""
    heads: dict[str, Text] = {gain: f"{gain.capitalize()} (points)", "p": math("p"), "holm_p": "Holm"}

    def compare(policy: str) -> dict[str, Cell]:
        same = policy == reference
        return {} if same else rate_comparison(f"{policy}_rollout", f"{reference}_rollout", gain)

    return compared(compare, heads, (gain, "p", "holm_p", "detectable"))


def _over(name: str, experiment: str, against: str, condition: str = "all") -> Cell:
    return Cell(name, experiment, "success", condition, "rate_difference", "+z.0f", "pp", against)


def _misdirected(name: str, condition: str) -> str:
    return f"misdirected/{name.removeprefix('libero_')}/{condition}"


# Tasks that the article calls simple and complex.
GROUPS = {"simple": (0, 1, 7), "complex": (4, 6, 8)}
SHOWN = [row for row in (*SINGLE, *TOGETHER) if row.name in ("MLP", "Ghost_PG", "Ghost_PZ", "Ghost_PZ_ensemble")]
SUCCESS = Column("success", "Success (%)", lambda p: _success(f"{p}_rollout"))
TRAININGS = Column("trainings", "Trainings", lambda p: runs(p.removesuffix("_ensemble"), ""))
TRIALS = Column("trials", "Trials", lambda p: Cell("", f"{p}_rollout", "success", "all", "trials"))
CONTRACTION = "per_step_contraction_percent"
ARTEFACTS = (
    tabulated(
        "libero10",
        (
            "Policy",
            Column("params", "Params (M)"),
            Column("phase", "Phase"),
            Column("state", "State"),
            SUCCESS,
            Column("T8", "Two pots (%)", lambda p: _success(f"{p}_rollout", "T8")),
            TRAININGS,
            TRIALS,
            *_to_reference("libero_mlp", "gain"),
            Column("settled", None, lambda p: Cell("", f"{p}_rollout", "settled", "all", "success_rate", ".0f", "%")),
            Column("spread", None, _one(lambda p: spread(f"{p}_rollout", "success", ".2f"))),
            Column("runs", None, lambda p: runs(f"{p}_rollout", "")),
            Column("mse", None, _one(lambda p: spread(f"{p}_offline", "mse", ".4f"))),
        ),
        SINGLE,
        TOGETHER,
        OWN_HEAD,
        optional=(HEAD, HEAD4, f"{HEAD}_rollout", f"{HEAD4}_rollout"),
        more=(
            *(
                mean(f"{row.of}_offline", "phase_accuracy", digits=".2f", name=f"{row.name}/phase_accuracy")
                for row in SINGLE
                if "phases" in TRAINED[row.of].settings
            ),
            *(cell for end in ("succeeded", "failed") for cell in _of_t8(end)),
            *(
                _success(f"{name}_misdirected", condition, _misdirected(name, condition))
                for name in MISDIRECTED
                for condition in (f"T{first}-T{task}_N{at}" for first, task in PAIRS for at in SWITCH_AT)
            ),
            _over("gain/ghost_pg_over_gru", "libero_ghost_pg_rollout", "libero_gru_phase_rollout"),
            _over("gain/persistent_ensemble", *(f"{name}_ensemble_rollout" for name in reversed(ENSEMBLES))),
            _over("misdirected/gain/N100", "libero_ghost_pz_misdirected", "libero_ghost_pg_misdirected", "T0-T1_N100"),
            over(
                "range_of",
                (_misdirected(name, f"T5-T7_N{at}") for name in ENSEMBLES for at in SWITCH_AT),
                ".0f",
                "%",
                "misdirected/T5_T7/ghost",
            ),
            *(
                _success("libero_ghost_pz_ensemble_rollout", f"{ENV_SEED}{seed}", f"ensemble_run/env_seed_{seed}")
                for seed in ENV_SEEDS
            ),
            Cell(
                "persistent/extra_params",
                "libero_ghost_pz",
                "parameters",
                "model",
                "difference",
                ",.0f",
                "",
                "libero_ghost_pg",
            ),
            Cell(
                "ratio/offline_mse",
                "libero_ghost_pg_offline",
                "mse",
                "all",
                "paired_ratio",
                ".1f",
                "",
                "libero_ghost_pz_offline",
            ),
            over(
                "ratio_of",
                (f"T8/{end}/second_object_share" for end in ("succeeded", "failed")),
                ".1f",
                name="T8/ratio_of_second_object_share",
            ),
            Cell("misdirected/trials", "libero_mlp_misdirected", "success", "T0-T1_N50", "trials"),
            *settings("libero_mlp_rollout", ("max_steps", "execute", "trials")),
            *settings(FEATURES, ("horizon", "stride")),
            *settings(
                "libero_ghost_pg",
                ("phases", "phase", "epochs", "batch_size", "learning_rate", "final_rate", "d_latent"),
            ),
            *settings("libero_ghost_pz", ("window", "epochs"), "Ghost_PZ/"),
            *settings("libero_gru_phase", ("window",), "GRU_Phase/"),
            *settings("libero_mlp_misdirected", ("switch_at",), "misdirected/"),
            mean(PHASES_NAME, "agreement_percent", digits=".0f", unit="%", name="phases/agreement"),
            Cell("demos/episodes", "libero_demos", "episodes", "all", "value", ".0f"),
            Cell("demos/expert_success", "libero_demos", "expert_success", "all", "success_rate", ".0f", "%"),
        ),
    ),
    figure(
        "libero_per_task",
        *(_success(f"{row.of}_rollout", f"T{task}", f"{row.name}/T{task}") for row in SHOWN for task in TASKS),
        _success("libero_ghost_pg_ensemble_rollout", "T6", "Ghost_PG_ensemble/T6"),
        over("least_of", (f"Ghost_PZ_ensemble/T{task}" for task in TASKS), ".0f", "%", "Ghost_PZ_ensemble/lowest"),
    ),
    figure(
        "libero_complexity",
        _gap("r", "", "complexity_r", "z.2f", ""),
        _gap("slope", "", "complexity_slope", "+z.1f"),
        _gap("gap", "all", "rate_difference", "+z.1f"),
        *(
            cell
            for task in (f"T{number}" for number in TASKS)
            for cell in (
                Cell(f"{task}/phases", "libero_ghost_pg_rollout", "subphases", task, "mean_where_run", ".0f"),
                _gap(f"{task}/gap", task, "rate_difference", "+z.0f", ""),
            )
        ),
        *(
            cell
            for group, tasks in GROUPS.items()
            for cell in (
                _gap(f"{group}/gap", SEVERAL.join(f"T{task}" for task in tasks), "rate_difference", "+z.1f"),
                over("mean_of", (f"T{task}/phases" for task in tasks), ".1f", name=f"{group}/phases"),
            )
        ),
    ),
    tabulated(
        "attractor_tradeoff",
        (
            "Variant",
            SUCCESS,
            TRAININGS,
            TRIALS,
            *_to_reference("libero_ghost_pg", "cost"),
            Column("mse", "MSE", lambda p: mean(f"{p}_offline", "mse", digits=".5f")),
            Column("contraction", "Contraction (%)", lambda p: mean(f"{p}_offline", CONTRACTION, "flow", "z.0f", "%")),
            Column("silhouette", "Silhouette", lambda p: mean(f"{p}_offline", "silhouette", "flow", "z.3f")),
        ),
        (
            Row("Ghost_PG", ("Ghost PG",), "libero_ghost_pg"),
            Row("push", ("contrastive push",), "libero_push"),
            Row("pull", ("trajectory pull",), "libero_pull"),
        ),
        (
            Row("subspace", ("subspace basin",), "libero_subspace"),
            Row("quartic", ("quartic potential",), "libero_quartic"),
        ),
        more=(
            *settings("libero_push", ("contrastive",), "push/"),
            *settings("libero_pull", ("pull",), "pull/"),
            *settings("libero_subspace", ("basin_dims",), "subspace/"),
        ),
    ),
)
