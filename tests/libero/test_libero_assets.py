"""Which assets are used, and what records say of them."""

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from ghost.errors import GhostError
from ghost.files import sha256
from ghost.libero import assets
from ghost.libero.things import THINGS
from ghost.runs.outside import Place

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def tree(tmp_path):
    """The names of LIBERO's asset tree, without its meshes."""
    for thing in THINGS:
        (tmp_path / thing.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / thing.path).write_text(thing.name)
    return tmp_path


def test_a_path_comes_first_and_records_have_its_hash(tree, monkeypatch):
    monkeypatch.setenv("GHOST_LIBERO_ASSETS", str(tree))
    found = assets.find_assets()
    assert (found.folder, found.primitive) == (tree.resolve(), False)
    before = found.facts["libero_assets"]
    (tree / THINGS[0].path).write_text("another mesh")
    assert len(before) == 64
    assert assets.find_assets().facts["libero_assets"] != before


def test_a_path_that_lacks_a_thing_is_one_line(tree, monkeypatch):
    (tree / THINGS[3].path).unlink()
    monkeypatch.setenv("GHOST_LIBERO_ASSETS", str(tree))
    with pytest.raises(GhostError, match=f"has no {THINGS[3].path}; it must hold LIBERO's asset tree"):
        assets.find_assets()


def test_then_what_is_installed_then_the_primitives(tree, tmp_path, monkeypatch):
    monkeypatch.delenv("GHOST_LIBERO_ASSETS", raising=False)
    monkeypatch.setattr(assets, "package_folder", lambda: tmp_path / "package")
    found = assets.find_assets()
    assert (found.primitive, found.facts) == (True, {"libero_assets": "primitives"})
    (tmp_path / "package/assets").mkdir(parents=True)
    assert assets.find_assets() == assets.Assets(tmp_path / "package/assets", primitive=False)


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as a download asks for: one repository, its list of files, the files."""

    def answer(self, with_body: bool) -> None:
        files = {path.relative_to(self.server.tree).as_posix(): path for path in self.server.tree.rglob("*.xml")}
        headers, name = {"Content-Type": "application/json"}, self.path.partition(f"/resolve/{COMMIT}/")[2]
        if name in files:
            body = files[name].read_bytes()
            headers = {"ETag": f'"{sha256(files[name])}"', "X-Repo-Commit": COMMIT}
        elif self.path.startswith("/api/datasets/lerobot/libero-assets/"):
            body = json.dumps({"id": "x", "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}).encode()
        else:
            self.send_error(404)
            return
        self.send_response(200)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def do_GET(self):
        self.answer(with_body=True)

    def do_HEAD(self):
        self.answer(with_body=False)

    def log_message(self, *args):
        pass


def in_another_process(endpoint: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """The hub's address is read when its library is imported."""
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "GHOST_LIBERO_ASSETS": "hub"}
    code = "from ghost.libero.assets import find_assets; a = find_assets(); print(a.folder, a.facts['libero_assets'])"
    command = [
        sys.executable,
        "-c",
        f"from ghost.errors import exit_on_error\ndef run():\n    {code}\nexit_on_error(run)",
    ]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_hub_is_asked_once_and_its_absence_is_one_line(tree, tmp_path_factory):
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        server.tree = tree
        Thread(target=server.serve_forever, daemon=True).start()
        endpoint, cache = f"http://127.0.0.1:{server.server_port}", tmp_path_factory.mktemp("cache")
        done = in_another_process(endpoint, cache)
        assert done.returncode == 0, done.stderr
        folder, found = done.stdout.split()
        assert found == Place(str(tree)).content()
        assert Path(folder).is_relative_to(cache)
        server.shutdown()
    assert in_another_process(endpoint, cache).stdout == done.stdout  # without the hub, from the cache
    done = in_another_process(endpoint, tmp_path_factory.mktemp("empty"))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "cannot download lerobot/libero-assets from the hub" in done.stderr
