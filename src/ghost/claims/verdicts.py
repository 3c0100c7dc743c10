"""A verdict on each number of the article, from our cells.

Noise has two sources: retraining (the spread over seeds) and rollouts (the spread over trials). The intervals of our
success rates and of their differences hold both; a published rate has that of rollouts alone, since it is of one
training. A published number without a spread is taken as exact. This is to its disadvantage, and the reason says
so.
"""

import importlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scipy.special import stdtr, stdtrit

from ghost.claims.consistency import Finding, NoValueError, described, findings, predicate
from ghost.claims.expressions import evaluate
from ghost.claims.ledger import Claim, Ledger, Relation, numbers
from ghost.errors import GhostError, did_you_mean
from ghost.runs.code import module_path
from ghost.study import EXPERIMENTS

VERDICTS = (
    "identical",  # the same to the printed digits
    "equivalent",  # an average: within the margin with 95 % confidence (two one-sided tests); a p value: on the same
    # side of 0.05; a relation: it holds here too
    "different",  # none of the above, and there are enough runs to say so
    "not enough runs",  # the runs decide neither way
    "not comparable",  # ours rests on a stand-in, a smaller scale or other hardware
    "not attempted",  # a premise, which the article takes from others; or there is no cell for it
    "inconsistent",  # the article's own numbers, or its formula, contradict it; ours cannot agree with both
)
SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9}  # units that are multiples of each other
ROLLOUTS = ("success_rate", "success_share", "rate_difference")  # estimators over trainings and trials
WITHOUT_SPREAD = ("value", "largest", "setting", "runs", "millions", "least_of", "mean_of", "range_of")
Cells = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim or a relation, with its reason in words."""

    claim: str
    place: str
    verdict: str
    published: str
    ours: str
    reason: str


def judge_all(ledger: Ledger, cells: Cells, devices: Mapping[str, str] | None = None) -> list[Verdict]:
    """A verdict for every claim and relation; `devices` are the GPU models of runs, by run id."""
    against = defaultdict(list)
    for finding in findings(ledger):
        if not finding.consistent:
            against[finding.claim].append(finding)
    claims = [_judge(claim, ledger, cells, against[claim.id], devices or {}) for claim in ledger.claims.values()]
    return [*claims, *(_judge_relation(r, ledger, cells, against[r.id]) for r in ledger.relations.values())]


def _judge(
    claim: Claim, ledger: Ledger, cells: Cells, contradictions: list[Finding], devices: Mapping[str, str]
) -> Verdict:
    cell = next((cells[identity] for identity in claim.cell if identity in cells), None)
    ours = "" if cell is None else f"{cell['shown']}{' ' + cell['unit'] if cell['unit'] else ''}"

    def say(verdict: str, reason: str) -> Verdict:
        published = f"{claim.printed}{' ' + claim.unit if claim.unit else ''}"
        return Verdict(claim.id, claim.place, verdict, published, ours, reason)

    if contradictions:
        return say("inconsistent", "; ".join(f"{found.rule}: {found.says}" for found in contradictions))
    if claim.judge == "premise":
        return say("not attempted", claim.note)
    if claim.study:
        value = _study_value(claim.study)
        ours = f"{value:g}"
        same = math.isclose(value, claim.number.value, rel_tol=1e-9, abs_tol=1e-12)
        note = f"; {claim.note}" if claim.note else ""
        return say("identical" if same else "different", f"the study has {value:g} ({claim.study}){note}")
    if cell is None:
        return say("not attempted", "the report has no cell for it")
    if cell["value"] is None:
        return say("not enough runs", f"the cell is {cell['shown']}")
    reduced = cell["reduced"] and claim.despite != "reduced"
    doubts = [*(f"stand-in: {name}" for name in cell["stand_ins"]), *(["reduced scale"] if reduced else [])]
    if doubts:
        return say("not comparable", "; ".join(doubts))
    models = sorted({devices.get(run, "unknown") or "no GPU" for run in cell["runs"]})
    theirs = ledger.hardware
    if claim.judge == "hardware" and not (theirs and all(theirs in model for model in models)):
        return say("not comparable", f"measured with {', '.join(models)}; the article: {theirs or 'not in the ledger'}")
    factor = SCALE.get(cell["unit"], 1.0) / SCALE[claim.unit] if claim.unit in SCALE else 1.0
    return say(*JUDGES[claim.judge](claim, ledger, cell, factor))


def _exact(claim: Claim, ledger: Ledger, cell: Mapping[str, Any], factor: float) -> tuple[str, str]:
    value, stated = cell["value"] * factor, numbers(claim.printed)
    slack = stated[0].half_unit * (2 if claim.printed[0] == "≈" else 1) * (1 + 1e-9)
    if cell["estimator"] == "range_of" and len(stated) == 2:
        return _range(claim.printed, slack, [end.value for end in stated], [v * factor for v in _ends(cell["shown"])])
    if claim.printed[0] in "<≤":
        same = value <= stated[0].value
    elif claim.printed[0] in ">≥":
        same = value >= stated[0].value
    elif " to " in claim.printed:
        same = stated[0].value - slack <= value <= stated[1].value + slack
    else:
        same = abs(value - stated[0].value) <= slack
    word = "agrees with" if same else "is not"
    return ("identical" if same else "different"), f"{value:.6g} {word} {claim.printed} to its printed digits"


def _range(printed: str, slack: float, theirs: list[float], ours: list[float]) -> tuple[str, str]:
    """Identical where both ends agree, equivalent where ours lies within theirs."""
    said = f"{ours[0]:.6g} to {ours[1]:.6g}"
    if all(abs(a - b) <= slack for a, b in zip(theirs, ours, strict=True)):
        return "identical", f"{said} agrees with {printed} to its printed digits"
    if theirs[0] - slack <= ours[0] and ours[1] <= theirs[1] + slack:
        return "equivalent", f"{said} lies within {printed}"
    return "different", f"{said} does not lie within {printed}"


def _ends(shown: str) -> list[float]:
    low, high = (float(end.replace(",", "")) for end in shown.split(" to "))
    return [low, high]


def _significance(claim: Claim, ledger: Ledger, cell: Mapping[str, Any], factor: float) -> tuple[str, str]:
    if cell["n"] < 2:
        return "not enough runs", "one pair gives no p value"
    sides = ["below" if p < 0.05 else "not below" for p in (claim.number.value, cell["value"])]
    verdict = "equivalent" if sides[0] == sides[1] else "different"
    return verdict, f"published {claim.printed} is {sides[0]} 0.05, ours is {sides[1]}, over {cell['n']} pairs"


def _statistical(claim: Claim, ledger: Ledger, cell: Mapping[str, Any], factor: float) -> tuple[str, str]:
    """Two one-sided t-tests (Welch) with the stated margin, then the test of a difference."""
    stated, value = numbers(claim.printed), cell["value"] * factor
    verdict, reason = _exact(claim, ledger, cell, factor)
    without_spread = cell["estimator"] in WITHOUT_SPREAD
    if without_spread or claim.printed[0] in "<>≤≥" or " to " in claim.printed:
        return verdict, reason
    points = claim.unit in ("%", "pp")
    margin = ledger.margin("points") if points else ledger.margin("percent") / 100 * abs(stated[0].value)
    theirs, others, their_noise = _published_error(claim, ledger)
    mine = _own_error(cell, factor)
    if mine is None:
        return "not enough runs", f"{value:.6g} is from one run, which has no spread"
    difference, freedom = value - stated[0].value, float(max(1, _independent(cell) - 1))
    error = math.hypot(mine, theirs)
    if theirs:
        freedom = error**4 / (mine**4 / freedom + theirs**4 / others)
    said = (
        f"difference {difference:+.3g}, margin {margin:.3g}; standard error {mine:.2g} here"
        f" ({'retraining and rollouts' if cell['estimator'] in ROLLOUTS else 'retraining'}, n = {cell['n']})"
        f" and {theirs:.2g} there ({their_noise})"
    )
    if error == 0:
        return ("equivalent" if abs(difference) <= margin else "different"), said
    if abs(difference) + stdtrit(freedom, 0.95) * error <= margin:
        return "equivalent", said
    differs = 2 * stdtr(freedom, -abs(difference) / error) < 0.05
    return ("different" if differs else "not enough runs"), said


JUDGES: dict[str, Callable[[Claim, Ledger, Mapping[str, Any], float], tuple[str, str]]] = {
    "exact": _exact,
    "significance": _significance,
    "statistical": _statistical,
    "hardware": _statistical,
}


def _published_error(claim: Claim, ledger: Ledger) -> tuple[float, int, str]:
    """The standard error of a published average, its degrees of freedom, and its source."""
    known = [place for place in ledger.noise if claim.id == place or claim.id.startswith(f"{place}/")]
    if known:
        noise, (mean, *std) = ledger.noise[max(known, key=len)], (found.value for found in numbers(claim.printed))
        freedom = max(1, noise.runs - 1)
        if std:
            return std[0] / math.sqrt(noise.runs), freedom, f"{noise.kind}, n = {noise.runs}"
        if noise.kind == "rollout" and claim.unit == "%":
            error = 100 * math.sqrt(max(0.0, mean / 100 * (1 - mean / 100)) / noise.runs)
            return error, freedom, f"rollouts of one model, n = {noise.runs}"
    return 0.0, 1, "not published, taken as exact"


def _own_error(cell: Mapping[str, Any], factor: float) -> float | None:
    """The standard error of our average, from its 95 % interval. Of a success rate it is rather too large than too
    small: its interval has fewer degrees of freedom than trials."""
    if not cell["interval"] or _independent(cell) < 2:
        return None
    low, high = map(float, cell["interval"])
    return (high - low) / 2 / float(stdtrit(_independent(cell) - 1, 0.975)) * factor


def _independent(cell: Mapping[str, Any]) -> int:
    """How many values the interval is over: n, but for a mean over episodes, whose interval is over runs."""
    return len(cell["runs"]) if cell["estimator"] in ("over_episodes", "mean_where_run") else int(cell["n"])


def _study_value(expression: str) -> float:
    """An expression over the study's settings and the code's constants, at the article's own size."""
    settings = {f"{e.name}.{key}": value for e in EXPERIMENTS for key, value in e.settings.items()}
    settings |= {f"{e.name}.seeds": e.seeds for e in EXPERIMENTS}

    def name(dotted: str) -> Any:
        if dotted not in settings:
            raise GhostError(f"claims: the study has no {dotted}{did_you_mean(dotted, settings)}")
        return settings[dotted]

    def code(dotted: str) -> Any:
        module, _, constant = str(dotted).rpartition(".")
        if not (constant.isupper() and module_path(module) and hasattr(importlib.import_module(module), constant)):
            raise GhostError(f"claims: {dotted} is not a constant of our code")
        return getattr(importlib.import_module(module), constant)

    def count(items: Iterable[Any], item: Any) -> int:
        return list(items).count(item)

    value = evaluate(expression, {"code": code, "set": set, "count": count}, name)
    if not isinstance(value, int | float):
        raise GhostError(f"claims: {expression!r} is no number")
    return float(value)


def _judge_relation(relation: Relation, ledger: Ledger, cells: Cells, contradictions: list[Finding]) -> Verdict:
    def say(verdict: str, ours: str, reason: str) -> Verdict:
        return Verdict(f"relation:{relation.id}", "relation", verdict, relation.says, ours, reason)

    if contradictions:
        note = f" ({relation.note})" if relation.note else ""
        return say("inconsistent", "", f"the article's own numbers say otherwise: {contradictions[0].says}{note}")
    known = values(cells)
    answers = {c.id: cell for c in ledger.claims.values() if (cell := next((i for i in c.cell if i in cells), ""))}
    if relation.of == "cells":
        answers = {cell: cell for cell in cells}
    try:
        asked = {name: [*known.get(cell, []), math.nan, math.nan] for name, cell in answers.items()}
        holds, used = predicate(relation.holds, asked)
    except NoValueError as error:
        return say("not enough runs", "", str(error))
    except GhostError:  # a claim without a cell
        return say("not attempted", "", "some of its numbers have no cell")
    used = {name: known[answers[name]] for name in used}
    behind = [cells[answers[claim]] for claim in used]
    doubts = sorted({name for cell in behind for name in cell["stand_ins"]})
    ours, said = "holds" if holds else "does not hold", described(used)
    if doubts or any(cell["reduced"] for cell in behind):
        return say("not comparable", ours, f"{ours} here, on {', '.join(doubts) or 'a reduced scale'}: {said}")
    return say("equivalent" if holds else "different", ours, said)


def values(cells: Cells) -> dict[str, list[float]]:
    """Cells as numbers: the value, and the deviation where one is shown."""
    return {
        identity: [cell["value"], *map(float, re.findall(r" ± ([\d.]+)", cell["shown"]))]
        for identity, cell in cells.items()
        if cell["value"] is not None
    }
