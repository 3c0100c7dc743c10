"""A time that was measured beside other work says so, in its cells and in what `ghost ready` refuses."""

import multiprocessing
import os
import subprocess
import sys
import time

import pytest

from conftest import make_runs
from ghost.data.results import Measured, Outcome
from ghost.evaluations import quiet
from ghost.report.appendix import doubts
from ghost.steps.summarize import summarize_cell
from ghost.study.declarations import Cell


def work(seconds: float) -> None:
    until_s = time.process_time() + seconds
    while time.process_time() < until_s:
        pass


def test_work_beside_it_is_seen():
    burn = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(burn) for _ in range(multiprocessing.cpu_count() + 1)]
    try:
        with quiet.Watch(one_thread=True) as watch:
            work(0.3)
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert watch.busy_share > quiet.LIMIT


def test_the_share_is_that_of_others(tmp_path, monkeypatch):
    """Four cores for one second: we use what we use, others the rest of 1.5 seconds of CPU time, 0.5 of it stolen."""
    stat = tmp_path / "stat"
    monkeypatch.setattr(quiet, "STAT", stat)
    for user, idle, steal, expected in ((100, 250, 50, 1.5), (0, 400, 0, 0.0)):
        stat.write_text("cpu 1000 0 0 5000 0 0 0 70 0 0\ncpu0 1 1 1 1\n")
        with quiet.Watch(one_thread=False) as watch:
            start_s = time.process_time()
            work(0.02)
            stat.write_text(f"cpu {1000 + user} 0 0 {5000 + idle} 0 0 0 {70 + steal} 0 0\ncpu0 1 1 1 1\n")
            own_s = time.process_time() - start_s
        assert watch.busy_share == pytest.approx(max(0.0, expected - own_s) / 4, abs=0.01)


def test_a_thread_that_waits_is_busy_by_others_where_the_system_does_not_say(tmp_path, monkeypatch):
    monkeypatch.setattr(quiet, "STAT", tmp_path / "none")
    with quiet.Watch(one_thread=True) as watch:
        time.sleep(0.2)
    assert watch.busy_share > 0.9
    with quiet.Watch(one_thread=False) as watch:
        time.sleep(0.2)
    assert watch.busy_share == 0.0


@pytest.mark.parametrize(("share", "marked"), [(quiet.LIMIT / 2, []), (2 * quiet.LIMIT, ["quiet machine"])])
def test_only_cells_of_a_time_carry_the_mark(tmp_path, share, marked):
    measured = [
        Measured("ghost", "latency_ms", 3.0),
        Measured("ghost", "parameters", 2e6),
        Measured("latency_ms", "busy_share", share),
    ]
    runs = make_runs(tmp_path / "runs/tiny/manifest.json", lambda seed: Outcome(measured))

    def made(metric):
        cell = Cell("x", "tiny", metric, "ghost", "mean")
        return summarize_cell({**vars(cell), "id": f"tab:t/{metric}"}, runs)

    assert made("latency_ms")["stand_ins"] == marked
    assert any("quiet machine" in said for said in doubts(made("latency_ms"))) == bool(marked)
    assert made("parameters")["stand_ins"] == []


def test_latency_asks_for_the_whole_machine():
    from ghost.study import EXPERIMENTS

    assert [experiment.name for experiment in EXPERIMENTS if experiment.timed] == ["training_time", "latency"]


@pytest.mark.slow
def test_nothing_runs_beside_it_on_one_machine(root):
    command = [sys.executable, "-m", "snakemake", "-n", "-F", "--cores", "5", "--nolock", "--config", "scale=smoke"]
    target = "data/smoke/runs/latency/manifest.json"
    done = subprocess.run([*command, "--", target], cwd=root, capture_output=True, text=True, env={**os.environ})
    assert done.returncode == 0, done.stderr
    assert "threads: 5" in done.stdout
