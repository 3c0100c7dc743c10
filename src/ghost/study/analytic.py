"""The analytic experiments: switching speed, the diagnostic with its learned potential, dwell time, the mechanism."""

from collections.abc import Mapping
from typing import Any

from ghost.study.cells import curves, runs, settings, values
from ghost.study.declarations import Artefact, Cell, Experiment, Tex, figure
from ghost.study.tables import Column, Row, tabulated

WELL = {"stiffness": 0.3, "tilt": 3.0, "d": 1.5}
BASINS = {"alpha": 0.1, "sigma": 0.6, "collapsed_weight": 0.05}  # the first two are not published: see the module
PUBLISHED = {"published_steps": [3, 2, 1], "published_first_ratio": 0.85, "published_min_steps": [4, 5]}
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "ghost_mechanism": {**WELL, "excess": 0.05, "delta": 0.2, "dt": 0.01, "duration_s": 15.0, "tolerance": 0.15},
    "switch_speed": {
        **WELL,
        "dt": 0.16,  # not published: see the module
        "euler_steps": [3, 5, 10],
        "gru_alphas": [0.1, 0.28, 0.3, 0.5],  # 0.28 has the published ratio
        "tolerance": 0.15,
        "max_steps": 60,
        "profile_steps": 15,
        "scan_resolution": 0.001,
        **PUBLISHED,
    },
    "dwell_time": {
        **WELL,
        **{"mu_lowest": 1e-6, "mu_highest": 1.0, "mus": 25, "window": 100.0},
        **{"excess_lowest": 1e-6, "excess_highest": 1e-2, "excesses": 17},
        **{"delta_ratios": [1.1, 2.0, 10.0], "drift_ratios": [-0.5, 0.0, 0.5]},
    },
    "diagnostic": {
        **BASINS,
        **{"dt": 0.01, "hold_s": 1.0, "duration_s": 12.0, "reach": 1.6, "grid_points": 121, "arrow_points": 15},
    },
    "learned_potential": {
        **BASINS,
        **{"reach": 1.5, "train_per_context": 256, "heldout_per_context": 256, "horizon_s": 20.0},
        **{"demonstrator_dt": 0.05, "hidden": [128, 128, 64], "epochs": 2000, "learning_rate": 1e-3},
        **{"euler_steps": 5, "dt": 0.2, "tolerance": 0.15, "max_control_steps": 10, "grid_points": 121},
    },
}
SEEDS = {"learned_potential": (0, 1, 2)}  # the others have no chance
EXPERIMENTS = tuple(
    Experiment(name, "simulate", f"ghost.simulations.{name}", settings, SEEDS.get(name, (0,)))
    for name, settings in SETTINGS.items()
)
TIMED = {"learned_potential": SETTINGS["learned_potential"], "timed_epochs": 2000, "threads": 1}
EXPERIMENTS += (Experiment("training_time", "simulate", "ghost.simulations.training_time", TIMED, timed=True),)


LEARNED: Mapping[str, Any] = {"estimator": "mean", "prefix": "learned/"}
SPREAD = {**LEARNED, "estimator": "mean_std"}
LARGEST = {**LEARNED, "estimator": "largest"}
COLLAPSES = ("collapse_1", "collapse_2", "collapse_3")
GHOSTS = ("ghost_n3", "ghost_n5", "ghost_n10")
GRUS = ("gru_a0.10", "gru_a0.28", "gru_a0.30", "gru_a0.50")

FULL_DYNAMICS = Tex(r"Eq.~\eqref{eq:full_dynamics}", "Eq. (full_dynamics)")
DERIVED_SLOW = Tex(r"Eq.~\eqref{eq:derived_slow}", "Eq. (derived_slow)")
SLOW, FAST = Tex(r"Eq.~\eqref{eq:slow}", "Eq. (slow)"), Tex(r"Eq.~\eqref{eq:fast}", "Eq. (fast)")
DWELL = Tex(r"Lemma~\ref{lem:dwell}", "Lemma (dwell)")
SECOND_PHASE = Tex(r"Eqs.~\eqref{eq:phase2_p}, \eqref{eq:phase2_z}", "Eqs. (phase2_p), (phase2_z)")
SIGNAL = Tex(r"Modulatory signal $\mathbf{c}_t$", "Modulatory signal c_t")
EMBEDDING = Tex(r"Context embedding $\mathbf{e}_t$", "Context embedding e_t")
LATENT = Tex(r"Slow variable $\mathbf{z}_t$", "Slow variable z_t")
CHUNK = Tex(r"Fast variable $\mathbf{y}_t$", "Fast variable y_t")
FORCE = Tex(r"Field $\mathbf{F}_\theta$", "Field F_θ")
POTENTIAL = Tex(r"Potential $U_\theta$", "Potential U_θ")
DRIFT = Tex(r"Drift $\mathbf{b}_\theta$", "Drift b_θ")
EMERGE = Tex(r"Emerge under $\mathbf{e}_t$", "Emerge under e_t")
REFINEMENT = Tex(r"Refinement $V_\theta$", "Refinement V_θ")
THEORY = (
    Row("modulatory_signal", (SIGNAL, FULL_DYNAMICS, EMBEDDING), "ghost.decoders.context"),
    Row("field", (FORCE, FULL_DYNAMICS, "Potential and drift networks"), "ghost.decoders.ghost"),
    Row("slow_variable", (LATENT, SLOW, "Latent state"), "ghost.dynamics.integrators"),
    Row("fast_variable", (CHUNK, FAST, "Horizon network"), "ghost.decoders.ghost"),
    Row("potential", (POTENTIAL, DERIVED_SLOW, "Scalar network"), "ghost.dynamics.networks"),
    Row("drift", (DRIFT, DERIVED_SLOW, "Vector network"), "ghost.dynamics.networks"),
    Row("ghost_regions", ("Ghost regions", DWELL, EMERGE), "ghost.dynamics.normal_form"),
    Row("refinement_potential", (REFINEMENT, SECOND_PHASE, "Second-order steps"), "ghost.dynamics.integrators"),
)

ARTEFACTS: tuple[Artefact, ...] = (
    figure(
        "ghost_mechanism",
        *settings("ghost_mechanism", SETTINGS["ghost_mechanism"]),
        *values("ghost_mechanism", "stable", ".3f", "barrier_height"),
        *values("ghost_mechanism", "ghost", ".2f", "dwell_s", "lemma1_bound_s", "normal_form_limit_s", unit="s"),
        *values("ghost_mechanism", "ghost", ".3f", "width", "min_speed"),
        *values("ghost_mechanism", "escape", ".2f", "arrival_s", unit="s"),
        *values("ghost_mechanism", "escape", ".1e", "final_distance"),
        *curves("ghost_mechanism", "landscape/u_stable", "landscape/u_ghost", "trajectory/z"),
    ),
    Artefact("fig", "method", "draw"),
    tabulated(
        "theory_method_map",
        (
            "Theory",
            "Result",
            "Architecture",
            Column("module", "Module", lambda module: Cell("", "", module, estimator="module"), "l"),
        ),
        THEORY,
    ),
    figure(
        "diagnostic",
        *settings("diagnostic", SETTINGS["diagnostic"]),
        *values("diagnostic", ("c1", "c2"), ".0f", "minima"),
        *values("diagnostic", "c2", ".3f", "gradient_at_b1"),
        *values("diagnostic", "ghost", ".2f", "dwell_s", "dip_s", unit="s"),
        *values("diagnostic", "ghost", ".3f", "delta", "dip_speed", "critical_weight"),
        *values("diagnostic", "escape", ".2f", "peak_s", unit="s"),
        *values("diagnostic", "escape", ".3f", "peak_speed"),
        *values("diagnostic", "escape", ".0f", "ends_in"),
        *values("diagnostic", "escape", ".1e", "final_distance"),
        *curves("diagnostic", "c1/u", "c2/u", "trajectory/z", "trajectory/speed", "trajectory/action"),
        *settings("learned_potential", SETTINGS["learned_potential"], "learned/"),
        runs("learned_potential", "learned/runs"),
        *values("learned_potential", "train", ".4f", "final_loss", **SPREAD),
        *values("learned_potential", "heldout", ".4f", "loss", **SPREAD),
        *values("learned_potential", "heldout", ".2f", "predict_the_mean_loss", **LEARNED),
        *values("learned_potential", "heldout", ".1e", "median_squared_error", **LARGEST),
        *values("learned_potential", "heldout", ".3f", "wrong_basin_rate", **SPREAD),
        *values("learned_potential", "c1", ".1f", "basins", **LEARNED),
        *values("learned_potential", "c1", ".3f", "largest_distance", **LARGEST),
        *values("learned_potential", COLLAPSES, ".2f", "collapsed_basin_gone", "basins_lost", **LEARNED),
        *values("learned_potential", "switch", ".2f", "reached", **LEARNED),
        *values("learned_potential", "switch", ".0f", "control_steps", **LARGEST),
        *values("learned_potential", "switch", ".3f", "final_distance", **LARGEST),
        *curves("learned_potential", "training/loss", "c1/u", "c2/u", "switch/z", prefix="learned/"),
    ),
    figure(
        "dwell_time",
        *settings("dwell_time", SETTINGS["dwell_time"]),
        *values("dwell_time", "normal_form", ".4f", "slope"),
        *values("dwell_time", "double_well", ".4f", "slope", "critical_tilt", "curvature"),
        *values("dwell_time", ("normal_form", "double_well"), ".1e", "largest_relative_deviation"),
        *values("dwell_time", "lemma1", ".3f", "min_dwell_over_bound", "max_dwell_over_bound"),
        *curves("dwell_time", "normal_form/dwell", "double_well/dwell", "lemma1/dwell_over_bound"),
    ),
    figure(
        "switch_speed",
        *settings("switch_speed", SETTINGS["switch_speed"]),
        *values("switch_speed", "landscape", ".3f", "basin_a", "basin_b"),
        *values("switch_speed", GHOSTS, ".0f", "steps_to_converge", "evaluations"),
        *values("switch_speed", GRUS, ".0f", "steps_to_converge"),
        *values("switch_speed", GRUS[1:3], ".2f", "ratio"),
        *values("switch_speed", "ghost", ".2f", "first_ratio", "min_ratio", "last_ratio"),
        *values("switch_speed", "ghost", ".0f", "max_ratio_step", "min_ratio_step"),
        *values("switch_speed", "paper_triple", ".3f", "dt_lowest", "dt_highest"),
        *values("switch_speed", "euler_stable", ".4f", "dt_highest"),
        *values("switch_speed", "published_first_ratio", ".4f", "dt"),
        *values("switch_speed", "published_min_steps", ".3f", "dt_lowest", "dt_highest"),
        *curves("switch_speed", "landscape/u_c0", "landscape/u_c1", "ghost/ratio", "gru_a0.30/ratio"),
    ),
)
