"""`ghost audit --verify` takes time in proportion to the number of runs."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace

import pytest
from small_build import small_build

from ghost.audit.checks.runs import Runs
from ghost.files import read_json, write_json
from ghost.runs.records import digest, identity
from ghost.runs.units import address_of


def many(config, seeds: int):
    """The build, in which the training of the CVAE and its test have this many seeds."""
    for experiment, used in (("cvae", ()), ("cvae_offline", ("cvae",))):
        manifest = config.manifest(experiment)
        model = read_json(manifest.parent / "seed42/run.json")
        content = (manifest.parent / "seed42/measured.csv").read_bytes()
        trained = {name: read_json(config.manifest(name))["runs"] for name in used}
        listed = []
        for seed in range(seeds):
            folder = manifest.parent / f"seed{seed}"
            folder.mkdir(exist_ok=True)
            for name in model["outputs"]:
                (folder / name).write_bytes((manifest.parent / "seed42" / name).read_bytes())
            inputs = {name: entry for name, entry in model["inputs"].items() if name.startswith("dual_arm")}
            for name in used:
                inputs[f"{name}/seed{seed}"] = {"run_id": trained[name][seed]["run_id"], "sha256": "0" * 64}
            record = {**model, "seed": seed, "inputs": inputs}
            record["run_id"] = address_of(identity(record))
            record["sha256"] = digest(record)
            (folder / "run.json").write_text(json.dumps(record))  # write_json would wait for the disk each time
            files = {f"seed{seed}/{name}": entry["sha256"] for name, entry in model["outputs"].items()}
            listed.append({"run_id": record["run_id"], "seed": seed, "files": files})
        assert hashlib.sha256(content).hexdigest() == model["outputs"]["measured.csv"]["sha256"]
        write_json(manifest, {"experiment": experiment, "scale": "smoke", "runs": listed})
    kept = [replace(e, seeds=tuple(range(seeds))) for e in config.experiments if e.name in ("cvae", "cvae_offline")]
    return replace(config, experiments=tuple(kept))


def taken_s(config) -> float:
    start_s = time.process_time()
    found = list(Runs(config).check())
    assert found  # the inputs are made up
    return time.process_time() - start_s


@pytest.mark.slow
def test_four_times_as_many_runs_take_about_four_times_as_long(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    config = small_build()
    few = many(config, 500)
    taken_s(few)  # warm up
    few_s = min(taken_s(few) for _ in range(3))
    more = many(config, 2000)
    more_s = min(taken_s(more) for _ in range(3))
    assert more_s < 8 * few_s  # it is 4 but for noise; 16 if each run looked at all others
    assert "2/2 experiments" in capsys.readouterr().err
