"""Where and how a run happened. A record says it; the run's id does not depend on it."""

import hashlib
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ghost.runs.code import ROOT, libraries
from ghost.runs.environment import environment, installed

# Packages whose versions a record shows, by the names that they are imported under; the lock pins the rest.
SHOWN = ("numpy", "scipy", "torch", "mujoco", "robosuite", "metaworld", "lerobot", "transformers")
VERSIONS = {name: name for name in SHOWN} | {"libero": "hf-libero"}


def circumstances(modules: Sequence[str], lock: Path) -> dict[str, Any]:
    """What a record says of the machine and the environment. `modules` are those whose code the run executed."""
    used, there = libraries(*modules), installed()
    diff = _git("diff", "HEAD", "--", ".")
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty_sha256": hashlib.sha256(diff.encode()).hexdigest() if diff else None,
        "command": [Path(sys.executable).name, *sys.orig_argv[1:]],
        "host": platform.node(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "gpus": _gpus(),
        "cpus": int(os.environ.get("SLURM_CPUS_PER_TASK") or len(os.sched_getaffinity(0))),  # that this job may use
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
        "slurm_node": os.environ.get("SLURMD_NODENAME"),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "versions": {
            "python": platform.python_version(),
            **{name: there[name] for module, name in VERSIONS.items() if module in used and name in there},
        },
        "environment": environment(lock),
    }


def _git(*arguments: str) -> str | None:
    """Git's answer, or None outside a checkout (a release tarball is a fine place to run)."""
    if shutil.which("git") is None:
        return None
    command = ["git", "-C", str(ROOT), *arguments]  # S603: our own words, without a shell
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8", errors="replace") if info.exists() else ""
    model = re.search(r"^model name\s*:(.*)", text, re.MULTILINE)
    return model[1].strip() if model else platform.processor() or platform.machine()


def _gpus() -> list[dict[str, str]]:
    """Model and UUID of the GPUs this job may use, so that a faulty card can be traced to its runs."""
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", "--query-gpu=name,uuid", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)  # noqa: S603  # a fixed command
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    gpus = [dict(zip(("model", "uuid"), map(str.strip, line.split(",")), strict=True)) for line in lines]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    wanted = visible.split(",") if visible is not None else [gpu["uuid"] for gpu in gpus]
    return [gpu for index, gpu in enumerate(gpus) if {str(index), gpu["uuid"]}.intersection(wanted)]
