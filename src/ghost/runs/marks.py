"""The marks of a run: what it stands in for, and which of its settings are smaller than the paper's.

A run has marks of its own and those of all runs that it used. They follow from the study, the build and the evidence in
the record. So nobody has to believe a record: the driver and `ghost audit --verify` derive the same marks here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]


@dataclass(frozen=True)
class StandIn:
    """What an experiment stands in for, unless the evidence of its run shows the real thing."""

    of: str  # as records, cells and pages carry it
    evidence: str = ""  # a fact of the run, or <condition>/<metric> of a measured value; empty: always a stand-in
    real: Any = None  # what the evidence is for the real thing, or
    made: Any = None  # what it is for the stand-in

    def holds(self, facts: Mapping[str, Any], measured: Mapping[str, float]) -> bool:
        """Whether the run is a stand-in. Evidence that is missing does not show the real thing."""
        seen = facts.get(self.evidence, measured.get(self.evidence))
        if not self.evidence or seen is None:
            return True
        return bool(seen != self.real) if self.real is not None else bool(seen == self.made)


def marks(
    stand_ins: Iterable[StandIn],
    reduced: Mapping[str, Any],
    facts: Mapping[str, Any],
    measured: Mapping[str, float],
    inputs: Iterable[Record],
) -> dict[str, Any]:
    """`stand_ins` and `reduced` of a record: those of the experiment itself, and those of the records of its inputs."""
    used = list(inputs)
    own = {stand_in.of for stand_in in stand_ins if stand_in.holds(facts, measured)}
    return {
        "stand_ins": sorted(own.union(*(record["stand_ins"] for record in used))),
        "reduced": {**_inherited(used), **reduced},
    }


def _inherited(records: Iterable[Record]) -> dict[str, Any]:
    """What is reduced in the inputs: a test of a small model is a reduced test, whatever its own size."""
    return {
        key if "." in key else f"{record['experiment']}.{key}": value
        for record in records
        for key, value in record["reduced"].items()
    }
