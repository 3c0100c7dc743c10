"""More seeds or trials, through Snakemake: only the new ones are done, as the records' start times show."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conftest import call, copy_project

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return copy_project(tmp_path_factory.mktemp("more"))


def build(folder: Path, experiment: str, settings: str) -> datetime:
    """Make an experiment's runs; returns when it began."""
    began = datetime.now(UTC).replace(microsecond=0)
    target = f"data/smoke/runs/{experiment}/manifest.json"
    call(folder, "snakemake", target, "--config", "scale=smoke", f"experiments={settings}")
    return began


def records(folder: Path, experiment: str) -> dict[int, dict]:
    manifest = json.loads((folder / f"data/smoke/runs/{experiment}/manifest.json").read_text())
    paths = [folder / f"data/smoke/runs/{experiment}/seed{run['seed']}/run.json" for run in manifest["runs"]]
    return {record["seed"]: record for record in (json.loads(path.read_text()) for path in paths)}


def start(record: dict) -> datetime:
    return datetime.fromisoformat(record["start"])


def test_seeds(folder):
    """Two, four, one, then seven: more than the study has."""
    build(folder, "mlp_offline", "{mlp: {seeds: 2}}")
    trained, evaluated = records(folder, "mlp"), records(folder, "mlp_offline")
    assert list(trained) == list(evaluated) == [42, 123]
    began = build(folder, "mlp_offline", "{mlp: {seeds: 4}}")
    more = records(folder, "mlp")
    assert list(more) == list(records(folder, "mlp_offline")) == [42, 123, 999, 7]
    for seed in (42, 123):  # not trained again, not evaluated again
        assert more[seed] == trained[seed]
        assert records(folder, "mlp_offline")[seed] == evaluated[seed]
    assert all(start(more[seed]) >= began for seed in (999, 7))
    build(folder, "mlp_offline", "{mlp: {seeds: 1}}")
    assert list(records(folder, "mlp")) == [42]
    build(folder, "mlp_offline", "{mlp: {seeds: 4}}")
    assert records(folder, "mlp") == more
    began = build(folder, "mlp", "{mlp: {seeds: 7}}")
    seven = records(folder, "mlp")
    assert [seed for seed, record in seven.items() if start(record) >= began] == [2024, 314, 555]


def test_trials(folder):
    def played() -> dict[str, str]:
        lines = (folder / "data/smoke/runs/libero_mlp_rollout/seed42/units.csv").read_text().splitlines()[1:]
        return {name: begun for name, _, begun, _ in (line.split(",") for line in lines)}

    build(folder, "libero_mlp_rollout", "{libero_mlp_rollout: {trials: 1}}")
    one = played()
    began = build(folder, "libero_mlp_rollout", "{libero_mlp_rollout: {trials: 3}}")
    three = played()
    assert list(three) == ["T5_000", "T5_001", "T5_002"]
    assert three["T5_000"] == one["T5_000"]
    assert all(datetime.fromisoformat(three[name]) >= began for name in ("T5_001", "T5_002"))
    build(folder, "libero_mlp_rollout", "{libero_mlp_rollout: {trials: 2}}")
    assert played() == {name: three[name] for name in ("T5_000", "T5_001")}
