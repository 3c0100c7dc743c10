"""`ghost`: the command line for people. Steps of the pipeline are `python -m ghost.<step>`, called by Snakemake."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tyro

from ghost.errors import exit_on_error


def audit(
    cell: tyro.conf.Positional[str] = "",
    scale: str = "laptop",
    run: str = "",
    seed: int | None = None,
    host: str = "",
    gpu: str = "",
    commit: str = "",
    file: str = "",
    verify: bool = False,
    diff: tuple[Path, Path] | None = None,
    json: bool = False,
) -> int:
    """Which runs produced a number, and which numbers a run produced.

    Args:
        cell: a cell such as fig:switch_speed/ghost_n5/steps_to_converge, or a prefix such as fig:switch_speed.
        scale: smoke, laptop, closed_loop or paper.
        run: everything that rests on the run whose id begins so.
        seed: everything that rests on runs with this seed.
        host: everything that rests on runs of this machine.
        gpu: everything that rests on runs on this GPU: its UUID or model.
        commit: everything that rests on runs of the commit that begins so.
        file: everything that rests on runs that read, wrote or ran this file: a path or the beginning of a sha256.
        verify: hash every file, compute every cell anew, compare with the text of the PDF; exit code 1 on a problem.
        diff: two builds, such as data/laptop here and in another checkout: which cells differ, and why.
        json: the answer as JSON.
    """
    from ghost.audit.affected import Query
    from ghost.audit.answer import answer
    from ghost.study.builds import load

    query = Query(run, seed, host, gpu, commit, file)
    text, code = answer(load({"scale": scale}), cell, query, verify=verify, diff=diff, json=json)
    print(text)
    return code


def claims(
    claim: tyro.conf.Positional[str] = "",
    scale: str = "laptop",
    json: bool = False,
    fail_on: tuple[str, ...] = ("different",),
) -> int:
    """What our cells say to every number that the article publishes; exit code 1 if any verdict is in --fail-on.

    Args:
        claim: a claim such as tab:lightweight/CVAE/p, a prefix, or a verdict; all, counted, if left out.
        scale: smoke, laptop, closed_loop or paper.
        json: every verdict as JSON.
        fail_on: verdicts that fail; `--fail-on different inconsistent` for more.
    """
    import dataclasses

    from ghost.claims.report import explain, judge, overview
    from ghost.claims.verdicts import VERDICTS
    from ghost.errors import GhostError, did_you_mean
    from ghost.files import canonical
    from ghost.study.builds import load

    for name in fail_on:
        if name not in VERDICTS:
            raise GhostError(f"no verdict {name!r}{did_you_mean(name, VERDICTS)}")
    ledger, verdicts = judge(load({"scale": scale}))
    if json:
        chosen = [v for v in verdicts if not claim or v.claim.startswith(claim)]
        print(canonical([dataclasses.asdict(verdict) for verdict in chosen]))
    else:
        print(explain(claim, ledger, verdicts) if claim else overview(verdicts))
    return 1 if any(verdict.verdict in fail_on for verdict in verdicts) else 0


def lint(scale: str = "laptop") -> int:
    """Find typed numbers and unknown cells in the report's text.

    Args:
        scale: whose cells to compare with.
    """
    from ghost.report.cells import read_cells
    from ghost.report.lint import lint as lint_folder

    complaints = lint_folder(Path("paper"), read_cells(Path("data") / scale / "cells.jsonl"))
    print("\n".join(complaints) or "every number in the text is a cell")
    return 1 if complaints else 0


def ready(scale: str = "laptop") -> int:
    """What keeps the report from being camera-ready; exit code 1 if anything does.

    Args:
        scale: smoke, laptop, closed_loop or paper.
    """
    from ghost.report.readiness import blockers
    from ghost.study.builds import load

    found = blockers(load({"scale": scale}))
    print("\n".join([*found, f"{len(found)} in the way" if found else "camera-ready"]))
    return 1 if found else 0


def glance(scale: str = "laptop") -> None:
    """Write the results at a glance into README.md and a picture of the report's first pages beside them.

    Args:
        scale: smoke, laptop, closed_loop or paper.
    """
    from ghost.report.glance import glance as write_glance
    from ghost.study.builds import load

    write_glance(load({"scale": scale}))


def bundle(out: Path = Path("ghost_bundle.zip"), scale: str = "laptop") -> None:
    """Pack cells, records, raw results, code and PDF as an RO-Crate: an appendix to a submission.

    Args:
        out: the zip to write.
        scale: smoke, laptop, closed_loop or paper.
    """
    from ghost.audit.bundle import bundle as write_bundle
    from ghost.study.builds import load

    print(write_bundle(load({"scale": scale}), out))


def plan(what: tyro.conf.Positional[str], scale: str = "laptop") -> None:
    """What a build would cost: jobs, CPU and GPU hours, what is cached, the critical path.

    Args:
        what: a figure or table such as fig:diagnostic, or paper.
        scale: smoke, laptop, closed_loop or paper.
    """
    from ghost.project.plan import plan as plan_artefact
    from ghost.study.builds import load

    print(plan_artefact(what, load({"scale": scale})))


def export(manifest: tyro.conf.Positional[Path], out: Path, seed: int | None = None, samples: int = 1) -> None:
    """Write a trained decoder as one ONNX file, which runs without Python.

    Args:
        manifest: of a training, such as data/laptop/runs/ghost/manifest.json.
        out: the .onnx file to write.
        seed: which of its runs; the first if left out.
        samples: how many at a time: 1 on a robot.
    """
    from ghost.training.export import export as write_file

    print(write_file(manifest, out, seed=seed, samples=samples))


def film(
    manifest: tyro.conf.Positional[Path],
    task: int,
    trial: int = 0,
    seed: int | None = None,
    out: Path = Path("film.mp4"),
) -> None:
    """Play a recorded LIBERO episode again and film it; needs OpenGL.

    Args:
        manifest: of a rollout, such as data/laptop/runs/libero_mlp_rollout/manifest.json.
        task: 0 to 9.
        trial: which of the task's.
        seed: of the training; the first when left out.
        out: the video to write, .mp4.
    """
    os.environ.setdefault("MUJOCO_GL", "glfw" if "DISPLAY" in os.environ else "egl")  # MuJoCo reads it when imported
    from ghost.libero.film import film as film_episode

    print(film_episode(manifest, task, trial, seed, out))


def dvc() -> None:
    """Write dvc.yaml from the table: a stage per experiment, figure and table, and one for the paper."""
    from ghost.project.dvc import write_stages

    write_stages(Path("dvc.yaml"))


def snapshot(stage: tyro.conf.Positional[str] = "") -> None:
    """Keep what Snakemake knows about a stage's files, beside them (every DVC stage ends with this).

    Args:
        stage: a stage of dvc.yaml, such as fig_switch_speed; all of them when left out, after `snakemake all`.
    """
    from ghost.project.dvc import find_stage, stages
    from ghost.project.snapshots import take

    for chosen in [find_stage(stage)] if stage else stages().values():
        print(take(chosen))


def restore() -> None:
    """After `git clone` and `dvc pull`: verify every file, and let Snakemake know them, so that nothing is rerun."""
    from ghost.project.snapshots import restore as restore_folder

    print(restore_folder(Path("data/laptop/snapshots")))


def lock() -> None:
    """Pin what is installed here: write requirements.lock, and from it and groot.lock what conda reads."""
    from ghost.project.lock import write_lock

    envs = Path("workflow/envs")
    write_lock(Path("requirements.lock"), Path("environment.yml"), envs / "groot.lock", envs / "groot.yml")


def main() -> None:
    commands: dict[str, Callable[..., Any]] = {
        "audit": audit,
        "claims": claims,
        "lint": lint,
        "ready": ready,
        "bundle": bundle,
        "glance": glance,
        "plan": plan,
        "export": export,
        "film": film,
        "dvc": dvc,
        "snapshot": snapshot,
        "restore": restore,
        "lock": lock,
    }
    exit_on_error(lambda: tyro.extras.subcommand_cli_from_dict(commands, prog="ghost"))


if __name__ == "__main__":
    main()
