"""Trained decoders in the loop: see, plan a chunk of actions, execute its beginning, see again.

A policy plans for many episodes at once. What it knows of an episode is in the episode's `Session`: the memory of each
decoder (a hidden state, a persistent z), and the seed of all that is drawn. Several decoders make an ensemble: their
chunks are averaged. The sub-phase that the policy believes in is the most likely one of the (averaged) inferred
probabilities; nothing privileged reaches it.

Every pass of a network has `rows` rows; free ones hold copies. Sums over one shape round alike in every row, so what is
planned for an episode does not depend on who shares the pass: not on the number of simulators, nor on their order.
Passes of another shape round otherwise, so `rows` is a setting of a rollout. A decoder that draws (diffusion) acts row
by row, with the generator of each episode.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Generator, Tensor

from ghost.backbones import Observations
from ghost.data.features import Encoded, FeatureCache
from ghost.decoders.contract import Batch
from ghost.errors import GhostError
from ghost.libero.sensing import Raw, Senses
from ghost.runs.code import module_path
from ghost.runs.records import Run
from ghost.runs.settings import read_settings
from ghost.training.checkpoint import load_decoder
from ghost.training.head import FineTunedHead, OwnHead

Encode = Callable[[Observations], Encoded]


class Session:
    """What a policy knows of an episode."""

    def __init__(self, seed: int, decoders: int, device: torch.device) -> None:
        self.seed, self.plans = seed, 0
        self.generator = Generator(device).manual_seed(seed)
        self.memories: list[Tensor | None] = [None] * decoders  # each [...], without a batch


@dataclass(frozen=True)
class Asked:
    """A simulator asks for a plan."""

    session: Session
    raw: Raw
    instruction: str


@dataclass(frozen=True)
class Planned:
    actions: np.ndarray  # [H, 7] float64, as the simulation takes them
    phase: int  # the sub-phase, -1 where none is inferred


class Acting(Protocol):
    """What plays an episode: a policy in this process, or the client of a server."""

    senses: Senses

    def start(self, seed: int) -> None:
        """Forget: an episode begins."""

    def plan(self, raw: Raw, instruction: str) -> Planned: ...


class Policy:
    """Decoders of one kind, and what their backbone makes of an observation."""

    def __init__(self, decoders: Sequence[Any], encode: Encode, senses: Senses, rows: int = 1) -> None:
        self.decoders, self.encode, self.senses, self.rows = decoders, encode, senses, rows
        self.sizes = decoders[0].sizes
        self.device = next((weight.device for weight in decoders[0].parameters()), torch.device("cpu"))
        self.draw = [_draws(decoder, self._empty(1)) for decoder in decoders]

    @classmethod
    def load(cls, backbone: str, features: Run, trained: Sequence[Run], rows: int = 1, device: str = "cpu") -> Self:
        """Trained decoders, and the backbone of the features that they were trained on; or a fine-tuned head itself."""
        torch.set_num_threads(1)  # sums split over threads round differently
        name = f"ghost.backbones.{backbone}"
        module = importlib.import_module(name) if module_path(name) else None
        if module is None or not hasattr(module, "start"):
            raise GhostError(f"{backbone!r} is no backbone")
        made = features.record()["settings"]
        own = {field.name: made[field.name] for field in fields(module.Settings) if field.name in made}
        (settings,) = read_settings(features.name, own, module.Settings)
        heads = [run for run in trained if FineTunedHead.made(run)]
        decoders: list[Any] = [load_decoder(run, device) for run in trained if run not in heads]
        if heads:
            decoders.append(OwnHead(FeatureCache.of(features).sizes))
        seeing = module.start(settings, decoders[0].sizes, heads or features.inputs("finetune"))
        return cls(decoders, seeing.encode, Senses.of(features), rows)

    def session(self, seed: int) -> Session:
        return Session(seed, len(self.decoders), self.device)

    @torch.no_grad()
    def plan(self, asked: Sequence[Asked]) -> list[Planned]:
        """One plan for each, of different episodes."""
        if len(asked) > self.rows:
            return self.plan(asked[: self.rows]) + self.plan(asked[self.rows :])
        batch = self._observe(asked)
        actions: list[list[Tensor]] = [[] for _ in asked]  # of each row, one per decoder
        phases: list[list[Tensor]] = [[] for _ in asked]
        for number, decoder in enumerate(self.decoders):
            if self.draw[number]:
                for row, one in enumerate(asked):
                    actions[row].append(decoder.act(_rows(batch, [row]), one.session.generator)[0])
            elif not hasattr(decoder, "plan"):
                chunk = decoder.act(_rows(batch, self._filled(range(len(asked)))), None)
                for row in range(len(asked)):
                    actions[row].append(chunk[row])
            else:
                self._plan_with_memory(number, asked, batch, actions, phases)
        return [
            Planned(
                self.senses.command(torch.stack(chunks).mean(dim=0).cpu().numpy()),
                int(torch.stack(beliefs).mean(dim=0).argmax()) if beliefs else -1,
            )
            for chunks, beliefs in zip(actions, phases, strict=True)
        ]

    def _plan_with_memory(
        self,
        number: int,
        asked: Sequence[Asked],
        batch: Batch,
        actions: list[list[Tensor]],
        phases: list[list[Tensor]],
    ) -> None:
        """Plan with a decoder that remembers. Memories of one shape share a pass: they grow when an episode begins."""
        decoder, before = self.decoders[number], [one.session.memories[number] for one in asked]
        shapes = [None if memory is None else memory.shape for memory in before]
        for shape in dict.fromkeys(shapes):
            same = [row for row, other in enumerate(shapes) if other == shape]
            filled = self._filled(same)
            known = [memory for row in filled if (memory := before[row]) is not None]
            plan = decoder.plan(_rows(batch, filled), torch.stack(known) if known else None)
            for place, row in enumerate(same):
                asked[row].session.memories[number] = None if plan.memory is None else plan.memory[place].clone()
                actions[row].append(plan.action[place])
                phases[row].append(plan.phase_logits[place].softmax(dim=-1))

    def _observe(self, asked: Sequence[Asked]) -> Batch:
        """What the backbone makes of the observations [n, ...], one instruction after the other."""
        batch = self._empty(len(asked))
        for instruction in dict.fromkeys(one.instruction for one in asked):
            same = [row for row, one in enumerate(asked) if one.instruction == instruction]
            chosen = [asked[row] for row in self._filled(same)]
            steps = np.array([[one.session.seed, one.session.plans] for one in chosen], np.int64)
            seen = self.senses.observations([one.raw for one in chosen], [instruction] * len(chosen), steps)
            encoded = self.encode(seen)
            known = {"tokens": encoded.tokens, "state": seen.state, "teacher": encoded.actions}
            for name, values in known.items():
                if values is not None:
                    getattr(batch, name)[same] = torch.from_numpy(values[: len(same)]).to(self.device, torch.float32)
        for one in asked:
            one.session.plans += 1
        return batch

    def _empty(self, n: int) -> Batch:
        """A batch of n rows without content."""
        sizes = self.sizes
        return Batch(
            torch.zeros(n, sizes.tokens, sizes.d_token, device=self.device),
            torch.zeros(n, sizes.d_state, device=self.device),
            torch.zeros(n, sizes.horizon, sizes.d_action, device=self.device),
            torch.ones(sizes.d_action, dtype=torch.bool, device=self.device),
            torch.zeros(n, dtype=torch.int64, device=self.device),
            torch.zeros(n, sizes.horizon, sizes.d_action, device=self.device),
        )

    def _filled(self, rows: Sequence[int]) -> list[int]:
        """These rows of a batch, and copies of the first in the free rows of a pass."""
        return [*rows, *(rows[0] for _ in range(self.rows - len(rows)))]


class Alone:
    """A policy that plays one episode at a time, in this process."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.senses = policy, policy.senses

    def start(self, seed: int) -> None:
        self.session = self.policy.session(seed)

    def plan(self, raw: Raw, instruction: str) -> Planned:
        return self.policy.plan([Asked(self.session, raw, instruction)])[0]


def _rows(batch: Batch, rows: Sequence[int]) -> Batch:
    """These rows of a batch, in this order."""
    names = ("tokens", "state", "action", "task", "teacher")
    return replace(batch, **{name: getattr(batch, name)[list(rows)] for name in names})


def _draws(decoder: Any, batch: Batch) -> bool:
    """Whether a decoder draws random numbers when it acts."""
    if hasattr(decoder, "plan"):
        return False
    generator = Generator(batch.state.device).manual_seed(0)
    before = generator.get_state()
    with torch.no_grad():
        decoder.act(batch, generator)
    return not torch.equal(before, generator.get_state())
