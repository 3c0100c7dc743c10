"""What `ghost track` writes is what TensorBoard reads: the curves, the measured values and the record of each run."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from tensorboardX.proto import event_pb2

from conftest import make_runs
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.project.track import track, write
from ghost.runs.records import open_runs
from ghost.study.builds import load


@pytest.fixture
def runs(tmp_path):
    """Two runs with a curve of three epochs; the last value is the loss that was measured."""

    def run(seed):
        curve = np.array([3.0, 2.0, 1.0]) + seed
        return Outcome([Measured("train", "loss", curve[-1], 5)], {"training/loss": curve, "grid": np.eye(2)})

    manifest = tmp_path / "runs/tiny/manifest.json"
    make_runs(manifest, run)
    return open_runs(manifest)


def events(path):
    """A file of TensorBoard's: records of [length, its checksum, content, its checksum]."""
    content, start = path.read_bytes(), 0
    while start < len(content):
        (length,) = struct.unpack_from("<Q", content, start)
        yield event_pb2.Event.FromString(content[start + 12 : start + 12 + length])
        start += length + 16


def test_curves_and_values_are_those_of_the_run(runs, tmp_path):
    for run in runs:
        write(run, run.record(), tmp_path / "out")
        (path,) = (tmp_path / f"out/tiny/seed{run.seed}").iterdir()
        assert path.name == f"events.out.tfevents.{run.run_id}"
        found = [(v.tag, e.step, v) for e in events(path) for v in e.summary.value]
        scalars = [(tag, step, v.simple_value) for tag, step, v in found if v.HasField("simple_value")]
        curve = [("training/loss", epoch, value + run.seed) for epoch, value in ((1, 3), (2, 2), (3, 1))]
        assert scalars == [*curve, ("measured/train/loss", 0, 1.0 + run.seed)]
        (text,) = [v.tensor.string_val[0].decode() for tag, _, v in found if tag.startswith("record")]
        assert json.loads(text.strip("`\n"))["run_id"] == run.run_id


def test_writing_again_replaces(runs, tmp_path):
    folder = tmp_path / f"out/tiny/seed{runs[0].seed}"
    folder.mkdir(parents=True)
    (folder / "events.out.tfevents.older").touch()
    for _ in range(2):
        write(runs[0], runs[0].record(), tmp_path / "out")
    assert [path.name for path in folder.iterdir()] == [f"events.out.tfevents.{runs[0].run_id}"]


def test_a_build_without_such_a_run_is_one_line(tmp_path, monkeypatch, root):
    monkeypatch.chdir(root)
    with pytest.raises(GhostError, match="has no run of an experiment with 'nothing'"):
        track(load({"scale": "smoke"}), tmp_path, "nothing")
