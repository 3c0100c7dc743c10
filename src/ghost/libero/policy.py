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
from ghost.data.lerobot import STATE
from ghost.decoders.contract import Batch
from ghost.libero.environment import CAMERAS
from ghost.libero.tasks import Look

Encode = Callable[[Observations], Encoded]
Render = Callable[[str], np.ndarray]  # camera -> image


class Policy:
    """Decoders of one kind, what their backbone makes of an observation, and their memory since the last `start`."""

    def __init__(self, decoders: Sequence[Any], encode: Encode) -> None:
        self.decoders, self.encode = decoders, encode
        self.sizes = decoders[0].sizes

    def start(self, seed: int) -> None:
        """Forget: an episode begins."""
        self.memories: list[torch.Tensor | None] = [None] * len(self.decoders)
        self.generator = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def plan(self, look: Look, instruction: str, render: Render) -> tuple[np.ndarray, int]:
        """An action chunk [H, 7] and the sub-phase, -1 where none is inferred. `render` is for backbones that see."""
        batch = self._observe(look, instruction, render)
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
        return torch.stack(actions).mean(dim=0).numpy().astype(np.float64), phase

    def _observe(self, look: Look, instruction: str, render: Render) -> Batch:
        seen = look.columns()
        state = np.zeros(self.sizes.d_state, np.float32)
        state[: len(seen[STATE])] = seen[STATE]
        scene = {name: value[None] for name, value in seen.items() if name != STATE}
        observations = Observations(
            instructions=(instruction,),
            columns=scene,
            frames=lambda name: render(name.split(".")[-1])[None],
            cameras=tuple(f"observation.images.{name}" for name in CAMERAS),
            state=state[None],
            step=np.zeros((1, 2), np.int64),
        )
        tokens = self.encode(observations).tokens
        return Batch(
            torch.from_numpy(tokens.astype(np.float32)),
            torch.from_numpy(state)[None],
            torch.zeros(1, self.sizes.horizon, self.sizes.d_action),
            torch.ones(self.sizes.d_action, dtype=torch.bool),
            torch.zeros(1, dtype=torch.int64),
        )
