"""The commands of `ghost` for before a build: what it costs, whether it fits, a first chain. Imports are late."""

import subprocess
from typing import Annotated

import tyro

from ghost.project.commands import Scale, open_build

Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")]  # may be left out


def plan(
    what: tyro.conf.Positional[str] = "paper",
    scale: Scale = "laptop",
    gpus: int = 8,
    cores: int = 128,
    keep: bool = False,
) -> None:
    """Estimate what a build costs: jobs, hours, what is already there, the critical path, the time on so many GPUs.

    Args:
        what: a figure or table such as fig:diagnostic, an experiment such as libero_mlp_rollout, or `paper` for all.
        gpus: how many GPUs the cluster gives you at once.
        cores: how many cores.
        keep: instead of a plan, keep what the build's records say about time and memory, in data/bench/units.json, from
            which other builds are priced.
    """
    from ghost.project.plan import plan as plan_artefact
    from ghost.project.prices import keep as keep_measurements

    config = open_build(scale)
    print(keep_measurements(config.data) if keep else plan_artefact(what, config, gpus=gpus, cores=cores))


def rehearse(
    experiments: Annotated[tuple[str, ...], tyro.conf.Positional] = (),
    scale: Scale = "paper",
    jobs: int = 2,
    slurm: bool = False,
) -> int:
    """Do the first unit of work of each experiment at full size: does it fit, how long does it take, how much memory?
    Exit code 1 if one does not fit.

    Args:
        experiments: the experiments to rehearse, with what they need; all if none is named.
        jobs: how many at a time.
        slurm: run each as a Slurm job with the resources of its rule.
    """
    from ghost.project.rehearsal import rehearse as rehearse_build

    said, code = rehearse_build(open_build(scale), experiments, jobs=jobs, slurm=slurm)
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


PLANNING = (plan, rehearse, pilot)
