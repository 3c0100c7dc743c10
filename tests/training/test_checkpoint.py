"""A checkpoint holds what its module, settings and sizes say, or it is refused; none can exhaust the memory."""

from __future__ import annotations

import json

import pytest
import torch

from conftest import make_runs
from ghost.agents import transformer
from ghost.data import trajectories
from ghost.data.features import Sizes
from ghost.data.results import Outcome
from ghost.decoders import dit, mlp
from ghost.errors import GhostError
from ghost.files import read_json, sha256, write_json
from ghost.runs.records import open_runs
from ghost.training import building
from ghost.training.checkpoint import load_decoder, write_tensors

SIZES = {"tokens": 2, "d_token": 3, "d_state": 2, "horizon": 2, "d_action": 2}
SETTINGS = {"hidden": 2, "d_context": 2, "d_latent": 2, "layers": 1}
FACTS = {"module": "ghost.decoders.mlp", "settings": SETTINGS, "sizes": SIZES}


@pytest.fixture
def load(tmp_path):
    """Load a checkpoint with these tensors and facts, which its manifest lists."""
    manifest = tmp_path / "runs/x/manifest.json"
    make_runs(manifest, lambda seed: Outcome([]), seeds=[7])
    path = manifest.parent / "seed7/model.safetensors"

    def make(tensors, facts):
        write_tensors(path, tensors, facts)
        listing = read_json(manifest)
        listing["runs"][0]["files"]["seed7/model.safetensors"] = sha256(path)
        write_json(manifest, listing)
        return load_decoder(open_runs(manifest)[0])

    return make


@pytest.fixture
def weights():
    return mlp.Decoder(mlp.Settings(**SETTINGS), Sizes(**SIZES)).state_dict()


def test_a_whole_checkpoint_loads(load, weights):
    assert load(weights, FACTS).settings == mlp.Settings(**SETTINGS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"module": "ghost.decoders.losses"}, "is no decoder or agent"),
        ({"module": "ghost.decoders./tmp/x"}, "is no decoder or agent"),
        ({"module": 7}, "module must be text, got 7"),
        ({"settings": []}, "settings must be an object"),
        ({"settings": {**SETTINGS, "hidden": "2"}}, "hidden: it must be a whole number, got '2'"),
        ({"settings": {**SETTINGS, "hidden": 2.0}}, "hidden: it must be a whole number"),
        ({"settings": {**SETTINGS, "hidden": 2**70}}, "hidden: it must be a whole number"),
        ({"settings": {**SETTINGS, "hidden": -2}}, "hidden must be at least 1"),
        ({"settings": {**SETTINGS, "hiden": 2}}, "no setting 'hiden'; did you mean hidden"),
        ({"settings": {**SETTINGS, "hidden": 10**8}}, r"its model has \(\(100000000"),
        ({"settings": {**SETTINGS, "hidden": 2**62}}, r"too large|its model has"),
        ({"settings": {**SETTINGS, "layers": 10**9}}, "layers must be at most 1000"),
        ({"sizes": {**SIZES, "tokens": 0}}, "sizes.tokens must be a whole number from 1"),
        ({"sizes": {**SIZES, "d_token": 10**12}}, "sizes.d_token must be a whole number from 1"),
        ({"sizes": {**SIZES, "more": 1}}, "no setting 'more'"),
        ({"sizes": {"tokens": 2}}, "missing 4 required"),
        ({"settings": {**SETTINGS, "hidden": 3}}, r"is \(.*its model has \("),
    ],
)
def test_facts_that_are_wrong_are_one_line(load, weights, change, message):
    with pytest.raises(GhostError, match=message):
        load(weights, {**FACTS, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop(next(iter(w))), "is missing, its model has"),
        (lambda w: w.update(more=torch.zeros(1)), "'more' is .*its model has none"),
        (lambda w: w.update({k: v.double() for k, v in w.items()}), "float64"),
        (lambda w: w.update({k: v[None] for k, v in list(w.items())[:1]}), "its model has"),
        (lambda w: next(iter(w.values())).fill_(float("nan")), "is not finite"),
        (lambda w: next(iter(w.values())).fill_(float("inf")), "is not finite"),
    ],
)
def test_weights_that_are_wrong_are_one_line(load, weights, change, message):
    change(weights)
    with pytest.raises(GhostError, match=message):
        load(weights, FACTS)


LIES = [b"", b"\xff" * 8, b"\x02" + bytes(7) + b"{}", (2**40).to_bytes(8, "little") + b"{}"]


@pytest.mark.parametrize("content", LIES)
def test_a_header_that_lies_is_one_line(load, weights, tmp_path, content):
    load(weights, FACTS)
    manifest = tmp_path / "runs/x/manifest.json"
    path = manifest.parent / "seed7/model.safetensors"
    path.write_bytes(content)
    text = manifest.read_text()
    old = json.loads(text)["runs"][0]["files"]["seed7/model.safetensors"]
    manifest.write_text(text.replace(old, sha256(path)))
    with pytest.raises(GhostError, match="is not a file of ours"):
        load_decoder(open_runs(manifest)[0])


def test_a_model_that_memory_cannot_hold_is_not_made(monkeypatch):
    """Agents and decoders alike; a training holds the weights four times."""
    made = building.build(transformer, transformer.Settings(), trajectories.Sizes(2, 2, 2))
    needed = sum(p.nbytes for p in (*made.parameters(), *made.buffers()))
    asked = []
    monkeypatch.setattr(building, "fits", lambda size: asked.append(size))
    for copies in (1, 4):
        with pytest.raises(GhostError, match="not free"):
            building.build(transformer, transformer.Settings(), trajectories.Sizes(2, 2, 2), copies=copies)
    assert asked == [needed, 4 * needed]
    with pytest.raises(GhostError, match="layers must be at most 1000"):
        building.build(dit, dit.Settings(layers=10**7), Sizes(**SIZES))
