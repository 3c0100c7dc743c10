"""The commands of `ghost` for before a build: what it costs, whether it fits, a first chain. Imports are late."""

import subprocess
from typing import Annotated

import tyro

from ghost.project.commands import Scale, open_build

CLUSTER = (8, 128)  # GPUs and cores that `ghost plan` assumes
Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")]  # may be left out


def plan(
    what: tyro.conf.Positional[str] = "paper",
    scale: Scale = "laptop",
    gpus: int | None = None,
    cores: int | None = None,
    here: bool = False,
    keep: bool = False,
) -> None:
    """Estimate what a build costs: jobs, hours, what is already there, the critical path, the time on so many GPUs.

    Args:
        what: a figure or table such as fig:diagnostic, an experiment such as libero_mlp_rollout, or `paper` for all.
        gpus: how many GPUs the cluster gives you at once; 8 if left out, and with --here those of this machine.
        cores: how many cores; 128 if left out, and with --here those of this machine.
        here: on this machine, without Slurm.
        keep: instead of a plan, keep what the build's records say about time and memory, in data/bench/units.json and
            data/bench/jobs.json, from which other builds are priced.
    """
    from ghost.project import job_times
    from ghost.project.plan import plan as plan_artefact
    from ghost.project.plan import this_machine
    from ghost.project.prices import keep as keep_measurements

    config = open_build(scale)
    if keep:
        print(keep_measurements(config.data), job_times.keep(config), sep="\n")
        return
    there = this_machine() if here else CLUSTER
    asked = [given if given is not None else known for given, known in zip((gpus, cores), there, strict=True)]
    print(plan_artefact(what, config, gpus=asked[0], cores=asked[1], here=here))


def rehearse(
    experiments: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    scale: Scale = "paper",
    jobs: int = 2,
    slurm: bool = False,
    again: bool = False,
) -> int:
    """Do the first unit of work of each experiment at full size: does it fit, how long does it take, how much memory?
    Exit code 1 if one does not fit.

    Args:
        experiments: the experiments to rehearse, with what they need; all if none is named.
        jobs: how many at a time.
        slurm: run each as a Slurm job with the resources of its rule.
        again: also those that were rehearsed here by the same code, with the same settings.
    """
    from ghost.project.rehearsal import rehearse as rehearse_build
    from ghost.runs import warm

    if not slurm:
        warm.start()  # rehearsals start from a process that has imported what is slow to import, as jobs here do
    said, code = rehearse_build(open_build(scale), experiments, jobs=jobs, slurm=slurm, again=again)
    print(said)
    return code


def pilot(
    experiment: Name = "libero_ghost_pg_rollout",
    scale: Scale = "pilot",
    run: bool = False,
    slurm: bool = False,
) -> int:
    """Take one policy through the whole chain at full size, one seed: the first thing to run on a cluster.

    Without --run, say what it costs and which command starts it.

    Args:
        experiment: the end of the chain.
        run: start it.
        slurm: on the cluster, with the Slurm profile.
    """
    from ghost.project.plan import pilot as plan_pilot

    text, command = plan_pilot(open_build(scale), experiment, slurm=slurm)
    print(text, flush=True)
    return subprocess.run(command, check=False).returncode if run else 0  # noqa: S603  # Snakemake, on our own target


def choose(scale: Scale = "closed_loop_choice") -> None:
    """Choose the learning rate of each policy of LIBERO-10 from candidates; write config/closed_loop_chosen.yaml."""
    from ghost.project.choice import choose as write_choice

    print(write_choice(open_build(scale)))


PLANNING = (plan, rehearse, pilot, choose)
