"""One fine-tuning on several GPUs: one process for each, and torch's DistributedDataParallel between them.

The processes are started by torch and meet over a file. If one ends, torch ends the others. On CPUs they talk by gloo,
on GPUs by nccl.
"""

import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException, spawn

from ghost.errors import GhostError

Share = tuple[int, int]  # the number of a process, and how many there are
ALONE: Share = (0, 1)
PATIENCE = timedelta(hours=1)  # the others wait while the first one writes 13 GB
MEETING = "meeting"


def visible(batch_size: int) -> int:
    """The GPUs that this job sees, or one CPU; each needs a sample of every batch."""
    return min(max(1, torch.cuda.device_count()), batch_size)


def on_all(work: Callable[[Share], None], processes: int) -> None:
    """Do `work` in so many processes; alone, it is done in this one."""
    if processes == 1:
        work(ALONE)
        return
    with tempfile.TemporaryDirectory(prefix="ghost-gpus-") as folder:
        try:
            spawn(_process, (processes, Path(folder), work), processes)  # type: ignore[no-untyped-call]
        except (ProcessExitedException, ProcessRaisedException) as error:
            for said in sorted(Path(folder).glob("*.txt")):
                raise GhostError(said.read_text(encoding="utf-8")) from None
            if isinstance(error, ProcessRaisedException):
                raise
            why = error.signal_name or f"exit code {error.exit_code}"
            raise GhostError(
                f"process {error.error_index + 1} of {processes} of the fine-tuning ended: {why}"
            ) from None


def _process(rank: int, processes: int, folder: Path, work: Callable[[Share], None]) -> None:
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(rank)
    where = f"file://{folder / MEETING}"
    distributed.init_process_group("nccl" if gpu else "gloo", where, PATIENCE, processes, rank)
    try:
        work((rank, processes))
    except GhostError as error:
        (folder / f"{rank}.txt").write_text(str(error), encoding="utf-8")
        sys.exit(1)
    distributed.destroy_process_group()
