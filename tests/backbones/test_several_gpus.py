"""Processes of one fine-tuning: they meet, and an end of one is one line."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import distributed

from ghost.backbones.several_gpus import ALONE, on_all
from ghost.errors import GhostError

pytestmark = pytest.mark.slow  # each starts two processes that import torch


def meet(folder: Path, share: tuple[int, int]) -> None:
    total = torch.tensor(float(share[0] + 1))
    if share != ALONE:
        distributed.all_reduce(total)
    (folder / str(share[0])).write_text(str(total.item()))


def refuse(share: tuple[int, int]) -> None:
    if share[0] == 1:
        raise GhostError("the second one refuses")
    distributed.barrier()  # the first one waits for it


def die(share: tuple[int, int]) -> None:
    if share[0] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def test_processes_exchange_numbers(tmp_path):
    on_all(partial(meet, tmp_path), 2)
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == ["3.0", "3.0"]


def test_one_process_is_this_one(tmp_path):
    on_all(partial(meet, tmp_path), 1)
    assert [path.name for path in tmp_path.iterdir()] == ["0"]


def test_the_first_fault_ends_all():
    with pytest.raises(GhostError, match=r"^the second one refuses$"):
        on_all(refuse, 2)


def test_a_killed_process_is_named():
    with pytest.raises(GhostError, match=r"^process 2 of 2 of the fine-tuning ended: SIGKILL$"):
        on_all(die, 2)
