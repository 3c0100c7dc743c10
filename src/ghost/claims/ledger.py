"""The ledger, paper/claims.yaml: every number that the article publishes, and how it is judged.

    claims       one number each: its places in the article, its text there, its unit, and what it is compared with:
                 a cell of ours (`cell`; the first is judged, the others are shown) or a value of the study (`study`)
    derived      numbers that follow from others, with the computation
    relations    sentences that assert an order or an effect, as a predicate over claims; over our cells (`of: cells`)
                 where the article prints no number
    noise        per table: over how many runs the article averages, and whether they are retrainings or rollouts
    margins      the largest difference at which two numbers are called equivalent
    non_results  numbers that are not claims, with the reason
    sections     (optional) the parts of the article, each with the tables and figures in it
    hardware     (optional) the device that the article measured times on
    formulas     (optional) the formulas of the article that derivations may call (ghost.claims.formulas)

Ways to judge: exact (counts, settings, formulas), statistical (averages over runs), significance (a p value: which side
of 0.05), hardware (times: only on the same device), premise (what the article takes from others, with the reason in
`note`). Only premises may be without a cell or a value of the study.
"""

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from ghost.errors import GhostError, did_you_mean
from ghost.files import read_yaml
from ghost.forms import COUNT, require

LEDGER = Path("paper/claims.yaml")
NUMBERS = Path("paper/article_numbers.csv")
Judge = Literal["exact", "statistical", "significance", "hardware", "premise"]
FORM = {
    "claims": [{"id": str, "printed": str, "at": [(str, {str: str})], "judge": str}],
    "relations": [{"id": str, "line": COUNT, "says": str, "holds": str}],  # and perhaps note, of
    "derived": [{"claim": str, "rule": str, "from": str}],
    "noise": {str: {"kind": re.compile("retraining|rollout"), "runs": range(1, 10**9)}},
    "margins": {str: float},
    "non_results": [{"name": str, "reason": str, "pattern": str}],
}
MORE = {"unit": str, "study": str, "note": str, "despite": str, "cell": (str, [str])}  # of a claim, if it has them
OF_THE_ARTICLE = {"sections": {str: [str]}, "hardware": str, "formulas": str}  # of a ledger, if it has them
SIGNS = re.compile(r"^(?:[≈<>≤≥] ?)?")


@dataclass(frozen=True)
class Number:
    """A printed number: its value and half a unit of its last digit."""

    value: float
    half_unit: float


@dataclass(frozen=True)
class Claim:
    id: str
    printed: str
    at: dict[str, str]  # line.number(-number) in the article -> the text there
    judge: Judge
    unit: str = ""
    cell: tuple[str, ...] = ()
    study: str = ""  # an expression over settings of the study
    note: str = ""
    despite: str = ""  # `reduced`: a count that a smaller scale does not change

    @property
    def number(self) -> Number:
        """The first printed number."""
        return numbers(self.printed)[0]

    @property
    def place(self) -> str:
        return self.id.split("/")[0] if self.id.startswith(("tab:", "fig:")) else self.id.split(":")[0]


@dataclass(frozen=True)
class Derived:
    claim: str
    rule: str
    computed: str  # an expression over printed numbers
    number: int = 0  # which number of the claim: 1 is the deviation, or the end of a range; -1 is the range of counts


@dataclass(frozen=True)
class Relation:
    id: str
    line: int
    says: str
    holds: str
    note: str = ""
    of: Literal["claims", "cells"] = "claims"  # what `holds` is about


@dataclass(frozen=True)
class Noise:
    kind: Literal["retraining", "rollout"]
    runs: int  # seeds, or episodes


@dataclass(frozen=True)
class NonResult:
    """A kind of number that is not a claim: `pattern`, everywhere or at the places that `at` matches, with a reason."""

    name: str
    reason: str
    pattern: str
    at: str = ""


@dataclass(frozen=True)
class Ledger:
    claims: dict[str, Claim]
    relations: dict[str, Relation]
    derived: tuple[Derived, ...]
    noise: dict[str, Noise]
    margins: dict[str, float]
    non_results: tuple[NonResult, ...]
    sections: dict[str, list[str]] = field(default_factory=dict)
    hardware: str = ""
    formulas: str = ""

    def claim(self, identity: str) -> Claim:
        if identity not in self.claims:
            raise GhostError(f"no claim {identity!r}{did_you_mean(identity, self.claims)}")
        return self.claims[identity]

    def margin(self, name: str) -> float:
        if name not in self.margins:
            raise GhostError(f"claims: margins has no {name!r}{did_you_mean(name, self.margins)}")
        return self.margins[name]


def numbers(printed: str) -> list[Number]:
    """The numbers in a printed string, such as `0.0174 ± 0.0002`, `> 20`, `5.9 to 29` or `9/10`."""
    found = []
    for part in re.split(r" ± | to |/", SIGNS.sub("", printed.removesuffix(" %"))):
        text = part.replace(",", "")
        mantissa, _, exponent = text.partition("e")
        try:
            digits = len(mantissa.partition(".")[2])
            number = Number(float(text), 0.5 * 10.0 ** (-digits + int(exponent or 0)))
            if not math.isfinite(number.value):
                raise ValueError
            found.append(number)
        except (ValueError, OverflowError):
            raise GhostError(f"claims: {printed!r} is not a number") from None
    return found


def read_ledger(path: Path = LEDGER) -> Ledger:
    """Read and check the ledger."""
    loaded = read_yaml(path, FORM)
    for key, form in OF_THE_ARTICLE.items():
        if key in loaded:
            require(loaded[key], form, f"{path}: {key}")
    try:
        claims = [_claim(entry) for entry in loaded["claims"]]
        relations = [_relation(entry) for entry in loaded["relations"]]
        noise = {place: Noise(**entry) for place, entry in loaded["noise"].items()}
        derived = tuple(line for entry in loaded["derived"] for line in _derived(entry))
        kinds = tuple(NonResult(**entry) for entry in loaded["non_results"])
        by_id, by_relation = {c.id: c for c in claims}, {r.id: r for r in relations}
        more = {key: loaded[key] for key in OF_THE_ARTICLE if key in loaded}
        ledger = Ledger(by_id, by_relation, derived, noise, loaded["margins"], kinds, **more)
    except (KeyError, TypeError, AttributeError) as error:
        raise GhostError(f"{path}: {error}") from None
    for kind in kinds:
        for pattern in (kind.pattern, kind.at):
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                raise GhostError(f"{path}: {kind.name}: {pattern!r} is no regular expression: {error}") from None
    for listed in ([c.id for c in claims], [r.id for r in relations]):
        doubled = sorted({identity for identity in listed if listed.count(identity) > 1})
        if doubled:
            raise GhostError(f"{path}: {doubled[0]} is listed twice")
    return ledger


def _relation(entry: dict[str, Any]) -> Relation:
    relation = Relation(**entry)
    require(relation.of, re.compile("claims|cells"), f"claims: {relation.id}: of")
    return relation


def _claim(entry: dict[str, Any]) -> Claim:
    at: dict[str, str] = {}
    for key, form in MORE.items():
        if key in entry:
            require(entry[key], form, f"claims: {entry['id']}: {key}")
    for place in entry["at"]:
        at.update(place if isinstance(place, dict) else {str(place): entry["printed"]})
    cell = entry.get("cell", ())
    judge, known = entry["judge"], get_args(Judge)
    if judge not in known:
        raise GhostError(f"claims: {entry['id']}: no judge {judge!r}{did_you_mean(judge, known)}")
    claim = Claim(**{**entry, "at": at, "cell": (cell,) if isinstance(cell, str) else tuple(cell)})
    for printed in (claim.printed, *at.values()):
        numbers(printed)
    return claim


def _derived(entry: dict[str, Any]) -> list[Derived]:
    """A derivation, once for each name in `for`, which replaces {}."""
    rule, number = entry["rule"], entry.get("number", 0)
    filled = [
        (entry["claim"].replace("{}", name), entry["from"].replace("{}", name)) for name in entry.get("for", [""])
    ]
    return [Derived(claim, rule, computed, number) for claim, computed in filled]
