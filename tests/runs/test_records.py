import hashlib
import json
import platform
import re

import numpy as np
import pytest

from conftest import make_runs
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.files import read_json, write_json
from ghost.runs import records


def edit(path, change):
    content = read_json(path)
    change(content)
    write_json(path, content)


def test_runs_come_back_as_they_were_written(tiny_manifest):
    runs = records.open_runs(tiny_manifest)
    assert [run.seed for run in runs] == [7, 8]
    assert runs[1].measured() == [Measured("train", "loss", 0.8, 5)]
    assert runs[1].value("train", "loss") == 0.8
    np.testing.assert_array_equal(runs[0].arrays()["curve"], [7, 8, 9, 10])


def test_record_says_what_where_and_from_which_bytes(tiny_manifest):
    record = records.open_runs(tiny_manifest)[0].record()
    assert (record["seed"], record["step"], record["module"]) == (7, "simulate", "ghost.simulations.switch_speed")
    assert record["settings"] == {"epochs": 3, "widths": [8, 4]}
    assert "ghost/steps/simulate.py" in record["code"]["files"]
    assert re.fullmatch("[0-9a-f]{64}", record["lock_sha256"])
    assert record["versions"] == {"python": platform.python_version()}  # no package that a record shows was used
    assert record["host"]
    assert record["peak_memory_mb"] > 1
    rows = tiny_manifest.parent / "seed7/measured.csv"
    assert record["outputs"]["measured.csv"]["sha256"] == hashlib.sha256(rows.read_bytes()).hexdigest()
    assert record["outputs"]["measured.csv"]["md5"] == hashlib.md5(rows.read_bytes()).hexdigest()  # as DVC has it


@pytest.mark.parametrize("wrong", [3, {"lock": "x"}, {"lock": 1, "packages_sha256": "x", "differs": {}}])
def test_an_environment_of_another_form_is_refused(tiny_manifest, wrong):
    edit(tiny_manifest.parent / "seed7/run.json", lambda record: record.update(environment=wrong))
    with pytest.raises(GhostError, match="environment"):
        records.open_runs(tiny_manifest)[0].record()


def test_files_that_a_run_reads_are_hashed(tmp_path):
    data = tmp_path / "demos.bin"
    data.write_bytes(b"abc")
    (run, _) = make_runs(tmp_path / "m/manifest.json", lambda seed: Outcome([]), reads=[data])
    entry = run.record()["inputs"][str(data)]
    assert entry["sha256"] == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_run_opens_only_the_files_that_it_lists(tiny_manifest):
    (opened, _) = records.open_runs(tiny_manifest)
    assert opened.path("measured.csv").read_text().startswith("condition,metric,value,n\n")
    assert opened.verified() == tiny_manifest.parent / "seed7"
    with pytest.raises(GhostError, match="lists no seed7/other"):
        opened.path("other")
    opened.path("measured.csv").write_text("condition,metric,value,n\n")
    for read in (opened.verified, lambda: opened.path("measured.csv"), records.open_runs(tiny_manifest)[0].measured):
        with pytest.raises(GhostError, match=r"measured\.csv is not the file"):
            read()


@pytest.mark.parametrize("group", ["inputs", "outputs"])
def test_a_record_without_a_hash_is_refused(tmp_path, group):
    data = tmp_path / "demos.bin"
    data.write_bytes(b"abc")
    manifest = tmp_path / "m/manifest.json"
    make_runs(manifest, lambda seed: Outcome([]), reads=[data])
    path = manifest.parent / "seed7/run.json"
    edit(path, lambda record: next(iter(record[group].values())).pop("sha256"))
    with pytest.raises(GhostError, match="without its sha256"):
        records.open_runs(manifest)[0].record()


def test_a_record_that_lacks_a_field_is_refused(tiny_manifest):
    edit(tiny_manifest.parent / "seed7/run.json", lambda record: record.pop("inputs"))
    with pytest.raises(GhostError, match="lacks inputs"):
        records.open_runs(tiny_manifest)[0].record()


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["settings"].update(epochs=4),
        lambda r: r.update(seed=9),
        lambda r: r.update(step="train"),
        lambda r: r.update(facts={"weights": "others"}),
        lambda r: r["code"].update(sha256="0" * 64),
    ],
)
def test_the_run_id_is_the_address_of_the_content(tiny_manifest, change):
    edit(tiny_manifest.parent / "seed7/run.json", change)
    with pytest.raises(GhostError, match="not that of its content"):
        records.open_runs(tiny_manifest)[0].record()


def test_the_run_id_ignores_host_and_time(tiny_manifest):
    path = tiny_manifest.parent / "seed7/run.json"
    edit(path, lambda record: record.update(host="elsewhere", start="2000-01-01", commit=None))
    edit(path, lambda record: record.update(sha256=records.digest(record)))
    assert records.open_runs(tiny_manifest)[0].record()["host"] == "elsewhere"


@pytest.mark.parametrize("field", ["host", "commit", "command", "start", "wall_s", "gpus", "versions"])
def test_an_edited_record_is_refused(tiny_manifest, field):
    """Host, device, times and command answer for a number, too."""
    edit(tiny_manifest.parent / "seed7/run.json", lambda record: record.update({field: record["host"]}))
    edit(tiny_manifest.parent / "seed7/run.json", lambda record: record.update(host="elsewhere"))
    with pytest.raises(GhostError, match=r"was edited|must be"):
        records.open_runs(tiny_manifest)[0].record()


def test_an_altered_or_truncated_file_is_named(tiny_manifest):
    rows = tiny_manifest.parent / "seed7/measured.csv"
    rows.write_text(rows.read_text().replace("0.7", "0.6"))
    with pytest.raises(GhostError, match=r"seed7/measured\.csv is not the file"):
        records.open_runs(tiny_manifest)[0].measured()
    arrays = tiny_manifest.parent / "seed8/arrays.safetensors"
    arrays.write_bytes(arrays.read_bytes()[:-1])
    with pytest.raises(GhostError, match=r"seed8/arrays\.safetensors is not the file"):
        records.open_runs(tiny_manifest)[1].arrays()


def test_a_swapped_run_is_named(tiny_manifest):
    seven, eight = (tiny_manifest.parent / f"seed{seed}/run.json" for seed in (7, 8))
    seven.write_bytes(eight.read_bytes())
    with pytest.raises(GhostError, match="the manifest lists"):
        records.open_runs(tiny_manifest)[0].record()


def test_a_manifest_cannot_lead_out_of_its_folder(tiny_manifest, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("condition,metric,value,n\n")
    name = "seed7/../../../secret"

    def escape(manifest):
        manifest["runs"][0]["files"] = {
            "seed7/measured.csv": "0" * 64,
            name: hashlib.sha256(secret.read_bytes()).hexdigest(),
        }

    edit(tiny_manifest, escape)
    with pytest.raises(GhostError, match=r"the name of a file inside its folder, got 'seed7/\.\./"):
        records.open_runs(tiny_manifest)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": "7/../../elsewhere"}, "seed must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"seed": True}, "seed must be a whole number"),
        ({"seed": 7.0}, "seed must be a whole number"),
        ({"seed": 8}, "lists a seed twice"),
        ({"run_id": "../0123456789abc"}, r"run_id must be like \[0-9a-f\]\{16\}"),
        ({"run_id": 7}, "run_id must be like"),
        ({"files": ["seed7/measured.csv"]}, "files must be an object"),
        ({"files": {"/etc/passwd": "0" * 64}}, "must be the name of a file inside"),
        ({"files": {"seed7/a\0b": "0" * 64}}, "must be the name of a file inside"),
        ({"files": {"seed8/measured.csv": "0" * 64}}, "is no file of seed7"),
        ({"files": {"seed7/measured.csv": "0"}}, "must be a sha256, got '0'"),
    ],
)
def test_a_manifest_with_a_wrong_value_is_refused(tiny_manifest, change, message):
    edit(tiny_manifest, lambda manifest: manifest["runs"][0].update(change))
    with pytest.raises(GhostError, match=message):
        records.open_runs(tiny_manifest)


@pytest.mark.parametrize("strange", ["line\u2028break", "next\u0085line", 'quote " and, comma', "new\nline", "\x1c"])
def test_measured_values_keep_their_names_whatever_they_hold(tmp_path, strange):
    (run, _) = make_runs(tmp_path / "m/manifest.json", lambda seed: Outcome([Measured(strange, "loss", 0.5, 3)]))
    assert run.measured() == [Measured(strange, "loss", 0.5, 3)]


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"condition,metric\na,b\n", b"condition,metric,value,n\na,b,c,1\n", b'"', b"a,b,c,d\n\0\n"]
)
def test_measured_values_that_are_none_are_one_line(tiny_manifest, content):
    (tiny_manifest.parent / "seed7/measured.csv").write_bytes(content)
    right = hashlib.sha256(content).hexdigest()
    edit(tiny_manifest, lambda manifest: manifest["runs"][0]["files"].update({"seed7/measured.csv": right}))
    with pytest.raises(GhostError, match=r"measured\.csv (has a line that|is no table)"):
        records.open_runs(tiny_manifest)[0].measured()


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.update(stand_ins="none"),
        lambda r: r.update(inputs=[]),
        lambda r: r["outputs"].update({"../x": {"sha256": "0" * 64}}),
        lambda r: r["code"].update(files={"ghost/cli.py": "0" * 64}),
        lambda r: r.update(seed=-1),
    ],
)
def test_a_record_with_a_wrong_value_is_refused(tiny_manifest, change):
    edit(tiny_manifest.parent / "seed7/run.json", change)
    with pytest.raises(GhostError, match=r"run\.json: .* must be "):
        records.open_runs(tiny_manifest)[0].record()


def test_a_corrupt_manifest_is_one_line(tiny_manifest):
    tiny_manifest.write_text("{")
    with pytest.raises(GhostError, match="is not JSON"):
        records.open_runs(tiny_manifest)
    for text in ('{"runs": [{}]}', "[]", "7", '{"cells": 3}', '{"runs": null}'):
        tiny_manifest.write_text(text)
        with pytest.raises(GhostError, match=r"not a manifest of runs: .* must be"):
            records.open_runs(tiny_manifest)
    for text in ("[" * 100_000, '{"runs": ' + "9" * 5000 + "}", '{"runs": "\\ud800"}', "\udcff"):
        tiny_manifest.write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(GhostError, match="is not JSON"):
            records.open_runs(tiny_manifest)


def test_a_run_that_fails_leaves_no_manifest(tmp_path):
    def outcome(seed):
        if seed == 8:
            raise ZeroDivisionError
        return Outcome([])

    with pytest.raises(ZeroDivisionError):
        make_runs(tmp_path / "m/manifest.json", outcome)
    assert not (tmp_path / "m/manifest.json").exists()
    assert not list(tmp_path.rglob("*.tmp*"))


def test_the_manifest_is_the_same_wherever_it_is_made(tiny_manifest, tmp_path, monkeypatch):
    monkeypatch.setattr("platform.node", lambda: "elsewhere")
    second = tmp_path / "again/runs/tiny/manifest.json"
    make_runs(second, lambda seed: Outcome([Measured("train", "loss", seed / 10, 5)], {"curve": np.arange(4.0) + seed}))
    assert second.read_bytes() == tiny_manifest.read_bytes()
    assert json.loads((second.parent / "seed7/run.json").read_text())["host"] == "elsewhere"
