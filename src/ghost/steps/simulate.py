"""Run an analytic experiment, once per seed.

The experiment's module has `Settings` and `run(settings, *, seed, progress) -> Outcome`.
"""

from ghost.runs.driver import Job, Plan, main
from ghost.runs.progress import Progress


def simulate(job: Job) -> Plan:
    """Run an analytic experiment."""
    (settings,) = job.read(job.module.Settings)
    return Plan(lambda unit: job.module.run(settings, seed=unit.seed, progress=Progress()))


if __name__ == "__main__":
    main(simulate)
