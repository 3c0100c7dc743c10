"""The simplest training of Ghost: one seed, autograd for ∇U, torch.optim.Adam, nothing of our loop.

    python -m ghost.benches.plain --experiment '{...}' --needs features/manifest.json --seed 0 --out loss.json

`ghost.benches.training` compares our loop with it. Both draw the initial weights and the order of the samples in the
same way, so they must end with the same loss.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import tyro
from torch import Tensor, nn

from ghost.data.features import FeatureCache
from ghost.decoders import ghost
from ghost.files import write_json
from ghost.runs.settings import read_settings
from ghost.training.loop import Training


def act(decoder: ghost.Decoder, tokens: Tensor, state: Tensor) -> Tensor:
    """The decoder's chunk, with the potential differentiated by autograd at every step."""
    s, e, z = decoder.settings, decoder.compressor(tokens), decoder.encoder(state)
    for _ in range(s.steps):
        x = torch.cat([z, e], dim=-1)
        (slope,) = torch.autograd.grad(mlp(decoder.potential.layers, x).sum(), z, create_graph=True)
        z = z + s.dt * (mlp(decoder.drift.layers, x) - slope)
    return torch.as_tensor(decoder.decode(decoder.horizon(z).view(len(z), decoder.sizes.horizon, -1)))


def mlp(layers: Sequence[nn.Linear], x: Tensor) -> Tensor:
    x = layers[0](x)
    for layer in layers[1:]:
        x = layer(nn.functional.silu(x))
    return x


def main(experiment: str, needs: Path, seed: int, out: Path) -> None:
    """Train one seed.

    Args:
        experiment: an experiment of the study, as JSON.
        needs: manifest of the feature cache.
        seed: of the run.
        out: the file for the mean loss of the last epoch.
    """
    settings, training = read_settings("plain", json.loads(experiment)["settings"], ghost.Settings, Training)
    torch.set_num_threads(1)
    cache = FeatureCache.open(needs)
    indices, _ = cache.split(training.split)
    tokens = torch.from_numpy(cache.tokens(indices)).float()
    state, action = torch.from_numpy(cache.state[indices]).float(), torch.from_numpy(cache.action[indices]).float()
    mask = torch.from_numpy(cache.action_mask)
    initial, order, *_ = (int(x) for x in np.random.SeedSequence(seed).generate_state(4))
    torch.manual_seed(initial)
    decoder = ghost.Decoder(settings, cache.sizes)
    generator = torch.Generator().manual_seed(order)
    adam = torch.optim.Adam(decoder.parameters(), lr=training.learning_rate)
    total = float("nan")
    for _ in range(training.epochs):
        total = 0.0
        for chosen in torch.split(torch.randperm(len(state), generator=generator), training.batch_size):
            predicted = act(decoder, tokens[chosen], state[chosen])
            loss = nn.functional.mse_loss(predicted[..., mask], action[chosen][..., mask])
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
            total += loss.item() * len(chosen)
    write_json(out, {"loss": total / len(state)})


if __name__ == "__main__":
    tyro.cli(main)
