"""The time of a training is told for all of its epochs, from those that were timed."""

import io

from ghost.evaluations import quiet
from ghost.runs.progress import Progress
from ghost.simulations import training_time
from ghost.simulations.training_time import Settings, run
from ghost.study import EXPERIMENTS

(DECLARED,) = [experiment for experiment in EXPERIMENTS if experiment.name == "training_time"]


def test_the_time_of_some_epochs_is_told_for_all(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(training_time.time, "perf_counter", lambda: next(clock))  # every call is a second later
    settings = Settings(**{**DECLARED.settings, "timed_epochs": 4})
    outcome = run(settings, seed=0, progress=Progress(stream=io.StringIO()))
    found = {(m.condition, m.metric): m for m in outcome.measured}
    trained = found["learned_potential", "training_s"]
    assert (trained.value, trained.n) == (2000 * 1 / 4, 4)
    assert 0 <= found["training_s", quiet.METRIC].value <= 1


def test_it_is_declared_as_timed_and_trains_what_the_diagnostic_trains():
    by_name = {experiment.name: experiment for experiment in EXPERIMENTS}
    assert DECLARED.timed
    assert DECLARED.settings["learned_potential"] == by_name["learned_potential"].settings
    assert DECLARED.settings["timed_epochs"] == by_name["learned_potential"].settings["epochs"]
