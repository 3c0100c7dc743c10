"""`ghost rehearse`: every experiment does its first unit of work at full size, before anybody pays for all of them.

Each is rehearsed by a process of its own (`python -m ghost.steps.rehearse`), after the experiments that it needs; with
`--slurm` as a job with the resources of its rule. Its inputs are those that the rehearsal itself has made: real ones of
the full widths, only few. What is found is kept in data/bench/rehearsals/<build>.json, where `ghost plan` reads it.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import timedelta
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from ghost.data.samples import MEMORY_BYTES
from ghost.errors import GhostError, one_line
from ghost.files import canonical
from ghost.project import site as sites
from ghost.project.first_units import first, manifest, repeats, training_samples
from ghost.project.prices import unit_times
from ghost.project.rehearsed import DOES_NOT_FIT, NOT_TRIED, Rehearsed, behind, keep, line, table, with_needs
from ghost.steps.rehearse import FITS, heard
from ghost.study.builds import Config
from ghost.study.parts import units_of

KILLED = (-9, 137)  # exit codes of a process that the system ended, for want of memory
TOTAL = "/proc/meminfo"


def rehearse(config: Config, names: Sequence[str] = (), *, jobs: int = 2, slurm: bool = False) -> tuple[str, int]:
    """Rehearse these experiments and what they need, or all; returns the table, and 1 if one does not fit."""
    wanted = with_needs(config, names)
    small = first(config)
    if not names:
        shutil.rmtree(small.data, ignore_errors=True)
    asked = resources(config) if slurm else {}
    rows: dict[str, Rehearsed] = {}
    sorter = TopologicalSorter({name: set(config.experiment(name).needs) for name in wanted})
    sorter.prepare()
    with ThreadPoolExecutor(jobs) as pool:
        running: dict[Future[Rehearsed], str] = {}
        while sorter.is_active():
            for name in sorter.get_ready():
                prefix = asked.get(config.experiment(name).step, ())
                running[pool.submit(partial(_rehearse_one, config, small, name, rows, prefix))] = name
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                name = running.pop(future)
                rows[name] = future.result()
                keep(config, [rows[name]])  # at once: what is interrupted is not lost
                print(line(rows[name]), flush=True)
                sorter.done(name)
    return table(rows.values()), int(any(row.state == DOES_NOT_FIT for row in rows.values()))


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
    with (folder / "log.txt").open("w", encoding="utf-8") as log:  # S603: our own step, without a shell
        command = [*prefix, *python, "-m", "ghost.steps.rehearse", *options]
        code = subprocess.run(command, env=environment, stdout=log, stderr=log, check=False).returncode  # noqa: S603
    if code in KILLED:
        return row(DOES_NOT_FIT, "the system ended it, for want of memory")
    if code or not said.is_file():
        last = (folder / "log.txt").read_text(encoding="utf-8").strip().splitlines()[-1:]
        return row(DOES_NOT_FIT, one_line(" ".join(last) or f"exit code {code}"))
    found = heard(said)
    if found["state"] != FITS:
        return row(DOES_NOT_FIT, found["why"], host_mb=found["host_mb"], device=found["device"])
    return judged(config, small, name, found, row(FITS))


def judged(config: Config, small: Config, name: str, found: Mapping[str, Any], row: Rehearsed) -> Rehearsed:
    """What was found, for a unit of the build; whether its memory and its files fit here."""
    full, folder = config.experiment(name), manifest(small, name).parent
    seed = small.experiment(name).seeds[0]
    times = unit_times(folder, full.step, folder, seed) or [min(found["cpu_s"], found["wall_s"])]
    measured, host_mb, why = found["measured"], found["host_mb"], ""
    samples = int(measured.get("train/samples", 0))
    if full.step == "train":
        times = [measured[f"update/{key}"] for key in ("lowest", "seconds", "highest")]
        grown = (training_samples(config, name) - samples) * measured["sample/bytes"]
        host_mb += max(0.0, min(grown, MEMORY_BYTES)) / 2**20
        if measured["layers/tried"]:
            why = "by layers: memory does not hold the whole model with its gradient and moments"
    start_s = max(0.0, found["process_s"] - (found["cpu_s"] if full.step != "train" else 0.0))
    written = sum(path.stat().st_size for path in (folder / f"seed{seed}").rglob("*") if path.is_file())
    times_more = repeats(config, name)
    count = len(times) if row.unit != "seeds" else 1
    unit_bytes = round(written / count * (times_more if full.step in ("cache_features", "make_demos") else 1))
    each_s = (min(times), sum(times) / len(times), max(times))
    row = replace(
        row,
        why=why,
        device=found["device"],
        on_gpu=found["on_gpu"],
        start_s=round(min(start_s, 60.0), 3),
        each_s=each_s,
        measured=len(times),
        repeats=times_more,
        one_s=round(measured.get("update/of_one_sample", 0.0), 5),
        flops=measured.get("device/flops", 0.0),
        host_mb=round(host_mb, 1),
        device_mb=found["device_mb"],
        unit_bytes=unit_bytes,
        behind=behind(config, name),
    )
    free = shutil.disk_usage(small.data).free
    units = units_of(config, name)[1] * len(full.seeds)
    if unit_bytes * units > free:
        return replace(
            row,
            state=DOES_NOT_FIT,
            why=f"its files take {unit_bytes * units / 1e9:,.0f} GB, {free / 1e9:,.0f} are free",
        )
    if host_mb > (total := memory_mb()):
        return replace(row, state=DOES_NOT_FIT, why=f"it needs {host_mb:,.0f} MB of memory, there are {total:,.0f}")
    if measured.get("layers/tried"):
        return replace(row, state=DOES_NOT_FIT)
    return row


def memory_mb() -> float:
    if not Path(TOTAL).exists():
        return float("inf")
    lines = dict(line.split(":") for line in Path(TOTAL).read_text(encoding="ascii").splitlines())
    return int(lines["MemTotal"].split()[0]) / 1024


def resources(config: Config) -> dict[str, list[str]]:
    """How Slurm starts a rehearsal of each step: with what the profile gives its rule."""
    from ghost.project.plan import read_jobs

    if shutil.which("srun") is None:
        raise GhostError("there is no srun here: leave out --slurm, or go to a login node of the cluster")
    site = sites.read_site()
    jobs, _ = read_jobs(["all"], {**config.overrides, "scale": config.scale})
    asked: dict[str, list[str]] = {}
    for job in sorted(jobs, key=lambda job: (job.gpus, job.memory_mb)):  # the largest of a step stays
        where = sites.arguments(site["gpu" if job.gpus and site["gpu"]["partition"] else "cpu"])
        gpus = [f"--gpus={job.gpus}"] if job.gpus and site["gpu"]["partition"] else []
        limit = str(timedelta(seconds=job.limit_s or 3600)).replace(" day, ", "-").replace(" days, ", "-")
        wanted = [f"--cpus-per-task={job.cpus}", f"--mem={job.memory_mb}M", f"--time={limit}", "--ntasks=1"]
        asked[job.rule.removesuffix("_part")] = ["srun", *wanted, *gpus, *where.split()]
    return asked
