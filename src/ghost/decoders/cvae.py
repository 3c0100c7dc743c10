"""CVAE: a latent-variable model with a learned prior. B samples, d_z latent, c = [e; E(state)], H horizon, d_a action.

    training    z ~ q(z | a, c)     a = decode(z, c)     bc + kl · KL(q(z | a, c) | p(z | c))
    acting      z = mean of p(z | c)

The Gaussians have diagonal covariance. q sees the demonstrated chunk with zeros as padding. At these widths it has
2,117,089 parameters (2.1M published). The paper gives neither d_z nor the weight of the KL term.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.context import Mlp, encoders
from ghost.decoders.contract import Batch, Terms, Weights
from ghost.decoders.losses import gaussian_kl, imitation_terms
from ghost.runs.settings import at_least_one

TERMS = ("bc", "kl")


@dataclass(frozen=True)
class Settings:
    hidden: int = 512
    d_context: int = 128
    d_latent: int = 64  # the encoded state
    d_code: int = 32  # z

    def __post_init__(self) -> None:
        at_least_one(self, "hidden", "d_context", "d_latent", "d_code")


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        d_c, d_chunk = s.d_context + s.d_latent, sizes.horizon * sizes.d_action
        self.compressor, self.encoder = encoders(s, sizes)
        self.prior = Mlp(d_c, s.hidden, 2 * s.d_code)  # p: mean and log variance
        self.posterior = Mlp(d_chunk + d_c, s.hidden, 2 * s.d_code)  # q
        self.decode = Mlp(s.d_code + d_c, s.hidden, d_chunk)

    def condition(self, batch: Batch) -> Tensor:
        """c [B, d_c]."""
        return torch.cat([self.compressor(batch.tokens), self.encoder(batch.state)], dim=-1)

    def chunk(self, z: Tensor, c: Tensor) -> Tensor:
        out = self.decode(torch.cat([z, c], dim=-1))
        return torch.as_tensor(out).view(len(z), self.sizes.horizon, -1)  # [B, H, d_a]

    def loss_terms(self, batch: Batch, weights: Weights, generator: Generator | None = None) -> Terms:
        c = self.condition(batch)
        mean, log_variance = self.posterior(torch.cat([batch.target.flatten(1), c], dim=-1)).chunk(2, dim=-1)
        noise = torch.empty_like(mean).normal_(generator=generator)
        terms = imitation_terms(self.chunk(mean + noise * (0.5 * log_variance).exp(), c), batch, weights)
        if weights.get("kl"):
            terms["kl"] = gaussian_kl(mean, log_variance, *self.prior(c).chunk(2, dim=-1))
        return terms

    def act(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        c = self.condition(batch)
        mean, _ = self.prior(c).chunk(2, dim=-1)
        return self.chunk(mean, c)
