"""A made-up article of our own, and a build of a study that is not there: a few cells and figures."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from ghost.claims.new_ledger import start_ledger
from ghost.report.tex import available
from ghost.study.builds import Config, load

ARTICLE = Path(__file__).parent / "claims/made_up"
needs_tex = pytest.mark.skipif(not available(), reason="no LaTeX on this machine")
# The smallest PDF with a page, as a figure of the build.
FIGURE = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 90 60]/Contents 4 0 R/Resources<<>>>>endobj\n"
    b"4 0 obj<</Length 26>>stream\n.8 g 5 5 80 50 re f 0 g 0 G\nendstream endobj\ntrailer<</Root 1 0 R>>\n"
)


def cell(identity, shown, value, interval=None, **changes):
    made = {"id": identity, "shown": shown, "value": value, "interval": interval, "experiment": "x", "metric": "y"}
    made |= dict.fromkeys(("against", "against_condition", "against_metric", "condition", "unit"), "")
    made |= {"estimator": "mean_std", "n": 5, "runs": ["0123456789abcdef"] * 5, "unpaired": [], "sha256": None}
    return {**made, "stand_ins": [], "reduced": False, **changes}


CELLS = [
    cell("tab:meta_rl/AD/total_reward", "24.0", 24.0, [22.0, 26.0]),
    cell("tab:meta_rl/AD/latency", "8.5 ± 1.5", 8.5, [7.0, 10.0]),  # here the first agent is the fastest
    cell("tab:meta_rl/AD/steady_reward", "0.05", 0.05, [0.0, 0.1]),
    cell("tab:meta_rl/Transformer/total_reward", "70.0", 70.0, [60.0, 80.0]),
    cell("tab:meta_rl/Transformer/latency", "70.0 ± 2.0", 70.0, [68.0, 72.0]),
    cell("tab:meta_rl/Transformer/steady_reward", "-0.40", -0.4, [-0.5, -0.3]),
    cell("tab:meta_rl/Ghost/total_reward", "281.5", 281.5, [281.0, 282.0]),
    cell("tab:meta_rl/Ghost/latency", "10.4 ± 3.6", 10.4, [7.0, 13.8]),
    cell("tab:meta_rl/Ghost/p", "0.020", 0.02, estimator="paired_p"),
    cell("tab:meta_rl/speedup", "4.3", 4.3, [4.2, 4.4], unit="", stand_ins=["data"]),
    cell("tab:meta_rl/episodes", "1,500", 1500.0, estimator="value", n=1),
]


@dataclass(frozen=True)
class MadeUp:
    """The article in a folder of its own, a build with CELLS and one figure, and the article's ledger."""

    article: Path
    build: Config
    ledger: Path


def made_up(folder, monkeypatch, root):
    """A copy of the article, and the ledger that `ghost ledger` starts for it, with two cells named by hand."""
    config = load({"scale": "smoke"}, root)
    monkeypatch.chdir(folder)
    config.figures.mkdir(parents=True)
    (config.figures / "switch_speed.pdf").write_bytes(FIGURE)
    (config.data / "cells.jsonl").write_text("".join(json.dumps(each) + "\n" for each in CELLS))
    article = Path(shutil.copytree(ARTICLE, folder / "article")) / "article.tex"
    ledger = folder / "claims.yaml"
    start_ledger(config, article, ledger)
    for at, name in (("15.1", "tab:meta_rl/speedup"), ("16.2", "tab:meta_rl/episodes")):
        text = ledger.read_text()
        assert text.count(f'at: ["{at}"]') == 1
        ledger.write_text(text.replace(f'at: ["{at}"]', f'at: ["{at}"], cell: "{name}"'))
    return MadeUp(article, config, ledger)
