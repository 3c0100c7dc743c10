"""Ghost as an agent: the goal shapes the landscape in which the latent falls. B agents, d_z latent, d_e context.

    e       = embed(context)
    z^(0)   = E(observation, context)
    z^(k+1) = z^(k) + dt (-∇U(z^(k); e) + b(z^(k); e))      `steps` times
    action  = decode(z^(n))

It has no memory. E is linear. U has two hidden layers and b has one, as in `ghost.decoders.ghost`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from ghost.data.trajectories import Seen, Sizes, Window, Windows, imitation_error
from ghost.decoders.context import Mlp
from ghost.decoders.contract import Terms, Weights
from ghost.dynamics.integrators import rollout
from ghost.dynamics.networks import Drift, Potential
from ghost.runs.records import Run
from ghost.runs.settings import at_least_one, positive

TERMS = ("bc",)


@dataclass(frozen=True)
class Settings:
    hidden: int = 96
    d_latent: int = 8  # d_z
    d_context: int = 16  # d_e
    steps: int = 5
    dt: float = 0.2

    def __post_init__(self) -> None:
        at_least_one(self, "hidden", "d_latent", "d_context", "steps")
        positive(self, "dt")


def gather(settings: Settings, runs: Sequence[Run]) -> Windows:
    """Single steps of demonstrations."""
    return Windows(runs[0], length=1, stride=1)


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        self.embed = Mlp(sizes.d_context, s.hidden, s.d_context)
        self.encoder = nn.Linear(sizes.d_observation + sizes.d_context, s.d_latent)  # E
        self.potential = Potential(s.d_latent, s.d_context, (s.hidden, s.hidden))  # U
        self.drift = Drift(s.d_latent, s.d_context, (s.hidden,))  # b
        self.decode = Mlp(s.d_latent, s.hidden, sizes.d_action)

    def forward(self, observation: Tensor, context: Tensor) -> Tensor:
        """[B, d_o], [B, d_c] -> [B, d_a]."""
        e = self.embed(context)
        potential, drift = self.potential.at(e), self.drift.at(e)
        start = self.encoder(torch.cat([observation, context], dim=-1))
        z = rollout(lambda z: drift(z) - potential.gradient(z), start, self.settings.dt, self.settings.steps)
        return torch.as_tensor(self.decode(z[-1]))

    def loss_terms(self, batch: Window, weights: Weights, generator: Generator | None = None) -> Terms:
        seen = batch.seen
        predicted = self(seen.observation.flatten(0, 1), seen.context.flatten(0, 1))
        return {"bc": imitation_error(predicted.view_as(batch.target), batch)}

    def begin(self, agents: int) -> None:
        """It remembers nothing."""

    def act(self, memory: None, seen: Seen, noise: Tensor) -> Tensor:
        return torch.as_tensor(self(seen.observation, seen.context))
