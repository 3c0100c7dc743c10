"""The study of a lab's own data set: what the configuration says reaches the experiments, and rows have good names."""

import pytest

import labs
from ghost.data.lerobot_writer import write_dataset
from ghost.errors import GhostError
from ghost.study import builds
from ghost.study.offline import DECODERS
from ghost.study.own_data import row_names


@pytest.fixture
def lab(tmp_path, root):
    """Loads a build of a small data set with further keys."""
    bare = [labs.Recording(each.task, each.columns) for each in labs.recordings(6, 3, labs.TASKS, seed=0)]
    write_dataset(tmp_path / "set", bare, fps=10, robot="arm")
    given = {"scale": "smoke", "demos": str(tmp_path / "set"), "backbone": "pixels"}
    return lambda **keys: builds.load({**given, **keys}, root)


@pytest.mark.parametrize(
    ("keys", "share"),
    [
        ({}, 0.2),
        ({"split": {"test_share": 0.4}}, 0.4),
        ({"split": {"by": "sample"}}, 0.0),  # it trains on every episode
        ({"experiments": {"dual_arm_features": {"test_share": 0.3}}}, 0.3),
    ],
)
def test_ranges_are_measured_without_the_episodes_that_the_split_holds_back(lab, keys, share):
    build = lab(**keys)
    assert build.experiment("dual_arm").settings["test_share"] == share
    assert "test_share" not in build.declaration("dual_arm")["reduced"] or "experiments" in keys


@pytest.fixture(scope="module")
def filmed(tmp_path_factory):
    return labs.write_filmed(tmp_path_factory.mktemp("lab") / "set")


def test_a_backbone_that_sees_is_the_default(filmed, root):
    build = builds.load({"scale": "smoke", "demos": str(filmed)}, root)
    assert build.experiment("dual_arm_features").module == "ghost.backbones.pixels"
    build.check_places()


def test_what_cannot_be_seen_is_refused_before_anything_runs(lab, filmed, root):
    lab(backbone="pixels", leave_out=["dual_arm_features"]).check_places()
    with pytest.raises(GhostError, match=r"meta/info\.json: `backbone: pixels` needs pictures, and no feature"):
        lab(backbone="pixels").check_places()
    with pytest.raises(GhostError, match=r"`backbone: standin` reads columns such as 'observation\.scene\.object'"):
        builds.load({"scale": "smoke", "demos": str(filmed), "backbone": "standin"}, root).check_places()


def test_a_horizon_that_no_kept_episode_has_is_refused_before_anything_runs(filmed, root):
    lengths = [len(each.columns["action"]) for each in labs.recordings(12, 14, labs.TASKS, seed=0)]
    given = {"scale": "smoke", "demos": str(filmed)}
    builds.load({**given, "horizon": max(lengths)}, root).check_places()
    task = min(range(3), key=lambda number: max(lengths[number::3]))
    longest = max(lengths[task::3])
    assert longest < max(lengths)
    for keys, most in (({}, max(lengths)), ({"tasks": [labs.TASKS[task]]}, longest)):
        with pytest.raises(GhostError, match=f"{filmed}/meta: horizon {most + 1} .*must be at most {most}$"):
            builds.load({**given, **keys, "horizon": most + 1}, root).check_places()


def test_the_study_has_the_data_sets_tasks_and_no_experiment_that_nothing_rests_on(lab):
    build = lab()
    assert build.tasks == labs.TASKS
    trained = {each.name for each in build.experiments if each.step == "train"}
    assert trained == {decoder.experiment for decoder in DECODERS}
    assert {each.step for each in build.experiments} == {"make_demos", "cache_features", "train", "evaluate"}
    assert {each.settings["split"] for each in build.experiments if "split" in each.settings} == {"episode"}


def test_a_task_is_named_once(lab):
    with pytest.raises(GhostError, match="tasks names one twice"):
        lab(tasks=[labs.TASKS[0], labs.TASKS[0]])


def test_rows_of_instructions_that_look_alike_have_names_of_their_own():
    names = row_names(["pick up: the cup", "pick up the cup!", "???", "置く"])
    assert list(names.values()) == ["pick_up_the_cup", "pick_up_the_cup_2", "task", "task_2"]
