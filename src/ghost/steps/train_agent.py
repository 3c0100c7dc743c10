"""Train an agent, once per seed.

The experiment's module is an agent (`ghost.agents` describes the contract). Its settings are the agent's `Settings` and
`ghost.training.loop.Training` in one flat list. It needs demonstrations or histories; an agent that learns by acting
needs nothing.
"""

from ghost.runs.driver import Job, Plan, main
from ghost.training.loop import fit, read_training


def train_agent(job: Job) -> Plan:
    """Train an agent on demonstrations, on histories or by acting."""
    settings, training = read_training(job)
    return Plan(lambda unit: fit(job, settings, training, job.module.gather(settings, unit.runs), unit))


if __name__ == "__main__":
    main(train_agent)
