"""1-step diffusion: one denoising step from pure noise, as in consistency models. B samples, H horizon, d_a action.

    f(x, σ; c) = c_skip(σ) x + c_out(σ) F(c_in(σ) x, σ, c)      x = a + σ ε, c = [e; E(state)]; f(x, σ_min) = x

    training    denoising    |f(x_σ) - a|², at a random level σ of the grid
                consistency  |f(x_σ) - f⁻(x_σ')|², σ' the next lower level with the same ε, f⁻ without gradient
    acting      a = f(σ_max ε, σ_max)

Levels and scalings are those of EDM and of consistency models (ρ = 7, σ_data = 0.5 for actions in [-1, 1]). The paper
cites Consistency Policy, which distils a diffusion teacher. But it speaks of single-step denoising and of no teacher,
so both terms learn from the data here. At these widths it has 2,165,601 parameters (2.2M published).
"""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.context import encoders
from ghost.decoders.contract import Batch, Terms, Weights
from ghost.decoders.losses import masked_mse
from ghost.runs.settings import at_least, at_least_one

TERMS = ("denoising", "consistency")
SIGMA_MIN, SIGMA_MAX, SIGMA_DATA, RHO = 0.002, 80.0, 0.5, 7.0


@dataclass(frozen=True)
class Settings:
    hidden: int = 512
    d_context: int = 128
    d_latent: int = 64  # the encoded state
    d_time: int = 128  # sinusoidal embedding of the noise level
    levels: int = 18

    def __post_init__(self) -> None:
        at_least_one(self, "hidden", "d_context", "d_latent")
        at_least(2, self, "levels")
        if self.d_time < 4 or self.d_time % 2:
            raise ValueError(f"d_time must be even and at least 4, got {self.d_time}")


class Decoder(nn.Module):
    sigmas: Tensor
    frequencies: Tensor

    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        d_chunk = sizes.horizon * sizes.d_action
        self.compressor, self.encoder = encoders(s, sizes)
        self.network = nn.Sequential(  # F
            nn.Linear(d_chunk + s.d_time + s.d_context + s.d_latent, s.hidden),
            nn.SiLU(),
            nn.Linear(s.hidden, s.hidden),
            nn.SiLU(),
            nn.Linear(s.hidden, d_chunk),
        )
        ramp = torch.linspace(0, 1, s.levels)
        low, high = SIGMA_MIN ** (1 / RHO), SIGMA_MAX ** (1 / RHO)
        self.register_buffer("sigmas", (low + ramp * (high - low)) ** RHO, persistent=False)  # [levels], rising
        octaves = torch.linspace(0, 1, s.d_time // 2)
        self.register_buffer("frequencies", torch.exp(-math.log(1000) * octaves), persistent=False)

    def condition(self, batch: Batch) -> Tensor:
        """c [B, d_c]."""
        return torch.cat([self.compressor(batch.tokens), self.encoder(batch.state)], dim=-1)

    def denoise(self, x: Tensor, sigma: Tensor, c: Tensor) -> Tensor:
        """f(x, σ; c): x [B, H, d_a], σ [B]."""
        phase = 250 * sigma.log()[:, None] * self.frequencies  # 1000 · (log σ)/4, as EDM embeds the level
        time = torch.cat([phase.sin(), phase.cos()], dim=-1)
        sigma = sigma[:, None, None]
        c_skip = SIGMA_DATA**2 / ((sigma - SIGMA_MIN) ** 2 + SIGMA_DATA**2)
        c_out = SIGMA_DATA * (sigma - SIGMA_MIN) / (sigma**2 + SIGMA_DATA**2).sqrt()
        c_in = 1 / (sigma**2 + SIGMA_DATA**2).sqrt()
        out = self.network(torch.cat([(c_in * x).flatten(1), time, c], dim=-1))
        return c_skip * x + c_out * torch.as_tensor(out).view_as(x)

    def loss_terms(self, batch: Batch, weights: Weights, generator: Generator | None = None) -> Terms:
        c, a = self.condition(batch), batch.target
        noise = torch.empty_like(a).normal_(generator=generator)
        level = torch.randint(1, len(self.sigmas), (len(batch),), generator=generator, device=a.device)
        sigma, lower = self.sigmas[level], self.sigmas[level - 1]
        denoised = self.denoise(a + sigma[:, None, None] * noise, sigma, c)
        terms = {}
        if weights.get("denoising"):
            terms["denoising"] = masked_mse(denoised, a, batch.action_mask)
        if weights.get("consistency"):
            with torch.no_grad():
                target = self.denoise(a + lower[:, None, None] * noise, lower, c)
            terms["consistency"] = masked_mse(denoised, target, batch.action_mask)
        return terms

    def act(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        shape = (len(batch), self.sizes.horizon, self.sizes.d_action)
        noise = torch.randn(shape, generator=generator, device=batch.state.device, dtype=batch.state.dtype)
        return self.denoise(SIGMA_MAX * noise, self.sigmas[-1].expand(len(batch)), self.condition(batch))
