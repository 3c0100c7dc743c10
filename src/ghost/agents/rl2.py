"""RL²: a recurrent agent that learns, by reward alone, to look for the goal while it acts. B agents, L steps, C chunk.

Its input is what it sees, its last move and its last reward; what it finds out stays in its recurrent state for the
episode. It is not told the goal (`told`). A GRU of width 128 and linear heads for the action and the value; moves have
one of `bins` values along each axis, in the input as in the output. With 4 + 6 + 1 inputs these are 55,047 parameters.
Normal distributions, two means and two deviations, in place of the three probabilities an axis would make the published
54,533; but one deviation for all situations must serve the search and the standing still, and training got nowhere.

Training is proximal policy optimisation, in the one loop there is (`ghost.steps.train.Fit`): before every epoch the agent
acts in new episodes (`Rollouts.prepare`), whose chunks of C steps are then the samples of that epoch, each with the
recurrent state that its first step had. Values are kept as shares of the largest return, so that they are of order one.
At first the goals lie near the start, then farther and farther away (`growth`): from the benchmark's own episodes
alone, where an untrained agent hardly ever meets a goal, it learnt nothing in a hundred epochs.

Where there are demonstrations (Meta-World) the same network imitates them instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from ghost.data.trajectories import Seen, Sizes, Window, Windows, imitation_error
from ghost.environments.dark_room import DarkRoom, Episodes, draw_episodes, rules_of, scaled
from ghost.runs.records import Run
from ghost.runs.settings import at_least_one

TERMS = ("objective",)


@dataclass(frozen=True)
class Settings:
    size: int = 20  # of the room in which it learns
    hidden: int = 128
    bins: int = 3  # values of the last move along each axis; 0: the last action as it is
    told: bool = False  # the goal or the task
    chunk: int = 50  # C, the steps through which gradients flow
    episodes: int = 128  # acted before every epoch
    discount: float = 0.97
    trace: float = 0.95  # λ of the advantages
    clip: float = 0.2
    value_weight: float = 0.5
    entropy_weight: float = 0.01
    growth: float = 0.6  # share of the training after which goals may lie anywhere; 0: from the beginning

    def __post_init__(self) -> None:
        at_least_one(self, "hidden", "chunk", "episodes")
        for name in ("discount", "trace"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in (0, 1), got {getattr(self, name)}")
        if not self.clip > 0:
            raise ValueError(f"clip must be positive, got {self.clip}")
        if not 0 <= self.growth <= 1:
            raise ValueError(f"growth must lie in [0, 1], got {self.growth}")
        if self.bins < 0 or self.bins == 1:
            raise ValueError(f"bins must be 0 or at least 2, got {self.bins}")


def gather(settings: Settings, runs: Sequence[Run], seed: int) -> Rollouts | Windows:
    """Its own episodes in the Dark Room, or windows of demonstrations where there are any."""
    if runs:
        return Windows(runs[0], settings.chunk, settings.chunk)
    return Rollouts(settings, seed)


class Memory:
    """The recurrent state [1, B, hidden]."""

    def __init__(self, state: Tensor) -> None:
        self.state = state


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
        context = seen.context if s.told else torch.zeros_like(seen.context)
        last = seen.last_action
        if s.bins:
            last = nn.functional.one_hot(self.bin(last), s.bins).flatten(-2).to(context.dtype)
        return torch.cat([seen.observation, context, last, seen.last_reward[..., None]], dim=-1)

    def bin(self, action: Tensor) -> Tensor:
        """The nearest of the values along each axis: [..., d_a] -> [..., d_a] int64."""
        return ((action.clamp(-1, 1) + 1) / 2 * (self.settings.bins - 1)).round().long()

    def log_chances(self, features: Tensor) -> Tensor:
        """Of each value along each axis: [..., hidden] -> [..., d_a, bins]."""
        logits = torch.as_tensor(self.action(features))
        return logits.view(*logits.shape[:-1], -1, self.settings.bins).log_softmax(dim=-1)

    def draw(self, log_chances: Tensor, noise: Tensor) -> Tensor:
        """An action [B, d_a] by noise [B, d_a] in [0, 1)."""
        bins = self.settings.bins
        drawn = (noise[..., None] > log_chances.exp().cumsum(dim=-1)).sum(dim=-1).clamp(max=bins - 1)
        return 2 * drawn / (bins - 1) - 1

    def log_probability(self, log_chances: Tensor, action: Tensor) -> Tensor:
        """[..., d_a, bins], [..., d_a] -> [...]."""
        return log_chances.gather(-1, self.bin(action)[..., None])[..., 0].sum(dim=-1)

    def loss_terms(
        self, batch: Experience | Window, weights: Mapping[str, float], generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
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
        return (
            self.draw(self.log_chances(features), noise)
            if self.settings.bins
            else torch.as_tensor(self.action(features))
        )

    def advance(self, memory: Memory, seen: Seen) -> Tensor:
        """One step of the recurrence [B, ...]: features [B, hidden]."""
        one = Seen(
            seen.observation[:, None], seen.context[:, None], seen.last_action[:, None], seen.last_reward[:, None]
        )
        features, memory.state = self.gru(self.inputs(one), memory.state)
        return torch.as_tensor(features[:, 0])


# ------------------------------------------------------------------------------------------------ learning by acting


@dataclass(frozen=True)
class Experience:
    """Chunks of C steps that the agent lived through, and what came of them."""

    seen: Seen  # [B, C, ...]
    action: Tensor  # [B, C, d_a]
    log_probability: Tensor  # [B, C], when it was done
    advantage: Tensor  # [B, C], standardised
    outlook: Tensor  # [B, C], the return to be expected from here, as a share of the largest
    state: Tensor  # [1, B, hidden], before the first step

    def __len__(self) -> int:
        return len(self.action)


class Rollouts:
    """Episodes that the agent acts anew before every epoch; the samples of `ghost.steps.train.Fit`."""

    sizes = Sizes(2, 2, 2)
    device = "cpu"

    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings, self.rules = settings, rules_of(settings.size)
        if self.rules.steps % settings.chunk:
            raise ValueError(f"chunk = {settings.chunk} must divide the {self.rules.steps} steps of an episode")
        self.chunks = self.rules.steps // settings.chunk
        self.episode = np.repeat(np.arange(settings.episodes), self.chunks)
        self.all: Experience | None = None

    def __len__(self) -> int:
        return len(self.episode)

    def rows(self) -> Tensor:
        return torch.arange(len(self))

    @torch.no_grad()
    def prepare(self, decoder: Decoder, generator: torch.Generator, done: float) -> None:
        """Act in new episodes with the weights as they are; `done` is the share of the training so far."""
        s, steps = self.settings, self.rules.steps
        seed = int(torch.randint(2**31, (1,), generator=generator))
        episodes = self.draw_episodes(seed, done)
        room, memory = DarkRoom(self.rules, episodes), decoder.begin(s.episodes)
        action, reward = torch.zeros(s.episodes, 2), torch.zeros(s.episodes)
        told = torch.zeros(s.episodes, 2)  # nothing
        noise = torch.from_numpy(episodes.noise)
        states, lived = [], []
        for t in range(steps):
            if t % s.chunk == 0:
                states.append(memory.state[0])  # [B, hidden]
            seen = Seen(torch.from_numpy(scaled(room.position, self.rules.size)), told, action, reward)
            features = decoder.advance(memory, seen)
            log_chances, value = decoder.log_chances(features), decoder.value(features)[:, 0]
            action = decoder.draw(log_chances, noise[t])
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
        """New episodes; until `growth` the goals of each lie within some number of moves from the start."""
        s, size = self.settings, self.rules.size
        episodes = draw_episodes(self.rules, range(s.episodes), seed=seed)
        if done >= s.growth:
            return episodes
        rng = np.random.default_rng(seed)
        reach = rng.uniform(1, 1 + size / 2 * done / s.growth, size=(s.episodes, 1, 1))
        offset = np.rint(rng.uniform(-reach, reach, size=(s.episodes, 2, 2))).astype(np.int64)
        return replace(episodes, goals=np.clip(size // 2 + offset, 0, size - 1))

    def advantages(self, reward: Tensor, value: Tensor) -> Tensor:
        """Generalised advantages [B, T]; after the last step there is nothing."""
        s = self.settings
        found = torch.zeros_like(reward)
        ahead = torch.zeros(len(reward))
        for t in reversed(range(reward.shape[1])):
            later = value[:, t + 1] if t + 1 < reward.shape[1] else torch.zeros(len(reward))
            ahead = reward[:, t] + s.discount * later - value[:, t] + s.discount * s.trace * ahead
            found[:, t] = ahead
        return found

    def batch(self, rows: Tensor) -> Experience:
        e = self.all
        if e is None:
            raise ValueError("no episodes yet: prepare comes first")
        seen = Seen(e.seen.observation[rows], e.seen.context[rows], e.seen.last_action[rows], e.seen.last_reward[rows])
        return replace(
            e,
            seen=seen,
            action=e.action[rows],
            log_probability=e.log_probability[rows],
            advantage=e.advantage[rows],
            outlook=e.outlook[rows],
            state=e.state[:, rows],
        )

    def _cut(self, x: Tensor) -> Tensor:
        """[B, T, ...] -> [B chunks, C, ...]."""
        return x.reshape(len(x) * self.chunks, self.settings.chunk, *x.shape[2:])
