"""fig:closed_loop_differences: two policies in the trials that both met, for each claim of the article."""

import numpy as np
from matplotlib.figure import Figure

from ghost.report.estimators import COMPARISONS
from ghost.report.plots.style import COLUMN_IN, GHOST, THEORY, figure
from ghost.runs.records import Run
from ghost.study.closed_loop_claims import differences

TEXTS = {
    "phase_and_mlp": "phase for the MLP",
    "phase_and_ghost": "phase for Ghost",
    "vanilla_and_mlp": "vanilla Ghost over MLP",
    "persistent": "persistent latent",
    "persistent_ensemble": "the same, ensemble",
    "gru_and_mlp": "GRU over MLP",
    "ghost_and_gru": "Ghost PG over GRU",
    "ghost_and_mlp": "Ghost PG over MLP",
    "push": "contrastive push",
    "pull": "trajectory pull",
    "subspace": "subspace basin",
    "quartic": "quartic potential",
}


def draw(runs: dict[str, list[Run]]) -> Figure:
    made, axes = figure(COLUMN_IN, 2.6)
    cells = [cell for cell in differences().declaration() if cell["name"] in TEXTS]
    axes.axvline(0, color=THEORY, linewidth=0.5)
    for at, cell in enumerate(cells):
        found = COMPARISONS[cell["estimator"]](cell, runs[cell["experiment"]], runs[cell["against"]])
        if found.value is not None:
            low, high = found.interval or (np.nan, np.nan)
            axes.plot([low, high], [at, at], color=GHOST)
            axes.plot([found.value], [at], "o", color=GHOST)
    axes.set_yticks(range(len(cells)), [TEXTS[cell["name"]] for cell in cells])
    axes.invert_yaxis()
    axes.set(xlabel="difference in success (points)")
    return made
