"""THE TABLE: every experiment, and every figure and table of the report with the numbers that stand in it.

Wildcards, targets, cells, LaTeX macros, DVC stages and the audit derive from here; nothing else lists them.

* An `Experiment` is run by a step (`python -m ghost.<step>`) once per seed. Its settings are the paper's own sizes;
  `config/<scale>.yaml` says what is smaller at a scale. It may need other experiments: their runs are its inputs.
* An `Artefact` is a figure or a table under the paper's own label:
      fig:<label> -> figures/<label>.{pdf,png,pgf}        -> DVC stage fig_<label>
      tab:<label> -> paper/generated/tab_<label>.tex      -> DVC stage tab_<label>
  One without a step is declared, and shown as "not built".
* A `Cell` is one number (or one curve) that the report shows: `\\cell{fig:switch_speed/ghost/min_ratio}` in the text,
  `ghost audit fig:switch_speed/ghost/min_ratio` on the command line.

To add an experiment: write src/ghost/simulations/<name>.py, add a row here, name it in a figure or table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ghost.errors import GhostError, did_you_mean
from ghost.table import Artefact, Cell, Experiment, check


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


def _settings(experiment: str, prefix: str = "") -> tuple[Cell, ...]:
    """Every setting of an experiment as a cell: not even a step size is typed into the text."""
    row = next(row for row in EXPERIMENTS if row.name == experiment)
    return tuple(
        Cell(f"{prefix}setting/{key}", experiment, key, estimator="setting", digits="g") for key in row.settings
    )


def _curves(experiment: str, *arrays: str, prefix: str = "") -> tuple[Cell, ...]:
    """Arrays that a figure draws, as cells."""
    return tuple(Cell(f"{prefix}curve/{array}", experiment, array, estimator="series") for array in arrays)


def _values(experiment: str, condition: str, digits: str, *metrics: str, **kwargs: Any) -> tuple[Cell, ...]:
    """Measured values under one condition: <condition>/<metric>."""
    return tuple(
        Cell(f"{condition}/{metric}", experiment, metric, condition, "value", digits, **kwargs) for metric in metrics
    )


def _learned(condition: str, metric: str, digits: str, estimator: str = "mean", published: str = "") -> Cell:
    name = f"learned/{condition}/{metric}"
    return Cell(name, "learned_potential", metric, condition, estimator, digits, published=published)


def _module(row: str, module: str) -> Cell:
    return Cell(f"{row}/module", "", module, estimator="module")


ARTEFACTS: tuple[Artefact, ...] = (
    Artefact(
        "fig",
        "ghost_mechanism",
        "plot",
        cells=(
            *_settings("ghost_mechanism"),
            *_values("ghost_mechanism", "stable", ".3f", "barrier_height"),
            *_values(
                "ghost_mechanism",
                "ghost",
                ".2f",
                "dwell_s",
                "lemma1_bound_s",
                "normal_form_limit_s",
                unit="s",
            ),
            *_values("ghost_mechanism", "ghost", ".3f", "width", "min_speed"),
            *_values("ghost_mechanism", "escape", ".2f", "arrival_s", unit="s"),
            *_values("ghost_mechanism", "escape", ".1e", "final_distance"),
            *_curves("ghost_mechanism", "landscape/u_stable", "landscape/u_ghost", "trajectory/z"),
        ),
    ),
    Artefact("fig", "method", "draw"),
    Artefact(
        "tab",
        "theory_method_map",
        "tabulate",
        cells=(
            _module("modulatory_signal", "ghost.dynamics.potentials"),
            _module("field", "ghost.dynamics.integrators"),
            _module("slow_variable", "ghost.dynamics.integrators"),
            _module("fast_variable", "ghost.decoders.ghost"),
            _module("potential", "ghost.dynamics.networks"),
            _module("drift", "ghost.dynamics.networks"),
            _module("ghost_regions", "ghost.dynamics.normal_form"),
            _module("refinement_potential", "ghost.dynamics.integrators"),
        ),
    ),
    Artefact(
        "fig",
        "diagnostic",
        "plot",
        cells=(
            *_settings("diagnostic"),
            *_values("diagnostic", "c1", ".0f", "minima", published="3"),
            *_values("diagnostic", "c2", ".0f", "minima"),
            *_values("diagnostic", "c2", ".3f", "gradient_at_b1"),
            *_values("diagnostic", "ghost", ".2f", "dwell_s", unit="s", published="3.5"),
            *_values("diagnostic", "ghost", ".2f", "dip_s", unit="s", published="1.5"),
            *_values("diagnostic", "ghost", ".3f", "delta", "dip_speed", "critical_weight"),
            *_values("diagnostic", "escape", ".2f", "peak_s", unit="s", published="3"),
            *_values("diagnostic", "escape", ".3f", "peak_speed"),
            *_values("diagnostic", "escape", ".0f", "ends_in", published="2"),
            *_values("diagnostic", "escape", ".1e", "final_distance"),
            *_curves("diagnostic", "c1/u", "c2/u", "trajectory/z", "trajectory/speed", "trajectory/action"),
            *_settings("learned_potential", "learned/"),
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
            *_curves("learned_potential", "training/loss", "c1/u", "c2/u", "switch/z", prefix="learned/"),
        ),
    ),
    Artefact(
        "fig",
        "dwell_time",
        "plot",
        cells=(
            *_settings("dwell_time"),
            *_values("dwell_time", "normal_form", ".4f", "slope"),
            *_values("dwell_time", "normal_form", ".1e", "largest_relative_deviation"),
            *_values("dwell_time", "double_well", ".4f", "slope"),
            *_values("dwell_time", "double_well", ".1e", "largest_relative_deviation"),
            *_values("dwell_time", "double_well", ".4f", "critical_tilt", "curvature"),
            *_values("dwell_time", "lemma1", ".3f", "min_dwell_over_bound", "max_dwell_over_bound"),
            *_curves("dwell_time", "normal_form/dwell", "double_well/dwell", "lemma1/dwell_over_bound"),
        ),
    ),
    Artefact(
        "fig",
        "switch_speed",
        "plot",
        cells=(
            *_settings("switch_speed"),
            *_values("switch_speed", "landscape", ".3f", "basin_a", published="-1.9"),
            *_values("switch_speed", "landscape", ".3f", "basin_b", published="1.9"),
            *_values("switch_speed", "ghost_n3", ".0f", "steps_to_converge", published="3"),
            *_values("switch_speed", "ghost_n5", ".0f", "steps_to_converge", published="2"),
            *_values("switch_speed", "ghost_n10", ".0f", "steps_to_converge", published="1"),
            *(cell for n in (3, 5, 10) for cell in _values("switch_speed", f"ghost_n{n}", ".0f", "evaluations")),
            *_values("switch_speed", "gru_a0.10", ".0f", "steps_to_converge"),
            *_values("switch_speed", "gru_a0.28", ".0f", "steps_to_converge"),
            *_values("switch_speed", "gru_a0.30", ".0f", "steps_to_converge", published="> 20"),
            *_values("switch_speed", "gru_a0.50", ".0f", "steps_to_converge"),
            *_values("switch_speed", "gru_a0.28", ".2f", "ratio"),
            *_values("switch_speed", "gru_a0.30", ".2f", "ratio", published="0.72"),
            *_values("switch_speed", "ghost", ".2f", "first_ratio", published="0.85"),
            *_values("switch_speed", "ghost", ".2f", "min_ratio", published="0.25"),
            *_values("switch_speed", "ghost", ".0f", "min_ratio_step", published="4 to 5"),
            *_values("switch_speed", "ghost", ".2f", "last_ratio"),
            *_values("switch_speed", "paper_triple", ".3f", "dt_lowest", "dt_highest"),
            *_values("switch_speed", "euler_stable", ".4f", "dt_highest"),
            *_values("switch_speed", "published_first_ratio", ".4f", "dt"),
            *_values("switch_speed", "published_min_steps", ".3f", "dt_lowest", "dt_highest"),
            *_curves("switch_speed", "landscape/u_c0", "landscape/u_c1", "ghost/ratio", "gru_a0.30/ratio"),
        ),
    ),
    Artefact("tab", "meta_rl"),
    Artefact("fig", "meta_rl"),
    Artefact("fig", "attractor_emergence"),
    Artefact("tab", "groot_distill"),
    Artefact("fig", "e2e_trajectory"),
    Artefact("tab", "multi_task"),
    Artefact("fig", "attractor_basins"),
    Artefact("tab", "lightweight"),
    Artefact("tab", "loss_ablation"),
    Artefact("tab", "ablation"),
    Artefact("fig", "ablation_paired"),
    Artefact("tab", "libero10"),
    Artefact("fig", "libero_per_task"),
    Artefact("fig", "libero_complexity"),
    Artefact("tab", "attractor_tradeoff"),
)

check(EXPERIMENTS, ARTEFACTS)


def find_artefact(identity: str) -> Artefact:
    for artefact in ARTEFACTS:
        if artefact.id == identity:
            return artefact
    raise GhostError(f"no figure or table {identity!r}{did_you_mean(identity, [a.id for a in ARTEFACTS])}")
