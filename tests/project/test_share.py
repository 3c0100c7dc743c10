"""Why `ghost keep`, `ghost pull` and `ghost trial` cannot work, in one line; test_restore.py has them at work."""

import shutil

import pytest

from ghost.errors import GhostError
from ghost.files import write_text
from ghost.project.share import keep, make, pull, trial
from ghost.study.builds import load


@pytest.fixture
def config(root, tmp_path, monkeypatch):
    for name in ("config", "workflow/schemas"):
        shutil.copytree(root / name, tmp_path / name)
    shutil.copy(root / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return load({"scale": "smoke"})


def test_an_empty_build_is_not_kept(config):
    with pytest.raises(GhostError, match="nothing to keep in data/smoke; `snakemake all --config scale=smoke` makes"):
        keep(config)


def test_a_build_that_nobody_kept_is_not_pulled(config):
    with pytest.raises(GhostError, match=r"there is no data/smoke\.dvc: nobody has kept this build"):
        pull("fig:switch_speed", config)


def test_a_drawing_has_no_runs_to_pull(config, tmp_path):
    write_text(tmp_path / "data/smoke.dvc", "")
    with pytest.raises(GhostError, match=r"fig:method rests on no runs: `snakemake data/smoke/figures/method\.pdf`"):
        pull("fig:method", config)


@pytest.mark.parametrize("command", [make, trial, lambda what: pull(what, load({}))])
def test_an_unknown_figure_is_named(config, tmp_path, command):
    write_text(tmp_path / "data/laptop.dvc", "")
    with pytest.raises(GhostError, match="no figure or table 'fig:swich_speed'; did you mean fig:switch_speed"):
        command("fig:swich_speed")


def test_a_trial_of_nothing_has_no_metrics(config, tmp_path):
    write_text(tmp_path / "data/trial_metrics/old.json", "{}")
    trial("nothing")
    assert list((tmp_path / "data/trial_metrics").iterdir()) == []
    assert not (tmp_path / "data/trial").exists()


def test_parameters_of_a_trial_have_a_form(config, tmp_path):
    write_text(tmp_path / "params.yaml", "what: nothing\nexperiments: 7\nsteps: {}\n")
    with pytest.raises(GhostError, match=r"params\.yaml: experiments must be an object, got 7"):
        trial("nothing")
