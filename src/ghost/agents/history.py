"""The encoder of the agents that look back. Each step is one token, which attends to those of the last `window` steps.

B agents, L steps, W window, d width. A token is the sum of three embeddings (observation and context, last action, last
reward) and of a learned position, counted modulo the window. So a token never changes once it is made, and each step of
acting needs one new token: a ring keeps the keys and values of the last W steps. Training on windows and acting step by
step compute the same function (a test compares them).
"""

from typing import Any

import torch
from torch import Tensor, nn

from ghost.data.trajectories import Seen, Sizes
from ghost.runs.settings import at_least_one


def check_history(settings: Any) -> None:
    at_least_one(settings, "d_model", "d_ff", "layers", "heads", "window", "stride")
    if settings.d_model % settings.heads:
        raise ValueError(f"d_model = {settings.d_model} must be a multiple of heads = {settings.heads}")


class Memory:
    """Keys and values of the last W steps for every layer, in a ring: [layers, 2, B, heads, W, d / heads]."""

    def __init__(self, ring: Tensor) -> None:
        self.ring, self.t = ring, 0


class Layer(nn.Module):
    """A pre-norm encoder layer: 4 d² + 2 d d_ff weights and their biases."""

    def __init__(self, d: int, heads: int, d_ff: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_feed_forward = nn.LayerNorm(d), nn.LayerNorm(d)
        self.query_key_value, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.feed_forward = nn.Sequential(nn.Linear(d, d_ff), nn.GELU(), nn.Linear(d_ff, d))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of tokens [B, L, d]: [B, heads, L, d / heads] each."""
        q, k, v = self.query_key_value(self.norm_attention(x)).unflatten(-1, (3, self.heads, -1)).unbind(2)
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

    def combine(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return torch.as_tensor(x + self.feed_forward(self.norm_feed_forward(x)))


class HistoryEncoder(nn.Module):
    def __init__(self, settings: Any, sizes: Sizes, outputs: int) -> None:
        """The settings are those that `check_history` checks."""
        super().__init__()
        s, d = settings, settings.d_model
        self.window, self.heads = s.window, s.heads
        self.see = nn.Linear(sizes.d_observation + sizes.d_context, d)
        self.last_action, self.last_reward = nn.Linear(sizes.d_action, d), nn.Linear(1, d)
        self.position = nn.Parameter(0.02 * torch.randn(s.window, d))
        self.layers: Any = nn.ModuleList(Layer(d, s.heads, s.d_ff) for _ in range(s.layers))
        self.norm, self.out = nn.LayerNorm(d), nn.Linear(d, outputs)

    def tokens(self, seen: Seen) -> Tensor:
        """[B, (L,) d], without the position."""
        given = torch.cat([seen.observation, seen.context], dim=-1)
        return torch.as_tensor(
            self.see(given) + self.last_action(seen.last_action) + self.last_reward(seen.last_reward[..., None])
        )

    def forward(self, seen: Seen, start: Tensor) -> Tensor:
        """Windows [B, L, ...] that begin at steps `start` [B]: [B, L, outputs]."""
        step = torch.arange(seen.last_reward.shape[1], device=start.device)  # [L]
        x = self.tokens(seen) + self.position[(start[:, None] + step) % self.window]
        ago = step[:, None] - step  # [L, L]
        mask = (ago >= 0) & (ago < self.window)
        for layer in self.layers:
            x = layer.combine(x, *layer.project(x), mask)
        return torch.as_tensor(self.out(self.norm(x)))

    def begin(self, agents: int) -> Memory:
        d = self.position.shape[1]
        shape = (len(self.layers), 2, agents, self.heads, self.window, d // self.heads)
        return Memory(torch.zeros(shape, device=self.position.device))

    def step(self, memory: Memory, seen: Seen) -> Tensor:
        """One step [B, ...]: [B, outputs]."""
        place = memory.t % self.window
        lived = torch.arange(self.window, device=self.position.device) <= memory.t  # at first the ring is not full
        x = (self.tokens(seen) + self.position[place])[:, None]  # [B, 1, d]
        for layer, ring in zip(self.layers, memory.ring, strict=True):
            q, k, v = layer.project(x)
            ring[0, :, :, place], ring[1, :, :, place] = k[:, :, 0], v[:, :, 0]
            x = layer.combine(x, q, ring[0], ring[1], lived[None])
        memory.t += 1
        return torch.as_tensor(self.out(self.norm(x[:, 0])))
