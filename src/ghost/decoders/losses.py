"""The losses that decoders minimise, as pure functions of a batch. B samples, H horizon, d_a action, d_z latent.

The training loop sums them, weighted: (1 - d) bc + d distillation + λ_c(epoch) contrastive + 0.01 basin + ...
"""

import torch
from torch import Tensor

from ghost.decoders.contract import Batch, Terms, Weights

CURRICULUM_END = 0.0  # the share of λ_c that a curriculum leaves


def masked_mse(predicted: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """The mean squared error over the real action dimensions, without the padding. [B, H, d_a] twice, [d_a] bool.

    The paper writes L_BC = |a - a*|². The mean has the scale of its tables, and λ_c is weighed against it here.
    """
    error = (predicted - target).masked_fill(~mask, 0.0)
    return error.square().sum() / (mask.sum() * (predicted.numel() // len(mask)))


def imitation_terms(predicted: Tensor, batch: Batch, weights: Weights) -> Terms:
    """The error against the demonstration, and against the teacher where one is distilled."""
    terms = {}
    if weights.get("bc"):
        terms["bc"] = masked_mse(predicted, batch.action, batch.action_mask)
    if weights.get("distillation"):
        if batch.teacher is None:
            raise ValueError("distillation has a weight but the batch has no teacher's actions")
        terms["distillation"] = masked_mse(predicted, batch.teacher, batch.action_mask)
    return terms


def nt_xent(z: Tensor, task: Tensor, *, temperature: float) -> Tensor:
    """NT-Xent on latents [B, d_z] with labels [B]: all samples of the same task are positives.

    For an anchor i with positives P(i) this is the mean over p in P(i) of -log softmax_{a != i}(cos(z_i, z_a) / τ)_p,
    averaged over the anchors that have a positive. It is zero if no anchor has one. SimCLR has one positive, the other
    view of the same image. Labels give several, so we take the mean over them (SupCon's L_out).
    """
    z = torch.nn.functional.normalize(z, dim=-1)
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    similarity = (z @ z.T / temperature).masked_fill(itself, -torch.inf)
    log_p = similarity - similarity.logsumexp(dim=1, keepdim=True)  # [B, B]
    positive = (task[:, None] == task) & ~itself
    count = positive.sum(dim=1)  # [B]
    per_anchor = -log_p.masked_fill(~positive, 0).sum(dim=1) / count.clamp(min=1)
    return per_anchor.sum() / (count > 0).sum().clamp(min=1)


def contrastive_weight(weight: float, epoch: int, curriculum_epochs: float) -> float:
    """λ_c at an epoch (from 0): constant, or falling linearly to its end over the first `curriculum_epochs`."""
    return weight * max(CURRICULUM_END, 1 - epoch / curriculum_epochs) if curriculum_epochs else weight


def gaussian_kl(mean: Tensor, log_variance: Tensor, prior_mean: Tensor, prior_log_variance: Tensor) -> Tensor:
    """KL(N(mean, ·) | N(prior_mean, ·)) of diagonal Gaussians [B, d]: summed over d, averaged over B."""
    ratio = (log_variance - prior_log_variance).exp()
    distance = (mean - prior_mean).square() * (-prior_log_variance).exp()
    return 0.5 * (ratio + distance - 1 - log_variance + prior_log_variance).sum(dim=-1).mean()
