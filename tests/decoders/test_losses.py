"""Every loss against a plain loop in double precision."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.decoders.contract import Batch
from ghost.decoders.losses import contrastive_weight, gaussian_kl, imitation_terms, masked_mse, nt_xent


def draws(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_masked_mse_is_the_mean_over_real_dimensions():
    a, b, mask = draws(3, 4, 5), draws(3, 4, 5, seed=1), torch.tensor([True, False, True, True, False])
    total = count = 0
    for i in range(3):
        for h in range(4):
            for d in (0, 2, 3):
                total += (a[i, h, d].item() - b[i, h, d].item()) ** 2
                count += 1
    assert masked_mse(a, b, mask).item() == pytest.approx(total / count, rel=1e-12)
    b[..., ~mask] = torch.nan
    assert masked_mse(a, b, mask).item() == pytest.approx(total / count, rel=1e-12)


def plain_nt_xent(z, task, temperature):
    n = len(z)
    unit = [[x / math.sqrt(sum(y * y for y in row)) for x in row] for row in z.tolist()]
    cos = [[sum(a * b for a, b in zip(unit[i], unit[j], strict=True)) for j in range(n)] for i in range(n)]
    losses = []
    for i in range(n):
        positives = [j for j in range(n) if j != i and task[j] == task[i]]
        if positives:
            others = sum(math.exp(cos[i][j] / temperature) for j in range(n) if j != i)
            losses.append(
                sum(-math.log(math.exp(cos[i][p] / temperature) / others) for p in positives) / len(positives)
            )
    return sum(losses) / len(losses) if losses else 0.0


@settings(max_examples=30, deadline=None)
@given(
    task=st.lists(st.integers(0, 3), min_size=1, max_size=9),
    temperature=st.sampled_from([0.1, 0.5, 1.0]),
    seed=st.integers(0, 99),
)
def test_nt_xent_is_the_plain_loop(task, temperature, seed):
    z = draws(len(task), 4, seed=seed)
    ours = nt_xent(z, torch.tensor(task), temperature=temperature).item()
    assert ours == pytest.approx(plain_nt_xent(z, task, temperature), rel=1e-10, abs=1e-12)


def test_nt_xent_pulls_same_tasks_together():
    together = torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    apart = torch.tensor([[1.0, 0], [0, 1], [1, 0], [0, 1]])
    task = torch.tensor([0, 0, 1, 1])
    assert nt_xent(together, task, temperature=0.1) < 0.01 < nt_xent(apart, task, temperature=0.1)


@pytest.mark.parametrize("task", [[0], [0, 1, 2]])
def test_nt_xent_without_positives_is_zero_with_finite_gradients(task):
    z = draws(len(task), 3).requires_grad_()
    loss = nt_xent(z, torch.tensor(task), temperature=0.1)
    loss.backward()
    assert loss.item() == 0
    assert torch.isfinite(z.grad).all()


def test_nt_xent_gradient_survives_gradcheck():
    z = draws(5, 3).requires_grad_()
    task = torch.tensor([0, 1, 0, 1, 2])
    assert torch.autograd.gradcheck(lambda z: nt_xent(z, task, temperature=0.5), (z,))


def test_gaussian_kl_is_torchs():
    m, v, pm, pv = (draws(6, 3, seed=k) for k in range(4))
    q = torch.distributions.Normal(m, (0.5 * v).exp())
    p = torch.distributions.Normal(pm, (0.5 * pv).exp())
    expected = torch.distributions.kl_divergence(q, p).sum(dim=1).mean()
    torch.testing.assert_close(gaussian_kl(m, v, pm, pv), expected, rtol=1e-12, atol=0)
    assert gaussian_kl(m, v, m, v).item() == pytest.approx(0, abs=1e-12)


def test_the_curriculum_falls_linearly_to_zero_at_150_of_300():
    weights = [contrastive_weight(0.2, epoch, 150) for epoch in range(300)]
    assert weights[0] == 0.2
    assert weights[75] == pytest.approx(0.1)
    assert weights[149] == pytest.approx(0.2 / 150)
    assert set(weights[150:]) == {0.0}
    assert contrastive_weight(0.2, 299, 0) == 0.2


def test_distillation_has_a_term_of_its_own():
    mask = torch.tensor([True, True, False])
    batch = Batch(draws(2, 1, 1), draws(2, 1), draws(2, 4, 3), mask, torch.zeros(2), teacher=draws(2, 4, 3, seed=5))
    predicted = draws(2, 4, 3, seed=6)
    terms = imitation_terms(predicted, batch, {"bc": 0.5, "distillation": 0.5})
    assert terms["bc"].item() == pytest.approx((predicted - batch.action)[..., :2].square().mean().item())
    assert terms["distillation"].item() == pytest.approx((predicted - batch.teacher)[..., :2].square().mean().item())
    assert set(imitation_terms(predicted, batch, {"bc": 1.0, "distillation": 0.0})) == {"bc"}
    with pytest.raises(ValueError, match="no teacher"):
        imitation_terms(predicted, Batch(*list(vars(batch).values())[:5]), {"distillation": 1.0})
