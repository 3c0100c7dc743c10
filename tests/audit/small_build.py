"""A build of a few hand-written runs: two evaluations of five seeds, their trainings, a feature cache, a data set."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from ghost.files import canonical, read_json, write_json
from ghost.runs.code import file_hash, module_path
from ghost.runs.records import digest, identity, open_runs
from ghost.runs.units import address_of
from ghost.study.builds import Config, load

ROOT = Path(__file__).parents[2]
SEEDS = (42, 123, 999, 7, 2024)
OFFLINE = "ghost.evaluations.offline"
SMALLER = {"epochs": 2, "hidden": 16, "d_context": 8, "d_latent": 8, "learning_rate": 0.002, "tokens": 4, "d_token": 32}


def write_run(
    config: Config,
    experiment: str,
    seed: int,
    step: str,
    module: str,
    measured: dict[tuple[str, str], float],
    /,
    used: tuple[str, ...] = (),
    **changed: Any,
) -> str:
    """One run with its files, added to its experiment's manifest; `used` are runs such as cvae/seed42.

    `changed` are fields of the record that shall be otherwise.
    """
    manifest = config.manifest(experiment)
    folder = manifest.parent / f"seed{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "measured.csv").open("w", newline="") as handle:
        lines = [[*named, repr(value), 60] for named, value in measured.items()]
        csv.writer(handle, lineterminator="\n").writerows([["condition", "metric", "value", "n"], *lines])
    (folder / "arrays.safetensors").write_bytes(save({"curve": np.arange(4.0)}))
    outputs = {
        name: {"sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(), "md5": "0" * 32}
        for name in ("measured.csv", "arrays.safetensors")
    }
    file = module_path(module)
    assert file is not None
    code = {str(file.relative_to(ROOT / "src")): {"sha256": file_hash(file)}}
    record = {
        "experiment": experiment,
        "step": step,
        "module": module,
        "scale": config.scale,
        "settings": {"split": "sample"},
        "outside": {},
        "seed": seed,
        "reduced": {name: {"here": value, "paper": 8 * value} for name, value in SMALLER.items()},
        "stand_ins": ["GR00T N1.5 backbone", "dual-arm data set"],
        "inputs": {name: _input(config, name) for name in used},
        "code": {"sha256": hashlib.sha256(canonical(code).encode()).hexdigest(), "files": code},
        "lock_sha256": "1" * 64,
        "facts": {},
        "outputs": outputs,
        "start": f"2026-01-02T03:04:{seed % 60:02}+00:00",
        "wall_s": 1.5,
        "cpu_s": 1.4,
        "commit": "c" * 40,
        "dirty_sha256": None,
        "command": ["python", "-m", f"ghost.steps.{step}"],
        "host": "node1",
        "cpu": "EPYC",
        "cores": 2,
        "gpus": [],
        "cpus": 2,
        "slurm_job_id": None,
        "slurm_node": None,
        "peak_memory_mb": 300.0,
        "versions": {"python": "3.11"},
        **changed,
    }
    record["run_id"] = address_of(identity(record))
    record["sha256"] = digest(record)
    write_json(folder / "run.json", record)
    files = {f"seed{seed}/{name}": entry["sha256"] for name, entry in outputs.items()}
    listed = read_json(manifest)["runs"] if manifest.exists() else []
    listed = [run for run in listed if run["seed"] != seed] + [
        {"run_id": record["run_id"], "seed": seed, "files": files}
    ]
    write_json(manifest, {"experiment": experiment, "scale": config.scale, "runs": listed})
    return str(record["run_id"])


def forge(manifest: Path, seed: int, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a record as somebody would who knows how it is made: id, digest and manifest follow."""
    path = manifest.parent / f"seed{seed}" / "run.json"
    record = read_json(path)
    change(record)
    record["run_id"] = address_of(identity(record))
    record["sha256"] = digest(record)
    write_json(path, record)
    listing = read_json(manifest)
    for run in listing["runs"]:
        if run["seed"] == seed:
            run["run_id"] = record["run_id"]
            run["files"] = {f"seed{seed}/{name}": entry["sha256"] for name, entry in record["outputs"].items()}
    write_json(manifest, listing)


def _input(config: Config, name: str) -> dict[str, str]:
    experiment, _, seed = name.rpartition("/seed")
    run = next(run for run in open_runs(config.manifest(experiment)) if run.seed == int(seed))
    return {"run_id": run.run_id, "sha256": run.content}


def mse(experiment: str, seed: int) -> float:
    return (0.028 if experiment == "cvae_offline" else 0.026) + seed / 1e7


def cell(identity: str, shown: str, value: float | None = None, **changed: Any) -> dict[str, Any]:
    return {
        "id": identity,
        "experiment": "cvae_offline",
        "condition": "all",
        "metric": "mse",
        "estimator": "mean_std",
        "unit": "",
        "against": "",
        "against_condition": "",
        "against_metric": "",
        "shown": shown,
        "value": value,
        "interval": None,
        "n": 5,
        "unpaired": [],
        "sha256": None,
        "runs": [],
        "reduced": True,
        "stand_ins": ["GR00T N1.5 backbone"],
        **changed,
    }


def write_cells(config: Config, *cells: dict[str, Any]) -> None:
    config.data.mkdir(parents=True, exist_ok=True)
    (config.data / "cells.jsonl").write_text("".join(f"{canonical(each)}\n" for each in cells))


def write_paper(**sections: str) -> None:
    """A small report in the working directory: files of paper/, a ledger of one claim, one predicate."""
    Path("paper/sections").mkdir(parents=True, exist_ok=True)
    for name, text in sections.items():
        Path("paper/main.tex" if name == "main" else f"paper/sections/{name}.tex").write_text(text)
    claim = "{id: 'tab:lightweight/CVAE/mse', printed: 0.0184 ± 0.0001, at: ['1.1'], judge: statistical,"
    claim += " cell: 'tab:lightweight/CVAE/test_mse'}"
    rest = "relations: []\nderived: []\nnoise: {}\nmargins: {}\nnon_results: []\n"
    Path("paper/claims.yaml").write_text(f"claims:\n- {claim}\n{rest}")
    Path("paper/sentences.yaml").write_text("worse: \"'tab:lightweight/CVAE/test_mse' > 0.01\"\n")


def small_build(scale: str = "smoke") -> Config:
    """The build, in the working directory: cells tab:lightweight/CVAE/{test_mse,p} and the runs behind them."""
    config = load({"scale": scale}, ROOT)
    write_run(config, "dual_arm", 0, "make_demos", "ghost.data.dual_arm", {})
    features = "dual_arm_features/seed0"
    write_run(config, "dual_arm_features", 0, "cache_features", "ghost.backbones.standin", {}, used=("dual_arm/seed0",))
    runs: dict[str, list[str]] = {}
    for trained, decoder in (("cvae", "cvae"), ("ghost_basin_curriculum", "ghost")):
        for seed in SEEDS:
            used = (features, f"{trained}/seed{seed}")
            write_run(config, trained, seed, "train", f"ghost.decoders.{decoder}", {}, used=(features,))
            experiment = f"{trained}_offline"
            measured = {("all", "mse"): mse(experiment, seed), ("all", "cosine"): 0.9 + seed / 1e6}
            made = write_run(config, experiment, seed, "evaluate", OFFLINE, measured, used, reduced={})
            runs.setdefault(experiment, []).append(made)
    values = [mse("cvae_offline", seed) for seed in SEEDS]
    against = "ghost_basin_curriculum_offline"
    write_cells(
        config,
        cell(
            "tab:lightweight/CVAE/test_mse",
            "0.0281 ± 0.0001",
            float(np.mean(values)),
            interval=[0.028, 0.0282],
            runs=runs["cvae_offline"],
        ),
        cell(
            "tab:lightweight/CVAE/p",
            "< 0.001",
            0.0002,
            estimator="paired_p",
            against=against,
            runs=[*runs["cvae_offline"], *runs[against]],
        ),
        cell("tab:lightweight/CVAE/change", "-24.4", -24.43, unit="%"),
        cell("tab:libero10/MLP/success", "66.0 [63.1, 68.8]", 66.01, unit="%"),
        cell("tab:meta_rl/Ghost/latency", "10.1 ± 3.7", 10.12),
        cell("tab:multi_task/aggregate_params_ratio", "4,615", 4615.4),
        cell("fig:dwell_time/final", "1.5e-06", 1.5e-6),
        cell("fig:diagnostic/c1/minima", "3", 3.04),
    )
    return config
