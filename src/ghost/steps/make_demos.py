"""Make demonstrations, one data set per seed.

The experiment's module has `Settings` and `make(settings, *, seed, folder) -> Outcome | Split`, which writes a data
set in LeRobot's format into `folder`/dataset and names its files, or returns trajectories as arrays
(`ghost.data.trajectories`). Where the result depends on files from elsewhere, such as LIBERO's assets, `world()`
returns them with their `facts`.
"""

from ghost.runs.driver import Job, Plan, main


def make_demos(job: Job) -> Plan:
    """Make a data set of demonstrations."""
    (settings,) = job.read(job.module.Settings)
    world = getattr(job.module, "world", None)
    assets = world() if world else None
    return Plan(
        lambda unit: job.module.make(settings, seed=unit.seed, folder=unit.folder),
        facts=assets.facts if assets else {},
    )


if __name__ == "__main__":
    main(make_demos)
