"""Every agent has its published size, acts as it learns, learns, and does not see a goal that it must not know."""

import importlib

import numpy as np
import pytest
import torch

from ghost.data.trajectories import Seen, Sizes, Window

AGENTS = ("ghost", "transformer", "algorithm_distillation", "rl2")
PUBLISHED = {"ghost": 17_922, "transformer": 417_538, "algorithm_distillation": 421_378, "rl2": 54_533}
EXACT = {"ghost": 17_923, "transformer": 417_538, "algorithm_distillation": 421_382, "rl2": 55_047}
ROOM = Sizes(2, 2, 2)
SMALL = {"transformer": {"d_model": 16, "d_ff": 32, "heads": 2, "window": 6}, "rl2": {"hidden": 16}, "ghost": {}}
SMALL["algorithm_distillation"] = SMALL["transformer"]


def build(name, sizes=ROOM, **settings):
    module = importlib.import_module(f"ghost.agents.{name}")
    torch.manual_seed(0)
    return module.Decoder(module.Settings(**settings), sizes)


def random_seen(*shape, sizes=ROOM):
    g = torch.Generator().manual_seed(1)
    widths = (sizes.d_observation, sizes.d_context, sizes.d_action)
    drawn = [torch.randn(*shape, width, generator=g) for width in widths]
    return Seen(drawn[0], drawn[1], drawn[2].clamp(-1, 1).round(), torch.randn(*shape, generator=g))


@pytest.mark.parametrize("name", AGENTS)
def test_sizes_are_the_published_ones(name):
    parameters = sum(p.numel() for p in build(name).parameters())
    assert parameters == EXACT[name]
    assert parameters == pytest.approx(PUBLISHED[name], rel=0.01)


@pytest.mark.parametrize("name", AGENTS)
def test_an_action_has_its_shape_and_depends_on_the_weights_alone(name):
    agent = build(name, **SMALL[name])
    noise = torch.full((5, 2), 0.4)
    with torch.no_grad():
        acts = [agent.act(agent.begin(5), random_seen(5), noise) for _ in range(2)]
    assert acts[0].shape == (5, 2)
    torch.testing.assert_close(*acts, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "knows"), [("ghost", True), ("transformer", True), ("algorithm_distillation", False), ("rl2", False)]
)
def test_only_those_that_may_know_the_goal_see_it(name, knows):
    agent, seen = build(name, **SMALL[name]), random_seen(64)
    elsewhere = Seen(seen.observation, -seen.context, seen.last_action, seen.last_reward)
    noise = torch.rand(64, 2, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        here, there = (agent.act(agent.begin(64), x, noise) for x in (seen, elsewhere))
    assert torch.equal(here, there) != knows


@pytest.mark.parametrize(
    ("name", "remembers"), [("ghost", False), ("transformer", True), ("algorithm_distillation", True), ("rl2", True)]
)
def test_all_but_ghost_remember(name, remembers):
    agent, seen = build(name, **SMALL[name]), random_seen(4096)
    noise = torch.rand(4096, 2, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        memory = agent.begin(4096)
        for t in range(3):
            agent.act(memory, random_seen(4096), noise * 0 + t / 3)
        later, fresh = agent.act(memory, seen, noise), agent.act(agent.begin(4096), seen, noise)
    assert torch.equal(later, fresh) != remembers


@pytest.mark.parametrize("name", AGENTS)
def test_it_learns_eight_windows_by_heart(name):
    """Imitation, with continuous actions of four dimensions and a known task: Meta-World's shape."""
    sizes = Sizes(5, 3, 4)
    told = {"told": True} if name in ("algorithm_distillation", "rl2") else {}
    bins = {"rl2": {"bins": 0}, "algorithm_distillation": {"bins": 5}}.get(name, {})
    agent = build(name, sizes, **{**SMALL[name], **told, **bins})
    seen = random_seen(8, 5, sizes=sizes)
    target = torch.tanh(torch.randn(8, 5, 4, generator=torch.Generator().manual_seed(3)))
    window = Window(seen, target, torch.ones(8, 5, dtype=torch.bool), torch.zeros(8, dtype=torch.int64))
    optimiser = torch.optim.Adam(agent.parameters(), lr=0.02)
    (term,) = importlib.import_module(f"ghost.agents.{name}").TERMS
    losses = []
    for _ in range(80):
        loss = agent.loss_terms(window, {term: 1.0})[term]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("name", AGENTS)
def test_what_lies_past_an_episodes_end_teaches_nothing(name):
    agent = build(name, **SMALL[name])
    seen, target = random_seen(4, 5), torch.ones(4, 5, 2)
    valid = torch.arange(5).expand(4, 5) < 3
    start = torch.zeros(4, dtype=torch.int64)
    other = torch.where(valid[..., None], target, -target)
    (term,) = importlib.import_module(f"ghost.agents.{name}").TERMS
    with torch.no_grad():
        if name == "rl2":  # imitates only where moves are as they are
            agent = build(name, **SMALL[name], bins=0)
        losses = [agent.loss_terms(Window(seen, x, valid, start), {term: 1.0})[term].item() for x in (target, other)]
    assert losses[0] == losses[1]


def test_distillation_draws_from_what_it_predicts():
    agent = build("algorithm_distillation", **SMALL["algorithm_distillation"])
    one = random_seen(1)
    many = one.map(lambda x: x.expand(3000, *x.shape[1:]))
    noise = torch.rand(3000, 2, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        drawn = agent.act(agent.begin(3000), many, noise)
        chances = agent.history.step(agent.begin(1), agent.known(one)).view(2, 3).softmax(dim=-1)
        settled = build("algorithm_distillation", **SMALL["algorithm_distillation"], draw=False)
        mean = settled.act(settled.begin(1), one, noise[:1])
    torch.testing.assert_close(mean[0], chances @ torch.tensor([-1.0, 0.0, 1.0]))
    for axis in (0, 1):
        shares = [(drawn[:, axis] == move).float().mean().item() for move in (-1, 0, 1)]
        np.testing.assert_allclose(shares, chances[axis], atol=0.04)
