"""fig:closed_loop_per_task: success per task in the shipped closed-loop study, at its hard level."""

from matplotlib.figure import Figure

from ghost.report.plots.libero_per_task import bars
from ghost.runs.records import Run

POLICIES = {
    "closed_loop_libero_mlp_rollout": "MLP",
    "closed_loop_libero_gru_phase_rollout": "GRU, phase",
    "closed_loop_libero_ghost_pg_rollout": "Ghost PG",
    "closed_loop_libero_ghost_pz_rollout": "Ghost PG, persistent",
}


def draw(runs: dict[str, list[Run]]) -> Figure:
    return bars(runs, POLICIES)
