"""What the closed-loop study says: its tables and figures, and a cell for each of the article's closed-loop claims.

Cells that no table prints are for the text (paper/studies/) and for the predicates behind its words.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ghost.study.cells import over, rate_comparison
from ghost.study.declarations import SEVERAL, SWITCHED, Artefact, Cell, figure
from ghost.study.libero import DEMOS_NAME, GROUPS, MISDIRECTED, PAIRS, SINGLE, SWITCH_AT, TASKS, TOGETHER, VARIANTS
from ghost.study.tables import Column, Row, Text, math, tabulated

HARD, EASY = "closed_loop", "closed_loop_easy"  # builds
LEVELS = {"hard": HARD, "easy": EASY}
AT_EASY = ("libero_mlp", "libero_ghost_pg", "libero_ghost_pz")  # policies that act at the easy level too
GATED = ("libero_mlp_phase", "libero_gru_phase", "libero_ghost_pg", "libero_ghost_pz")  # a head infers their phases
ENDS = ("succeeded", "failed")
SHOWN = ("libero_mlp", "libero_gru_phase", "libero_ghost_pg", "libero_ghost_pz")  # per task
PZ_TOGETHER, PG_TOGETHER = "libero_ghost_pz_ensemble", "libero_ghost_pg_ensemble"


def recorded(name: str, build: str = HARD) -> str:
    """The experiment that reads what an experiment of the study did."""
    return f"{build}_{name}"


def acting(policy: str, build: str = HARD) -> str:
    return recorded(f"{policy}_rollout", build)


def short(policy: str) -> str:
    return policy.removeprefix("libero_")


def _success(policy: str, condition: str = "all", name: str = "", build: str = HARD) -> Cell:
    return Cell(name, acting(policy, build), "success", condition, "success_rate", ".0f", "%")


def _difference(name: str, ours: str, theirs: str, condition: str = "all") -> Cell:
    """Of two rollouts, in the trials that both met."""
    return Cell(name, ours, "success", condition, "rate_difference", "+z.0f", "pp", against=theirs)


def _compared_in(name: str, ours: str, theirs: str, condition: str) -> tuple[Cell, ...]:
    """A difference in shared trials, its p, and the smallest one that the test would have found."""
    made = rate_comparison(ours, theirs, "difference")
    return tuple(
        Cell(f"{name}/{part}", ours, "success", condition, c.estimator, c.digits, c.unit, theirs)
        for part in ("difference", "p", "detectable")
        for c in (made[part],)
    )


# Each claim of the article about two policies in the closed loop: the policy, and that which it is compared with.
CLAIMS: Mapping[str, tuple[str, str]] = {
    "phase_and_mlp": ("libero_mlp_phase", "libero_mlp"),
    "phase_and_ghost": ("libero_ghost_pg", "libero_ghost"),
    "vanilla_and_mlp": ("libero_ghost", "libero_mlp"),
    "persistent": ("libero_ghost_pz", "libero_ghost_pg"),
    "persistent_ensemble": (PZ_TOGETHER, PG_TOGETHER),
    "gru_and_mlp": ("libero_gru_phase", "libero_mlp"),
    "ghost_and_gru": ("libero_ghost_pg", "libero_gru_phase"),
    "ghost_and_mlp": ("libero_ghost_pg", "libero_mlp"),
    **{short(name): (name, "libero_ghost_pg") for name in VARIANTS},
}
# The same after a wrong instruction.
RECOVERIES = {name: CLAIMS[name] for name in ("ghost_and_mlp", "gru_and_mlp", "ghost_and_gru", "persistent")}
NAMES: Mapping[str, Text] = {
    "push": "contrastive push",
    "pull": "trajectory pull",
    "subspace": "subspace basin",
    "quartic": "quartic potential",
}
REFERENCE = {**dict.fromkeys(VARIANTS, ("Ghost PG", "libero_ghost_pg")), "libero_mlp": ("", "")}


def _reference(policy: str) -> tuple[str, str]:
    """As the table names it, and as the study does: the MLP, or Ghost PG for the variants of its attractor."""
    return REFERENCE.get(policy, ("MLP", "libero_mlp"))


def _compared(part: str) -> Callable[[str], Cell | None]:
    def cell(policy: str) -> Cell | None:
        _, against = _reference(policy)
        return rate_comparison(acting(policy), acting(against))[part] if against else None

    return cell


def _row(row: Row) -> Row:
    return Row(row.name, (row.shown[0],), row.of)


def _table() -> Artefact:
    return tabulated(
        "closed_loop_study",
        (
            "Policy",
            Column("success", "Success (%)", _success),
            Column("T8", "Two pots (%)", lambda p: _success(p, "T8")),
            Column("runs", "Runs", lambda p: Cell("", acting(p), "", estimator="runs")),
            Column("trials", "Trials", lambda p: Cell("", acting(p), "success", "all", "trials")),
            Column("against", "compared with", lambda p: _reference(p)[0] or None),
            Column("gain", "Difference (points)", _compared("gain")),
            Column("p", math("p"), _compared("p")),
            Column("holm_p", "Holm", _compared("holm_p")),
            Column("detectable", "Detectable", _compared("detectable")),
            Column("easy", "Easy level (%)", lambda p: _success(p, build=EASY) if p in AT_EASY else None),
        ),
        map(_row, SINGLE),
        map(_row, TOGETHER),
        (Row(short(name), (NAMES[short(name)],), name) for name in VARIANTS),
        more=(
            *(
                cell
                for name, (ours, theirs) in CLAIMS.items()
                for cell in _compared_in(f"claim/{name}", acting(ours), acting(theirs), "all")
            ),
            *_of_t8(),
            *_complexity(),
            *_offline(),
            *(
                Cell(f"{level}/demos/episodes", recorded(DEMOS_NAME, build), "episodes", "all", "value", ".0f")
                for level, build in LEVELS.items()
            ),
        ),
    )


def _of_t8() -> Iterator[Cell]:
    """How inferred phases run through episodes of Ghost PG with two pots, and successes compared with failures."""
    pg, metrics = (
        acting("libero_ghost_pg"),
        {"transitions": "transitions", "second_object_share": "second_object_percent"},
    )
    for name, metric in metrics.items():
        unit = "%" if metric.endswith("percent") else ""
        for end in ENDS:
            condition = f"T8/{end}"
            yield Cell(f"{condition}/{name}", pg, metric, condition, "mean_where_run_with_interval", ".1f", unit)
        ends = {"condition": f"T8/{ENDS[0]}", "against": pg, "against_condition": f"T8/{ENDS[1]}"}
        yield Cell(f"T8/ratio/{name}", pg, metric, estimator="ratio_where_run", digits=".2f", **ends)


def _complexity() -> tuple[Cell, ...]:
    """Whether Ghost PG's advantage over the MLP grows with the sub-phases of a task."""
    pg, mlp = acting("libero_ghost_pg"), acting("libero_mlp")
    fitted = (("r", "z.2f", ""), ("slope", "+z.1f", "pp"))
    some = {**{f"T{task}": (task,) for task in (4, 8)}, **GROUPS}  # the article names the gaps of these two tasks
    return (
        *(
            Cell(f"complexity/{name}", pg, "success", "", f"complexity_{name}_with_interval", digits, unit, mlp)
            for name, digits, unit in fitted
        ),
        *(
            _difference(f"complexity/{name}", pg, mlp, SEVERAL.join(f"T{task}" for task in tasks))
            for name, tasks in some.items()
        ),
    )


def _offline() -> tuple[Cell, ...]:
    """Errors on held-out demonstrations, which the article sets against success."""
    policies = ("libero_mlp", "libero_mlp_phase", "libero_ghost_pg", "libero_ghost_pz")
    pg, pz = (recorded(f"{policy}_offline") for policy in policies[2:])
    return (
        *(
            Cell(f"mse/{short(policy)}", recorded(f"{policy}_offline"), "mse", "all", "mean_with_interval", ".4f")
            for policy in policies
        ),
        Cell("mse/ratio", pg, "mse", "all", "paired_ratio", ".1f", "", pz),
    )


def _condition(pair: Sequence[int], *switched_at: int) -> str:
    """The condition in which the instruction changes at these steps from the first task of a pair to the second."""
    return SEVERAL.join(f"T{pair[0]}-T{pair[1]}{SWITCHED}{at}" for at in switched_at)


def _misdirected() -> Artefact:
    """Recovery after a wrong instruction, by the step of the correction, and over all of them."""
    shown = {row.of: row.shown[0] for row in SINGLE}

    def told(policy: str) -> str:
        return recorded(f"{policy}_misdirected")

    def rate(*switched_at: int) -> Callable[[tuple[str, list[int]]], Cell]:
        def cell(of: tuple[str, list[int]]) -> Cell:
            policy, pair = of
            return Cell("", told(policy), "success", _condition(pair, *switched_at), "success_rate", ".0f", "%")

        return cell

    def gain(of: tuple[str, list[int]]) -> Cell | None:
        policy, pair = of
        mlp = "libero_mlp"
        return None if policy == mlp else _difference("", told(policy), told(mlp), _condition(pair, *SWITCH_AT))

    first, (pz, pg) = PAIRS[0], map(told, CLAIMS["persistent"])
    return tabulated(
        "closed_loop_misdirected",
        (
            "Policy",
            *(Column(f"{SWITCHED}{at}", f"{at} steps", rate(at)) for at in SWITCH_AT),
            Column("", "all", rate(*SWITCH_AT)),
            Column("/gain", "to the MLP (points)", gain),
        ),
        *([Row(f"{short(p)}/T{pair[0]}-T{pair[1]}", (shown[p],), (p, pair)) for p in MISDIRECTED] for pair in PAIRS),
        more=(
            *(
                cell
                for name, (ours, theirs) in RECOVERIES.items()
                for cell in _compared_in(f"claim/{name}", told(ours), told(theirs), _condition(first, *SWITCH_AT))
            ),
            _difference("claim/persistent/N100", pz, pg, _condition(first, 100)),
            Cell("scenes", pg, "success", _condition(first, *SWITCH_AT), "trials"),
        ),
        named="{row}{column}",
    )


def _per_task() -> Artefact:
    drawn_and_told = (*SHOWN, PZ_TOGETHER)  # the figure draws the first
    return figure(
        "closed_loop_per_task",
        *(_success(policy, f"T{task}", f"{short(policy)}/T{task}") for policy in drawn_and_told for task in TASKS),
        _success(PG_TOGETHER, "T6", f"{short(PG_TOGETHER)}/T6"),
        *(
            over("least_of", (f"{short(policy)}/T{task}" for task in TASKS), ".0f", "%", f"{short(policy)}/lowest")
            for policy in drawn_and_told
        ),
    )


def differences() -> Artefact:
    """The differences behind the claims of the article; the figure draws them."""
    return figure(
        "closed_loop_differences",
        *(_difference(name, *map(acting, claim)) for name, claim in CLAIMS.items()),
    )


def why() -> Artefact:
    """Two further looks: what the phase head infers, and what more demonstrations change."""
    return figure(
        "closed_loop_why",
        *(
            Cell(f"accuracy/{short(p)}", recorded(f"{p}_offline"), "phase_accuracy", "all", "mean_with_interval", ".2f")
            for p in GATED
        ),
        *(
            Cell(f"back/{short(p)}/{end}", acting(p), "phases", end, "phases_back", ".1f", "%")
            for p in GATED
            for end in ENDS
        ),
        *(_success(p, name=f"{level}/{short(p)}", build=build) for level, build in LEVELS.items() for p in AT_EASY),
        *(
            Cell(f"{level}/demos", recorded(DEMOS_NAME, build), "episodes", "all", "value", ".0f")
            for level, build in LEVELS.items()
        ),
        *(_difference(f"more_demos/{short(p)}", acting(p, EASY), acting(p)) for p in AT_EASY),
        *(
            _difference(f"gap/{level}/{short(p)}", acting(p, build), acting("libero_mlp", build))
            for level, build in LEVELS.items()
            for p in AT_EASY[1:]
        ),
    )


def artefacts() -> tuple[Artefact, ...]:
    return _table(), _misdirected(), _per_task(), differences(), why()
