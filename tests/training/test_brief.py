"""The beginning of a training: what it measures, and a model that memory does not hold, by layers."""

from __future__ import annotations

import pytest

from ghost.errors import GhostError
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.training import building
from ghost.training.brief import train_briefly
from ghost.training.checkpoint import load_decoder
from trained import TRAINING, WIDTHS, declared, train_tiny

pytestmark = pytest.mark.usefixtures("torch_as_it_was")
DIT = {
    **{"layers": 3, "heads": 2, "d_head": 8, "vl_layers": 2, "vl_heads": 2, "hidden": 16, "embodiments": 1},
    **{"embodiment": 0, "future_tokens": 2, "positions": 8, "dropout": 0.0},
}


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    return train_tiny(tmp_path_factory.mktemp("brief"))["features"]


def begin(features, folder, module, settings):
    asked = declared("brief", "train", f"ghost.decoders.{module}", {**TRAINING, **settings}, [42], ["features"])
    execute(train_briefly, asked, folder / "runs/brief/manifest.json", [features])
    (run,) = open_runs(folder / "runs/brief/manifest.json")
    return run, {f"{m.condition}/{m.metric}": m.value for m in run.measured()}


def test_what_the_beginning_of_a_training_measures(features, tmp_path):
    run, found = begin(features, tmp_path, "mlp", WIDTHS)
    assert found["layers/tried"] == 0
    assert 0 < found["update/lowest"] <= found["update/seconds"] <= found["update/highest"]
    assert 0 < found["update/calls_s"] <= found["update/highest"] * 3  # no more than an update with one sample
    assert found["update/operations"] > 10
    assert found["device/flops"] > 1e8
    assert 0 < found["run/fixed_s"] < 10
    assert found["state/kept"] == 1
    assert found["model/parameters"] == sum(p.numel() for p in load_decoder(run).parameters())


def test_a_model_that_memory_does_not_hold_is_tried_by_layers(features, tmp_path, monkeypatch):
    whole_bytes = []

    def fits(needed_bytes: int) -> bool:
        whole_bytes.append(needed_bytes)
        return needed_bytes < whole_bytes[0]  # the first that asks is the whole model, four times

    monkeypatch.setattr(building, "fits", fits)
    run, found = begin(features, tmp_path, "dit", DIT)
    assert found["layers/tried"] == 1
    # the whole; two layers of each of two kinds; one of each; what a state takes; the whole alone, to be kept
    assert len(whole_bytes) == 6
    assert found["model/parameters"] == whole_bytes[0] / 4 / 4  # copies, bytes
    assert load_decoder(run).settings.layers == 3  # what needs it finds a model of full size
    monkeypatch.setattr(building, "fits", lambda needed_bytes: True)
    _, direct = begin(features, tmp_path / "direct", "dit", DIT)
    assert found["update/operations"] == direct["update/operations"]  # those of few layers tell those of all
    assert found["memory/whole_mb"] >= direct["memory/whole_mb"] * 0.5


def test_without_layers_to_try_alone_it_is_one_line(features, tmp_path, monkeypatch):
    monkeypatch.setattr(building, "fits", lambda needed_bytes: False)
    with pytest.raises(GhostError, match="has no layers to try alone"):
        begin(features, tmp_path, "mlp", {**WIDTHS, "layers": 1})
