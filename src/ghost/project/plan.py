"""`ghost plan fig:diagnostic`: the jobs before a build, their cost, which are done already, and how long it takes.

Snakemake itself says which jobs there are and which would run, as with `--profile slurm` and the site's grain. A job
costs its units, at what a unit took where it was measured or rehearsed (`ghost.project.prices`). A training that was
rehearsed on a CPU and shall run on a GPU is estimated: its arithmetic is faster by as much as the site's GPU is in
products of matrices. Other seconds of a CPU are an upper bound for a GPU. What was never measured may take up to the
profile's time limit. A job that only gathers costs its start.

With `--here` the jobs are those of `snakemake all` on this machine. They start faster, from a process that has imported
the libraries. What a start and the light rules take is known from earlier builds (`ghost.project.job_times`).
"""

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

from ghost.errors import GhostError, did_you_mean
from ghost.project import job_times
from ghost.project.dvc import files
from ghost.project.job_times import JobTime
from ghost.project.jobs import Job, before, read_jobs
from ghost.project.prices import Prices
from ghost.project.schedule import Task, longest_chain, makespan
from ghost.project.site import read_site
from ghost.study.builds import Config
from ghost.study.parts import Grain, Part, parts_of, units_of

START_S = 7.0  # until a trivial job is done: Slurm starts a Snakemake, which starts a Python
LIMIT, LIGHT, REHEARSED, UNKNOWN = "time limit", "light", "rehearsed", "never measured: rehearse it"
PARALLEL = ("episodes", "attempts")  # units that share the cores of a job


@dataclass(frozen=True)
class Cost:
    wall_s: float
    source: str  # where the number comes from
    low_s: float = 0.0  # with the lowest and the highest of the measurements behind it
    high_s: float = 0.0
    at_most: bool = False  # an upper bound


@dataclass(frozen=True)
class Place:
    """Where a build shall run: a cluster, or this machine."""

    gpus: int
    cores: int
    here: bool = False
    tflops: float = 0.0  # of one of its GPUs
    known: tuple[JobTime, ...] = ()  # what jobs take here beside their runs

    def start_s(self, rule: str, build: str) -> float:
        """Until a job is at work."""
        return (job_times.of_rule(self.known, rule, build) or 0.0) if self.here else START_S

    def light_s(self, rule: str, build: str) -> float:
        """A light job, which runs where Snakemake runs."""
        return job_times.of_rule(self.known, rule, build) or 0.0


def plan(identity: str, config: Config, *, gpus: int = 8, cores: int = 128, here: bool = False) -> str:
    """The jobs and their cost, before `snakemake` is started for an artefact, an experiment or the `paper`."""
    start_s = time.process_time()
    asked = {**config.overrides, "scale": config.scale}
    jobs, grain = read_jobs(targets(identity, config), asked, cores=cores if here else None)
    own_s = time.process_time() - start_s if here else 0.0  # Snakemake does the same before the first job
    place = Place(gpus, cores, here, float(read_site()["gpu"]["tflops"]), tuple(job_times.read()))
    rest = [on_this_machine(job, config, place) if here else job for job in jobs if not job.is_done]
    costs = price_all(rest, config, grain, place)
    prices = Prices(config)
    counts = f"{len(jobs)} jobs, {len(rest)} to run, {len(jobs) - len(rest)} cached"
    done = [job for job in jobs if job.is_done]
    return "\n".join(
        [
            f"{identity} at {config.scale} scale: {counts}",
            *lines([*done, *rest], costs),
            *([] if here else memory(rest, prices)),
            *([] if here else limits(rest, costs)),
            *disk(config, prices),
            *totals(rest, costs, place, own_s),
        ]
    )


def on_this_machine(job: Job, config: Config, place: Place) -> Job:
    """What it uses here. Nothing may run beside what is timed."""
    timed = any(job.wildcards[:1] == (experiment.name,) and experiment.timed for experiment in config.experiments)
    return replace(job, gpus=min(job.gpus, place.gpus), cpus=place.cores if timed else job.cpus)


def pilot(config: Config, experiment: str, *, slurm: bool) -> tuple[str, list[str]]:
    """The cost of one experiment with all that it needs, and the command that makes it."""
    if experiment not in [each.name for each in config.experiments]:
        hint = did_you_mean(experiment, [each.name for each in config.experiments])
        raise GhostError(f"no experiment {experiment!r}{hint}")
    profile = ["--profile", "slurm"] if slurm else []
    command = [*profile, *targets(experiment, config), "--config", f"scale={config.scale}"]
    gpus, cores = (1, 8) if slurm else this_machine()
    said = plan(experiment, config, gpus=gpus, cores=cores, here=not slurm)
    return f"{said}\n\nsnakemake {' '.join(command)}", [sys.executable, "-m", "snakemake", *command]


def targets(identity: str, config: Config) -> list[str]:
    if identity == "paper":
        return ["all"]
    known, names = {artefact.id: artefact for artefact in config.artefacts}, [each.name for each in config.experiments]
    if identity in names:
        return [str(config.manifest(identity))]
    if identity not in known:
        hint = did_you_mean(identity, [*known, *names, "paper"])
        raise GhostError(f"no figure, table or experiment {identity!r}{hint}")
    if not known[identity].step:
        raise GhostError(f"{identity} is declared, but nothing builds it yet")
    return [*files(known[identity], config), str(config.data / "cells" / f"{known[identity].stage}.jsonl")]


def price_all(jobs: list[Job], config: Config, grain: Grain, place: Place) -> dict[Job, Cost]:
    prices, of_rule = Prices(config), {experiment.name: experiment.step for experiment in config.experiments}
    parts = {name: {part.name: part for part in parts_of(config, name, grain)} for name in of_rule}
    costs = {}
    for job in jobs:
        name = job.wildcards[0] if job.wildcards else ""
        if job.is_light:
            taken_s = place.light_s(job.rule, config.scale)
            costs[job] = Cost(taken_s, LIGHT, taken_s, taken_s)
        elif of_rule.get(name) != job.rule.removesuffix("_part"):
            costs[job] = unmeasured(job, place)
        elif job.rule == of_rule[name] and len(parts[name]) > 1:
            costs[job] = Cost(START_S, LIGHT, START_S, START_S)
        else:
            whole = next(iter(parts[name].values()))
            part = whole if job.rule == of_rule[name] else parts[name][job.wildcards[1]]
            costs[job] = cost(job, part, config, prices, place)
    return costs


def unmeasured(job: Job, place: Place) -> Cost:
    """The time limit of the profile; on this machine there is none."""
    return Cost(0.0, UNKNOWN) if place.here else Cost(job.limit_s, LIMIT, job.limit_s, job.limit_s, at_most=True)


def cost(job: Job, part: Part, config: Config, prices: Prices, place: Place) -> Cost:
    """A part's units, at the price of each; on the cores of the job where they share them.

    Units that were never rehearsed and take longer on a CPU than the profile grants a GPU say little: the limit is the
    bound.
    """
    noun, _ = units_of(config, job.wildcards[0])
    found = prices.price(job.wildcards[0])
    if found is None:
        return unmeasured(job, place)
    units = ceil(part.units / job.cpus) if noun in PARALLEL else part.units
    start_s = place.start_s(job.rule, config.scale) + (0.0 if place.here else found.start_s)
    unit_s, source, at_most, row = found.unit_s, found.source, False, found.rehearsed
    if job.gpus and not found.on_gpu:
        at_most = not (row and row.flops and place.tflops)
        source = f"{source}; a GPU takes less" if at_most else f"{source}, for a GPU of {place.tflops:g} TFLOP/s"
        if row is not None and not at_most:
            unit_s = row.on_a_gpu_s(place.tflops)
            source = f"{source} ({found.unit_s * units / 3600:.1f} h on the CPU)"
        if row is None and start_s + units * unit_s > job.limit_s:
            return unmeasured(job, place)
    seconds = [start_s + units * unit_s * share for share in (1.0, found.low, found.high)]
    return Cost(seconds[0], source, seconds[1], seconds[2], at_most)


def lines(jobs: list[Job], costs: Mapping[Job, Cost]) -> list[str]:
    """One line for the jobs that differ in their part alone."""
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.kind, costs[job].source if job in costs else "cached"), []).append(job)
    width = max((len(kind) for kind, _ in groups), default=0)
    made = []
    for (kind, source), same in groups.items():
        times = f"{len(same):4d} x " if len(same) > 1 else " " * 7
        shown = "cached" if source == "cached" else price(same[0], max((costs[job] for job in same), key=_seconds))
        made.append(f"  {kind:{width}} {times}{shown}")
    return made


def _seconds(cost: Cost) -> float:
    return cost.wall_s


def price(job: Job, cost: Cost) -> str:
    if cost.source == UNKNOWN:
        return UNKNOWN
    if cost.source == LIGHT:
        return f"{LIGHT}, {cost.wall_s:.1f} s" if cost.wall_s else LIGHT
    gpus = f" and {job.gpus} GPU{'s' if job.gpus > 1 else ''}" if job.gpus else ""
    bound = "at most " if cost.at_most else ""
    shown = f"{bound}{cost.wall_s / 3600:.3f} h on {job.cpus} CPU{'s' if job.cpus > 1 else ''}{gpus}"
    return f"{shown}; {cost.source}"


def memory(jobs: list[Job], prices: Prices) -> list[str]:
    """What each rule asks for beside the largest peak that was measured or rehearsed, in whatever build."""
    peaks: dict[str, tuple[float, str]] = {}
    for row in prices.rehearsed.values():
        peaks[row.step] = max(peaks.get(row.step, (0.0, "")), (row.host_mb, f"{row.experiment} in its rehearsal"))
    for measured in (each for found in prices.known.values() for each in found):
        peak = (measured.peak_memory_mb, f"{measured.experiment} in {measured.build}")
        peaks[measured.step] = max(peaks.get(measured.step, (0.0, "")), peak)
    asked = {job.rule.removesuffix("_part"): 0 for job in jobs if not job.is_light}
    for job in jobs:
        if not job.is_light:
            asked[job.rule.removesuffix("_part")] = max(asked[job.rule.removesuffix("_part")], job.memory_mb)
    return [
        f"memory of {step}: asks for {mb} MB; the largest peak so far is {peaks[step][0]:.0f} MB, {peaks[step][1]}"
        + ("; TOO SMALL" if peaks[step][0] > mb else "")
        for step, mb in sorted(asked.items())
        if step in peaks
    ]


def limits(jobs: list[Job], costs: Mapping[Job, Cost]) -> list[str]:
    """The time limits of the profile that are too small for what is expected; a job that reaches one is tried again."""
    short: dict[str, Job] = {}
    for job in jobs:
        longest = short.get(job.rule)
        if costs[job].wall_s > job.limit_s > 0 and (longest is None or costs[job].wall_s > costs[longest].wall_s):
            short[job.rule] = job
    return [
        f"limit of {rule}: {job.limit_s / 3600:.1f} h; {job.name} takes {costs[job].wall_s / 3600:.1f} h; TOO SMALL"
        for rule, job in sorted(short.items())
    ]


def disk(config: Config, prices: Prices) -> list[str]:
    """What the runs of all experiments take that were rehearsed."""
    rows = prices.rehearsed
    taken = {name: row.unit_bytes * units_of(config, name)[1] * _runs(config, name) for name, row in rows.items()}
    largest = sorted(taken, key=lambda name: -taken[name])[:3]
    shown = ", ".join(f"{name} {taken[name] / 1e9:.1f} GB" for name in largest)
    return [f"disk, as rehearsed: {sum(taken.values()) / 1e9:.1f} GB; the largest are {shown}"] if rows else []


def _runs(config: Config, name: str) -> int:
    return len(config.experiment(name).seeds)


def totals(jobs: list[Job], costs: Mapping[Job, Cost], place: Place, own_s: float = 0.0) -> list[str]:
    """What all jobs cost, and when the last one is done. `own_s` is what Snakemake itself takes before the first."""
    cpu_h = sum(costs[job].wall_s * job.cpus for job in jobs) / 3600
    gpu_h = sum(costs[job].wall_s * job.gpus for job in jobs) / 3600
    bound = ", at most" if any(found.at_most for found in costs.values()) else ""
    limited, unknown = (sum(costs[job].source == source for job in jobs) for source in (LIMIT, UNKNOWN))
    if unknown:
        bound = f", without {unknown} jobs that were never measured"
    rehearsed = sum(costs[job].source.startswith(REHEARSED) for job in jobs)
    paid = sum(costs[job].source not in (LIMIT, LIGHT, UNKNOWN) for job in jobs) - rehearsed
    light = len(jobs) - limited - paid - rehearsed - unknown
    counts = f"{rehearsed} jobs by rehearsals, {paid} by measured units, {limited} by the profile's time limit"
    made = [
        f"prices: {counts}, {light} light",
        f"to pay{bound}: {cpu_h:.3f} CPU hours, {gpu_h:.3f} GPU hours",
    ]
    if jobs:
        after = before(jobs)
        tasks = {job: Task(costs[job].wall_s, job.cpus, job.gpus, after[job]) for job in jobs}
        chain, seconds = longest_chain(tasks)
        took = own_s + makespan(tasks, cores=place.cores, gpus=place.gpus)
        if any(cost.high_s > cost.low_s for cost in costs.values()):
            ends = [[costs[job].low_s for job in jobs], [costs[job].high_s for job in jobs]]
            both = [{job: replace(tasks[job], seconds=s) for job, s in zip(jobs, end, strict=True)} for end in ends]
            low, high = ((own_s + makespan(end, cores=place.cores, gpus=place.gpus)) / 3600 for end in both)
            made.append(f"with the lowest and the highest that was measured: {low:.3f} h and {high:.3f} h")
        made.append(f"critical path{bound}: {' -> '.join(job.name for job in chain)}, {seconds / 3600:.3f} h")
        on = f"on this machine, with {place.gpus} GPUs" if place.here else f"on {place.gpus} GPUs"
        made.append(f"{on} and {place.cores} cores{bound}: {took / 3600:.3f} h")
    return made


def this_machine() -> tuple[int, int]:
    """Its GPUs and its cores."""
    import torch

    return torch.cuda.device_count(), len(os.sched_getaffinity(0))
