"""The analytic experiments: switching speed, the diagnostic with its learned potential, dwell time, the mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ghost.study.cells import curves, module, settings, values
from ghost.study.declarations import Artefact, Cell, Experiment


def _simulation(name: str, settings: Mapping[str, Any], seeds: tuple[int, ...] = (0,)) -> Experiment:
    return Experiment(name, "simulate", f"ghost.simulations.{name}", settings, seeds)


# ------------------------------------------------------------------------------------------------------ experiments

EXPERIMENTS: tuple[Experiment, ...] = (
    _simulation(
        "ghost_mechanism",
        {
            "stiffness": 0.3,
            "tilt": 3.0,
            "d": 1.5,
            "excess": 0.05,
            "delta": 0.2,
            "dt": 0.01,
            "duration_s": 15.0,
            "tolerance": 0.15,
        },
    ),
    _simulation(
        "switch_speed",
        {
            "stiffness": 0.3,
            "tilt": 3.0,
            "d": 1.5,
            "dt": 0.16,  # not published: see the module
            "euler_steps": [3, 5, 10],
            "gru_alphas": [0.1, 0.28, 0.3, 0.5],  # 0.28 has the published ratio
            "tolerance": 0.15,
            "max_steps": 60,
            "profile_steps": 15,
            "scan_resolution": 0.001,
            "published_steps": [3, 2, 1],
            "published_first_ratio": 0.85,
            "published_min_steps": [4, 5],
        },
    ),
    _simulation(
        "dwell_time",
        {
            "mu_lowest": 1e-6,
            "mu_highest": 1.0,
            "mus": 25,
            "window": 100.0,
            "stiffness": 0.3,
            "tilt": 3.0,
            "d": 1.5,
            "excess_lowest": 1e-6,
            "excess_highest": 1e-2,
            "excesses": 17,
            "delta_ratios": [1.1, 2.0, 10.0],
            "drift_ratios": [-0.5, 0.0, 0.5],
        },
    ),
    _simulation(
        "diagnostic",
        {
            "alpha": 0.1,  # neither is published: see the module
            "sigma": 0.6,
            "collapsed_weight": 0.05,
            "dt": 0.01,
            "hold_s": 1.0,
            "duration_s": 12.0,
            "reach": 1.6,
            "grid_points": 121,
            "arrow_points": 15,
        },
    ),
    _simulation(
        "learned_potential",
        {
            "alpha": 0.1,
            "sigma": 0.6,
            "collapsed_weight": 0.05,
            "reach": 1.5,
            "train_per_context": 256,
            "heldout_per_context": 256,
            "horizon_s": 20.0,
            "demonstrator_dt": 0.05,
            "hidden": [128, 128, 64],
            "epochs": 2000,
            "learning_rate": 1e-3,
            "euler_steps": 5,
            "dt": 0.2,
            "tolerance": 0.15,
            "max_control_steps": 10,
            "grid_points": 121,
        },
        seeds=(0, 1, 2),
    ),
)


# ---------------------------------------------------------------------------------------------- figures and tables


def _learned(condition: str, metric: str, digits: str, estimator: str = "mean", published: str = "") -> Cell:
    name = f"learned/{condition}/{metric}"
    return Cell(name, "learned_potential", metric, condition, estimator, digits, published=published)


ROWS = {row.name: row for row in EXPERIMENTS}

ARTEFACTS: tuple[Artefact, ...] = (
    Artefact(
        "fig",
        "ghost_mechanism",
        "plot",
        cells=(
            *settings("ghost_mechanism", ROWS["ghost_mechanism"].settings),
            *values("ghost_mechanism", "stable", ".3f", "barrier_height"),
            *values(
                "ghost_mechanism",
                "ghost",
                ".2f",
                "dwell_s",
                "lemma1_bound_s",
                "normal_form_limit_s",
                unit="s",
            ),
            *values("ghost_mechanism", "ghost", ".3f", "width", "min_speed"),
            *values("ghost_mechanism", "escape", ".2f", "arrival_s", unit="s"),
            *values("ghost_mechanism", "escape", ".1e", "final_distance"),
            *curves("ghost_mechanism", "landscape/u_stable", "landscape/u_ghost", "trajectory/z"),
        ),
    ),
    Artefact("fig", "method", "draw"),
    Artefact(
        "tab",
        "theory_method_map",
        "tabulate",
        cells=(
            module("modulatory_signal", "ghost.dynamics.potentials"),
            module("field", "ghost.dynamics.integrators"),
            module("slow_variable", "ghost.dynamics.integrators"),
            module("fast_variable", "ghost.decoders.ghost"),
            module("potential", "ghost.dynamics.networks"),
            module("drift", "ghost.dynamics.networks"),
            module("ghost_regions", "ghost.dynamics.normal_form"),
            module("refinement_potential", "ghost.dynamics.integrators"),
        ),
    ),
    Artefact(
        "fig",
        "diagnostic",
        "plot",
        cells=(
            *settings("diagnostic", ROWS["diagnostic"].settings),
            *values("diagnostic", "c1", ".0f", "minima", published="3"),
            *values("diagnostic", "c2", ".0f", "minima"),
            *values("diagnostic", "c2", ".3f", "gradient_at_b1"),
            *values("diagnostic", "ghost", ".2f", "dwell_s", unit="s", published="3.5"),
            *values("diagnostic", "ghost", ".2f", "dip_s", unit="s", published="1.5"),
            *values("diagnostic", "ghost", ".3f", "delta", "dip_speed", "critical_weight"),
            *values("diagnostic", "escape", ".2f", "peak_s", unit="s", published="3"),
            *values("diagnostic", "escape", ".3f", "peak_speed"),
            *values("diagnostic", "escape", ".0f", "ends_in", published="2"),
            *values("diagnostic", "escape", ".1e", "final_distance"),
            *curves("diagnostic", "c1/u", "c2/u", "trajectory/z", "trajectory/speed", "trajectory/action"),
            *settings("learned_potential", ROWS["learned_potential"].settings, "learned/"),
            Cell("learned/runs", "learned_potential", "", estimator="runs"),
            _learned("train", "final_loss", ".4f", "mean_std", published="0.003"),
            _learned("heldout", "loss", ".4f", "mean_std"),
            _learned("heldout", "predict_the_mean_loss", ".2f"),
            _learned("heldout", "median_squared_error", ".1e", "largest"),
            _learned("heldout", "wrong_basin_rate", ".3f", "mean_std"),
            _learned("c1", "basins", ".1f"),
            _learned("c1", "largest_distance", ".3f", "largest"),
            *(_learned(f"collapse_{k}", "collapsed_basin_gone", ".2f") for k in (1, 2, 3)),
            *(_learned(f"collapse_{k}", "basins_lost", ".2f") for k in (1, 2, 3)),
            _learned("switch", "reached", ".2f"),
            _learned("switch", "control_steps", ".0f", "largest", published="2"),
            _learned("switch", "final_distance", ".3f", "largest"),
            *curves("learned_potential", "training/loss", "c1/u", "c2/u", "switch/z", prefix="learned/"),
        ),
    ),
    Artefact(
        "fig",
        "dwell_time",
        "plot",
        cells=(
            *settings("dwell_time", ROWS["dwell_time"].settings),
            *values("dwell_time", "normal_form", ".4f", "slope"),
            *values("dwell_time", "normal_form", ".1e", "largest_relative_deviation"),
            *values("dwell_time", "double_well", ".4f", "slope"),
            *values("dwell_time", "double_well", ".1e", "largest_relative_deviation"),
            *values("dwell_time", "double_well", ".4f", "critical_tilt", "curvature"),
            *values("dwell_time", "lemma1", ".3f", "min_dwell_over_bound", "max_dwell_over_bound"),
            *curves("dwell_time", "normal_form/dwell", "double_well/dwell", "lemma1/dwell_over_bound"),
        ),
    ),
    Artefact(
        "fig",
        "switch_speed",
        "plot",
        cells=(
            *settings("switch_speed", ROWS["switch_speed"].settings),
            *values("switch_speed", "landscape", ".3f", "basin_a", published="-1.9"),
            *values("switch_speed", "landscape", ".3f", "basin_b", published="1.9"),
            *values("switch_speed", "ghost_n3", ".0f", "steps_to_converge", published="3"),
            *values("switch_speed", "ghost_n5", ".0f", "steps_to_converge", published="2"),
            *values("switch_speed", "ghost_n10", ".0f", "steps_to_converge", published="1"),
            *(cell for n in (3, 5, 10) for cell in values("switch_speed", f"ghost_n{n}", ".0f", "evaluations")),
            *values("switch_speed", "gru_a0.10", ".0f", "steps_to_converge"),
            *values("switch_speed", "gru_a0.28", ".0f", "steps_to_converge"),
            *values("switch_speed", "gru_a0.30", ".0f", "steps_to_converge", published="> 20"),
            *values("switch_speed", "gru_a0.50", ".0f", "steps_to_converge"),
            *values("switch_speed", "gru_a0.28", ".2f", "ratio"),
            *values("switch_speed", "gru_a0.30", ".2f", "ratio", published="0.72"),
            *values("switch_speed", "ghost", ".2f", "first_ratio", published="0.85"),
            *values("switch_speed", "ghost", ".2f", "min_ratio", published="0.25"),
            *values("switch_speed", "ghost", ".0f", "min_ratio_step", published="4 to 5"),
            *values("switch_speed", "ghost", ".2f", "last_ratio"),
            *values("switch_speed", "paper_triple", ".3f", "dt_lowest", "dt_highest"),
            *values("switch_speed", "euler_stable", ".4f", "dt_highest"),
            *values("switch_speed", "published_first_ratio", ".4f", "dt"),
            *values("switch_speed", "published_min_steps", ".3f", "dt_lowest", "dt_highest"),
            *curves("switch_speed", "landscape/u_c0", "landscape/u_c1", "ghost/ratio", "gru_a0.30/ratio"),
        ),
    ),
)
