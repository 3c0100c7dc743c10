"""The site's file: what it may say, and one line for what it may not."""

from __future__ import annotations

import sys

import pytest

from conftest import ROOT, call
from ghost.errors import GhostError
from ghost.project.site import arguments, read_site


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu: {qqos: x}", "gpu: no key 'qqos'; did you mean qos?"),
        ("acount: lab", "no key 'acount'; did you mean account?"),
        ("grain: {episode: 5}", "grain: no key 'episode'; did you mean episodes?"),
        ("grain: {seeds: 0}", "grain: seeds must be a whole number above 0, got 0"),
        ("jobs: many", "jobs must be a whole number above 0, got 'many'"),
        ("cpu: fast", "cpu: must be a list of keys: partition, qos, constraint, arguments"),
        ("gpu: {tflops: fast}", "gpu: tflops must be a number, got 'fast'"),
        ("account: 7", "account must be a text, got 7"),
    ],
)
def test_what_a_site_may_not_say_is_one_line(tmp_path, monkeypatch, text, message):
    own = tmp_path / "site.yaml"
    own.write_text(text)
    monkeypatch.setenv("GHOST_SITE", str(own))
    with pytest.raises(GhostError) as error:
        read_site(ROOT)
    assert str(error.value) == f"{own}: {message}"


def test_snakemake_says_it_in_one_line(tmp_path):
    own = tmp_path / "site.yaml"
    own.write_text("gpu: {tpye: a100}")
    command = [sys.executable, "-m", "snakemake", "--profile", "slurm", "-n"]
    done = call(ROOT, *command, check=False, GHOST_SITE=str(own))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == f"ghost: error: {own}: gpu: no key 'tpye'; did you mean type?"


def test_options_of_a_partition():
    partition = {"partition": "p", "qos": "", "constraint": "a100&nvlink", "arguments": "--nice --exclude=n7"}
    assert arguments(partition) == "--partition=p --constraint='a100&nvlink' --nice --exclude=n7"
