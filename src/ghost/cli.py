"""`ghost`: the command line for people. Snakemake runs the steps of the pipeline as `python -m ghost.steps.<step>`."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro

from ghost.errors import exit_on_error
from ghost.project.commands import SHARING, Scale, open_build
from ghost.project.place import from_root, version
from ghost.project.planning import PLANNING
from ghost.serving.commands import SERVING

Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")]  # may be left out
Article = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(help="the article's LaTeX; it is only read")]
DESCRIPTION = """Commands for the Ghost pipeline. Snakemake makes the report (`make paper` on a laptop); these commands
find things in it, check it and pack it. Start with

  ghost list                                  what there is: experiments, figures, tables, decoders, steps
  ghost audit 0.0281                          where a number of the PDF comes from: its cell, code and runs
  ghost audit tab:lightweight/CVAE/test_mse   the same, by the name of the cell
  ghost claims                                how the numbers compare with those that the article prints
  ghost annotate article.tex                  the article itself, with a verdict at every number
  ghost inspect <folder>                      what is in a data set of your own, and a first build for it

Each command explains its options with --help; ghost --version prints the version."""


def list_names(what: Name = "", filter: str = "", scale: Scale = "laptop") -> None:
    """List experiments, figures, tables, decoders and steps.

    Args:
        what: experiments, figures, tables, decoders or steps; without it, how many there are of each.
        filter: show only the lines that contain this text; without NAME, those of every kind.
    """
    from ghost.audit.listing import listing

    print(listing(open_build(scale), what, filter))


def audit(
    cell: Name = "",
    full: bool = False,
    scale: Scale = "laptop",
    run: str = "",
    seed: int | None = None,
    host: str = "",
    gpu: str = "",
    commit: str = "",
    file: str = "",
    verify: bool = False,
    repair: bool = False,
    signers: Path | None = None,
    rerun: str = "",
    sample: int = 3,
    diff: tuple[Path, Path] | None = None,
    json: bool = False,
) -> int:
    """Find the code and the runs behind a number, or every number and sentence that rests on a run.

    Args:
        cell: explain the cell that shows this number (0.0281), or that has this name (tab:lightweight/CVAE/test_mse);
            list the cells whose names begin like this (tab:lightweight, fig:).
        full: print the whole record of each run: sources, inputs and outputs with their hashes.
        run: list what rests on the run whose id begins like this.
        seed: list what rests on the runs with this seed.
        host: list what rests on the runs of this machine, such as node17.
        gpu: list what rests on the runs on this GPU, given by its UUID or model.
        commit: list what rests on the runs of the commit that begins like this.
        file: list what rests on the runs that read, wrote or executed this file, given by its path or the beginning of
            its sha256.
        verify: hash every file, compute every cell again, compare with the text of the PDFs; exit code 1 on a problem.
        repair: verify, and remove the outputs that are wrong; `snakemake all` then makes them anew.
        signers: with --verify: a list of people whose signature under the build counts; config/allowed_signers if there
            is one (see `ghost seal`).
        rerun: run again what is behind this cell, or the run whose id begins like this, and compare; exit code 1 if
            something differs.
        sample: how many runs --rerun draws from those behind a cell.
        diff: compare two builds, such as data/laptop here and in another checkout; list the cells that differ, and why.
        json: print the answer as JSON.
    """
    from ghost.audit.affected import Query
    from ghost.audit.answer import Verification, answer
    from ghost.audit.seal import SIGNERS

    query = Query(run, seed, host, gpu, commit, file)
    verification = Verification(repair, signers or SIGNERS) if verify or repair else None
    text, code = answer(
        open_build(scale), cell, query, verification, full=full, rerun=rerun, sample=sample, diff=diff, json=json
    )
    print(text)
    return code


def claims(
    claim: Name = "",
    scale: Scale = "laptop",
    json: bool = False,
    fail_on: tuple[str, ...] = ("different",),
) -> int:
    """Compare our cells with every number that the article prints; exit code 1 if a verdict is one of --fail-on.

    Args:
        claim: a claim such as tab:lightweight/CVAE/p, the beginning of claims, or a verdict such as different; without
            it, how many claims have each verdict.
        json: print every verdict as JSON.
        fail_on: the verdicts that give exit code 1, such as `--fail-on different inconsistent`.
    """
    import dataclasses

    from ghost.claims.ledger import read_ledger
    from ghost.claims.report import explain, judge, overview
    from ghost.claims.verdicts import VERDICTS
    from ghost.errors import GhostError, did_you_mean
    from ghost.files import canonical

    for name in fail_on:
        if name not in VERDICTS:
            raise GhostError(f"no verdict {name!r}{did_you_mean(name, VERDICTS)}")
    ledger = read_ledger()
    verdicts = judge(open_build(scale), ledger)
    if json:
        chosen = [v for v in verdicts if not claim or v.claim.startswith(claim)]
        print(canonical([dataclasses.asdict(verdict) for verdict in chosen]))
    else:
        print(explain(claim, ledger, verdicts) if claim else overview(ledger, verdicts))
    return 1 if any(verdict.verdict in fail_on for verdict in verdicts) else 0


def annotate(
    article: Article, out: Path = Path("article_annotated.pdf"), ledger: Path | None = None, scale: Scale = "laptop"
) -> None:
    """Typeset an article with a mark at every number of its ledger: verdict, our value, the runs behind it.

    Args:
        out: the PDF to write.
        ledger: the ledger of the article; paper/claims.yaml if none is given.
    """
    from ghost.claims.annotate import annotate as write_pdf
    from ghost.claims.ledger import LEDGER

    print(write_pdf(open_build(scale), article, ledger or LEDGER, out))


def weave(
    article: Article,
    out: Path = Path("woven"),
    numbers: bool = False,
    ledger: Path | None = None,
    scale: Scale = "laptop",
) -> None:
    """Put the numbers and figures of a build into an article: into a copy of its source, and into its PDF.

    Args:
        out: the folder to write.
        numbers: replace the numbers of the text too, not only those of the tables.
        ledger: the ledger of the article; paper/claims.yaml if none is given.
    """
    from ghost.claims.ledger import LEDGER
    from ghost.claims.weave import weave as write_folder

    print(write_folder(open_build(scale), article, ledger or LEDGER, out, numbers))


def ledger(article: Article, out: Path = Path("article_claims.yaml"), scale: Scale = "laptop") -> None:
    """Start the ledger of an article: list its numbers, and propose cells for those in tables.

    Args:
        out: the ledger to write.
    """
    from ghost.claims.new_ledger import start_ledger

    print(start_ledger(open_build(scale), article, out))


def lint(scale: Scale = "laptop") -> int:
    """Find typed numbers and unknown cells in the report's text."""
    from ghost.report.cells import read_cells
    from ghost.report.lint import lint as lint_folder

    config = open_build(scale)
    complaints = lint_folder(config.text, read_cells(config.data / "cells.jsonl"))
    print("\n".join(complaints) or "every number in the text is a cell")
    return 1 if complaints else 0


def ready(scale: Scale = "laptop") -> int:
    """List what keeps the report from being camera-ready; exit code 1 if anything does."""
    from ghost.report.readiness import blockers

    found = blockers(open_build(scale))
    print("\n".join([*found, f"{len(found)} in the way" if found else "camera-ready"]))
    return 1 if found else 0


def glance(scale: Scale = "laptop") -> None:
    """Write the results at a glance into README.md, and pictures of the report's first pages and of its audit page."""
    from ghost.report.glance import glance as write_glance

    write_glance(open_build(scale))


def seal(key: Path = Path("~/.ssh/id_ed25519"), scale: Scale = "laptop") -> int:
    """Sign a build with an ssh key, if it verifies. What is signed is its inventory: the sha256 of every file.

    Args:
        key: the private key, or a public one whose private half the ssh agent has.
    """
    from ghost.audit.seal import seal as sign
    from ghost.audit.verify import ALL, report, verify

    config = open_build(scale)
    problems = verify(config, [part for part in ALL if part != "seal"])
    print(report(problems) if problems else sign(config.inventory, key.expanduser()))
    return 1 if problems else 0


def bundle(out: Path = Path("ghost_bundle.zip"), scale: Scale = "laptop") -> None:
    """Pack cells, records, raw results, code and PDFs as an RO-Crate: an appendix to a submission.

    Args:
        out: the zip file to write.
    """
    from ghost.audit.bundle import bundle as write_bundle

    print(write_bundle(open_build(scale), out))


def export(manifest: tyro.conf.Positional[Path], out: Path, seed: int | None = None, samples: int = 1) -> None:
    """Write a trained decoder as one ONNX file, which runs without Python.

    Args:
        manifest: the manifest of a training, such as data/laptop/runs/ghost/manifest.json.
        out: the .onnx file to write.
        seed: the seed of the run to export; without it, the first run.
        samples: how many samples the file decodes at a time: 1 on a robot.
    """
    from ghost.training.export import export as write_file

    print(write_file(manifest, out, seed=seed, samples=samples))


def inspect(
    data_set: tyro.conf.Positional[Path],
    write: str = "",
    revision: str = "",
    state: str = "observation.state",
    action: str = "action",
    task: str = "task_index",
) -> None:
    """Show what is in a LeRobot data set: tasks, episodes, cameras, dimensions with their ranges, what is missing.

    Args:
        data_set: its folder, or its name on the hub with --revision.
        write: also write a first configuration, config/<this name>.yaml.
        revision: the commit, for a name on the hub.
        state: the column with the state of the robot.
        action: the column with the actions.
        task: the column with the task of every step: an index of the meta data's tasks, or the instruction itself.
    """
    from ghost.data.inspect import inspect as look
    from ghost.data.inspect import write_config
    from ghost.data.lerobot import Columns

    names = Columns(state, action, task)
    source, text = look(str(data_set), names, revision)
    print(text)
    if write:
        print(write_config(source, str(data_set), revision, names, write))


def film(
    manifest: tyro.conf.Positional[Path],
    task: int,
    trial: int = 0,
    seed: int | None = None,
    out: Path = Path("film.mp4"),
) -> None:
    """Play a recorded LIBERO episode again and film it; this needs OpenGL.

    Args:
        manifest: the manifest of a rollout, such as data/laptop/runs/libero_mlp_rollout/manifest.json.
        task: the number of the task, 0 to 9.
        trial: the number of the trial, from 0.
        seed: the seed of the training; without it, the first one.
        out: the .mp4 file to write.
    """
    os.environ.setdefault("MUJOCO_GL", "glfw" if "DISPLAY" in os.environ else "egl")  # MuJoCo reads it when imported
    from ghost.libero.film import film as film_episode

    print(film_episode(manifest, task, trial, seed, out))


NAMED = (audit, claims, annotate, weave, ledger, lint, ready, seal, bundle, glance, inspect, export, film)
COMMANDS: dict[str, Callable[..., Any]] = {
    "list": from_root(list_names),
    **{each.__name__: from_root(each) for each in (*NAMED, *PLANNING, *SERVING, *SHARING)},
}


def main() -> None:
    asked = sys.argv[1:]
    if asked == ["--version"]:
        print(f"ghost {version()}")
        return
    if asked in ([], ["audit"]):  # no question: explain the command
        asked.append("--help")
    options = (tyro.conf.FlagCreatePairsOff,)  # no --no-json beside --json
    run = tyro.extras.subcommand_cli_from_dict
    exit_on_error(lambda: run(COMMANDS, prog="ghost", description=DESCRIPTION, args=asked, config=options))


if __name__ == "__main__":
    main()
