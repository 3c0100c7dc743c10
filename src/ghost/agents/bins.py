"""Actions with one of `bins` values along each axis, evenly spaced from -1 to 1, for the agents that draw moves."""

from torch import Tensor


def nearest_bin(action: Tensor, bins: int) -> Tensor:
    """The nearest value along each axis: [..., d_a] -> [..., d_a] int64."""
    return ((action.clamp(-1, 1) + 1) / 2 * (bins - 1)).round().long()


def draw_action(chances: Tensor, noise: Tensor) -> Tensor:
    """An action [B, d_a] from the chances [B, d_a, bins] of the values, by noise [B, d_a] in [0, 1)."""
    bins = chances.shape[-1]
    drawn = (noise[..., None] > chances.cumsum(dim=-1)).sum(dim=-1).clamp(max=bins - 1)
    return 2 * drawn / (bins - 1) - 1
