"""`ghost track`: the runs of a build as TensorBoard reads them. The records stay the truth; this is a view of them.

A run becomes <out>/<experiment>/seed<seed>: its curves by epoch, its measured values, and what determined it as text.
Writing it again replaces it.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np

from ghost.audit.build import Build
from ghost.data.results import ARRAYS
from ghost.errors import GhostError
from ghost.files import json_text, link, scratch
from ghost.runs.records import Run
from ghost.study.builds import Config

CURVE = "training/"  # arrays whose names begin so hold one value per epoch
EVENTS = "events.out.tfevents"  # TensorBoard looks for this name
SHOWN = ("module", "settings", "seed", "stand_ins", "reduced", "host", "wall_s", "peak_memory_mb", "versions", "commit")


def track(config: Config, out: Path, filter: str) -> str:
    """Write the runs of the experiments whose names contain `filter`; returns a line about them."""
    build = Build.open(config)
    runs = [run for run in build.runs.values() if filter in run.folder.name]
    if not runs:
        raise GhostError(f"{config.data} has no run of an experiment with {filter!r} in its name")
    for run in runs:
        write(run, build.records[run.run_id], out)
    return f"{out}: {len(runs)} runs; `pip install tensorboard` and `tensorboard --logdir {out}` show them"


def write(run: Run, record: dict[str, Any], out: Path) -> None:
    """One run: one file of events, in a folder of its own."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise GhostError("ghost track needs tensorboardX: pip install tensorboardX") from None
    logging.getLogger("tensorboardX").setLevel(logging.ERROR)  # it would rather have names without brackets
    folder = out / run.folder.name / f"seed{run.seed}"
    arrays = run.arrays() if f"seed{run.seed}/{ARRAYS}" in run.files else {}
    curves = {name: values for name, values in arrays.items() if name.startswith(CURVE) and values.ndim == 1}
    with scratch(folder) as temporary:
        with SummaryWriter(str(temporary)) as writer:
            for name, values in curves.items():
                for epoch, value in enumerate(np.asarray(values, dtype=float), start=1):
                    writer.add_scalar(name, value, epoch)
            for measured in run.measured():
                writer.add_scalar(f"measured/{measured.condition}/{measured.metric}", measured.value, 0)
            said = {"run_id": run.run_id, **{key: record.get(key) for key in SHOWN}}
            writer.add_text("record", f"```\n{json_text(said)}\n```", 0)
        for older in folder.glob(f"{EVENTS}*"):
            older.unlink()
        (written,) = temporary.glob(f"{EVENTS}*")
        link(written, folder / f"{EVENTS}.{run.run_id}")
