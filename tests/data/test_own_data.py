"""A lab's data set, as it is: other names, chosen tasks, cameras and dimensions; and what is wrong with a bad one."""

import dataclasses

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labs
from ghost.data.lerobot import LeRobotDataset
from ghost.data.recorded import Settings, make
from ghost.data.results import Measured
from ghost.data.sampling import Shares, draw
from ghost.errors import GhostError

SHARES = Shares("episode", 0.25, 10_000, horizon=8, d_state=16, d_action=16, samples_per_shard=64)


@pytest.fixture(params=["v2.0", "v2.1", "v3.0"])
def filmed(tmp_path, request):
    return labs.write_filmed(tmp_path / "set", request.param)


def made(source, tmp_path, **settings):
    outcome = make(Settings(str(source), **settings), seed=0, folder=tmp_path / "run")
    files = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert set(outcome.files) == files
    return LeRobotDataset.open(tmp_path / "run/dataset"), outcome


def test_tasks_cameras_and_dimensions_are_chosen(tmp_path, filmed):
    groups = {"right_hand": (7, 10), "left_arm": (0, 7)}
    chosen = {"tasks": (labs.TASKS[2], labs.TASKS[0]), "cameras": ("wrist",), "action_groups": groups}
    data, outcome = made(filmed, tmp_path, **chosen)
    assert [data.tasks[k] for k in (0, 1)] == [labs.TASKS[2], labs.TASKS[0]]
    assert data.cameras == (labs.CAMERAS[1],)
    assert Measured("all", "episodes", 8) in outcome.measured
    scale = data.require_normalisation().action
    assert scale.groups == {"right_hand": (0, 1, 2), "left_arm": (3, 4, 5, 6, 7, 8, 9)}
    assert scale.names == tuple(f"joint_{k}" for k in (7, 8, 9, 0, 1, 2, 3, 4, 5, 6))
    source = [each for each in labs.recordings(12, 14, labs.TASKS, seed=0) if each.task != labs.TASKS[1]]
    for index, recording in enumerate(source):
        episode = data.episode(index)
        assert data.instruction(index) == recording.task
        assert {data.tasks[int(task)] for task in episode.task} == {recording.task}
        raw = recording.columns["action"][:, [7, 8, 9, 0, 1, 2, 3, 4, 5, 6]]
        np.testing.assert_allclose(scale.undo(episode.action), raw, atol=1e-4)
        step = len(recording.columns["action"]) - 1
        seen = data.frames(index, "wrist", [step])[0].astype(int)
        assert np.abs(seen - recording.videos[labs.CAMERAS[1]][step]).mean() < 8  # the video is compressed


def test_groups_come_from_the_modality_and_constants_are_counted(tmp_path, filmed):
    data, outcome = made(filmed, tmp_path)
    scale = data.require_normalisation().action
    assert scale.groups == {"left_arm": tuple(range(7)), "right_arm": tuple(range(7, 14))}
    assert Measured("action", "constant_dimensions", 1) in outcome.measured
    back = scale.undo(np.random.default_rng(0).normal(size=(5, 14)))
    np.testing.assert_allclose(back[:, labs.CONSTANT], labs.STUCK_AT)


def test_pictures_in_parquet_under_other_names(tmp_path):
    data, _ = made(labs.write_pictures(tmp_path / "set"), tmp_path, state="state", action="actions")
    recording = labs.recordings(6, 7, ("push the block",), seed=1)[4]
    np.testing.assert_allclose(
        data.require_normalisation().action.undo(data.episode(4).action), recording.columns["action"], atol=1e-4
    )
    np.testing.assert_array_equal(data.frames(4, "top", [3])[0], recording.videos[labs.CAMERAS[0]][3])


def test_an_instruction_may_stand_in_every_step(tmp_path):
    folder = labs.write_filmed(tmp_path / "set", "v3.0")
    for path in sorted((folder / "data").rglob("*.parquet")):
        table = pq.read_table(path)
        texts = [labs.TASKS[k].upper() for k in table["task_index"].to_pylist()]
        pq.write_table(table.append_column("words", pa.array(texts)), path)
    data, _ = made(folder, tmp_path, task="words")
    assert data.instruction(1) == labs.TASKS[1].upper()
    assert "words" not in data.episode(0).columns


def test_a_share_of_the_episodes_of_each_task_is_held_back(tmp_path, filmed):
    data, _ = made(filmed, tmp_path)
    drawn = draw(SHARES, data, 0)
    train, test = drawn.splits["episode"]
    assert len(drawn) == data.lengths().sum()
    held = {name: set(drawn.episode[part]) for name, part in (("train", train), ("test", test))}
    assert not held["train"] & held["test"]
    assert sorted(data.instruction(int(index)) for index in held["test"]) == sorted(labs.TASKS)  # one of four each
    np.testing.assert_array_equal(drawn.small["task"], [labs.TASKS.index(data.instruction(e)) for e in drawn.episode])
    few = draw(dataclasses.replace(SHARES, samples=60), data, 0)
    assert 55 <= len(few) <= 65
    mixed = draw(dataclasses.replace(SHARES, split_by="sample"), data, 0)
    train, test = mixed.splits["sample"]
    assert len(test) == pytest.approx(0.25 * len(mixed), abs=2)
    assert set(mixed.episode[train]) & set(mixed.episode[test])


@pytest.mark.parametrize("kind", ["texts", "categories"])
def test_a_step_without_an_instruction_is_one_line(tmp_path, kind):
    """Instructions as pandas' categories are instructions, too."""
    folder = labs.write_pictures(tmp_path / "set")
    path = folder / "data/chunk-000/file-000.parquet"
    table = pq.read_table(path)

    def told(texts):
        column = pa.array(texts)
        pq.write_table(table.append_column("words", column if kind == "texts" else column.dictionary_encode()), path)
        return Settings(str(folder), state="state", action="actions", task="words")

    make(told(["fold", "lift"] * (len(table) // 2)), seed=0, folder=tmp_path / "run")
    assert LeRobotDataset.open(tmp_path / "run/dataset").tasks == {0: "fold", 1: "lift"}
    with pytest.raises(GhostError) as error:
        make(told(["fold", None] * (len(table) // 2)), seed=0, folder=tmp_path / "run")
    one_line(str(error.value), str(path), "column 'words' must have an instruction in every step", "of episode 0")


def test_a_truncated_video_whose_header_comes_first_is_one_line(tmp_path):
    """As lerobot's own videos have it: such a file opens, and only its last frames are missing."""
    folder = labs.write_filmed(tmp_path / "set")
    video = sorted((folder / "videos").rglob("*.mp4"))[-1]
    with (
        av.open(str(video)) as source,
        av.open(str(tmp_path / "new.mp4"), "w", options={"movflags": "faststart"}) as to,
    ):
        stream = to.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                to.mux(packet)
    whole = (tmp_path / "new.mp4").read_bytes()
    video.write_bytes(whole)
    make(Settings(str(folder)), seed=0, folder=tmp_path / "run")
    video.write_bytes(whole[:-20])
    with pytest.raises(GhostError) as error:
        make(Settings(str(folder)), seed=0, folder=tmp_path / "run")
    one_line(str(error.value), str(video), "wrist", "is truncated: ", "frames are whole")


def test_a_picture_that_is_missing_is_one_line_before_anything_is_written(tmp_path):
    folder = labs.write_pictures(tmp_path / "set")
    path = folder / "data/chunk-000/file-000.parquet"
    pq.write_table(pq.read_table(path).drop_columns([labs.CAMERAS[1]]), path)
    settings = Settings(str(folder), state="state", action="actions")
    with pytest.raises(GhostError) as error:
        make(settings, seed=0, folder=tmp_path / "run")
    one_line(str(error.value), str(path), f"has no column {labs.CAMERAS[1]!r}")
    assert not (tmp_path / "run/dataset").exists()
    make(dataclasses.replace(settings, cameras=("top",)), seed=0, folder=tmp_path / "run")


def one_line(message, *parts):
    assert "\n" not in message
    for part in parts:
        assert part in message


def with_column(folder, name, change):
    path = sorted((folder / "data").rglob("*.parquet"))[0]
    table = pq.read_table(path)
    values = np.stack(table[name].to_numpy()).copy()
    change(values)
    column = pa.array(values.tolist(), pa.list_(pa.float32()))
    pq.write_table(table.set_column(table.column_names.index(name), name, column), path)
    return path


def test_bad_data_is_one_line_that_names_file_and_column_and_what_would_be_right(tmp_path, filmed):
    def says(*parts, **settings):
        with pytest.raises(GhostError) as error:
            make(Settings(str(filmed), **settings), seed=0, folder=tmp_path / "run")
        one_line(str(error.value), *parts)
        assert not (tmp_path / "run/dataset").exists()  # nothing is written before all is checked

    says(str(filmed), "no camera 'wirst'", "known are", "images.wrist", cameras=("wirst",))
    says(str(filmed), "no task 'open'", "known are open the drawer", tasks=("open",))
    says("parquet", "no column 'actoin'", "its vectors are observation.state, action", action="actoin")
    says("action group 'arm'", "<= 14, the width of 'action'", "[7, 20]", action_groups={"arm": (7, 20)})
    says("no mode 'limit'; did you mean limits", normalisation="limit")
    video = sorted((filmed / "videos").rglob("*.mp4"))[-1]
    content = video.read_bytes()
    video.write_bytes(content[: len(content) // 2])
    says(str(video), "wrist", "truncated")
    video.unlink()
    says(str(video), "no such file")
    video.write_bytes(content)

    def spoil(values):
        values[3, 2] = np.nan

    path = with_column(filmed, "action", spoil)
    says(str(path), "action must hold vectors of finite numbers")


def test_files_of_other_widths_are_one_line(tmp_path):
    folder = labs.write_filmed(tmp_path / "set")
    path = folder / "data/chunk-000/episode_000007.parquet"
    table = pq.read_table(path)
    column = pa.array([row[:13] for row in table["action"].to_pylist()], pa.list_(pa.float32()))
    pq.write_table(table.set_column(table.column_names.index("action"), "action", column), path)
    with pytest.raises(GhostError) as error:
        make(Settings(str(folder)), seed=0, folder=tmp_path / "run")
    one_line(str(error.value), str(path), "'action' has 13 dimensions in episode 7 and 14 in episode 0")


def test_tasks_without_episodes_and_long_horizons_are_one_line(tmp_path):
    folder = tmp_path / "set"
    tasks = [*labs.TASKS, "fold a towel"]
    labs.write_version("v3.0", folder, labs.recordings(6, 3, labs.TASKS, 2), fps=10, robot="x", tasks=tasks)
    with pytest.raises(GhostError) as error:
        make(Settings(str(folder)), seed=0, folder=tmp_path / "run")
    one_line(str(error.value), str(folder), "task 'fold a towel' has no episode; name the tasks")
    data, _ = made(folder, tmp_path, tasks=labs.TASKS)
    longest = data.lengths().max()
    with pytest.raises(GhostError, match=f"horizon 99 is longer than every episode.*must be at most {longest}"):
        draw(dataclasses.replace(SHARES, horizon=99), data, 0)
    only, _ = made(folder, tmp_path / "b", tasks=labs.TASKS[:1])
    assert len(only) == 2
    one = LeRobotDataset.open(tmp_path / "b/run/dataset")
    one.episodes = one.episodes[:1]
    with pytest.raises(GhostError, match="has 1 episodes, 1 are to test and none would be left to train"):
        draw(SHARES, one, 0)
