"""`ghost list`: what there is, found by name."""

from __future__ import annotations

import pytest
from small_build import small_build

from ghost.audit.listing import KINDS, listing
from ghost.errors import GhostError


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return small_build()


def test_without_a_kind_it_counts_them(config):
    lines = listing(config).splitlines()
    assert [line.split()[0] for line in lines] == list(KINDS)
    assert lines[0].split()[1] == str(len(config.experiments))


def test_an_experiment_has_its_step_module_seeds_runs_and_needs(config):
    lines = {line.split()[0]: line for line in listing(config, "experiments").splitlines()}
    assert len(lines) == len(config.experiments)
    seeds = len(config.experiment("cvae_offline").seeds)
    said = ["cvae_offline", "evaluate", "ghost.evaluations.offline", f"{seeds} seeds", "5 runs"]
    assert [part for part in lines["cvae_offline"].split("  ") if part][:5] == said
    assert lines["cvae_offline"].endswith("needs dual_arm_features, cvae")
    assert "not run" in lines["mlp_offline"]


def test_figures_and_tables_have_their_step_and_number_of_cells(config):
    lines = [*listing(config, "figures").splitlines(), *listing(config, "tables").splitlines()]
    assert {line.split()[0] for line in lines} == {artefact.id for artefact in config.artefacts}
    for artefact in config.artefacts:
        (line,) = [line for line in lines if line.split()[0] == artefact.id]
        assert f"  {artefact.step or 'not built'}" in line
        assert f"  {len(artefact.cells)} cell" in line


def test_a_decoder_has_its_file_and_the_experiments_that_train_it(config, root):
    lines = {line.split()[0]: line for line in listing(config, "decoders").splitlines()}
    assert lines["mlp"].split()[1:] == ["src/ghost/decoders/mlp.py", "mlp,", "libero_mlp"]
    assert {"ghost", "cvae"} <= lines.keys()
    assert not {"losses", "contract"} & lines.keys()
    assert all((root / line.split()[1]).is_file() for line in lines.values())


def test_a_step_has_its_file_and_what_it_does(config, root):
    lines = {line.split()[0]: line for line in listing(config, "steps").splitlines()}
    assert set(lines) == {path.stem for path in (root / "src/ghost/steps").glob("*.py")} - {"__init__"}
    assert "src/ghost/steps/train.py" in lines["train"]
    assert "\n" not in lines["train"]


def test_the_filter_is_a_part_of_the_line(config):
    assert listing(config, "experiments", "cvae_off").split()[0] == "cvae_offline"
    found = [line.split()[0] for line in listing(config, text="cvae_offline").splitlines()]
    assert found == ["cvae_offline", "tab:lightweight"]
    with pytest.raises(GhostError, match="nothing among the tables contains 'zebra'"):
        listing(config, "tables", "zebra")
    with pytest.raises(GhostError, match="did you mean decoders"):
        listing(config, "decoder")
