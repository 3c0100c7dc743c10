"""The bundle before the validator that the RO-Crate community wrote, without a network.

The validator downloads the two contexts of the metadata. Here they come from its cache: that of RO-Crate 1.1 from the
package rocrate, and of the one for workflow runs the only term that we use.
"""

from __future__ import annotations

import json
import subprocess
import zipfile

import pytest

from conftest import ROOT
from ghost.audit.bundle import bundle
from ghost.study.builds import load

BIN = ROOT / ".venv-crate/bin"
CACHE = """
import json, sys
from importlib.resources import files
from io import BytesIO
from requests import Request, Response
from requests_cache import CachedSession
from urllib3 import HTTPResponse

contexts = {
    "https://w3id.org/ro/crate/1.1/context": files("rocrate").joinpath("data/ro-crate.jsonld").read_bytes(),
    "https://w3id.org/ro/terms/workflow-run/context": json.dumps(
        {"@context": {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}}
    ).encode(),
}
session = CachedSession(sys.argv[1], expire_after=-1)
for url, content in contexts.items():
    answer, head = Response(), {"Content-Type": "application/ld+json"}
    answer.status_code, answer.url, answer.headers, answer._content = 200, url, head, content
    answer.request = Request("GET", url).prepare()
    answer.raw = HTTPResponse(BytesIO(content), status=200, headers=head, preload_content=False)
    session.cache.save_response(answer)
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BIN.exists(), reason="no validator of RO-Crates: make .venv-crate/ready"),
]


@pytest.fixture(scope="module")
def crate(project, tmp_path_factory):
    """The bundle of the smoke build, unpacked."""
    folder = tmp_path_factory.mktemp("crate")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        bundle(load({"scale": "smoke"}), folder / "bundle.zip")
    zipfile.ZipFile(folder / "bundle.zip").extractall(folder / "crate")
    return folder / "crate"


def validate(folder, tmp_path):
    cache = str(tmp_path / "cache")
    subprocess.run([BIN / "python", "-c", CACHE, cache], check=True, capture_output=True)
    asked = ["--profile-identifier", "provenance-run-crate", "--requirement-severity", "required", "--fail-fast"]
    command = [BIN / "rocrate-validator", "-y", "validate", "--offline", "--cache-path", cache, "--no-paging", *asked]
    return subprocess.run([*command, str(folder)], check=False, capture_output=True, text=True)


def test_it_is_a_valid_provenance_run_crate(crate, tmp_path):
    done = validate(crate, tmp_path)
    assert done.returncode == 0, done.stdout
    assert "RO-Crate is a valid provenance-run-crate-0.5" in done.stdout


def test_a_crate_with_a_run_that_names_no_tool_is_refused(crate, tmp_path):
    path = crate / "ro-crate-metadata.json"
    text = path.read_text()
    metadata = json.loads(text)
    run = next(entity for entity in metadata["@graph"] if entity["@id"].startswith("#run/"))
    del run["instrument"]
    path.write_text(json.dumps(metadata))
    try:
        done = validate(crate, tmp_path)
    finally:
        path.write_text(text)
    assert done.returncode == 1
    assert "is not a valid" in " ".join(done.stdout.split())
