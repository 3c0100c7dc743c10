import io
import math
import time

import pytest
import torch

from ghost.evaluations import latency
from ghost.evaluations.latency import Settings, TimedHead, evaluate
from ghost.runs.progress import Progress
from ghost.study import EXPERIMENTS

DECLARED = next(e for e in EXPERIMENTS if e.name == "latency").settings
DECODERS = DECLARED["decoders"]
TIMED = ("ghost", "mlp", "dit")


@pytest.fixture
def few(monkeypatch):
    """The decoders that are quick to build; the rest is counted all the same."""
    measure = latency.measure
    monkeypatch.setattr(latency, "measure", lambda names, *rest: measure([n for n in names if n in TIMED], *rest))


def run(**settings):
    few = {"rounds": 4, "warm_up": 1, "dit_every": 0}
    given = Settings(**{**DECLARED, **few, **settings})
    outcome = evaluate(given, None, {}, seed=0, progress=Progress(stream=io.StringIO()))
    return outcome, {(m.condition, m.metric): m.value for m in outcome.measured}


def test_parameters_are_the_published_ones(few):
    _, found = run()
    assert found["ghost", "parameters"] == 2_315_746
    published = {
        "ghost_dual": 2.94,
        "mlp": 2.1,
        "neural_ode": 2.2,
        "cvae": 2.1,
        "transformer": 2.0,
        "diffusion": 2.2,
        "dit": 1068.8,
    }
    for name, millions in published.items():
        assert found[name, "parameters"] / 1e6 == pytest.approx(millions, abs=0.05)
    assert round(found["dit_over_ghost", "parameters"]) == 462
    assert round(found["dual_over_single", "parameters_percent"]) == 27
    # the paper prints 4,614; its own counts give 4,615
    assert round(found["dit_over_ghost", "aggregate_parameters"]) == 4615
    assert found["dit", "aggregate_parameters"] == 10 * found["dit", "parameters"]


def test_latencies_are_medians_and_what_is_not_measured_is_nan(few):
    outcome, found = run()
    for name in ("ghost", "mlp"):
        assert len(outcome.arrays[f"{name}/latency_ms"]) == 4
        quartiles = [found[name, f"latency_{which}ms"] for which in ("25_", "", "75_")]
        assert 0 < quartiles[0] <= quartiles[1] <= quartiles[2]
    assert math.isnan(found["dit", "latency_ms"])
    assert math.isnan(found["dit_over_ghost", "latency"])


def test_what_ghost_leaves_of_a_control_step(few):
    _, found = run(control_hz=50)
    assert found["ghost", "latency_leaves_ms"] == 20 - found["ghost", "latency_ms"]
    assert found["latency_leaves_ms", "busy_share"] == found["latency_ms", "busy_share"]


def test_the_large_one_takes_part_in_some_rounds():
    decoders = {"mlp": DECODERS["mlp"], "dit": DECODERS["mlp"]}
    settings = Settings(**{**DECLARED, "rounds": 7, "warm_up": 2, "dit_every": 3, "decoders": decoders})
    found = latency.measure(["mlp", "dit"], settings, 0, Progress(stream=io.StringIO()), {})
    assert (len(found["mlp"]), len(found["dit"])) == (7, 3)


def test_a_head_that_is_loaded_is_timed_itself(few):
    """GR00T's: nothing of ours is built or counted in its place, also where ours would not fit into memory."""
    acted = []

    def act() -> torch.Tensor:
        time.sleep(0.01)
        acted.append(1)
        return torch.zeros(1)

    ours = {name: decoder for name, decoder in DECODERS.items() if name != "dit"}
    settings = Settings(**{**DECLARED, "rounds": 4, "warm_up": 2, "dit_every": 2, "decoders": ours})
    outcome = evaluate(settings, None, {"dit": TimedHead(7_000, act)}, seed=0, progress=Progress(stream=io.StringIO()))
    found = {(m.condition, m.metric): m.value for m in outcome.measured}
    assert len(acted) == 1 + 2  # before the rounds that count, and in every second of them
    assert len(outcome.arrays["dit/latency_ms"]) == 2
    assert 10 <= found["dit", "latency_ms"] < 1000
    assert found["dit", "parameters"] == 7_000
    assert found["dit_over_ghost", "parameters"] == 7_000 / found["ghost", "parameters"]
    assert found["dit_over_ghost", "latency"] == found["dit", "latency_ms"] / found["ghost", "latency_ms"]


def test_memory_is_asked_for():
    assert latency.fits(1)
    assert not latency.fits(1 << 60)
    with pytest.raises(ValueError, match="rounds must be at least 1, got 0"):
        Settings(**{**DECLARED, "rounds": 0})


def test_only_decoders_are_imported():
    decoders = {"a": {"module": "os.path", "settings": {}}}
    with pytest.raises(ValueError, match=r"a is not below ghost.decoders: os.path"):
        Settings(**{**DECLARED, "decoders": decoders})


def test_how_busy_the_machine_was_is_measured_for_every_time(few):
    _, found = run()
    for metric in ("latency_ms", "latency_25_ms", "latency_75_ms", "latency"):
        assert 0 <= found[metric, "busy_share"] <= 1
    assert ("parameters", "busy_share") not in found
