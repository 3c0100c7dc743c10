"""Goals and tasks that change while an agent acts: the Dark Room and Meta-World."""

from __future__ import annotations

from typing import Any

from ghost.study.cells import settings
from ghost.study.declarations import Artefact, Cell, Experiment

SEEDS = (42, 123, 999)  # the first three of appendix A; the paper shows one training of each agent

# ---------------------------------------------------------------------------------------------------- the Dark Room

DEMOS = Experiment(
    "dark_room_demos",
    "make_demos",
    "ghost.data.dark_room_demos",
    {"size": 20, "episodes": 200, "switch_every": 15, "wrong_share": 0.1},
)
HISTORIES = Experiment(
    "dark_room_histories",
    "make_demos",
    "ghost.data.learning_histories",
    {"size": 20, "learners": 300, "epsilon": 0.01, "learning_rate": 1.0, "discount": 0.8},
)
# How long each is trained is not published. Chosen by reward on episodes of seed 0, which no row has: Ghost and the
# Transformer until they take the shortest way, AD and RL² for what two cores do in minutes; their losses still fall.
# Tried were one setting for Ghost, one for the Transformer, five for AD (learning rate and batch; the last after its
# source had been mended) and about eight for RL² (with Gaussian moves or goals at any distance it learnt nothing): the
# baselines had more attempts than Ghost.
GHOST = Experiment(
    "dark_room_ghost",
    "train_agent",
    "ghost.agents.ghost",
    {
        "epochs": 4,
        "batch_size": 256,
        "learning_rate": 0.003,
        "hidden": 96,
        "d_latent": 8,
        "d_context": 16,
        "steps": 5,
        "dt": 0.2,
    },
    SEEDS,
    (DEMOS.name,),
)
ATTENTION = {"d_model": 128, "d_ff": 512, "layers": 2, "heads": 4}
TRANSFORMER = Experiment(
    "dark_room_transformer",
    "train_agent",
    "ghost.agents.transformer",
    {"epochs": 2, "batch_size": 4, "learning_rate": 0.001, **ATTENTION, "window": 150, "stride": 50},
    SEEDS,
    (DEMOS.name,),
)
DISTILLATION = Experiment(
    "dark_room_ad",
    "train_agent",
    "ghost.agents.algorithm_distillation",
    {"epochs": 2, "batch_size": 4, "learning_rate": 0.0005, **ATTENTION, "window": 176, "stride": 62, "bins": 3},
    SEEDS,
    (HISTORIES.name,),
)
RL2 = Experiment(
    "dark_room_rl2",
    "train_agent",
    "ghost.agents.rl2",
    {
        "epochs": 60,
        "batch_size": 32,
        "learning_rate": 0.003,
        "size": 20,
        "hidden": 128,
        "bins": 3,
        "chunk": 25,
        "episodes": 64,
        "discount": 0.9,
        "trace": 0.95,
        "clip": 0.2,
        "value_weight": 0.5,
        "entropy_weight": 0.01,
        "growth": 0.5,
    },
    SEEDS,
)
DARK_ROOM = Experiment(
    "dark_room_switching",
    "evaluate",
    "ghost.evaluations.dark_room",
    {
        "size": 20,
        "episodes": 20,
        "evaluation_seed": 1_000_000,
        "steady_steps": 100,
        "steps_before": 50,
        "steps_after": 200,
    },
    SEEDS,
    (GHOST.name, TRANSFORMER.name, DISTILLATION.name, RL2.name),
)


# label in the table: (experiment that trained it; latency, steady reward, total reward and parameters as published)
AGENTS = {
    "Ghost": (GHOST, "10.8 ± 3.4", "1.00", "281.5", "17,922"),
    "Transformer": (TRANSFORMER, "66.0 ± 65.2", "0.31", "70.5", "417,538"),
    "AD": (DISTILLATION, "170.0 ± 72.7", "0.06", "23.0", "421,378"),
    "RL2": (RL2, "219.4 ± 12.0", "-0.08", "-22.4", "54,533"),
}


def _meta_rl() -> tuple[Cell, ...]:
    name = DARK_ROOM.name
    rows = {label: (row.name, *published) for label, (row, *published) in AGENTS.items()}
    rows |= {other: (other, "", "", "", "") for other in ("random_walk", "shortest_way")}
    cells: list[Cell] = []
    for label, (agent, latency, steady, total, parameters) in rows.items():
        cells += [
            Cell(f"{label}/latency", name, f"{agent}/latency", "", "over_episodes", ".1f", published=latency),
            Cell(f"{label}/reached", name, f"{agent}/reached", "", "success_share"),
            Cell(f"{label}/latency_interval", name, "latency", agent, "interval", ".1f"),
            Cell(f"{label}/steady_reward", name, "steady_reward", agent, "mean", ".2f", published=steady),
            Cell(f"{label}/total_reward", name, "total_reward", agent, "mean", ".1f", published=total),
            Cell(f"{label}/total_interval", name, "total_reward", agent, "interval", ".1f"),
            Cell(f"{label}/old_goal", name, "old_goal", agent, "mean", ".2f"),
        ]
        if parameters:
            cells.append(Cell(f"{label}/params", name, "parameters", agent, "mean", ",.0f", published=parameters))
    for label, (row, *_) in AGENTS.items():
        if label != "Ghost":
            published = {"Transformer": "6"}.get(label, "")
            versus = {"against": name, "against_condition": GHOST.name}
            cells += [
                Cell(f"{label}/slower", name, "latency", row.name, "bootstrap_ratio", ".1f", "", published, **versus),
                Cell(f"{label}/times_params", name, "parameters", row.name, "ratio", ".0f", **versus),
            ]
    nearest = {"against": name, "against_condition": GHOST.name, "published": "6"}
    return (
        *cells,
        Cell("Transformer/verdict", name, "latency", TRANSFORMER.name, "factor_holds", **nearest),
        Cell("never/latency", name, "steps_left", "", "over_episodes", ".1f"),
        Cell("source/late_reward", HISTORIES.name, "late_reward", "source", "value", ".2f"),
        Cell("runs", name, "", estimator="runs"),
        *settings(DARK_ROOM.name, DARK_ROOM.settings),
    )


def _meta_rl_curves() -> tuple[Cell, ...]:
    return tuple(
        Cell(f"{agent}/curve", DARK_ROOM.name, f"{agent}/reward", estimator="series")
        for agent in (*(row.name for row, *_ in AGENTS.values()), "shortest_way")
    )


# ------------------------------------------------------------------------------------------------------- Meta-World

BENCHMARKS = {"ml10": 10, "ml45": 45}  # and their training tasks
# Neither widths nor training are published. Ghost is wider than in the Dark Room, since it sees 51 numbers and a task.
LOOK_BACK = {**ATTENTION, "window": 32, "stride": 16}
METAWORLD_AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ghost": (
        "ghost",
        {
            "epochs": 40,
            "batch_size": 256,
            "learning_rate": 0.001,
            "hidden": 128,
            "d_latent": 32,
            "d_context": 32,
            "steps": 5,
            "dt": 0.2,
        },
    ),
    "transformer": ("transformer", {"epochs": 20, "batch_size": 16, "learning_rate": 0.0005, **LOOK_BACK}),
    "ad": (
        "algorithm_distillation",
        {"epochs": 20, "batch_size": 16, "learning_rate": 0.0005, **LOOK_BACK, "bins": 21, "told": True, "draw": False},
    ),
    "rl2": (
        "rl2",
        {"epochs": 40, "batch_size": 16, "learning_rate": 0.001, "hidden": 128, "bins": 0, "told": True, "chunk": 32},
    ),
}
METAWORLD_DEMOS = tuple(
    Experiment(
        f"{benchmark}_demos",
        "make_demos",
        "ghost.data.metaworld_demos",
        {
            "benchmark": benchmark,
            "tasks": tasks,
            "episodes_per_task": 50,
            "max_steps": 200,
            "steps_after_success": 5,
            "noise": 0.1,
            "noise_memory": 0.9,
        },
    )
    for benchmark, tasks in BENCHMARKS.items()
)
METAWORLD_TRAININGS = tuple(
    Experiment(f"{benchmark}_{agent}", "train_agent", f"ghost.agents.{module}", given, SEEDS, (f"{benchmark}_demos",))
    for benchmark in BENCHMARKS
    for agent, (module, given) in METAWORLD_AGENTS.items()
)
METAWORLD_SWITCHING = tuple(
    Experiment(
        f"{benchmark}_switching",
        "evaluate",
        "ghost.evaluations.metaworld",
        {
            "benchmark": benchmark,
            "tasks": tasks,
            "rounds": 20,
            "steps_before": 30,
            "aligned_steps": 50,
            "max_steps": 200,
            "evaluation_seed": 2_000_000,  # the episodes of 1,000,000 were looked at when AD's drawing was settled
        },
        SEEDS,
        tuple(f"{benchmark}_{agent}" for agent in METAWORLD_AGENTS),
    )
    for benchmark, tasks in BENCHMARKS.items()
)
EXPERIMENTS = (
    *(DEMOS, HISTORIES, GHOST, TRANSFORMER, DISTILLATION, RL2, DARK_ROOM),
    *METAWORLD_DEMOS,
    *METAWORLD_TRAININGS,
    *METAWORLD_SWITCHING,
)
ALIGNMENT_PUBLISHED = {"ghost": "0.6 to 0.8", "transformer": "-0.4 to 0.0", "ad": "-0.4 to 0.0"}  # on ML10


def _metaworld_alignment() -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for benchmark in BENCHMARKS:
        experiment = f"{benchmark}_switching"
        for agent in (*METAWORLD_AGENTS, "expert", "random_actions"):
            condition = f"{benchmark}_{agent}" if agent in METAWORLD_AGENTS else agent
            published = ALIGNMENT_PUBLISHED.get(agent, "") if benchmark == "ml10" else ""
            name = f"{benchmark}/{agent}"
            cells += [
                Cell(f"{name}/first_cosine", experiment, "first_cosine", condition, "mean", ".2f", "", published),
                Cell(f"{name}/fresh_cosine", experiment, "fresh_first_cosine", condition, "mean", ".2f"),
                Cell(f"{name}/early_cosine", experiment, "early_cosine", condition, "mean", ".2f"),
                Cell(f"{name}/first_arm_cosine", experiment, "first_arm_cosine", condition, "mean", ".2f"),
                Cell(f"{name}/success", experiment, f"{condition}/success", "", "success_share"),
                Cell(f"{name}/success_percent", experiment, "success", condition, "mean", ".0%"),
                Cell(f"{name}/curve", experiment, f"{condition}/cosine", estimator="series"),
            ]
            if agent in METAWORLD_AGENTS:
                cells.append(Cell(f"{name}/params", experiment, "parameters", condition, "mean", ",.0f"))
        cells += [
            Cell(f"{benchmark}/runs", experiment, "", estimator="runs"),
            Cell(f"{benchmark}/rounds", experiment, "rounds", estimator="setting", digits="g"),
            Cell(f"{benchmark}/max_steps", experiment, "max_steps", estimator="setting", digits="g"),
            Cell(f"{benchmark}/steps_before", experiment, "steps_before", estimator="setting", digits="g"),
            Cell(f"{benchmark}/demos_per_task", f"{benchmark}_demos", "episodes_per_task", "", "setting", "g"),
            Cell(f"{benchmark}/demos_success", f"{benchmark}_demos", "expert_success", "all", "value", ".0%"),
        ]
    return tuple(cells)


ARTEFACTS = (
    Artefact("tab", "meta_rl", "tabulate", _meta_rl()),
    Artefact("fig", "meta_rl", "plot", _meta_rl_curves()),
    Artefact("fig", "metaworld_alignment", "plot", _metaworld_alignment()),
)
