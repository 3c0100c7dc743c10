"""How complex a task is: the sub-phases that its BDDL goal asks for when nothing goes wrong.

The article estimates two sub-phases for tasks that drop things into one basket, five for tasks that set two things down
precisely, and gives no rule. This rule is ours; it agrees with both numbers. A part of the goal that does not hold at
the start has the sub-phases

    carry         when the thing may fall into a basket from above
    carry, fit    when the thing is set down on a surface, or fitted into a compartment of the furniture
    operate       when a knob is turned, or a drawer or a door is shut; a knob comes first, shutting comes last

A hand that has fitted something must withdraw before the next part begins.
"""

from functools import cache

from ghost.libero.assets import package_folder
from ghost.libero.environment import import_libero
from ghost.libero.tasks import TASKS

ORDER = {"turnon": 0, "close": 2}  # all other predicates: 1
CARRY, FIT, WITHDRAW, OPERATE = "carry", "fit", "withdraw", "operate"


@cache
def nominal_subphases(task: int) -> tuple[str, ...]:
    """The sub-phases of a task in their order."""
    import_libero()
    from libero.libero.envs.bddl_utils import robosuite_parse_problem

    problem = robosuite_parse_problem(str(package_folder() / "bddl_files/libero_10" / f"{TASKS[task].file}.bddl"))
    furniture = tuple(name for names in problem["fixtures"].values() for name in names)
    parts = [part for part in problem["goal_state"] if part not in problem["initial_state"]]
    phases: list[str] = []
    for predicate, *names in sorted(parts, key=lambda part: ORDER.get(part[0], 1)):
        if phases and phases[-1] == FIT:
            phases.append(WITHDRAW)
        if predicate in ORDER:
            phases.append(OPERATE)
        else:
            falls = predicate == "in" and not names[-1].startswith(furniture)
            phases += [CARRY] if falls else [CARRY, FIT]
    return tuple(phases)
