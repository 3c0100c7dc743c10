"""dvc.yaml is in step with the study, short, and each stage rests on its own recipe."""

import shutil

import pytest
import yaml

from ghost.errors import GhostError
from ghost.project.dvc import find_artefact_or_paper, parts, stages_text
from ghost.project.recipes import recipes
from ghost.study import ARTEFACTS, EXPERIMENTS
from ghost.study.builds import load

BUILT = {artefact.stage for artefact in ARTEFACTS if artefact.step}


@pytest.fixture
def declared(root):
    return yaml.safe_load((root / "dvc.yaml").read_text())


def test_dvc_yaml_is_in_step_with_the_study(root):
    """After a change of the study, run `ghost dvc`."""
    assert (root / "dvc.yaml").read_text() == stages_text()


def test_a_person_can_read_it(root):
    assert len((root / "dvc.yaml").read_text().splitlines()) < 300


def test_a_stage_per_figure_and_table_and_the_paper_first(declared):
    """The paper makes everything; the stages behind it then need no Snakemake of their own."""
    assert set(declared["stages"]) == BUILT | {"recipes", "paper", "trial"}
    assert list(declared["stages"])[:2] == ["recipes", "paper"]


def test_a_stage_rests_on_its_recipe_and_deletes_nothing(declared):
    stages = declared["stages"]
    assert stages["fig_switch_speed"]["cmd"] == "ghost make fig:switch_speed"
    for name in BUILT | {"paper"}:
        assert stages[name]["params"] == [{"data/recipes.json": [name]}]
    assert stages["recipes"]["outs"] == [{"data/recipes.json": {"persist": True}}]
    for stage in stages.values():
        assert all(settings == {"persist": True} for out in stage["outs"] for settings in out.values())


def test_an_unknown_figure_is_named():
    with pytest.raises(GhostError, match="no figure or table 'fig:swich_speed'; did you mean fig:switch_speed"):
        find_artefact_or_paper("fig:swich_speed")


def test_the_parts_of_a_build_are_its_runs_its_artefacts_and_the_report(root, monkeypatch):
    monkeypatch.chdir(root)
    known = parts(load({"scale": "smoke"}))
    assert set(known) == {f"run_{row.name}" for row in EXPERIMENTS} | BUILT | {"paper"}
    assert all(target.startswith("data/smoke/") for part in known.values() for target in part.targets)


@pytest.fixture
def sources(root, tmp_path, monkeypatch):
    """A copy of all that recipes rest on, but for the code."""
    for name in ("Snakefile", "requirements.lock", "workflow", "config", "data/bench", "paper"):
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copy(root / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def changed(before, **overrides):
    after = recipes(load(overrides))
    assert after.keys() == before.keys() == BUILT | {"paper"}
    return {name for name in after if after[name] != before[name]}


def test_a_setting_changes_the_recipes_of_what_depends_on_it(sources):
    before = recipes(load({}))
    assert changed(before) == set()
    assert changed(before, experiments={"switch_speed": {"dt": 0.15}}) == {"fig_switch_speed", "paper"}
    trained = changed(before, experiments={"mlp": {"epochs": 3}})
    assert {"tab_lightweight", "paper"} <= trained
    assert "tab_libero10" not in trained


@pytest.mark.parametrize(
    ("name", "concerned"),
    [
        ("workflow/rules/artefacts.smk", BUILT | {"paper"}),
        ("requirements.lock", BUILT - {"fig_method", "tab_theory_method_map"} | {"paper"}),
        ("paper/sections/conclusion.tex", {"paper"}),
        ("paper/tikz/method.tikz", {"fig_method", "paper"}),
        ("data/bench/cache.csv", {"tab_benchmarks", "fig_growth", "paper"}),
    ],
)
def test_an_edited_file_changes_the_recipes_of_what_is_made_from_it(sources, name, concerned):
    before = recipes(load({}))
    with (sources / name).open("a") as handle:
        handle.write("\n")
    assert changed(before) == concerned
