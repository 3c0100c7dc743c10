"""A policy plans for many episodes in one pass: each gets, to the bit, what it would get alone."""

import numpy as np
import pytest
import torch
from policies import POLICIES

from acting import SENSES, SIZES, alone, look, random_policy, same, told
from ghost.data.features import Encoded
from ghost.libero.policy import Asked, Policy
from ghost.libero.tasks import TASKS

DRAWING = {"diffusion": ("diffusion", {}), "cvae": ("cvae", {})}


@pytest.fixture(autouse=True)
def one_thread(torch_as_it_was):
    torch.set_num_threads(1)


def policy(name, rows, seeds=(0,)):
    decoder, more = {**POLICIES, **DRAWING}[name]
    return random_policy(decoder, rows, seeds, **more)


@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2)], ids=["one", "ensemble"])
@pytest.mark.parametrize("name", [*POLICIES, *DRAWING])
def test_an_episode_is_planned_alike_alone_and_among_others(name, seeds):
    """Eight episodes that begin one after the other, so that their memories differ in length, in another order each
    time, and at last more of them than a pass has rows."""
    shared = policy(name, 8, seeds)
    expected = [alone(policy(name, 8, seeds), episode) for episode in range(9)]
    sessions = [shared.session(episode) for episode in range(9)]
    done = [0] * 9
    for turn in range(16):
        now = [e for e in np.random.default_rng(turn).permutation(9) if e <= turn and done[e] < 5]
        planned = shared.plan([Asked(sessions[e], look(e, done[e]), told(e)) for e in now]) if now else []
        for episode, plan in zip(now, planned, strict=True):
            assert same(plan, expected[episode][done[episode]]), (episode, done[episode])
            done[episode] += 1
    assert done == [5] * 9


def test_a_pass_of_one_row_is_the_decoder_itself():
    made = policy("ghost_pz", 1)
    session, memory = made.session(3), None
    for step in range(3):
        (planned,) = made.plan([Asked(session, look(3, step), told(3))])
        seen = SENSES.observations([look(3, step)], [told(3)], np.zeros((1, 2), np.int64))
        batch = made._empty(1)
        batch.tokens[:] = torch.from_numpy(made.encode(seen).tokens.astype(np.float32))
        batch.state[:] = torch.from_numpy(seen.state)
        plan = made.decoders[0].plan(batch, memory)
        memory = plan.memory
        assert np.array_equal(planned.actions, plan.action[0].numpy().astype(np.float64))
        assert planned.phase == int(plan.phase_logits[0].argmax())


def test_noise_is_of_the_episode():
    first, again, other = (alone(policy("diffusion", 4), seed)[0].actions for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_every_pass_of_the_backbone_has_all_rows_one_instruction_and_steps_of_the_episodes():
    passes = []

    def encode(seen):
        passes.append(([*seen.instructions], seen.step.tolist()))
        actions = np.repeat(seen.step[:, :1, None], 16, axis=1).repeat(7, axis=2).astype(np.float32)
        return Encoded(np.zeros((len(seen), SIZES.tokens, SIZES.d_token), np.float16), actions)

    class Head(torch.nn.Module):
        """As GR00T's own head: it acts as the backbone has predicted."""

        sizes = SIZES

        def act(self, batch, generator=None):
            return batch.teacher

    made = Policy([Head()], encode, SENSES, 3)
    asked = [
        Asked(made.session(seed), look(seed, 0), TASKS[task].instruction) for seed, task in ((7, 0), (8, 1), (9, 0))
    ]
    planned = made.plan(asked)
    assert passes == [
        ([TASKS[0].instruction] * 3, [[7, 0], [9, 0], [7, 0]]),
        ([TASKS[1].instruction] * 3, [[8, 0]] * 3),
    ]
    assert [plan.actions[0, 0] for plan in planned] == [7, 8, 9]
    made.plan(asked[:1])
    assert passes[-1][1] == [[7, 1]] * 3
