"""RL²: a recurrent agent that learns, by reward alone, to look for the goal while it acts. B agents, L steps, C chunk.

Its inputs are its observation, its last move and its last reward. It does not know the goal (unless `told`). It has a
GRU of width 128 and linear heads for the action and the value. Moves have one of `bins` values along each axis, in the
input and in the output. With 4 + 6 + 1 inputs it has 55,047 parameters. Normal distributions, with two means and two
deviations in place of the probabilities, would give the published 54,533. But then one deviation must serve both the
search and the standing still, and training got nowhere.

Training is proximal policy optimisation, in the same loop as all training. Before every epoch the agent acts in new
episodes (`Rollouts.prepare`). Their chunks of C steps are the samples of that epoch. Values are shares of the largest
return, so that they are of order one. At first the goals lie near the start, then farther and farther away (`growth`).
Without this the agent learnt nothing in a hundred epochs, because an untrained agent hardly ever meets a goal in the
benchmark's own episodes. Where there are demonstrations (Meta-World) the same network imitates them instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Generator, Tensor, nn

from ghost.agents.bins import draw_action, nearest_bin
from ghost.data.trajectories import Seen, Sizes, Window, Windows, imitation_error
from ghost.decoders.contract import Terms, Weights
from ghost.environments.dark_room import DarkRoom, Episodes, Rules, draw_episodes, scaled
from ghost.runs.records import Run
from ghost.runs.settings import at_least_one, positive

TERMS = ("objective",)


@dataclass(frozen=True)
class Settings:
    size: int = 20  # of the room in which it learns
    hidden: int = 128
    bins: int = 3  # values of a move along each axis; 0: actions are continuous
    told: bool = False  # whether it knows the goal or the task
    chunk: int = 50  # C, the steps through which gradients flow
    episodes: int = 128  # new ones before every epoch
    discount: float = 0.97
    trace: float = 0.95  # λ of the advantages
    clip: float = 0.2
    value_weight: float = 0.5
    entropy_weight: float = 0.01
    growth: float = 0.6  # share of the training after which goals may lie anywhere; 0: from the start

    def __post_init__(self) -> None:
        at_least_one(self, "hidden", "chunk", "episodes")
        positive(self, "clip")
        for name in ("discount", "trace"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in (0, 1), got {getattr(self, name)}")
        if not 0 <= self.growth <= 1:
            raise ValueError(f"growth must lie in [0, 1], got {self.growth}")
        if self.bins < 0 or self.bins == 1:
            raise ValueError(f"bins must be 0 or at least 2, got {self.bins}")


def gather(settings: Settings, runs: Sequence[Run]) -> Rollouts | Windows:
    """Windows of demonstrations where there are any, else its own episodes in the Dark Room."""
    return Windows(runs[0], settings.chunk, settings.chunk) if runs else Rollouts(settings)


@dataclass
class Memory:
    state: Tensor  # [1, B, hidden], recurrent


class Decoder(nn.Module):
    def __init__(self, settings: Settings, sizes: Sizes) -> None:
        super().__init__()
        s = self.settings = settings
        self.sizes = sizes
        d_move = sizes.d_action * (s.bins or 1)
        self.gru = nn.GRU(sizes.d_observation + sizes.d_context + d_move + 1, s.hidden, batch_first=True)
        self.action, self.value = nn.Linear(s.hidden, d_move), nn.Linear(s.hidden, 1)

    def inputs(self, seen: Seen) -> Tensor:
        """[B, L, ...] -> [B, L, inputs]."""
        s = self.settings
        known = seen if s.told else seen.without_context()
        last = seen.last_action
        if s.bins:
            last = nn.functional.one_hot(nearest_bin(last, s.bins), s.bins).flatten(-2).to(known.context.dtype)
        return torch.cat([seen.observation, known.context, last, seen.last_reward[..., None]], dim=-1)

    def log_chances(self, features: Tensor) -> Tensor:
        """The log chance of each value along each axis: [..., hidden] -> [..., d_a, bins]."""
        logits = torch.as_tensor(self.action(features))
        return logits.view(*logits.shape[:-1], -1, self.settings.bins).log_softmax(dim=-1)

    def log_probability(self, log_chances: Tensor, action: Tensor) -> Tensor:
        """[..., d_a, bins], [..., d_a] -> [...]."""
        chosen = nearest_bin(action, self.settings.bins)[..., None]
        return log_chances.gather(-1, chosen)[..., 0].sum(dim=-1)

    def loss_terms(self, batch: Experience | Window, weights: Weights, generator: Generator | None = None) -> Terms:
        if isinstance(batch, Window):
            features, _ = self.gru(self.inputs(batch.seen), self.begin(len(batch)).state)
            return {"objective": imitation_error(self.action(features), batch)}
        s = self.settings
        features, _ = self.gru(self.inputs(batch.seen), batch.state)
        log_chances = self.log_chances(features)
        ratio = (self.log_probability(log_chances, batch.action) - batch.log_probability).exp()
        gain = torch.minimum(ratio * batch.advantage, ratio.clamp(1 - s.clip, 1 + s.clip) * batch.advantage)
        surprise = (self.value(features)[..., 0] - batch.outlook).square()
        entropy = -(log_chances.exp() * log_chances).sum(dim=(-2, -1))
        return {"objective": (-gain + s.value_weight * surprise - s.entropy_weight * entropy).mean()}

    def begin(self, agents: int) -> Memory:
        return Memory(torch.zeros(1, agents, self.settings.hidden, device=self.value.weight.device))

    def act(self, memory: Memory, seen: Seen, noise: Tensor) -> Tensor:
        features = self.advance(memory, seen)
        if self.settings.bins:
            return draw_action(self.log_chances(features).exp(), noise)
        return torch.as_tensor(self.action(features))

    def advance(self, memory: Memory, seen: Seen) -> Tensor:
        """One step of the recurrence [B, ...]: features [B, hidden]."""
        features, memory.state = self.gru(self.inputs(seen.map(lambda x: x[:, None])), memory.state)
        return torch.as_tensor(features[:, 0])


@dataclass(frozen=True)
class Experience:
    """Chunks of C steps that the agent has acted, with what followed from them."""

    seen: Seen  # [B, C, ...]
    action: Tensor  # [B, C, d_a]
    log_probability: Tensor  # [B, C], of the action when it was taken
    advantage: Tensor  # [B, C], standardised
    outlook: Tensor  # [B, C], the expected return from here, as a share of the largest
    state: Tensor  # [1, B, hidden], before the first step

    def __len__(self) -> int:
        return len(self.action)


class Rollouts:
    """The samples of the training loop: chunks of episodes that the agent acts anew before every epoch."""

    sizes = Sizes(2, 2, 2)
    device = "cpu"

    def __init__(self, settings: Settings) -> None:
        self.settings, self.rules = settings, Rules(settings.size)
        if self.rules.steps % settings.chunk:
            raise ValueError(f"chunk = {settings.chunk} must divide the {self.rules.steps} steps of an episode")
        self.chunks = self.rules.steps // settings.chunk
        self.episode = np.repeat(np.arange(settings.episodes), self.chunks)
        self.all: Experience | None = None

    def __len__(self) -> int:
        return len(self.episode)

    def places(self) -> Tensor:
        return torch.arange(len(self))

    @torch.no_grad()
    def prepare(self, decoder: Decoder, generator: torch.Generator, done: float) -> None:
        """Act in new episodes with the weights as they are; `done` is the share of the training so far."""
        s = self.settings
        episodes = self.draw_episodes(int(torch.randint(2**31, (1,), generator=generator)), done)
        room, memory = DarkRoom(self.rules, episodes), decoder.begin(s.episodes)
        no_goal, action, reward = torch.zeros(s.episodes, 2), torch.zeros(s.episodes, 2), torch.zeros(s.episodes)
        noise = torch.from_numpy(episodes.noise)
        states, lived = [], []
        for t in range(self.rules.steps):
            if t % s.chunk == 0:
                states.append(memory.state[0])  # [B, hidden]
            seen = Seen(torch.from_numpy(scaled(room.position, self.rules.size)), no_goal, action, reward)
            features = decoder.advance(memory, seen)
            log_chances, value = decoder.log_chances(features), decoder.value(features)[:, 0]
            action = draw_action(log_chances.exp(), noise[t])
            reward = torch.from_numpy(room.step(action.numpy())).float()
            log_probability = decoder.log_probability(log_chances, action)
            lived.append((*vars(seen).values(), action, log_probability, value, reward))
        *known, action, log_probability, value, reward = (torch.stack(x, dim=1) for x in zip(*lived, strict=True))
        advantage = self.advantages(reward * (1 - s.discount), value)  # [B, T]
        standard = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        state = torch.stack(states, dim=1).flatten(0, 1)[None]  # [1, B chunks, hidden]
        cut = self._cut
        self.all = Experience(
            Seen(*map(cut, known)), cut(action), cut(log_probability), cut(standard), cut(advantage + value), state
        )

    def draw_episodes(self, seed: int, done: float) -> Episodes:
        """New episodes. Before `growth` the goals of each lie within some number of moves from the start."""
        s, size = self.settings, self.rules.size
        episodes = draw_episodes(self.rules, range(s.episodes), seed=seed)
        if done >= s.growth:
            return episodes
        rng = np.random.default_rng(seed)
        reach = rng.uniform(1, 1 + size / 2 * done / s.growth, size=(s.episodes, 1, 1))
        offset = np.rint(rng.uniform(-reach, reach, size=(s.episodes, 2, 2))).astype(np.int64)
        return replace(episodes, goals=np.clip(size // 2 + offset, 0, size - 1))

    def advantages(self, reward: Tensor, value: Tensor) -> Tensor:
        """Generalised advantages [B, T]. After the last step the value is zero."""
        s = self.settings
        later = nn.functional.pad(value[:, 1:], (0, 1))
        surprise = reward + s.discount * later - value
        found, ahead = torch.zeros_like(reward), torch.zeros(len(reward))
        for t in reversed(range(reward.shape[1])):
            ahead = surprise[:, t] + s.discount * s.trace * ahead
            found[:, t] = ahead
        return found

    def arranged(self, order: Tensor) -> Tensor:
        """The places of an epoch: all are in memory, where any order will do."""
        return order

    def batch(self, places: Tensor) -> Experience:
        """The chunks at these places [B]."""
        e = self.all
        if e is None:
            raise ValueError("no episodes yet: prepare comes first")
        steps = {name: x[places] for name, x in vars(e).items() if name not in ("seen", "state")}
        return Experience(seen=e.seen.map(lambda x: x[places]), state=e.state[:, places], **steps)

    def _cut(self, x: Tensor) -> Tensor:
        """[B, T, ...] -> [B chunks, C, ...]."""
        return x.reshape(len(x) * self.chunks, self.settings.chunk, *x.shape[2:])
