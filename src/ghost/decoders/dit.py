"""DiT: the flow-matching Diffusion Transformer head of GR00T N1.5. B samples, T tokens, H horizon, d model.

    training    x_t = (1 - t) ε + t a,  t = (0.999 - β) / 0.999 with β ~ Beta(1.5, 1);  |v(x_t, t) - (a - ε)|²
    acting      x = ε;  4 times  x += v(x, i/4) / 4

    memory   = VL self-attention(norm(tokens))                           [B, T, D]
    sequence = [state token; future tokens; actions with t + positions]  [B, 1 + F + H, d]
    DiT      = layers that attend in turn to the memory and to the sequence itself, norms modulated by t
    v        = action decoder(last H of the sequence)

The encoders and decoders of state and actions have one set of weights per embodiment. One data set has one embodiment,
so one set is used; the others are there because the published head has them. At the published sizes it has
1,068,806,144 parameters, the paper's 1068.8M. It is written from the published description and configuration. One
dropout follows every attention and feed-forward block, where the original nests two.
"""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from ghost.data.features import Sizes
from ghost.decoders.attention import Attention
from ghost.decoders.context import drop
from ghost.decoders.contract import Batch, Terms, Weights
from ghost.decoders.losses import masked_mse
from ghost.runs.settings import at_least_one, not_negative

TERMS = ("flow",)
BUCKETS = 1000  # t reaches the network as a bucket number
D_BUCKET = 256  # sinusoidal dims of the bucket, before the time embedding


@dataclass(frozen=True)
class Settings:
    layers: int = 16
    heads: int = 32
    d_head: int = 48
    vl_layers: int = 4
    vl_heads: int = 32
    hidden: int = 1024  # of the state encoder and the action decoder
    embodiments: int = 32
    embodiment: int = 31  # "new_embodiment"
    future_tokens: int = 32  # F
    positions: int = 1024
    euler_steps: int = 4
    beta: float = 1.5
    shift: float = 0.999  # s
    dropout: float = 0.2

    def __post_init__(self) -> None:
        at_least_one(self, "layers", "heads", "d_head", "vl_heads", "hidden", "embodiments", "positions", "euler_steps")
        not_negative(self, "vl_layers", "future_tokens")
        if self.heads * self.d_head % 2:
            raise ValueError(f"heads times d_head must be even, got {self.heads} and {self.d_head}")
        if not 0 <= self.embodiment < self.embodiments:
            raise ValueError(f"embodiment must be below embodiments = {self.embodiments}, got {self.embodiment}")
        if not (self.beta > 0 and 0 < self.shift <= 1 and 0 <= self.dropout < 1):
            raise ValueError(
                f"beta, shift and dropout must be positive, in (0, 1] and in [0, 1), "
                f"got {self.beta}, {self.shift}, {self.dropout}"
            )


def sinusoids(x: Tensor, d: int, *, last: bool) -> Tensor:
    """Sines and cosines [B, d] of x [B] at d/2 wavelengths up to 10000 · 2π; with `last` the longest is included."""
    half = d // 2
    exponent = torch.arange(half, device=x.device) / (half - 1 if last else half)
    phase = x[:, None] * torch.exp(-math.log(10000) * exponent)
    return torch.cat([phase.sin(), phase.cos()], dim=-1)


class PerEmbodiment(nn.Module):
    """One linear map per embodiment."""

    def __init__(self, embodiments: int, d_in: int, d_out: int) -> None:
        super().__init__()
        # GR00T draws its weights with σ = 0.02, with 1536 inputs. This is about the same, and fits small widths too.
        self.weight = nn.Parameter(torch.randn(embodiments, d_in, d_out) / math.sqrt(d_in))
        self.bias = nn.Parameter(torch.zeros(embodiments, d_out))

    def forward(self, x: Tensor, embodiment: int) -> Tensor:
        return x @ self.weight[embodiment] + self.bias[embodiment]


def per_embodiment(embodiments: int, *widths: tuple[int, int]) -> nn.ModuleList:
    return nn.ModuleList(PerEmbodiment(embodiments, a, b) for a, b in widths)


class Block(nn.Module):
    """Attention and feed-forward, each after a norm. A timed block scales and shifts its first norm by the time."""

    def __init__(self, d: int, heads: int, d_memory: int, *, dropout: float, timed: bool) -> None:
        super().__init__()
        self.dropout = dropout
        self.modulation = nn.Linear(d, 2 * d) if timed else None
        self.norm = nn.LayerNorm(d, elementwise_affine=not timed)
        self.attention = Attention(d, heads, d_memory)
        self.feed_forward_norm = nn.LayerNorm(d, elementwise_affine=not timed)
        self.feed_forward = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d))

    def forward(self, x: Tensor, memory: Tensor | None, time: Tensor | None, generator: Generator | None) -> Tensor:
        y = self.norm(x)
        if self.modulation is not None and time is not None:
            scale, shift = self.modulation(nn.functional.silu(time))[:, None].chunk(2, dim=-1)
            y = y * (1 + scale) + shift
        y = self.attention(y, y if memory is None else memory)
        x = x + drop(y, self.dropout, generator, training=self.training)
        y = self.feed_forward(self.feed_forward_norm(x))
        return x + drop(y, self.dropout, generator, training=self.training)


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        d = s.heads * s.d_head
        if sizes.d_token % s.vl_heads:
            raise ValueError(f"d_token must be a multiple of vl_heads, got {sizes.d_token} and {s.vl_heads}")
        if sizes.horizon > s.positions:
            raise ValueError(f"positions must cover the horizon {sizes.horizon}, got {s.positions}")
        self.vl_norm = nn.LayerNorm(sizes.d_token)
        self.vl_blocks = nn.ModuleList(
            Block(sizes.d_token, s.vl_heads, sizes.d_token, dropout=s.dropout, timed=False) for _ in range(s.vl_layers)
        )
        self.encode_state = per_embodiment(s.embodiments, (sizes.d_state, s.hidden), (s.hidden, d))
        self.encode_action = per_embodiment(s.embodiments, (sizes.d_action, d), (2 * d, d), (d, d))
        self.positions = nn.Parameter(0.02 * torch.randn(s.positions, d))
        self.future = nn.Parameter(0.02 * torch.randn(s.future_tokens, d))
        self.embed_time = nn.Sequential(nn.Linear(D_BUCKET, d), nn.SiLU(), nn.Linear(d, d))
        self.blocks = nn.ModuleList(
            Block(d, s.heads, d if k % 2 else sizes.d_token, dropout=s.dropout, timed=True) for k in range(s.layers)
        )
        self.norm = nn.LayerNorm(d, elementwise_affine=False, eps=1e-6)
        self.modulation = nn.Linear(d, 2 * d)
        self.out = nn.Linear(d, s.hidden)
        self.decode_action = per_embodiment(s.embodiments, (s.hidden, s.hidden), (s.hidden, sizes.d_action))

    def remember(self, batch: Batch, generator: Generator | None) -> tuple[Tensor, Tensor]:
        """The parts that do not depend on t: the memory [B, T, D] and the state token [B, 1, d]."""
        memory = self.vl_norm(batch.tokens)
        for block in self.vl_blocks:
            memory = block(memory, None, None, generator)
        first, second = self.encode_state
        embodiment = self.settings.embodiment
        return memory, second(first(batch.state[:, None], embodiment).relu(), embodiment)

    def velocity(self, x: Tensor, bucket: Tensor, memory: Tensor, state: Tensor, generator: Generator | None) -> Tensor:
        """v [B, H, d_a] at x [B, H, d_a] and time bucket [B]."""
        embodiment, d = self.settings.embodiment, self.positions.shape[1]
        action, joint, last = self.encode_action
        moment = sinusoids(bucket, d, last=False)[:, None].expand(-1, x.shape[1], -1)  # [B, H, d]
        y = nn.functional.silu(joint(torch.cat([action(x, embodiment), moment], dim=-1), embodiment))
        y = last(y, embodiment) + self.positions[: x.shape[1]]
        y = torch.cat([state, self.future.expand(len(x), -1, -1), y], dim=1)  # [B, 1 + F + H, d]
        time = self.embed_time(sinusoids(bucket, D_BUCKET, last=True))  # [B, d]
        for k, block in enumerate(self.blocks):
            y = block(y, None if k % 2 else memory, time, generator)
        shift, scale = self.modulation(nn.functional.silu(time))[:, None].chunk(2, dim=-1)
        y = self.out(self.norm(y[:, -x.shape[1] :]) * (1 + scale) + shift)
        first, second = self.decode_action
        return torch.as_tensor(second(first(y, embodiment).relu(), embodiment))

    def loss_terms(self, batch: Batch, weights: Weights, generator: Generator | None = None) -> Terms:
        a = batch.target
        noise = torch.empty_like(a).normal_(generator=generator)
        beta = torch.empty_like(a[:, 0, 0]).uniform_(generator=generator) ** (1 / self.settings.beta)  # Beta(β, 1)
        t = (self.settings.shift - beta) / self.settings.shift  # [B]
        x = noise + t[:, None, None] * (a - noise)
        predicted = self.velocity(x, (t * BUCKETS).trunc(), *self.remember(batch, generator), generator)
        return {"flow": masked_mse(predicted, a - noise, batch.action_mask)}

    def act(self, batch: Batch, generator: Generator | None = None) -> Tensor:
        memory, state = self.remember(batch, generator)
        shape = (len(batch), self.sizes.horizon, self.sizes.d_action)
        x = torch.randn(shape, generator=generator, device=state.device, dtype=state.dtype)
        n = self.settings.euler_steps
        for i in range(n):
            bucket = torch.full_like(state[:, 0, 0], int(i / n * BUCKETS))
            x = x + self.velocity(x, bucket, memory, state, generator) / n
        return x
