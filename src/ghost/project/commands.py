"""The commands of `ghost` that DVC calls, or that share what is built. They import what they need when called."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from ghost.study.builds import Config

Scale = Annotated[str, tyro.conf.arg(help="the build, a file of config/: smoke, laptop, ...")]


def open_build(scale: str) -> "Config":
    from ghost.study.builds import opened  # commands import what they use, so that none waits for what others need

    return opened(scale)


def make(what: tyro.conf.Positional[str]) -> None:
    """Make a figure, a table or the paper of the laptop build for DVC; a stage of dvc.yaml is this command.

    Args:
        what: fig:switch_speed, tab:lightweight, ... or `paper` for all.
    """
    from ghost.project.share import make as make_stage

    make_stage(what)


def keep(scale: Scale = "laptop") -> None:
    """Give a build to DVC: its runs, features, checkpoints, cells and report, and what Snakemake knows about them."""
    from ghost.project.share import keep as keep_build

    print(keep_build(open_build(scale)))


def pull(what: tyro.conf.Positional[str], scale: Scale = "laptop") -> None:
    """Pull only the runs behind a figure or table, and register them with Snakemake, which then redraws it.

    Args:
        what: fig:switch_speed, tab:lightweight, ...
    """
    from ghost.project.share import pull as pull_runs

    print(pull_runs(what, open_build(scale)))


def restore(scale: Scale = "laptop") -> None:
    """After `git clone` and `dvc pull`: verify all files and register them with Snakemake, so that nothing is rerun."""
    from ghost.project.snapshots import restore as restore_build

    print(restore_build(open_build(scale)))


def trial(what: tyro.conf.Positional[str]) -> None:
    """Make a figure or table with the settings of params.yaml, in the build `trial`; `dvc exp run` calls this.

    Args:
        what: fig:switch_speed, tab:lightweight, ... or `nothing`.
    """
    from ghost.project.share import trial as make_trial

    make_trial(what)


def recipes() -> None:
    """Write data/recipes.json: a hash of what each figure and table rests on; the first stage of dvc.yaml."""
    from ghost.project.share import write_recipes

    write_recipes()


def dvc() -> None:
    """Write dvc.yaml from the study: a stage for each figure and table, and one for the paper."""
    from ghost.files import write_text
    from ghost.project.dvc import stages_text

    write_text(Path("dvc.yaml"), stages_text())


def ship() -> None:
    """Copy the results of the closed-loop study, both of its levels, into the repository: data/studies/."""
    from ghost.project.studies import LEVELS
    from ghost.project.studies import ship as copy_study

    for level in LEVELS:
        print(copy_study(open_build(level)))


def lock(upgrade: bool = False) -> None:
    """Resolve what pyproject.toml asks for by uv: write requirements.lock with hashes, and the same for conda.

    Args:
        upgrade: take the newest versions; otherwise those of the lock stay where they fit.
    """
    from ghost.project.lock import write_lock

    print(write_lock(upgrade))


def publish(
    name: tyro.conf.Positional[str],
    out: Path,
    seed: int | None = None,
    licence: str = "apache-2.0",
    to: str = "",
    scale: Scale = "laptop",
) -> None:
    """Prepare a trained decoder or a data set for the Hugging Face hub: files and a card. It uploads only with --to.

    Args:
        name: the experiment, such as ghost or dual_arm.
        out: the folder to write.
        seed: the seed of the run; without it, the first run.
        licence: under which it is shared, as the hub spells it.
        to: upload to this repository, owner/name; this needs a token (HF_TOKEN or `hf auth login`).
    """
    from ghost.project.publish import publish as prepare

    print(prepare(open_build(scale), name, out, seed=seed, licence=licence, to=to))


def release(out: Path, doi: str, scale: Scale = "laptop") -> None:
    """Make the folder for an archive such as Zenodo: bundle, source, report, metadata, checksums. It uploads nothing.

    Args:
        out: the folder to write.
        doi: the DOI that Zenodo reserved for the upload.
    """
    from ghost.project.release import release as write_folder

    print(write_folder(open_build(scale), out, doi))


def track(out: Path = Path("tracked"), filter: str = "", scale: Scale = "laptop") -> None:
    """Write curves, measured values and records of a build's runs for TensorBoard.

    Args:
        out: the folder to write.
        filter: only the experiments whose names contain this text.
    """
    from ghost.project.track import track as write_events

    print(write_events(open_build(scale), out, filter))


SHARING = (make, keep, pull, restore, trial, recipes, dvc, ship, lock, publish, release, track)
