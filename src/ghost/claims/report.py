"""`ghost claims`: all verdicts as a table, or one verdict with its reasons."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from ghost.claims.article import keys, read_numbers
from ghost.claims.consistency import findings
from ghost.claims.ledger import NUMBERS, Ledger
from ghost.claims.verdicts import VERDICTS, Verdict, judge_all
from ghost.errors import GhostError, did_you_mean
from ghost.report.cells import read_cells
from ghost.runs.records import open_runs
from ghost.study.builds import Config


def judge(config: Config, ledger: Ledger) -> list[Verdict]:
    """The verdicts on a ledger for the cells of a build, as far as they are made."""
    path = config.data / "cells.jsonl"
    cells = read_cells(path) if path.exists() else {}
    manifests = [config.manifest(experiment.name) for experiment in config.experiments]
    devices = gpu_models(tuple(manifest for manifest in manifests if manifest.exists()))
    return judge_all(ledger, cells, devices)


def gpu_models(manifests: tuple[Path, ...]) -> dict[str, str]:
    """The GPUs of each run, by run id."""
    runs = [run for manifest in manifests for run in open_runs(manifest)]
    return {run.run_id: ", ".join(gpu["model"] for gpu in run.record()["gpus"]) for run in runs}


def count(ledger: Ledger, verdicts: list[Verdict]) -> dict[str, dict[str, Counter[str]]]:
    """Section -> place -> verdict -> how many."""
    counted: dict[str, dict[str, Counter[str]]] = {}
    for verdict in verdicts:
        section = next((name for name, places in ledger.sections.items() if verdict.place in places), "other")
        counted.setdefault(section, {}).setdefault(verdict.place, Counter())[verdict.verdict] += 1
    return {name: counted[name] for name in (*ledger.sections, "other") if name in counted}


def overview(ledger: Ledger, verdicts: list[Verdict]) -> str:
    """A line per table and figure, a sum per section and in total."""
    lines = [
        _line("", {name: "not" for name in VERDICTS if name.startswith("not ")}),
        _line("", {name: name.removeprefix("not ") for name in VERDICTS}),
    ]
    for section, places in count(ledger, verdicts).items():
        lines.append(_line(section.upper(), sum(places.values(), Counter())))
        lines += [_line(f"  {place}", counts) for place, counts in places.items()]
    return "\n".join([*lines, _line("TOTAL", Counter(verdict.verdict for verdict in verdicts))])


def _line(name: str, shown: Mapping[str, object]) -> str:
    return (f"{name:26}" + "".join(f"{shown.get(verdict) or '':>13}" for verdict in VERDICTS)).rstrip()


def explain(identity: str, ledger: Ledger, verdicts: list[Verdict]) -> str:
    """One claim with its places and reasons, or all claims below a prefix, a line each."""
    by_id = {verdict.claim: verdict for verdict in verdicts}
    if identity not in by_id:
        below = [v for v in verdicts if v.claim.startswith((f"{identity.rstrip('/:')}/", f"{identity}:"))]
        below = below or [v for v in verdicts if v.verdict == identity]
        if not below:
            raise GhostError(f"no claim {identity!r}{did_you_mean(identity, [*by_id, *VERDICTS])}")
        width = max(len(verdict.claim) for verdict in below)
        return "\n".join(f"{v.claim:{width}}  {v.verdict:15}  {v.published:>12}  {v.ours}".rstrip() for v in below)
    verdict = by_id[identity]
    fields = [("claim", identity), ("published", verdict.published), ("ours", verdict.ours)]
    fields += [("verdict", verdict.verdict), ("because", verdict.reason)]
    if identity in ledger.claims:
        claim = ledger.claims[identity]
        places = {item.key: item.place for item in read_numbers(NUMBERS)}
        for at, printed in claim.at.items():
            where = places.get(keys(at)[0], "")
            fields.append(("printed", f"{printed} in line {at.rpartition('.')[0]} ({where})"))
        cells = ", ".join(claim.cell)
        fields += [("judged", claim.judge), ("cell", cells), ("study", claim.study), ("note", claim.note)]
    else:
        relation = ledger.relations[identity.removeprefix("relation:")]
        fields += [("line", str(relation.line)), ("holds if", relation.holds), ("note", relation.note)]
    checks = [found for found in findings(ledger) if found.claim == identity.removeprefix("relation:")]
    fields += [("recomputed", f"{'agrees' if f.consistent else 'CONTRADICTS'}: {f.rule}: {f.says}") for f in checks]
    return "\n".join(f"{name:10} {text}" for name, text in fields if text)
