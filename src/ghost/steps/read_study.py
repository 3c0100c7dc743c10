"""Bring what a study of another machine measured into the report, as runs: one for each shipped run.

The closed-loop study takes hours, so the pipeline does not run it. It reads the files that `ghost ship` put into the
repository. Every file is verified against its manifest, and every record against its own hash.
"""

from ghost.data.shipped import Settings, copied, described, shipped_runs
from ghost.runs.driver import Job, Plan, main


def read_study(job: Job) -> Plan:
    """Read shipped runs of data/studies."""
    (settings,) = job.read(Settings)
    runs = shipped_runs(job.reads)
    recorded = {str(seed): described(run, settings.build) for seed, run in runs.items()}
    return Plan(lambda unit: copied(runs[unit.seed], unit.folder), facts={"recorded": recorded})


if __name__ == "__main__":
    main(read_study)
