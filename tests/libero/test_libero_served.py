"""Served rollouts: the episodes of a policy in the process, whoever is killed; nothing is left running."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ghost.errors import GhostError
from ghost.runs.driver import execute
from ghost.runs.records import open_runs
from ghost.serving.service import SERVE, Service
from ghost.steps import rollout as step
from trained import declared

pytest_plugins = ("libero_fixtures",)
pytestmark = pytest.mark.slow

SETTINGS = {"backbone": "libero_standin", "tasks": [5], "trials": 4, "max_steps": 24, "execute": 8, "env_seed": 0}
NAME = "gru_phase"  # its memory grows while an episode begins


def text(**changes):
    given = {**SETTINGS, "rows": 8, **changes}
    return declared("served", "rollout", "ghost.steps.rollout", given, [1], ["features", NAME])


@pytest.fixture(scope="module")
def whole(libero_runs, tmp_path_factory):
    """The run in one process without a server."""
    out = tmp_path_factory.mktemp("whole") / "manifest.json"
    execute(step.rollout, text(), out, [libero_runs["features"], libero_runs[NAME]])
    return open_runs(out)[0]


@pytest.fixture
def temporary():
    """A folder with a short name: that of a socket has a limit."""
    with tempfile.TemporaryDirectory(prefix="served-") as folder:
        yield Path(folder)


@pytest.fixture
def start(libero_runs, temporary):
    """Starts the step as a job does, with a server; ended at the end."""
    started = []

    def job(out, simulators):
        needs = ["--needs", str(libero_runs["features"]), str(libero_runs[NAME])]
        command = [sys.executable, "-m", "ghost.steps.rollout", "--experiment", text(), *needs, "--out", str(out)]
        env = {**os.environ, SERVE: sys.executable, "TMPDIR": str(temporary), "OMP_NUM_THREADS": str(simulators)}
        started.append(subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True))
        return started[-1]

    yield job
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def children(of, containing):
    """Processes below this one with a word in their command."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == of and containing in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except (OSError, ValueError, IndexError):
            continue
    return found


def until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def at_work(process, out):
    """The server of a job whose first episode is finished."""
    until(lambda: process.poll() is not None or list(out.parent.rglob("units/rollout/*.json")))
    (server,) = children(process.pid, "ghost.serving.server")
    return server


def gone(process):
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX"


def test_a_server_gives_four_simulators_the_episodes_of_a_policy_in_the_process(whole, start, tmp_path, temporary):
    out = tmp_path / "manifest.json"
    job = start(out, 4)
    assert job.wait(300) == 0, job.stderr.read()
    (run,) = open_runs(out)
    assert run.files == whole.files
    assert run.run_id == whole.run_id
    assert not list(temporary.glob("ghost-serve-*"))


def test_a_killed_server_fails_the_job_and_the_next_try_gives_the_same_episodes(whole, start, tmp_path):
    out = tmp_path / "manifest.json"
    job = start(out, 2)
    os.kill(at_work(job, out), signal.SIGKILL)
    said = job.communicate(timeout=120)[1]
    assert job.returncode == 2
    assert "is gone" in said
    assert "the server ended first: SIGKILL ended it" in said
    assert "Traceback" not in said
    assert not out.exists()
    kept = {path: path.stat().st_mtime_ns for path in out.parent.rglob("units/rollout/*.json")}
    assert 0 < len(kept) < 4
    again = start(out, 1)
    assert again.wait(300) == 0
    assert open_runs(out)[0].files == whole.files
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_a_killed_simulator_fails_the_job_and_the_next_try_gives_the_same_episodes(whole, start, tmp_path):
    out = tmp_path / "manifest.json"
    job = start(out, 2)
    server = at_work(job, out)
    os.kill(children(job.pid, "spawn_main")[0], signal.SIGKILL)
    job.communicate(timeout=120)
    assert job.returncode != 0
    assert not out.exists()
    assert gone(server)
    again = start(out, 2)
    assert again.wait(300) == 0
    assert open_runs(out)[0].files == whole.files


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_ends_with_its_job(number, start, tmp_path, temporary):
    job = start(tmp_path / "manifest.json", 2)
    server = until(lambda: children(job.pid, "ghost.serving.server"))[0]
    until(lambda: list(temporary.glob("ghost-serve-*/policy")))
    os.kill(job.pid, number)
    job.wait(60)
    until(lambda: gone(server), 30)
    assert not list(temporary.glob("ghost-serve-*/policy"))


def test_what_is_finished_starts_no_server(whole, libero_runs, monkeypatch):
    monkeypatch.setenv(SERVE, "/nowhere/python")
    execute(step.rollout, text(), whole.folder / "manifest.json", [libero_runs["features"], libero_runs[NAME]])
    with pytest.raises(GhostError, match=r"GHOST_SERVE: /nowhere/python does not start: No such file"):
        execute(
            step.rollout,
            text(trials=5),
            whole.folder / "manifest.json",
            [libero_runs["features"], libero_runs[NAME]],
        )


def test_a_server_that_does_not_start_is_one_line(libero_runs, monkeypatch):
    monkeypatch.setenv(SERVE, "/bin/false")
    (features,), runs = open_runs(libero_runs["features"]), open_runs(libero_runs[NAME])
    service = Service.asked_for(features, runs[:1], 2)
    with pytest.raises(GhostError, match="did not start; the server ended first: exit code 1"), service.running():
        pass
    assert not service.folder.exists()
