import torch

from ghost.agents.history import HistoryEncoder
from ghost.agents.transformer import Settings
from ghost.data.trajectories import Seen, Sizes

SIZES = Sizes(2, 3, 2)


def seen(agents, steps):
    return Seen(
        torch.randn(agents, steps, 2),
        torch.randn(agents, steps, 3),
        torch.randn(agents, steps, 2),
        torch.randn(agents, steps),
    )


def at(window: Seen, t: int) -> Seen:
    return window.map(lambda x: x[:, t])


def encoder(window):
    torch.manual_seed(0)
    settings = Settings(d_model=16, heads=2, d_ff=32, layers=2, window=window)
    return HistoryEncoder(settings, SIZES, 4).eval()


def test_acting_step_by_step_is_the_same_function_as_training_on_windows():
    """Also after the ring of the last 5 steps has come round, more than twice."""
    net, whole = encoder(5), seen(3, 13)
    with torch.no_grad():
        at_once = net(whole, torch.zeros(3, dtype=torch.int64))
        memory = net.begin(3)
        for t in range(13):
            torch.testing.assert_close(net.step(memory, at(whole, t)), at_once[:, t])


def test_a_step_sees_neither_the_future_nor_what_is_too_long_ago():
    net, whole = encoder(4), seen(1, 12)
    whole.observation.requires_grad_()
    net(whole, torch.zeros(1, dtype=torch.int64))[0, 8].sum().backward()
    touched = whole.observation.grad[0].abs().sum(dim=-1) > 0
    assert touched.tolist() == [False, False, *[True] * 7, False, False, False]  # two layers of four steps


def test_a_window_from_the_middle_has_the_positions_of_its_steps():
    net, whole = encoder(5), seen(1, 5)
    with torch.no_grad():
        first, later = (net(whole, torch.tensor([start])) for start in (0, 5))
        other = net(whole, torch.tensor([2]))
    torch.testing.assert_close(first, later)
    assert not torch.allclose(first, other)
