"""Cells that follow from other cells: what they show, what they rest on, and what is missing."""

import pytest

from ghost.errors import GhostError
from ghost.report.over_cells import over_cells
from ghost.study import EXPERIMENTS
from ghost.study.cells import over
from ghost.study.declarations import Artefact, Cell, check


def made(name, value, *, n=5, runs=("r1",), reduced=False, stand_ins=()):
    return {
        "id": f"tab:x/{name}",
        "value": value,
        "n": n,
        "runs": [*runs],
        "reduced": reduced,
        "stand_ins": [*stand_ins],
    }


def computed(estimator, parts, digits=".3f"):
    names = [part["id"].removeprefix("tab:x/") for part in parts]
    artefact = Artefact("tab", "x", cells=(over(estimator, names, digits, name="it"),))
    (found,) = over_cells(artefact.declaration(), parts)
    return found


@pytest.mark.parametrize(
    ("estimator", "value", "shown"),
    [("least_of", 0.25, "0.250"), ("mean_of", 0.5, "0.500"), ("range_of", 0.25, "0.250 to 0.750")],
)
def test_what_follows_from_numbers(estimator, value, shown):
    found = computed(estimator, [made("a", 0.5), made("b", 0.75), made("c", 0.25), made("d", None, n=0)])
    assert (found["value"], found["shown"], found["n"], found["interval"]) == (value, shown, 3, None)


def test_a_ratio_is_the_first_over_the_second():
    assert computed("ratio_of", [made("a", 9.0), made("b", 4.0)])["shown"] == "2.250"
    for a, b in ((9.0, None), (None, 4.0), (9.0, 0.0)):
        found = computed("ratio_of", [made("a", a), made("b", b)])
        assert (found["shown"], found["value"]) == ("undefined", None)


@pytest.mark.parametrize(
    ("estimator", "value", "shown"),
    [("at_most", 1.5, "met"), ("at_most", 1.51, "missed"), ("at_least", 1.5, "met"), ("at_least", 1.49, "missed")],
)
def test_a_goal_is_met_or_missed(estimator, value, shown):
    found = computed(estimator, [made("a", value), made("goal", 1.5)])
    assert (found["shown"], found["value"]) == (shown, float(shown == "met"))
    assert computed(estimator, [made("a", None), made("goal", 1.5)])["shown"] == "undefined"


def test_it_rests_on_all_runs_of_its_parts_and_on_their_doubts():
    first = made("a", 1.0, runs=("r1", "r2"), stand_ins=("backbone",))
    found = computed("least_of", [first, made("b", 2.0, runs=("r2", "r3"), reduced=True)])
    assert found["runs"] == ["r1", "r2", "r3"]
    assert (found["reduced"], found["stand_ins"]) == (True, ["backbone"])


def test_without_any_value_it_has_none():
    assert computed("least_of", [made("a", None, n=0), made("b", None, n=0)])["shown"] == "not run"
    assert computed("least_of", [made("a", None, n=2), made("b", None, n=0)])["shown"] == "undefined"


def test_a_part_that_is_missing_is_named():
    artefact = Artefact("tab", "x", "tabulate", (Cell("a", "switch_speed", "dt"), over("least_of", ["aa"], name="it")))
    with pytest.raises(GhostError, match="tab:x/it follows from tab:x/aa, which is missing; did you mean tab:x/a"):
        over_cells(artefact.declaration(), [made("a", 1.0)])
    with pytest.raises(GhostError, match="tab:x/it: no cell 'aa'; did you mean a"):
        check(EXPERIMENTS, [artefact])
