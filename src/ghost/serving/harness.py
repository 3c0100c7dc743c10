"""An independent harness scores a served policy: vla-eval's own LIBERO benchmark, in LIBERO's own environment.

vla-eval plays and counts; we set LIBERO's paths, which it would ask for, and read the result. It counts an episode that
crashed as a failed one and ends well. Here that is an error: a crash is not a failure.
"""

import asyncio
import importlib
import importlib.util
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ghost.data.results import EPISODES
from ghost.errors import GhostError
from ghost.files import write_json
from ghost.libero.assets import find_assets
from ghost.libero.tasks import TASKS
from ghost.report.rates import Outcomes, difference, rate
from ghost.report.statistics import Interval, wilson
from ghost.runs.records import open_runs

BENCHMARK = "vla_eval.benchmarks.libero.benchmark:LIBEROBenchmark"
RENDERERS = {"cpu": "osmesa", "gpu": "egl"}


def score(
    url: str,
    tasks: Sequence[int] = (),
    episodes: int = 20,
    max_steps: int = 520,
    render: str = "cpu",
    benchmark: str = BENCHMARK,
) -> dict[str, Any]:
    """What vla-eval says about the policy at this address; an error of a single episode is ours."""
    if importlib.util.find_spec("vla_eval") is None:
        raise GhostError("vla-eval is not installed: pip install --no-deps vla-eval==0.8.0 anyio jsonargparse")
    os.environ["MUJOCO_GL"] = os.environ["PYOPENGL_PLATFORM"] = RENDERERS[render]  # read when MuJoCo is imported
    chosen = [TASKS[task].instruction for task in tasks]
    entry = {"benchmark": benchmark, "episodes_per_task": episodes, "max_steps": max_steps, "tasks": chosen or None}
    config = {
        "server": {"url": url, "timeout": 300},
        "render": render,
        "benchmarks": [{**entry, "params": {"suite": "libero_10", "seed": 0}}],
    }
    with tempfile.TemporaryDirectory(prefix="ghost-libero-") as folder:
        _point_libero_to(Path(folder))
        harness = importlib.import_module("vla_eval.orchestrator")
        config["output_dir"] = folder  # else it makes one here
        (result,) = asyncio.run(harness.Orchestrator(config, no_save=True).run())
    return checked(result, len(chosen or TASKS) * episodes)


def checked(result: dict[str, Any], expected: int) -> dict[str, Any]:
    """A result in which every episode was played to its end."""
    played = [episode for task in result["tasks"] for episode in task["episodes"]]
    broken = [episode for episode in played if episode.get("failure_reason")]
    if broken:
        last = str(broken[0].get("failure_detail", "")).strip().splitlines() or [""]
        raise GhostError(f"{len(broken)} of {len(played)} episodes had an error, the first {last[-1]}")
    if result.get("num_errors") or result.get("partial") or len(played) != expected:
        raise GhostError(f"vla-eval played {len(played)} episodes of {expected}")
    return result


def report(result: dict[str, Any], out: Path | None) -> str:
    """A line per task and one for all: successes, episodes, the rate's 95 % interval (Wilson's)."""
    if out:
        write_json(out, result)
    counts = [(round(task["mean_success"] * task["num_episodes"]), task["num_episodes"]) for task in result["tasks"]]
    names = [*(task["task"] for task in result["tasks"]), "succeeded"]
    counts.append((sum(won for won, _ in counts), sum(n for _, n in counts)))
    lines = []
    for name, (won, n) in zip(names, counts, strict=True):
        lines.append(_line(won, n, wilson(won, n).interval, name))
    return "\n".join(lines)


def _line(won: int, n: int, interval: Interval, name: str) -> str:
    low, high = interval
    return f"{won:4d} of {n:4d}  [{100 * low:.0f} to {100 * high:.0f} %]  {name}"


def compare(result: dict[str, Any], manifest: Path) -> str:
    """Both rates and their difference, over the episodes of a rollout of ours that vla-eval played as well.

    An error if the 95 % interval of the difference (Newcombe's, for pairs) leaves out zero: one policy in one physics
    has one rate. Contacts are chaotic, so single episodes may differ.
    """
    theirs = {
        (_number(task["task"]), episode["episode_id"]): bool(episode["metrics"]["success"])
        for task in result["tasks"]
        for episode in task["episodes"]
    }
    ours = _played(manifest, result["server_info"]["ghost"]["trained"], result["config"]["max_steps"])
    both = sorted({*theirs} & {*ours})
    if not both:
        raise GhostError(f"{manifest}: vla-eval played none of its episodes")
    tasks = np.array([task for task, _ in both])
    a, b = (Outcomes(np.array([[float(played[each]) for each in both]]), tasks) for played in (theirs, ours))
    found = difference(a, b)
    low, high = found.interval
    alike = int((a.success == b.success).sum())
    lines = [
        _line(int(a.success.sum()), len(both), rate(a).interval, "by vla-eval"),
        _line(int(b.success.sum()), len(both), rate(b).interval, "by our rollout"),
        f"{100 * found.estimate:+.0f} points  [{100 * low:+.0f} to {100 * high:+.0f}]; {alike} episodes end alike",
    ]
    if not low <= 0 <= high:
        raise GhostError("\n".join(["vla-eval and our rollout do not have the same success rate", *lines]))
    return "\n".join(lines)


def _number(instruction: str) -> int:
    return [task.instruction for task in TASKS].index(instruction)


def _played(manifest: Path, trained: Sequence[str], max_steps: int) -> dict[tuple[int, int], bool]:
    """Task and official init state -> success, of the run of this policy in LIBERO's own physics."""
    for run in open_runs(manifest):
        record = run.record()
        if {*trained} <= {entry.get("run_id") for entry in record["inputs"].values()}:
            asked = {"stepping": "libero", "max_steps": max_steps}
            for name, value in asked.items():
                if record["settings"].get(name) != value:
                    raise GhostError(f"{manifest}: its {name} is {record['settings'].get(name)}, not {value}")
            lines = [line for line in run.table(EPISODES) if line["condition"] == f"T{line['task']}"]
            return {(int(line["task"]), int(line["init_state"])): line["success"] == "True" for line in lines}
    raise GhostError(f"{manifest} is no rollout of the policy that is served")


def _point_libero_to(folder: Path) -> None:
    """LIBERO reads its paths from a file, whenever it needs one of them."""
    from ghost.libero.environment import import_libero  # after MUJOCO_GL is set

    libero = import_libero()
    libero._assets_path_cache = str(find_assets().folder)
    libero.config_file = str(folder / "config.yaml")
    (folder / "config.yaml").write_text(yaml.safe_dump(libero.get_default_path_dict()), encoding="utf-8")
