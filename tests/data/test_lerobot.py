import json

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ghost.data.lerobot import LeRobotDataset
from ghost.data.lerobot_writer import Recording, write_dataset, write_video
from ghost.errors import GhostError
from ghost.files import read_json, write_json
from lerobot_v2 import write_version

CAMERAS = ("observation.images.top", "observation.images.wrist")
LENGTHS = (14, 9, 23)  # unequal, and none a multiple of the keyframe distance


def picture(number: int, camera: int, size: int = 32) -> np.ndarray:
    """A frame that tells its number by its brightness, the other way round for the second camera."""
    return np.full((size, size, 3), 40 + 4 * number if camera == 0 else 230 - 4 * number, np.uint8)


def recordings(videos: bool = True) -> list[Recording]:
    rng, made, shown = np.random.default_rng(0), [], 0
    for index, length in enumerate(LENGTHS):
        columns = {
            "observation.state": rng.normal(size=(length, 5)).astype(np.float32),
            "action": rng.normal(size=(length, 3)).astype(np.float32),
            "observation.grid": rng.normal(size=(length, 2, 2)).astype(np.float32),
            "phase": np.sort(rng.integers(0, 4, length)),
        }
        clips = {
            name: np.stack([picture(shown + step, camera) for step in range(length)])
            for camera, name in enumerate(CAMERAS)
        }
        shown += length
        made.append(
            Recording(("lift the cup", "fold")[index % 2], columns, clips if videos else {}, {"way/arm": index})
        )
    return made


@pytest.fixture(params=["v2.0", "v2.1", "v3.0"])
def version(request):
    return request.param


@pytest.fixture
def written(tmp_path, version):
    files = write_version(version, tmp_path / "set", recordings(), fps=10, robot="test", episodes_per_file=2)
    return tmp_path / "set", files


def test_what_is_written_is_read(written):
    folder, files = written
    assert sorted(files) == sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    data = LeRobotDataset.open(folder)
    assert (len(data), data.fps, data.cameras) == (3, 10.0, CAMERAS)
    assert data.tasks == {0: "lift the cup", 1: "fold"}
    np.testing.assert_array_equal(data.lengths(), LENGTHS)
    for index in (2, 0, 1):
        episode, recording = data.episode(index), recordings()[index]
        np.testing.assert_array_equal(episode.state, recording.columns["observation.state"])
        np.testing.assert_array_equal(episode.action, recording.columns["action"])
        np.testing.assert_array_equal(episode.columns["observation.grid"], recording.columns["observation.grid"])
        np.testing.assert_array_equal(episode.columns["phase"], recording.columns["phase"])
        np.testing.assert_allclose(episode.timestamp, np.arange(LENGTHS[index]) / 10, atol=1e-6)
        assert set(episode.task) == {index % 2}
        assert data.episodes[index]["way/arm"] == index


def test_frames_are_those_of_the_steps(written):
    folder, _ = written
    data = LeRobotDataset.open(folder)
    starts = np.concatenate([[0], np.cumsum(LENGTHS)])
    for index, steps in ((1, [8, 0, 3, 3]), (2, [22]), (0, [13, 12]), (2, [0, 11])):
        for camera, name in enumerate(CAMERAS):
            images = data.frames(index, name.rsplit(".", 1)[-1], steps)
            assert images.shape == (len(steps), 32, 32, 3)
            assert images.dtype == np.uint8
            light = images.mean(axis=(1, 2, 3))
            numbers = (light - 40) / 4 if camera == 0 else (230 - light) / 4
            np.testing.assert_allclose(numbers, starts[index] + np.array(steps), atol=0.45)


def to_av1(path):
    """The same frames of the top camera as AV1, which LeRobot's own recorder writes."""
    with av.open(str(path)) as container:
        rate = container.streams.video[0].average_rate
        numbers = [round((frame.to_ndarray(format="rgb24").mean() - 40) / 4) for frame in container.decode(0)]
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libsvtav1", rate=rate, options={"g": "10", "crf": "4", "preset": "8"})
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for number in numbers:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture(number, 0, size=64), format="rgb24")))
        container.mux(stream.encode())


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_av1_is_read_like_h264(tmp_path, version):
    files = write_version(version, tmp_path, recordings(), fps=10, robot="test", episodes_per_file=2)
    for name in files:
        if name.endswith(".mp4") and "top" in name:
            to_av1(tmp_path / name)
    data, starts = LeRobotDataset.open(tmp_path), np.concatenate([[0], np.cumsum(LENGTHS)])
    for index, steps in ((1, [8, 0, 3]), (2, [22, 11]), (0, [13])):
        light = data.frames(index, "top", steps).mean(axis=(1, 2, 3))
        np.testing.assert_allclose((light - 40) / 4, starts[index] + np.array(steps), atol=0.45)
    path = tmp_path / next(name for name in files if name.endswith(".mp4") and "top" in name)
    with av.open(str(path)) as container:
        assert container.streams.video[0].codec_context.name in ("libdav1d", "av1")
        packets = [packet for packet in container.demux(video=0) if packet.pts is not None]
        place, size = next((p.pos, p.size) for p in packets if round(float(p.pts * p.time_base) * 10) == 5)
    content = bytearray(path.read_bytes())
    content[place : place + size] = bytes([255]) * size
    path.write_bytes(content)
    with pytest.raises(GhostError, match=r"frame \d+ (cannot be decoded|is missing)"):
        data.frames(0, "top", range(14))


def test_versions_hold_the_same(tmp_path):
    sets = []
    for version in ("v2.1", "v3.0"):
        write_version(version, tmp_path / version, recordings(videos=False), fps=10, robot="test")
        sets.append(LeRobotDataset.open(tmp_path / version))
    np.testing.assert_array_equal(sets[0].episode(1).action, sets[1].episode(1).action)
    assert sets[0].cameras == ()


def test_statistics_are_those_of_all_steps(tmp_path):
    write_dataset(tmp_path, recordings(videos=False), fps=10, robot="test")
    action = np.concatenate([recording.columns["action"] for recording in recordings()]).astype(np.float64)
    stats = read_json(tmp_path / "meta/stats.json")["action"]
    np.testing.assert_allclose(stats["mean"], action.mean(axis=0))
    np.testing.assert_allclose(stats["std"], action.std(axis=0))
    np.testing.assert_allclose(stats["min"], action.min(axis=0))
    assert stats["count"] == [sum(LENGTHS)]


def test_lists_of_any_kind_and_pandas_task_index(tmp_path):
    """LeRobot's own files hold plain lists, and tasks.parquet has the task as pandas' unnamed index."""
    write_dataset(tmp_path, recordings(videos=False), fps=10, robot="test", episodes_per_file=9)
    path = tmp_path / "data/chunk-000/file-000.parquet"
    table = pq.read_table(path)
    plain = pa.array(table["action"].to_pylist(), pa.list_(pa.float32()))
    pq.write_table(table.set_column(table.column_names.index("action"), "action", plain), path, row_group_size=7)
    tasks = {"task_index": [0, 1], "__index_level_0__": ["lift the cup", "fold"]}
    pq.write_table(pa.table(tasks), tmp_path / "meta/tasks.parquet")
    data = LeRobotDataset.open(tmp_path)
    np.testing.assert_array_equal(data.episode(2).action, recordings()[2].columns["action"])
    assert data.tasks[1] == "fold"
    ragged = plain.to_pylist()
    ragged[3] = ragged[3][:2]
    table = table.set_column(table.column_names.index("action"), "action", pa.array(ragged))
    pq.write_table(table, path)
    with pytest.raises(GhostError, match="column action has lists of unequal length"):
        LeRobotDataset.open(tmp_path).episode(0)


def test_modality_names_cameras(written):
    folder, _ = written
    write_json(folder / "meta/modality.json", {"video": {"ego": {"original_key": CAMERAS[0]}}})
    data = LeRobotDataset.open(folder)
    np.testing.assert_array_equal(data.frames(1, "ego", [4]), data.frames(1, CAMERAS[0], [4]))


@pytest.mark.parametrize("damaged", [0, 6, 13])
def test_a_corrupt_frame_is_named(written, damaged):
    folder, files = written
    data = LeRobotDataset.open(folder)
    path = folder / next(name for name in files if name.endswith(".mp4") and "wrist" in name)
    with av.open(str(path)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.pts is not None]
        places = {round(float(packet.pts * packet.time_base) * 10): (packet.pos, packet.size) for packet in packets}
    content = bytearray(path.read_bytes())
    start, size = places[damaged]
    content[start + 4 : start + size] = bytes([255]) * (size - 4)
    path.write_bytes(content)
    with pytest.raises(GhostError, match=rf"{path.name}: frame {damaged} cannot be decoded \("):
        data.frames(0, "wrist", range(14))
    assert data.frames(0, "top", [13]).shape == (1, 32, 32, 3)  # the other camera is whole


def test_a_short_or_broken_video_is_named(written):
    folder, files = written
    data = LeRobotDataset.open(folder)
    path = folder / next(name for name in files if name.endswith(".mp4") and "top" in name)
    write_video(path, [np.stack([picture(k, 0) for k in range(5)])], fps=10)
    with pytest.raises(GhostError, match=r"mp4: frame 5 is missing"):
        data.frames(0, "top", [4, 5])
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(GhostError, match=r"mp4 is not a video"):
        data.frames(0, "top", [4])
    path.unlink()
    with pytest.raises(GhostError, match=r"mp4: no such file, but it should hold episode 0"):
        data.frames(0, "top", [4])


def edit_info(folder, **changes):
    info = read_json(folder / "meta/info.json")
    for key, value in changes.items():
        if value is None:
            info.pop(key)
        else:
            info[key] = value
    write_json(folder / "meta/info.json", info)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"codebase_version": "v1.6"}, "LeRobot 'v1.6'; this reads v2.0, v2.1, v3.0"),
        ({"fps": None, "data_path": None}, "info.json lacks fps, data_path"),
        ({"data_path": "{nothing}.parquet"}, "data_path: cannot fill in '{nothing}.parquet'"),
        ({"data_path": "{episode_index:999999999d}"}, "cannot fill in"),
        ({"data_path": "{episode_index.__class__}"}, "cannot fill in"),
        ({"data_path": "{episode_index!r}"}, "cannot fill in"),
        ({"data_path": "{"}, "is no template of paths"),
        ({"data_path": 7}, "data_path must be text, got 7"),
        ({"data_path": "a\0b"}, "leads out of"),
        ({"fps": 0}, "fps must lie above 0"),
        ({"fps": -3}, "fps must lie above 0"),
        ({"fps": float("nan")}, "fps must be a finite number, got nan"),
        ({"fps": "10"}, "fps must be a finite number, got '10'"),
        ({"features": []}, "features must be an object"),
        ({"features": {"action": None}}, "features.action must be an object"),
        ({"chunks_size": 0}, "chunks_size must be a whole number from 1"),
        ({"data_path": "../../secret.parquet"}, "leads out of"),
        ({"data_path": "/etc/{episode_index}"}, "leads out of"),
        ({"data_path": "data/other.parquet"}, "other.parquet: no such file, but it should hold episode 0"),
    ],
)
def test_bad_info_is_one_line(tmp_path, changes, message):
    write_dataset(tmp_path / "set", recordings(videos=False), fps=10, robot="test")
    edit_info(tmp_path / "set", **changes)
    with pytest.raises(GhostError) as error:
        LeRobotDataset.open(tmp_path / "set").episode(0)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_bad_questions_are_one_line(written):
    folder, _ = written
    data = LeRobotDataset.open(folder)
    for ask, message in (
        (lambda: data.episode(3), "has episodes 0 to 2, not 3"),
        (lambda: data.episode(-1), "has episodes 0 to 2, not -1"),
        (lambda: data.frames(0, "topp", [0]), "no camera 'topp'; known are observation.images.top, obs"),
        (lambda: data.frames(1, "top", [0, 9]), "episode 1 has steps 0 to 8, not 9"),
        (lambda: LeRobotDataset.open(folder / "meta"), "is no LeRobot data set: it has no meta/info.json"),
    ):
        with pytest.raises(GhostError) as error:
            ask()
        assert message in str(error.value)


def test_raw_values_are_not_taken_for_normalised_ones(written):
    folder, _ = written
    with pytest.raises(GhostError, match=r"has no meta/normalisation\.json: its states and actions are raw"):
        LeRobotDataset.open(folder).require_normalisation()


def test_bad_tables_are_one_line(written, version):
    folder, files = written
    path = folder / next(name for name in files if name.startswith("data/"))
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["action"]), path)
    with pytest.raises(GhostError, match=r"has no column 'action'; its vectors are"):
        LeRobotDataset.open(folder).episode(0)
    pq.write_table(table.slice(1), path)
    with pytest.raises(GhostError, match="episode 0 has 13 steps, the meta data say 14"):
        LeRobotDataset.open(folder).episode(0)
    path.write_bytes(b"PAR1 no")
    with pytest.raises(GhostError, match="is not parquet"):
        LeRobotDataset.open(folder).episode(0)
    if version == "v3.0":
        (folder / "meta/episodes/chunk-000/file-000.parquet").unlink()
        message = "has no meta/episodes"
    else:
        (folder / "meta/episodes.jsonl").write_text('{"episode_index": 0}\n')
        message = "an episode: .* must be an object with length"
    with pytest.raises(GhostError, match=message):
        LeRobotDataset.open(folder)


def changed(table, name, value):
    """A table with another column; `value` is a function of the old one, as a list."""
    number = table.column_names.index(name)
    return table.set_column(number, name, pa.array(value(table[name].to_pylist())))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("task_index", lambda c: [99] * len(c), "task 99 is not in the meta data"),
        ("task_index", lambda c: [-1] * len(c), "task -1 is not in the meta data"),
        ("task_index", lambda c: [0.5] * len(c), "task_index must hold finite numbers"),
        ("task_index", lambda c: [None, *c[1:]], "task_index must hold finite numbers"),
        ("task_index", lambda c: ["pick"] * len(c), "task_index must hold finite numbers"),
        ("frame_index", lambda c: [-x for x in c], "its frames are not numbered 0 to"),
        ("frame_index", lambda c: [0] * len(c), "its frames are not numbered 0 to"),
        ("timestamp", lambda c: [x * 2 for x in c], "its timestamps are not those of 10 steps a second"),
        ("timestamp", lambda c: [0.0] * len(c), "its timestamps are not those of 10 steps a second"),
        ("timestamp", lambda c: [float("nan")] * len(c), "timestamp must hold finite numbers"),
        ("timestamp", lambda c: [[x] for x in c], "timestamp must hold finite numbers"),
        ("action", lambda c: [row[0] for row in c], "action must hold vectors of finite numbers"),
        ("action", lambda c: [[float("inf")] * 3] * len(c), "action must hold vectors of finite numbers"),
        ("action", lambda c: [["a"]] * len(c), "action must hold vectors of finite numbers"),
        ("action", lambda c: [[]] * len(c), "action must hold vectors of finite numbers"),
        ("observation.state", lambda c: [None, *c[1:]], "has lists of unequal length"),
        ("observation.state", lambda c: [c[0], c[0][:1], *c[2:]], "has lists of unequal length"),
        ("episode_index", lambda c: ["0"] * len(c), "episode 0 has 0 steps"),
        ("episode_index", lambda c: [float("nan")] * len(c), "episode 0 has 0 steps"),
    ],
)
def test_a_wrong_column_is_one_line(tmp_path, name, value, message):
    write_dataset(tmp_path / "set", recordings(videos=False), fps=10, robot="test")
    (path,) = (tmp_path / "set/data").rglob("*.parquet")
    pq.write_table(changed(pq.read_table(path), name, value), path)
    with pytest.raises(GhostError, match=message):
        LeRobotDataset.open(tmp_path / "set").episode(0)


@pytest.mark.parametrize(
    ("file", "name", "value", "message"),
    [
        ("tasks", "task_index", lambda c: [5 + x for x in c], "the tasks are not numbered 0 to"),
        ("tasks", "task_index", lambda c: [0] * len(c), "the tasks are not numbered 0 to"),
        ("tasks", "task", lambda c: [7] * len(c), "task must be text, got 7"),
        ("episodes", "length", lambda c: [10**12] * len(c), "length must be a whole number from 1 to"),
        ("episodes", "length", lambda c: [-1] * len(c), "length must be a whole number from 1 to"),
        ("episodes", "length", lambda c: ["9"] * len(c), "length must be a whole number from 1 to"),
        ("episodes", "episode_index", lambda c: c[::-1], None),  # the order in the file does not matter
        ("episodes", "episode_index", lambda c: [None, *c[1:]], "episode_index must be a whole number"),
        ("episodes", "tasks", lambda c: [["unheard of"]] * len(c), "has an unlisted task, 'unheard of'"),
        ("episodes", "tasks", lambda c: [7] * len(c), "must be a list, got 7"),
    ],
)
def test_wrong_meta_data_are_one_line(tmp_path, file, name, value, message):
    write_dataset(tmp_path / "set", recordings(videos=False), fps=10, robot="test")
    path = tmp_path / "set/meta" / ("tasks.parquet" if file == "tasks" else "episodes/chunk-000/file-000.parquet")
    pq.write_table(changed(pq.read_table(path), name, value), path)
    if message is None:
        assert len(LeRobotDataset.open(tmp_path / "set")) == 3
        return
    with pytest.raises(GhostError, match=message):
        LeRobotDataset.open(tmp_path / "set")


def test_a_line_separator_in_an_instruction_is_no_new_line(written, version):
    folder, _ = written
    if version == "v3.0":
        return
    path = folder / "meta/tasks.jsonl"
    lines = [json.loads(line) for line in path.read_text().split("\n") if line]
    told = {line["task"]: f"{line['task']}\u2028now" for line in lines}
    path.write_text(
        "".join(json.dumps({**line, "task": told[line["task"]]}, ensure_ascii=False) + "\n" for line in lines)
    )
    episodes = folder / "meta/episodes.jsonl"
    lines = [json.loads(line) for line in episodes.read_text().split("\n") if line]
    episodes.write_text(
        "".join(json.dumps({**line, "tasks": [told[t] for t in line["tasks"]]}) + "\n" for line in lines)
    )
    assert list(LeRobotDataset.open(folder).tasks.values()) == list(told.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: [], "no episodes to write"),
        (lambda r: [Recording("fold", {"action": r[0].columns["action"]})], "episode 0 has no observation.state"),
        (lambda r: [Recording("fold", {**r[0].columns, "phase": np.zeros(2)})], "phase has 2 steps, action has 14"),
        (lambda r: [Recording("flod", r[0].columns)], "task 'flod' is not listed; did you mean fold?"),
    ],
)
def test_the_writer_refuses_nonsense(tmp_path, change, message):
    with pytest.raises(GhostError) as error:
        write_dataset(tmp_path, change(recordings(videos=False)), fps=10, robot="test", tasks=["fold"])
    assert message in str(error.value)
