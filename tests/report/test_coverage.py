"""Does a 95 % interval cover in 95 % of repetitions, and does a test at 5 % reject a true hypothesis in 5 %?

By simulation of the designs that the study has, with random numbers of a fixed seed: one, three and five trainings on
20, 100 and 200 trials of ten tasks. Tasks differ as those of LIBERO-10 do, some trials are harder than others for every
training, some trainings are better than others, and each has tasks of its own that it fails.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import special

from ghost.report import rates, statistics
from ghost.report.rates import Outcomes

REPETITIONS = 250  # of each rate in each design
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
TASKS = 10
# Standard deviations on the scale of log odds. 0.2 is a spread of about 3 points over trainings, as the article prints.
OF_TASKS, OF_TRIALS, OWN_TRIALS = 1.0, 0.8, 0.6
OF_TRAININGS = {"alike": 0.0, "as published": 0.2, "very unlike": 0.5}


def noise(repetitions: int) -> float:
    """How far a share of 0.95 may be off by chance."""
    return 2.6 * math.sqrt(0.95 * 0.05 / repetitions)


@dataclass(frozen=True)
class World:
    """The difficulty of tasks and trials, which all policies share."""

    rng: np.random.Generator
    trials: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", np.repeat(np.arange(TASKS), self.trials // TASKS))
        object.__setattr__(self, "task", self.rng.normal(0, OF_TASKS, TASKS))
        object.__setattr__(self, "trial", self.rng.normal(0, OF_TRIALS, self.trials))

    def policy(self, rate: float, trainings: int, unlike: float) -> tuple[Outcomes, float]:
        """What a policy did, and its true rate: of all trainings and trials, or of its only training."""
        rng, single = self.rng, trainings == 1
        of_trainings = rng.normal(0, unlike, (trainings, 1)) + rng.normal(0, 1.2 * unlike, (trainings, TASKS))
        of_tasks = special.logit(rate) + self.task  # [tasks]
        own = rng.normal(0, OWN_TRIALS, self.trials)
        success = rng.random((trainings, self.trials)) < special.expit(
            (of_tasks + of_trainings)[:, self.tasks] + self.trial + own
        )
        rest = math.hypot(OF_TRIALS, OWN_TRIALS, *(() if single else (unlike, 1.2 * unlike)))
        centre = of_tasks + (of_trainings[0] if single else 0)
        true = (special.expit(centre[:, None] + rest * NODES) @ WEIGHTS).mean() / WEIGHTS.sum()
        return Outcomes(success.astype(float), self.tasks), float(true)


def worlds(trials: int, seed: int, repetitions: int = REPETITIONS):
    rng = np.random.default_rng(seed)
    return (World(rng, trials) for _ in range(repetitions))


def covered(interval: statistics.Interval, true: float) -> bool:
    return interval[0] <= true <= interval[1]


@pytest.mark.slow
@pytest.mark.parametrize("unlike", OF_TRAININGS)
@pytest.mark.parametrize("trainings", [1, 3, 5])
@pytest.mark.parametrize("trials", [20, 100, 200])
def test_the_interval_of_a_rate(trainings, trials, unlike):
    """The mean over five rates lies between 92 and 98 %, but for the noise of so few repetitions."""
    hits = []
    for seed, rate in enumerate((0.05, 0.3, 0.7, 0.9, 0.98)):
        made = [world.policy(rate, trainings, OF_TRAININGS[unlike]) for world in worlds(trials, seed)]
        hits.append([covered(rates.rate(found).interval, true) for found, true in made])
    assert 0.92 - noise(len(hits) * REPETITIONS) / 2 <= np.mean(hits) <= 0.98 + noise(len(hits) * REPETITIONS) / 2
    assert 0.92 - noise(REPETITIONS) <= np.mean(hits, axis=1).min()


@pytest.mark.parametrize("unlike", ["as published", "very unlike"])
def test_pooling_trainings_as_if_trials_were_independent_does_not_cover(unlike):
    made = [world.policy(0.7, 5, OF_TRAININGS[unlike]) for world in worlds(200, seed=2, repetitions=600)]
    pooled = [covered(statistics.wilson(int(f.success.sum()), f.success.size).interval, true) for f, true in made]
    ours = [covered(rates.rate(f).interval, true) for f, true in made]
    assert np.mean(pooled) < 0.9
    assert 0.92 <= np.mean(ours) <= 0.98


def test_a_percentile_bootstrap_over_trainings_and_trials_does_not_cover():
    """The reason for Student's quantile: three trainings drawn anew say too little about those that were not done."""
    rng, hits = np.random.default_rng(0), []
    for world in worlds(200, seed=3):
        found, true = world.policy(0.7, 3, OF_TRAININGS["very unlike"])
        rows, columns = (rng.multinomial(n, np.full(n, 1 / n), 300) / n for n in found.success.shape)
        drawn = np.einsum("bi,ij,bj->b", rows, found.success, columns, optimize=True)
        hits.append(covered(tuple(np.quantile(drawn, (0.025, 0.975))), true))
    assert np.mean(hits) < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("unlike", OF_TRAININGS)
@pytest.mark.parametrize("trainings", [(1, 1), (3, 3), (5, 5), (5, 1)])
@pytest.mark.parametrize("trials", [20, 200])
def test_the_interval_of_a_difference(trainings, trials, unlike):
    """92 to 98 %; of 20 trials, or of trainings that are exactly alike, it may be wider: up to 99 %."""
    hits = []
    for seed, pair in enumerate(((0.05, 0.05), (0.7, 0.25), (0.98, 0.9))):
        for world in worlds(trials, seed):
            (a, true_a), (b, true_b) = (
                world.policy(rate, n, OF_TRAININGS[unlike]) for rate, n in zip(pair, trainings, strict=True)
            )
            hits.append(covered(rates.difference(a, b).interval, true_a - true_b))
    highest = 0.99 if unlike == "alike" or trials == 20 else 0.98
    assert 0.92 <= np.mean(hits) <= highest + noise(len(hits)) / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trainings", "unlike"),
    [((1, 1), "alike"), ((5, 1), "alike"), ((3, 3), "as published"), ((3, 3), "very unlike"), ((5, 5), "very unlike")],
)
@pytest.mark.parametrize("trials", [20, 200])
def test_no_difference_is_rarely_found(trainings, trials, unlike):
    """A single training is compared as it is, so where there is one, they are alike: else there is a difference."""
    found = []
    for rate in (0.05, 0.7, 0.95):
        for world in worlds(trials, seed=5):
            a, b = (world.policy(rate, n, OF_TRAININGS[unlike])[0] for n in trainings)
            found.append(rates.difference_p(a, b).estimate < 0.05)
    assert np.mean(found) <= 0.06


def test_two_trainings_cover_less_where_trainings_are_very_unlike():
    """What remains: the spread of two values says little. Their intervals are wide, and still somewhat too narrow."""
    made = [world.policy(0.7, 2, OF_TRAININGS["very unlike"]) for world in worlds(200, seed=6)]
    assert 0.85 <= np.mean([covered(rates.rate(found).interval, true) for found, true in made]) <= 0.95


@pytest.mark.parametrize("trainings", [1, 3])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_trainings_with_episodes_of_their_own(trainings, rate):
    """The Dark Room and Meta-World: 20 episodes each, some trainings better than others."""
    rng, hits = np.random.default_rng(7), []
    for _ in range(600):
        centre = special.logit(rate) + (rng.normal(0, 0.4, trainings) if trainings > 1 else np.zeros(1))
        success = rng.random((trainings, 20)) < special.expit(centre)[:, None]
        spread = 0.4 if trainings > 1 else 0.0
        true = float(special.expit(special.logit(rate) + spread * NODES) @ WEIGHTS / WEIGHTS.sum())
        found = Outcomes(success.astype(float), np.zeros(20), shared=trainings == 1)
        hits.append(covered(rates.rate(found).interval, true))
    assert 0.92 - noise(600) / 2 <= np.mean(hits) <= 0.98 + noise(600) / 2


@pytest.mark.parametrize("n", [3, 5, 10])
def test_intervals_over_seeds(n):
    """Means, effects, relative changes and ratios of pairs whose sides correlate; the pooled d of sides that do not."""
    rng, hits = np.random.default_rng(8), {"mean": [], "change": [], "ratio": [], "paired_d": [], "cohens_d": []}
    for _ in range(500):
        both = rng.normal(0, 0.05, n)
        a, b = 1.1 + both + rng.normal(0, 0.05, n), 1.0 + both + rng.normal(0, 0.05, n)
        apart = rng.normal(1.1, 0.1, n), rng.normal(1.0, 0.1, n)
        hits["mean"].append(covered(statistics.student_mean(a).interval, 1.1))
        hits["change"].append(covered(statistics.relative_change(a, b).interval, 10))
        hits["ratio"].append(covered(statistics.paired_ratio(a, b).interval, 1.1))
        hits["paired_d"].append(covered(statistics.paired_d(a, b).interval, 0.1 / math.hypot(0.05, 0.05)))
        hits["cohens_d"].append(covered(statistics.cohens_d(*apart).interval, 1.0))
    for name, found in hits.items():
        assert 0.95 - noise(500) <= np.mean(found) <= 0.95 + noise(500), name


def test_a_percentile_bootstrap_over_seeds_does_not_cover():
    rng, hits = np.random.default_rng(9), []
    for _ in range(500):
        values = rng.normal(0, 1, 5)
        means = values[rng.integers(5, size=(300, 5))].mean(axis=1)
        hits.append(covered(tuple(np.quantile(means, (0.025, 0.975))), 0.0))
    assert np.mean(hits) < 0.9


def test_correlations_and_slopes_over_ten_tasks():
    rng, of_r, of_slope = np.random.default_rng(10), [], []
    for _ in range(500):
        x = rng.normal(size=10)
        y = 0.75 * x + rng.normal(size=10)  # r = 0.6
        of_r.append(covered(statistics.correlation(x, y).interval, 0.6))
        of_slope.append(covered(statistics.slope(x, y).interval, 0.75))
    for found in (of_r, of_slope):
        assert 0.95 - noise(500) <= np.mean(found) <= 0.95 + noise(500)
