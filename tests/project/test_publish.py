"""What `ghost publish` prepares: weights that act as before, data that read as before, and cards that hide nothing."""

from __future__ import annotations

import base64
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import torch
from huggingface_hub import DatasetCard, ModelCard

from conftest import call
from ghost.audit.build import Build
from ghost.data.lerobot import LeRobotDataset
from ghost.data.normalisation import Normalisation
from ghost.errors import GhostError
from ghost.project import publish as hub
from ghost.project.publish import CARD, check_address, check_card, publish
from ghost.runs.records import open_runs
from ghost.study.builds import load
from ghost.training.checkpoint import load_decoder, load_file
from ghost.training.export import Chunk, example

TOKEN = "hf_of_a_test"


class Hub(BaseHTTPRequestHandler):
    """The five questions that an upload asks a hub. It keeps what it is sent in `server.got`."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers["Authorization"], body))
        if self.path.endswith("/preupload/main"):
            files = [{**file, "uploadMode": "regular", "shouldIgnore": False} for file in json.loads(body)["files"]]
            return self.answer({"files": files})
        if self.path.endswith("/commit/main"):
            return self.answer({"success": True, "commitOid": "c" * 40, "commitUrl": f"{self.server.url}/a/b/commit/c"})
        if self.path == "/api/validate-yaml":
            return self.answer({"errors": [], "warnings": []})
        return self.answer({"url": f"{self.server.url}/a/b"})  # create the repository

    def answer(self, value):
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        server.got, server.url = [], f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def smoke(project, monkeypatch):
    monkeypatch.chdir(project)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    return load({"scale": "smoke"})


def prepare(config, name, out, **changed):
    return publish(config, name, out, **{"seed": None, "licence": "apache-2.0", "to": "", **changed})


@pytest.mark.slow
def test_a_published_decoder_acts_as_before(smoke, tmp_path):
    (run, *_) = open_runs(smoke.manifest("ghost"))
    said = prepare(smoke, "ghost", tmp_path / "ghost", seed=run.seed)
    assert run.run_id in said
    names = {"model.safetensors", "config.json", "normalisation.json", "run.json", CARD}
    assert {path.name for path in (tmp_path / "ghost").iterdir()} == names
    ours, theirs = load_decoder(run), load_file(tmp_path / "ghost/model.safetensors")
    inputs = example(ours, 3)
    with torch.no_grad():
        torch.testing.assert_close(Chunk(theirs)(**inputs), Chunk(ours)(**inputs), rtol=0, atol=0)
    settings = json.loads((tmp_path / "ghost/config.json").read_text())
    assert settings["module"] == "ghost.decoders.ghost"
    assert settings["run_id"] == run.run_id
    limits = Normalisation.read(tmp_path / "ghost/normalisation.json")
    demos = open_runs(smoke.manifest("dual_arm"))[0]
    assert limits.plain() == Normalisation.read(demos.path("dataset/meta/normalisation.json")).plain()


@pytest.mark.slow
def test_the_card_of_a_model_has_numbers_verdicts_and_stand_ins(smoke, tmp_path):
    prepare(smoke, "ghost", tmp_path / "ghost")
    card = ModelCard.load(tmp_path / "ghost" / CARD)
    (run, *_) = open_runs(smoke.manifest("ghost"))
    assert run.record()["stand_ins"]
    assert all(f"It rests on a stand-in: {name}." in card.text for name in run.record()["stand_ins"])
    assert card.data.license == "apache-2.0"
    assert "stand-in" in card.data.tags
    assert "## Intended use" in card.text
    build = Build.open(smoke)
    listed = [result.metric_name for result in card.data.eval_results]
    assert "tab:loss_ablation/ghost/test_mse" in listed
    for result in card.data.eval_results:
        assert build.cells[result.metric_name]["value"] == result.metric_value
    shown = build.cells["tab:loss_ablation/ghost/test_mse"]["shown"]
    assert (
        f"| `tab:loss_ablation/ghost/test_mse` | {shown} | 2 | not comparable |" in card.text
    )  # it rests on stand-ins
    assert not [name for name in listed if name.endswith("/d")]  # an effect compares it with another training


@pytest.mark.slow
def test_a_published_data_set_reads_as_before(smoke, tmp_path):
    (run,) = open_runs(smoke.manifest("dual_arm"))
    prepare(smoke, "dual_arm", tmp_path / "data")
    card = DatasetCard.load(tmp_path / "data" / CARD)
    assert card.data.task_categories == ["robotics"]
    ours, theirs = (
        LeRobotDataset.open(folder) for folder in (run.folder / f"seed{run.seed}/dataset", tmp_path / "data")
    )
    assert f"{len(ours)} episodes" in card.text
    assert theirs.info == ours.info
    assert "stand-in: dual-arm data set" in card.text


@pytest.mark.slow
def test_it_uploads_what_it_prepared_and_only_if_asked(project, server, tmp_path):
    given = ("ghost", "publish", "ghost", "--scale", "smoke", "--out")
    places = {"HF_ENDPOINT": server.url, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
    call(project, *given, str(tmp_path / "one"), **places)
    assert not server.got
    done = call(project, *given, str(tmp_path / "two"), "--to", "lab/ghost", **places)
    assert "uploaded:" in done.stdout
    assert {authorization for _, authorization, _ in server.got} == {f"Bearer {TOKEN}"}
    assert "/api/validate-yaml" in [path for path, _, _ in server.got]  # the hub's own check of the card
    (sent,) = [body for path, _, body in server.got if path == "/api/models/lab/ghost/commit/main"]
    lines = [json.loads(line) for line in sent.splitlines()]
    files = {line["value"]["path"]: line["value"]["content"] for line in lines if line["key"] == "file"}
    assert base64.b64decode(files["model.safetensors"]) == (tmp_path / "one/model.safetensors").read_bytes()
    assert set(files) == {path.name for path in (tmp_path / "one").iterdir()}


@pytest.mark.slow
def test_what_cannot_be_published_is_one_line(smoke, tmp_path):
    with pytest.raises(GhostError, match=r"ghots is not built .*did you mean"):
        prepare(smoke, "ghots", tmp_path / "out")
    with pytest.raises(GhostError, match="switch_speed has neither weights nor a data set"):
        prepare(smoke, "switch_speed", tmp_path / "out")
    with pytest.raises(GhostError, match="no run with seed 5"):
        prepare(smoke, "ghost", tmp_path / "out", seed=5)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    with pytest.raises(GhostError, match="is not empty"):
        prepare(smoke, "ghost", tmp_path / "full")


@pytest.mark.parametrize(
    ("to", "token", "message"),
    [
        ("lab/a b", TOKEN, "--to lab/a b: "),
        ("ghost", TOKEN, "give the owner too, as owner/ghost"),
        ("lab/ghost", None, "no token for the hub"),
    ],
)
def test_an_address_that_cannot_be_is_one_line(monkeypatch, to, token, message):
    monkeypatch.setattr(hub, "get_token", lambda: token)
    with pytest.raises(GhostError, match=message):
        check_address(to)


@pytest.mark.parametrize(
    "text", ["---\nlicense: [\n---\nwords", "---\ntags: [a]\n---\nwords", "---\nlicense: mit\n---\n"]
)
def test_a_card_that_is_none_is_one_line(tmp_path, text):
    (tmp_path / CARD).write_text(text)
    with pytest.raises(GhostError, match="card"):
        check_card(tmp_path / CARD, ModelCard)
