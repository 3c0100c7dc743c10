"""An exported decoder acts as ours does, says which run it is, and is not written when it would not."""

import json
from functools import partial

import numpy as np
import onnx
import onnx.helper
import pytest
import torch

from ghost.agents import transformer as agent
from ghost.data import trajectories
from ghost.data.features import Sizes
from ghost.data.normalisation import Normalisation, Scale
from ghost.data.results import Measured, Outcome
from ghost.decoders import diffusion, dit, ghost, ghost_phase, gru_phase, mlp, neural_ode
from ghost.decoders.contract import Batch
from ghost.errors import GhostError
from ghost.runs.driver import Plan, execute
from ghost.training import export
from ghost.training.checkpoint import save_decoder
from trained import declared

SIZES = Sizes(tokens=3, d_token=12, d_state=7, horizon=4, d_action=6)
WIDTHS = {"hidden": 16, "d_context": 8, "d_latent": 6}
DUAL = {"steps": 3, "refinement_steps": 2}


def build(module, **settings):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        decoder = module.Decoder(module.Settings(**WIDTHS, **settings), SIZES).eval()
        for p in decoder.parameters():  # larger than at the start, so that every part matters
            p.data *= 2
    return decoder


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize(("module", "settings"), [(ghost, {}), (ghost, DUAL), (mlp, {}), (neural_ode, {})])
def test_it_acts_as_ours_on_other_inputs(module, settings, samples):
    decoder = build(module, **settings)
    session = export.session(export.to_onnx(decoder, samples).SerializeToString())
    tokens, state = torch.randn(samples, 3, 12), torch.randn(samples, 7)
    (action,) = session.run(None, {"tokens": tokens.numpy(), "state": state.numpy()})
    with torch.no_grad():
        expected = decoder.act(Batch(tokens, state, torch.zeros(0), torch.ones(6, dtype=torch.bool), torch.zeros(1)))
    np.testing.assert_allclose(action, expected, rtol=0, atol=1e-4 * expected.abs().max())


def test_what_persists_goes_out_and_comes_in_again():
    decoder = build(ghost_phase, persistent=True)
    session = export.session(export.to_onnx(decoder, 1).SerializeToString())
    memory, ours = np.full((1, 6), np.nan, np.float32), None
    for _ in range(3):
        tokens, state = torch.randn(1, 3, 12), torch.randn(1, 7)
        action, memory = session.run(None, {"tokens": tokens.numpy(), "state": state.numpy(), "memory": memory})
        with torch.no_grad():
            batch = Batch(tokens, state, torch.zeros(0), torch.ones(6, dtype=torch.bool), torch.zeros(1))
            plan = decoder.plan(batch, ours)
        ours = plan.memory
        np.testing.assert_allclose(action, plan.action, rtol=0, atol=1e-4 * plan.action.abs().max())
        np.testing.assert_allclose(memory, ours, rtol=0, atol=1e-4)


def test_raw_states_go_in_and_raw_actions_come_out(tmp_path):
    """The file's action is the normalised state that it gets, so that both ways are seen; dimension 1 is constant."""
    tensor, make = partial(onnx.helper.make_tensor_value_info, elem_type=onnx.TensorProto.FLOAT), onnx.helper.make_node
    axis = onnx.helper.make_tensor("axis", onnx.TensorProto.INT64, [1], [1])
    inputs, output = [tensor("tokens", shape=[1, 3, 12]), tensor("state", shape=[1, 4])], tensor("action", shape=None)
    nodes = [make("Unsqueeze", ["state", "axis"], ["action"])]
    graph = onnx.helper.make_graph(nodes, "echo", inputs, [output], [axis])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    known = Normalisation(
        "limits",
        Scale(("a", "b"), np.array([0.0, 3.0]), np.array([10.0, 3.0])),
        Scale(("c", "d"), np.array([100.0, 7.0]), np.array([300.0, 7.0])),
    )
    field = model.metadata_props.add()
    field.key, field.value = export.DATA, json.dumps({"normalisation": known.plain()})
    (tmp_path / "echo.onnx").write_bytes(model.SerializeToString())
    action = export.Exported(tmp_path / "echo.onnx").act(np.zeros((1, 3, 12)), np.array([[7.5, 3.0]]))
    np.testing.assert_allclose(action, [[[250.0, 7.0]]])  # 7.5 is 0.5, which is 250


@pytest.fixture
def manifest(tmp_path):
    """Two seeds of a decoder that nobody trained, recorded as a training is."""

    def run(unit):
        save_decoder(unit.folder / "model.safetensors", "ghost.decoders.ghost", build(ghost), build(ghost).state_dict())
        return Outcome([Measured("train", "loss", float(unit.seed))], files=("model.safetensors",))

    path = tmp_path / "untrained/manifest.json"
    execute(lambda job: Plan(run), declared("untrained", "train", "ghost.decoders.ghost", {}, [4, 5], []), path)
    return path


@pytest.mark.parametrize(("samples", "tokens"), [(2, (2, 3, 12)), (1, (1, 4, 12))])
def test_other_numbers_than_the_file_has_are_one_clear_line(manifest, tmp_path, samples, tokens):
    export.export(manifest, tmp_path / "ghost.onnx")
    exported = export.Exported(tmp_path / "ghost.onnx")
    assert exported.act(np.zeros((1, 3, 12)), np.zeros((1, 7))).shape == (1, 4, 6)
    with pytest.raises(GhostError, match=r"takes tokens \[1, 3, 12\] and 1 states, not .* \(ghost export --samples\)"):
        exported.act(np.zeros(tokens), np.zeros((samples, 7)))


def test_a_latent_that_is_carried_is_given_to_the_session(tmp_path):
    shapes = {"tokens": [1, 3, 12], "state": [1, 7], "memory": [1, 2]}
    tensor = partial(onnx.helper.make_tensor_value_info, elem_type=onnx.TensorProto.FLOAT)
    opsets = [onnx.helper.make_opsetid("", 18)]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["memory"], ["next_memory"])],
        "carries",
        [tensor(name, shape=shape) for name, shape in shapes.items()],
        [tensor("next_memory", shape=[1, 2])],
    )
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (tmp_path / "carries.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(GhostError, match="call `session` with its `memory`"):
        export.Exported(tmp_path / "carries.onnx").act(np.zeros((1, 3, 12)), np.zeros((1, 7)))


def test_the_file_names_its_run(manifest, tmp_path):
    out = tmp_path / "ghost.onnx"
    said = export.export(manifest, out, seed=5)
    (field,) = onnx.load(out).metadata_props
    assert field.key == "ghost_run"
    assert field.value in said
    assert field.value in (manifest.parent / "seed5/run.json").read_text()


def test_a_file_that_acts_otherwise_is_not_written(manifest, tmp_path, monkeypatch):
    other = export.to_onnx(build(ghost, steps=2), 1)
    monkeypatch.setattr(export, "to_onnx", lambda decoder, samples: other)
    with pytest.raises(GhostError, match="differ from ours"):
        export.export(manifest, tmp_path / "ghost.onnx")
    assert not (tmp_path / "ghost.onnx").exists()


def test_bad_input_is_named(manifest, tmp_path):
    with pytest.raises(GhostError, match="no run with seed 9"):
        export.export(manifest, tmp_path / "ghost.onnx", seed=9)
    with pytest.raises(GhostError, match="samples must be at least 1"):
        export.export(manifest, tmp_path / "ghost.onnx", samples=0)


@pytest.mark.parametrize(
    ("module", "settings", "sizes", "message"),
    [
        (diffusion, {**WIDTHS, "d_time": 4, "levels": 2}, SIZES, "diffusion draws noise for every chunk"),
        (
            dit,
            {"layers": 2, "heads": 2, "d_head": 4, "vl_layers": 0, "vl_heads": 2, "hidden": 8},
            SIZES,
            "dit draws noise for every",
        ),
        (gru_phase, {**WIDTHS, "d_recurrent": 4}, SIZES, "gru_phase carries a memory of another kind"),
        (agent, {}, trajectories.Sizes(2, 2, 2), "transformer is an agent"),
    ],
)
def test_what_an_onnx_file_cannot_say_is_one_line(manifest, tmp_path, monkeypatch, module, settings, sizes, message):
    decoder = module.Decoder(module.Settings(**settings), sizes).eval()
    monkeypatch.setattr(export, "load_decoder", lambda run: decoder)
    with pytest.raises(GhostError, match=f"{message}.*can be exported"):
        export.export(manifest, tmp_path / "x.onnx")
    assert not (tmp_path / "x.onnx").exists()
