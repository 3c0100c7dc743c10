"""`ghost rehearse`: every experiment does its first unit of work at full size, before anybody pays for all of them.

Each is rehearsed by a process of its own (`python -m ghost.steps.rehearse`), after the experiments that it needs; with
`--slurm` as a job with the resources of its rule. Its inputs are those that the rehearsal itself has made: real ones of
the full widths, only few. What is found is kept in data/bench/rehearsals/<build>.json, where `ghost plan` reads it.
What was rehearsed here with the same code and settings is found again, so that a rehearsal that was killed goes on.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from threading import Lock
from typing import Any

from ghost.data.samples import MEMORY_BYTES
from ghost.errors import GhostError, one_line
from ghost.files import canonical
from ghost.project import site as sites
from ghost.project.first_units import first, manifest, repeats, training_samples
from ghost.project.prices import unit_samples, unit_times
from ghost.project.rehearsed import (
    DOES_NOT_FIT,
    NOT_TRIED,
    Rehearsed,
    behind,
    keep,
    line,
    read_rehearsals,
    size,
    table,
    with_needs,
)
from ghost.runs.code import code_hash
from ghost.steps.rehearse import FITS, heard
from ghost.study.builds import Config
from ghost.study.parts import units_of

KILLED = (-9, 137)  # exit codes of a process that the system ended, for want of memory
LONGEST_S = 1200  # by the clock, of one rehearsal
TOTAL = "/proc/meminfo"
LARGE = Lock()  # what reads a model that memory hardly holds is rehearsed alone


def rehearse(
    config: Config, names: Sequence[str] = (), *, jobs: int = 2, slurm: bool = False, again: bool = False
) -> tuple[str, int]:
    """Rehearse these experiments and what they need, or all; returns the table, and 1 if one does not fit."""
    wanted = with_needs(config, names)
    small = first(config)
    asked = resources(config) if slurm else {}
    kept = {} if again else found_again(config, small)
    rows: dict[str, Rehearsed] = {}
    new: set[str] = set()
    sorter = TopologicalSorter({name: set(config.experiment(name).needs) for name in wanted})
    sorter.prepare()
    with ThreadPoolExecutor(jobs) as pool:
        running: dict[Future[Rehearsed], str] = {}
        while sorter.is_active():
            for name in sorter.get_ready():
                prefix = asked.get(name, ())
                if name in kept and not new.intersection(config.experiment(name).needs):
                    rows[name] = kept[name]
                    sorter.done(name)
                else:
                    new.add(name)
                    running[pool.submit(partial(_rehearse_one, config, small, name, rows, prefix))] = name
            done, _ = wait(running, return_when=FIRST_COMPLETED) if running else ((), ())
            for future in done:
                name = running.pop(future)
                rows[name] = future.result()
                keep(config, [rows[name]])  # at once: what is interrupted is not lost
                print(line(rows[name]), flush=True)
                sorter.done(name)
    listed = [rows[name] for name in wanted]
    return table(listed), int(any(row.state == DOES_NOT_FIT for row in listed))


def found_again(config: Config, small: Config) -> dict[str, Rehearsed]:
    """What was rehearsed here by the same code, with the same settings, and fitted; what needs it finds its files."""
    rows = read_rehearsals(config)
    return {
        name: row
        for name, row in rows.items()
        if row.state == FITS and row.code == code_of(config, name) and manifest(small, name).is_file()
    }


def code_of(config: Config, name: str) -> str:
    """A hash of the code that an experiment runs, and of what makes it few."""
    return code_hash(*config.experiment(name).modules, "ghost.project.first_units", science=True)[:16]


def _rehearse_one(
    config: Config, small: Config, name: str, rows: Mapping[str, Rehearsed], prefix: Sequence[str]
) -> Rehearsed:
    here = small.experiment(name)
    row = partial(Rehearsed, name, here.step, unit=units_of(config, name)[0])
    missing = [need for need in here.needs if not manifest(small, need).is_file()]
    if missing:
        return row(NOT_TRIED, f"{missing[0]}: {rows[missing[0]].why}")
    try:
        python = small.python(name)
        small.outside(name)  # folders from outside must be there
    except (GhostError, OSError) as error:
        return row(NOT_TRIED, one_line(str(error)))
    folder = manifest(small, name).parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    said = folder / "said.json"
    options = ["--experiment", canonical(small.declaration(name)), "--out", str(manifest(small, name))]
    options += ["--said", str(said)]
    if here.needs:
        options += ["--needs", *(str(manifest(small, need)) for need in here.needs)]
    if here.reads:
        options += ["--reads", *here.reads]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **small.environment(name)}
    alone = any(rows[need].host_mb > memory_mb() / 2 for need in here.needs)
    starter = ["ghost.runs.warm"] if python == [sys.executable] and not prefix else []
    command = [*prefix, *python, "-m", *starter, "ghost.steps.rehearse", *options]
    with LARGE if alone else nullcontext(), (folder / "log.txt").open("w", encoding="utf-8") as log:
        try:  # S603: our own step, without a shell
            done = subprocess.run(command, env=environment, stdout=log, stderr=log, check=False, timeout=LONGEST_S)  # noqa: S603
        except subprocess.TimeoutExpired:
            return row(NOT_TRIED, f"its first unit takes longer than {LONGEST_S // 60} minutes here")
    if done.returncode in KILLED:
        return row(DOES_NOT_FIT, "the system ended it, for want of memory")
    if done.returncode or not said.is_file():
        last = (folder / "log.txt").read_text(encoding="utf-8").strip().splitlines()[-1:]
        return row(DOES_NOT_FIT, one_line(" ".join(last) or f"exit code {done.returncode}"))
    found = heard(said)
    if found["state"] != FITS:
        return row(DOES_NOT_FIT, found["why"], host_mb=found["host_mb"], device=found["device"])
    return judged(config, small, name, found, row(FITS))


def judged(config: Config, small: Config, name: str, found: Mapping[str, Any], row: Rehearsed) -> Rehearsed:
    """What was found, for a unit of the build; whether its memory and its files fit here."""
    full, folder = config.experiment(name), manifest(small, name).parent
    row = replace(
        row,
        device=found["device"],
        on_gpu=found["on_gpu"],
        start_s=round(max(0.0, found["process_s"] - found["cpu_s"]), 3),
        host_mb=found["host_mb"],
        device_mb=found["device_mb"],
        took_s=found["process_s"],
        behind=behind(config, name),
        code=code_of(config, name),
    )
    row = _trained(config, row, found["measured"]) if full.step == "train" else _done(config, small, row, found)
    seed = small.experiment(name).seeds[0]
    written = sum(path.stat().st_size for path in (folder / f"seed{seed}").rglob("*") if path.is_file())
    count = row.measured if row.unit != "seeds" else 1
    grows = row.repeats if full.step in ("cache_features", "make_demos") else 1
    row = replace(row, unit_bytes=round(written / count * grows))
    free = shutil.disk_usage(small.data).free
    units = units_of(config, name)[1] * len(full.seeds)
    if (taken := row.unit_bytes * units) > free:
        return replace(row, state=DOES_NOT_FIT, why=f"its files take {size(taken)}, {size(free)} are free")
    if row.host_mb > (total := memory_mb()):
        why = f"it needs {row.host_mb:,.0f} MB of memory, there are {total:,.0f}"
        return replace(row, state=DOES_NOT_FIT, why="; ".join(filter(None, (why, row.why))))
    if row.why.startswith(BY_LAYERS):
        return replace(row, state=DOES_NOT_FIT)
    return row


BY_LAYERS = "rehearsed by layers"


def _trained(config: Config, row: Rehearsed, measured: Mapping[str, float]) -> Rehearsed:
    """The beginning of a training: some updates, and what comes before them."""
    samples = int(measured["train/samples"])
    wanted = training_samples(config, row.experiment, samples)
    grown = (wanted - samples) * measured["sample/bytes"]
    notes = {
        f"{BY_LAYERS}: memory here does not hold it with its gradient and moments": measured["layers/tried"],
        "its state was not written, for want of memory": not measured["state/kept"],
    }
    return replace(
        row,
        each_s=(measured["update/lowest"], measured["update/seconds"], measured["update/highest"]),
        measured=3,
        repeats=repeats(config, row.experiment, samples),
        start_s=round(row.start_s + measured["samples/gathered_s"] * wanted / samples, 3),
        fixed_s=round(measured["run/fixed_s"], 3),
        teach_s=round(measured["samples/taught_s"] * wanted / samples, 3),
        calls_s=round(measured["update/calls_s"], 6),
        flops=measured["device/flops"],
        host_mb=round(measured["memory/whole_mb"] + max(0.0, min(grown, MEMORY_BYTES)) / 2**20, 1),
        why="; ".join(text for text, holds in notes.items() if holds),
    )


def _done(config: Config, small: Config, row: Rehearsed, found: Mapping[str, Any]) -> Rehearsed:
    """A whole unit, or what a unit does several times."""
    folder, seed = manifest(small, row.experiment).parent, small.experiment(row.experiment).seeds[0]
    times = unit_times(folder, row.step, folder, seed) or [min(found["cpu_s"], found["wall_s"])]
    more, why, fixed_s = repeats(config, row.experiment), "", 0.0
    if row.step == "train_agent" and found["epochs_s"]:  # what is not an epoch comes once
        times = list(found["epochs_s"])
        more, fixed_s = more * len(times), max(0.0, round(found["cpu_s"] - sum(times), 3))
    if row.step == "cache_features":  # a shard that is not full stands for as much of a full one
        held = unit_samples(folder, row.step, folder, seed)
        full = int(config.experiment(row.experiment).settings["samples_per_shard"])
        more = full * len(held) / sum(held)
        why = "" if more == 1 else f"from {len(held)} shards with {sum(held):,} samples; a full one has {full:,}"
    spread = (min(times), sum(times) / len(times), max(times))
    return replace(row, each_s=spread, measured=len(times), repeats=more, fixed_s=fixed_s, why=why)


def memory_mb() -> float:
    if not Path(TOTAL).exists():
        return float("inf")
    lines = dict(line.split(":") for line in Path(TOTAL).read_text(encoding="ascii").splitlines())
    return int(lines["MemTotal"].split()[0]) / 1024


def resources(config: Config) -> dict[str, list[str]]:
    """How Slurm starts the rehearsal of each experiment: with what the profile gives its rule."""
    from ghost.project.jobs import read_jobs

    if shutil.which("srun") is None:
        raise GhostError("there is no srun here: leave out --slurm, or go to a login node of the cluster")
    site = sites.read_site()
    jobs, _ = read_jobs(["all"], {**config.overrides, "scale": config.scale})
    steps = {experiment.name: experiment.step for experiment in config.experiments}
    asked: dict[str, list[str]] = {}
    for job in sorted(jobs, key=lambda job: job.rule.endswith("_part")):  # a part stays, not the job that gathers
        if steps.get(job.wildcards[0] if job.wildcards else "") != job.rule.removesuffix("_part"):
            continue  # a figure may have an experiment's name
        where = sites.arguments(site["gpu" if job.gpus and site["gpu"]["partition"] else "cpu"])
        gpus = [f"--gpus={job.gpus}"] if job.gpus and site["gpu"]["partition"] else []
        limit = str(timedelta(seconds=job.limit_s or 3600)).replace(" day, ", "-").replace(" days, ", "-")
        wanted = [f"--cpus-per-task={job.cpus}", f"--mem={job.memory_mb}M", f"--time={limit}", "--ntasks=1"]
        asked[job.wildcards[0]] = ["srun", *wanted, *gpus, *where.split()]
    return asked
