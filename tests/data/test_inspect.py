"""`ghost inspect`: what is in a data set, what is wrong with it, and a configuration that a build accepts."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import labs
from ghost.data.inspect import inspect, write_config
from ghost.data.lerobot import Columns
from ghost.data.lerobot_writer import Recording, write_dataset
from ghost.data.recorded import Settings, make
from ghost.data.results import Measured
from ghost.errors import GhostError
from ghost.files import read_json, read_yaml, write_json
from ghost.study import builds, own_data


def notes(text):
    return [line.removeprefix("note      ") for line in text.splitlines() if line.startswith("note")]


def with_column(folder, name, change, file="data/chunk-000/file-000.parquet"):
    table = pq.read_table(folder / file)
    place = table.column_names.index(name)
    pq.write_table(table.set_column(place, name, change(table[name])), folder / file)
    return folder / file


def bare(folder, episodes, tasks=None):
    """A data set without cameras: so many episodes of each task, of 5 steps."""
    column = np.arange(5, dtype=np.float32)[:, None]
    columns = {"observation.state": column, "action": column}
    write_dataset(folder, [Recording(task, columns) for task in episodes], fps=10, robot="", tasks=tasks)
    return folder


def test_tasks_lengths_cameras_and_ranges_are_those_of_the_recordings(tmp_path):
    folder, made = labs.write_filmed(tmp_path / "set"), labs.recordings(12, 14, labs.TASKS, seed=0)
    _, text = inspect(str(folder), Columns())
    lengths = [len(each.columns["action"]) for each in made]
    assert f"{folder}: LeRobot v2.1, robot two arms, 10 Hz" in text
    assert f"episodes  12 of {min(lengths)} to {max(lengths)} steps, {sum(lengths)} steps in all" in text
    for task in labs.TASKS:
        assert re.search(rf"^ +4 episodes  {re.escape(task)}$", text, re.MULTILINE)
    for camera in labs.CAMERAS:
        assert f"  {camera}  {labs.PIXELS}x{labs.PIXELS}x3  video" in text
    action = np.concatenate([each.columns["action"] for each in made])
    assert f"  3 joint_3  {action[:, 3].min():g} to {action[:, 3].max():g}" in text
    assert f" 13 joint_13  always {labs.STUCK_AT:g}" in text
    assert "group right_arm: 7 to 13" in text
    assert notes(text) == [f"task {task!r} has 4 episodes; intervals will be wide" for task in labs.TASKS]


def test_columns_may_have_other_names(tmp_path):
    folder = labs.write_pictures(tmp_path / "set")
    with pytest.raises(GhostError, match=r"parquet has no column 'observation.state'; its vectors are state, actions"):
        inspect(str(folder), Columns())
    _, text = inspect(str(folder), Columns("state", "actions"))
    assert "7 dimensions in column 'actions'" in text
    assert f"{labs.CAMERAS[0]}  {labs.PIXELS}x{labs.PIXELS}x3  pictures in the data files" in text
    assert notes(text) == ["no meta/modality.json: action_groups can name groups of dimensions"]


def test_what_a_build_would_refuse_is_noted(tmp_path):
    folder = bare(tmp_path / "set", ["once", *["twice"] * 2, *["often"] * 5], ["once", "twice", "often", "never"])
    _, text = inspect(str(folder), Columns())
    assert "robot not named" in text
    assert "cameras   none" in text
    assert notes(text) == [
        "task 'never' has no episode; `tasks` must leave it out",
        "task 'once' has one episode; `tasks` must leave it out",
        "task 'twice' has 2 episodes; intervals will be wide",
        "no camera: neither `backbone: pixels` nor `backbone: groot` can be used",
        "no episode has 17 steps; choose a shorter horizon",
        "no meta/modality.json: action_groups can name groups of dimensions",
    ]


def test_an_episode_counts_for_each_of_its_tasks_and_the_configuration_has_them_all(tmp_path, monkeypatch):
    """Subtasks: the instruction changes within an episode."""
    folder = bare(tmp_path / "set", ["pick", "pick", "place"], ["pick", "place"])
    with_column(folder, "task_index", lambda index: pa.array([0, 0, 0, 1, 1] * 2 + [1] * 5))
    source, text = inspect(str(folder), Columns())
    assert re.findall(r"^ +(\d) episodes  (\w+)$", text, re.MULTILINE) == [("2", "pick"), ("3", "place")]
    assert "some episodes have several tasks; in a split they count for the task that they begin with" in notes(text)
    (tmp_path / "config").mkdir()
    monkeypatch.chdir(tmp_path)
    write_config(source, "set", "", Columns(), "arms")
    tasks = tuple(read_yaml(tmp_path / "config/arms.yaml")["tasks"])
    assert Measured("all", "episodes", 3) in make(Settings(str(folder), tasks=tasks), seed=0, folder=tmp_path).measured


def test_a_task_that_is_listed_twice_is_one(tmp_path):
    folder = bare(tmp_path / "set", ["pick", "place", "pick"])
    with_column(folder, "task", lambda _: pa.array(["pick", "pick"]), "meta/tasks.parquet")
    with_column(folder, "tasks", lambda _: pa.array([["pick"]] * 3), "meta/episodes/chunk-000/file-000.parquet")
    assert "  3 episodes  pick\n" in inspect(str(folder), Columns())[1]
    assert Measured("all", "tasks", 1) in make(Settings(str(folder)), seed=0, folder=tmp_path / "run").measured
    assert own_data.tasks_of({"demos": str(folder)}, ()) == ("pick",)


def test_episodes_that_are_not_all_there_are_noted(tmp_path):
    folder = bare(tmp_path / "set", ["twice"] * 2)
    info = read_json(folder / "meta/info.json")
    write_json(folder / "meta/info.json", info | {"total_episodes": 3})
    assert notes(inspect(str(folder), Columns())[1])[0] == ("meta/info.json announces 3 episodes, the meta data list 2")


@pytest.mark.parametrize(
    ("name", "message"),
    [("/nope", "there is no folder '/nope'"), ("lab/cups", "as a name on the hub it needs --revision, a commit")],
)
def test_a_data_set_that_is_not_here_is_one_line(name, message):
    with pytest.raises(GhostError, match=f"inspect: .*{message}"):
        inspect(name, Columns())


def test_bad_pictures_are_noted_with_their_file_and_column(tmp_path):
    folder, names = labs.write_pictures(tmp_path / "set"), Columns("state", "actions")
    cut = lambda column: pa.array([{"bytes": each["bytes"][:60], "path": ""} for each in column.to_pylist()])  # noqa: E731
    path = with_column(folder, labs.CAMERAS[0], cut)
    damaged, _ = notes(inspect(str(folder), names)[1])[::-1]
    assert damaged.startswith(f"{path}: column {labs.CAMERAS[0]!r}: a picture cannot be decoded")
    pq.write_table(pq.read_table(path).drop_columns([labs.CAMERAS[0]]), path)
    absent, _ = notes(inspect(str(folder), names)[1])[::-1]
    assert absent.startswith(f"{path} has no column {labs.CAMERAS[0]!r}")


@pytest.mark.parametrize("harm", ["halved", "shortened", "removed"])
def test_a_bad_video_is_noted_with_its_file_and_camera(tmp_path, harm):
    folder = labs.write_filmed(tmp_path / "set")
    video, *others = sorted((folder / f"videos/chunk-000/{labs.CAMERAS[1]}").glob("*.mp4"))
    if harm == "halved":
        video.write_bytes(video.read_bytes()[: video.stat().st_size // 2])
    elif harm == "shortened":
        made = labs.recordings(12, 14, labs.TASKS, seed=0)
        shorter = min(range(1, 12), key=lambda index: len(made[index].columns["action"]))
        assert len(made[shorter].columns["action"]) < len(made[0].columns["action"])
        video.write_bytes(others[shorter - 1].read_bytes())
    else:
        video.unlink()
    (found,) = notes(inspect(str(folder), Columns())[1])[3:]
    assert str(video) in found
    assert harm == "removed" or labs.CAMERAS[1] in found


def test_the_first_configuration_is_one_that_a_build_accepts(tmp_path, monkeypatch, root):
    folder, names = labs.write_pictures(tmp_path / "set"), Columns("state", "actions")
    (tmp_path / "config").mkdir()
    monkeypatch.chdir(tmp_path)
    source, _ = inspect("set", names)
    assert write_config(source, "set", "", names, "cups") == (
        "wrote config/cups.yaml; now: snakemake all --config scale=cups"
    )
    written = read_yaml(tmp_path / "config/cups.yaml")
    assert written["demos"] == str(folder)
    assert written["columns"] == {"state": "state", "action": "actions"}
    assert "action_groups" not in written
    assert written.pop("extends") == "laptop"
    build = builds.load({**written, "scale": "laptop"}, root)
    assert build.tasks == ("push the block",)
    assert build.experiment("dual_arm").settings["action"] == "actions"
    assert build.experiment("dual_arm_features").module == "ghost.backbones.pixels"
    with pytest.raises(GhostError, match=r"config/cups\.yaml is there already"):
        write_config(source, "set", "", names, "cups")
    with pytest.raises(GhostError, match="small letters, digits and _, got 'My Cups'"):
        write_config(source, "set", "", names, "My Cups")


def test_a_configuration_leaves_out_what_cannot_be_tested(tmp_path, monkeypatch):
    (tmp_path / "config").mkdir()
    monkeypatch.chdir(tmp_path)
    source, _ = inspect(str(bare(tmp_path / "set", ["once", "twice", "twice"])), Columns())
    write_config(source, "lab/cups", "a" * 40, Columns(), "cups")
    written = yaml.safe_load((tmp_path / "config/cups.yaml").read_text())
    assert (written["demos"], written["demos_revision"]) == ("lab/cups", "a" * 40)
    assert (written["tasks"], written["horizon"], written["backbone"]) == (["twice"], 5, "standin")
    source, _ = inspect(str(bare(tmp_path / "single", ["once", "other"])), Columns())
    with pytest.raises(GhostError, match="no task has two episodes, so none can be trained on and tested"):
        write_config(source, "single", "", Columns(), "single")


def test_groups_of_the_modality_are_written(tmp_path, monkeypatch):
    (tmp_path / "config").mkdir()
    monkeypatch.chdir(tmp_path)
    source, _ = inspect(str(labs.write_filmed(tmp_path / "set")), Columns())
    write_config(source, "set", "", Columns(), "arms")
    written = read_yaml(tmp_path / "config/arms.yaml")
    assert written["action_groups"] == {"left_arm": [0, 7], "right_arm": [7, 14]}
    assert written["cameras"] == list(labs.CAMERAS)
