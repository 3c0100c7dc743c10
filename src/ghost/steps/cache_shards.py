"""Cache one range of a feature cache's shards: `python -m ghost.steps.cache_shards --row '{...}' --needs .../manifest.json
--part 2 --parts 8 --out .../parts/2of8.json`.

One such job a GPU; then `ghost.steps.cache_features` finds every shard there and writes the manifest. Row and needs are those
of the whole, the bytes too: which job made a shard is told nowhere.
"""

from __future__ import annotations

from pathlib import Path

import tyro

from ghost.errors import exit_on_error
from ghost.files import write_json
from ghost.runs.settings import read_row
from ghost.steps.cache_features import Work


def cache_shards(row: str, out: Path, needs: list[Path], part: int, parts: int) -> None:
    """Cache the shards of one part, for every seed of a row.

    Args:
        row: a line of the table, as JSON: that of the whole cache.
        out: what to write when all is done: the names of the shards. They go to <out>/../../seed<seed>/.
        needs: the manifest of the demonstrations, then what the backbone needs.
        part: which, 1 to `parts`.
        parts: how many jobs share the work.
    """
    work = Work.prepare(read_row(row), needs)
    made = {}
    for seed in work.line["seeds"]:
        folder = out.parent.parent / f"seed{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        made[folder.name] = work.write(work.draw_samples(seed), folder, part, parts)[1:]
    write_json(out, made)


if __name__ == "__main__":
    exit_on_error(lambda: tyro.cli(cache_shards))
