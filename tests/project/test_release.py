"""The folder for Zenodo: whole, the same each time, checked by sha256sum; and what keeps a release back."""

from __future__ import annotations

import json
import subprocess
import zipfile

import pytest
import yaml

from conftest import call
from ghost.errors import GhostError
from ghost.project.place import version
from ghost.project.release import cited, metadata, named, release
from ghost.study.builds import load

PDFS = ("ghost.pdf", "ghost_supplement.pdf")
DOI = "10.5281/zenodo.1234567"


def test_the_citation_keeps_its_text_and_gains_a_doi(root):
    text = (root / "CITATION.cff").read_text()
    once = cited(text, DOI, "2026-01-02")
    before, after = yaml.safe_load(text), yaml.safe_load(once)
    assert after.pop("doi") == DOI
    assert str(after.pop("date-released")) == "2026-01-02"
    assert after == before
    assert cited(once, DOI, "2026-01-02") == once  # a second release replaces the first


def test_people_and_groups_have_names():
    assert named({"name": "A lab"}) == "A lab"
    assert named({"given-names": "Ada", "family-names": "Lovelace"}) == "Lovelace, Ada"


@pytest.mark.parametrize("doi", ["", "zenodo.1", "10.5281/zenodo 1", "https://doi.org/10.5281/zenodo.1"])
def test_what_is_no_doi_is_one_line(tmp_path, doi):
    with pytest.raises(GhostError, match="is not a DOI"):
        release(load({"scale": "smoke"}), tmp_path / "out", doi)


def test_a_citation_without_what_zenodo_asks_for_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "CITATION.cff").write_text("title: words\nauthors: [{name: me}]\n")
    with pytest.raises(GhostError, match=r"CITATION\.cff"):
        metadata(DOI, "2026-01-02", "")


@pytest.mark.slow
def test_a_release_is_whole_and_the_same_each_time(project, tmp_path):
    given = ("ghost", "release", "--scale", "smoke", "--doi", DOI, "--out")
    call(project, *given, str(tmp_path / "one"))
    call(project, *given, str(tmp_path / "two"))
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / n).iterdir()} for n in ("one", "two"))
    assert one == two
    name = f"ghost-{version()}"
    files = {f"{name}-smoke.zip", f"{name}-source.zip", *PDFS, "CITATION.cff", ".zenodo.json"}
    assert set(one) == {*files, "SHA256SUMS"}
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=tmp_path / "one", check=True)
    assert len(one["SHA256SUMS"].splitlines()) == len(files)
    assert "ro-crate-metadata.json" in zipfile.ZipFile(tmp_path / "one" / f"{name}-smoke.zip").namelist()
    source = zipfile.ZipFile(tmp_path / "one" / f"{name}-source.zip")
    tracked = call(project, "git", "ls-files").stdout.splitlines()
    assert {f"{name}/{path}" for path in tracked} == {path for path in source.namelist() if not path.endswith("/")}
    said = json.loads(one[".zenodo.json"])
    assert said["doi"] == DOI
    assert said["license"] == "Apache-2.0"
    assert "GR00T N1.5 backbone" in said["notes"]  # the stand-ins
    assert said["related_identifiers"][0]["identifier"] in (project / "README.md").read_text()
    assert said["creators"] == [{"name": "The Ghost pipeline contributors"}]
    with pytest.raises(AssertionError, match="is not empty"):
        call(project, *given, str(tmp_path / "one"))


@pytest.mark.slow
def test_a_file_that_the_commit_lacks_keeps_the_release_back(project, tmp_path):
    (project / "note.txt").write_text("not committed")
    try:
        done = call(project, "ghost", "release", "--scale", "smoke", "--doi", DOI, "--out", str(tmp_path), check=False)
    finally:
        (project / "note.txt").unlink()
    assert done.returncode == 2
    assert "1 files differ from the commit, such as note.txt: commit them first" in done.stderr
