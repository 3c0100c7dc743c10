"""Multi-head attention for the Transformer and the DiT. B samples, Q queries, T keys, d model width."""

import torch
from torch import Tensor, nn


class Attention(nn.Module):
    """Queries [B, Q, d] attend to a memory [B, T, d_memory]. Every projection has a bias."""

    def __init__(self, d: int, heads: int, d_memory: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(d, d)
        self.key = nn.Linear(d_memory, d)
        self.value = nn.Linear(d_memory, d)
        self.out = nn.Linear(d, d)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        q, k, v = (
            layer(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [B, heads, Q or T, d / heads]
            for layer, y in ((self.query, x), (self.key, memory), (self.value, memory))
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return torch.as_tensor(self.out(mixed.transpose(1, 2).flatten(2)))
