"""Our DiT with the weights of lerobot's action head acts as that head does: two implementations, one function."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ghost.backbones.groot import Groot
from ghost.data.features import Sizes
from ghost.decoders import dit
from ghost.decoders.contract import Batch

pytest_plugins = ("groot_fixtures",)
pytestmark = pytest.mark.groot
BLOCK = {
    "modulation": "norm1.linear",
    "norm": "norm1",
    "attention.query": "attn1.to_q",
    "attention.key": "attn1.to_k",
    "attention.value": "attn1.to_v",
    "attention.out": "attn1.to_out.0",
    "feed_forward_norm": "norm3",
    "feed_forward.0": "ff.net.0.proj",
    "feed_forward.2": "ff.net.2",
}
REST = {
    "vl_norm": "vlln",
    "encode_state.0": "state_encoder.layer1",
    "encode_state.1": "state_encoder.layer2",
    "encode_action.0": "action_encoder.W1",
    "encode_action.1": "action_encoder.W2",
    "encode_action.2": "action_encoder.W3",
    "decode_action.0": "action_decoder.layer1",
    "decode_action.1": "action_decoder.layer2",
    "embed_time.0": "model.timestep_encoder.timestep_embedder.linear_1",
    "embed_time.2": "model.timestep_encoder.timestep_embedder.linear_2",
    "modulation": "model.proj_out_1",
    "out": "model.proj_out_2",
}


def theirs(name: str) -> str:
    """The name of our weight in lerobot's head."""
    if name in ("positions", "future"):
        return {"positions": "position_embedding.weight", "future": "future_tokens.weight"}[name]
    module, kind = name.rsplit(".", 1)
    for ours, their in (("vl_blocks", "vl_self_attention.transformer_blocks"), ("blocks", "model.transformer_blocks")):
        if module.startswith(f"{ours}."):
            number, part = module.removeprefix(f"{ours}.").split(".", 1)
            return f"{their}.{number}.{BLOCK[part]}.{kind}"
    per_embodiment = module.startswith(("encode_", "decode_"))
    return f"{REST[module]}.{ {'weight': 'W', 'bias': 'b'}[kind] if per_embodiment else kind }"


def test_the_same_weights_give_the_same_action(tiny):
    head = Groot.load(tiny, "new_embodiment", horizon=17).head
    settings = dit.Settings(
        layers=2, heads=4, d_head=12, vl_layers=1, vl_heads=4, hidden=32, future_tokens=4, positions=64, dropout=0.0
    )
    decoder = dit.Decoder(settings, Sizes(tokens=9, d_token=64, d_state=64, horizon=17, d_action=32)).eval()
    given = head.state_dict()
    weights = {name: given[theirs(name)] for name in decoder.state_dict()}
    assert len(weights) == len(given)  # none is left over
    half = dit.D_BUCKET // 2  # the time's cosines come before its sines there
    weights["embed_time.0.weight"] = torch.roll(weights["embed_time.0.weight"], half, dims=1)
    decoder.load_state_dict(weights)

    rng = np.random.default_rng(0)
    tokens, state = (torch.from_numpy(rng.normal(size=size)).float() for size in ((3, 9, 64), (3, 64)))
    batch = Batch(tokens, state, torch.zeros(3, 17, 32), torch.ones(32, dtype=torch.bool), torch.zeros(3))
    with torch.no_grad():
        ours = decoder.act(batch, torch.Generator().manual_seed(4))
    noise = torch.randn(3, 17, 32, generator=torch.Generator().manual_seed(4))
    own = Groot(type("Model", (), {"action_head": head})(), None, 31, tiny).act(tokens, state, noise)
    torch.testing.assert_close(ours, own, rtol=1e-4, atol=1e-5)
    assert own.std() > 0.1
