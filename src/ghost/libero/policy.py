"""A trained decoder in the loop: see, plan a chunk of actions, execute its beginning, see again.

Several decoders make an ensemble: their chunks are averaged. The sub-phase that the policy believes in is the most
likely one of the (averaged) inferred probabilities; nothing privileged reaches it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ghost.backbones import Observations
from ghost.data.features import Encoded
from ghost.decoders.contract import Batch
from ghost.libero.sensing import Raw, Senses

Encode = Callable[[Observations], Encoded]


class Policy:
    """Decoders of one kind, what their backbone makes of an observation, and their memory since the last `start`."""

    def __init__(self, decoders: Sequence[Any], encode: Encode, senses: Senses) -> None:
        self.decoders, self.encode, self.senses = decoders, encode, senses
        self.sizes = decoders[0].sizes

    def start(self, seed: int) -> None:
        """Forget: an episode begins."""
        self.seed, self.plans = seed, 0
        self.memories: list[torch.Tensor | None] = [None] * len(self.decoders)
        self.generator = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def plan(self, raw: Raw, instruction: str) -> tuple[np.ndarray, int]:
        """A chunk [H, 7] of actions for the simulation, and the sub-phase, -1 where none is inferred."""
        batch = self._observe(raw, instruction)
        actions, phases = [], []
        for number, decoder in enumerate(self.decoders):
            if not hasattr(decoder, "plan"):
                actions.append(decoder.act(batch, self.generator)[0])
                continue
            plan = decoder.plan(batch, self.memories[number])
            self.memories[number] = plan.memory
            actions.append(plan.action[0])
            phases.append(plan.phase_logits[0].softmax(dim=-1))
        phase = int(torch.stack(phases).mean(dim=0).argmax()) if phases else -1
        return self.senses.command(torch.stack(actions).mean(dim=0).numpy()), phase

    def _observe(self, raw: Raw, instruction: str) -> Batch:
        seen = self.senses.observations([raw], [instruction], np.array([[self.seed, self.plans]]))
        self.plans += 1
        tokens = self.encode(seen).tokens
        return Batch(
            torch.from_numpy(tokens.astype(np.float32)),
            torch.from_numpy(seen.state),
            torch.zeros(1, self.sizes.horizon, self.sizes.d_action),
            torch.ones(self.sizes.d_action, dtype=torch.bool),
            torch.zeros(1, dtype=torch.int64),
        )
