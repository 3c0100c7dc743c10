"""TeX is found on the PATH, or where somebody without root has put it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from ghost.report import tex


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home and a PATH without TeX."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(tex, "PLACES", tuple(place for place in tex.PLACES if not place.startswith("/")))
    return tmp_path


def install(folder: Path, *programs: str) -> Path:
    folder.mkdir(parents=True)
    for name in programs:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def test_none(home):
    assert not tex.available()
    install(home / "texlive/2025/bin/x86_64-linux", "latexmk")  # without pdflatex
    assert not tex.available()
    assert os.environ["PATH"] == str(home / "bin")


def test_one_on_the_path_is_taken_as_it_is(home):
    install(home / "bin", "latexmk", "pdflatex")
    install(home / "texlive/2026/bin/x86_64-linux", "latexmk", "pdflatex")
    assert tex.available()
    assert os.environ["PATH"] == str(home / "bin")


def test_the_newest_one_of_the_home_is_put_on_the_path(home):
    for place in (".TinyTeX/bin/x86_64-linux", "texlive/2024/bin/x86_64-linux", "texlive/2026/bin/x86_64-linux"):
        install(home / place, "latexmk", "pdflatex")
    assert tex.available()
    assert os.environ["PATH"] == f"{home / 'bin'}:{home / 'texlive/2026/bin/x86_64-linux'}"
    assert tex.available()  # and once is enough
    assert os.environ["PATH"].count("2026") == 1


def test_make_says_it_in_one_line(tmp_path):
    """Without root and without TeX: all but the PDF, the packages, and the page on other ways."""
    tools = install(tmp_path / "bin", "id")
    (tools / "id").write_text("#!/bin/sh\necho 1000\n")
    for name in ("sh", "bash", "make", "env", "ls", "tail"):
        (tools / name).symlink_to(next(p for p in (Path("/bin") / name, Path("/usr/bin") / name) if p.exists()))
    env = {"PATH": str(tools), "HOME": str(tmp_path)}
    command = ["make", "tex", f"PYTHON={sys.executable}"]
    copy = tmp_path / "project"
    copy.mkdir()
    (copy / "Makefile").write_text((ROOT / "Makefile").read_text())
    (copy / "src").symlink_to(ROOT / "src")
    done = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no TeX here: all but the PDF will be built; apt-get install ")
    assert len(done.stdout.splitlines()) == 1
