"""The lines that slow steps write into their logs."""

import io

import pytest

from ghost.runs.progress import LINE, Progress


@pytest.fixture
def clock(monkeypatch):
    """A clock to set by hand: `clock[0]` is the time in seconds."""
    now_s = [100.0]
    monkeypatch.setattr("ghost.runs.progress.time.monotonic", lambda: now_s[0])
    return now_s


def test_it_writes_at_most_one_line_in_every_s(clock):
    log = io.StringIO()
    progress = Progress("epochs", stream=log, every_s=0.5)
    for epoch in range(1, 10):
        clock[0] += 0.125
        progress(epoch, 1000)
    assert [line.split()[2] for line in log.getvalue().splitlines()] == ["1/1000", "5/1000", "9/1000"]


def test_the_last_line_is_always_written(clock):
    log = io.StringIO()
    progress = Progress("epochs", stream=log)
    progress(1, 2)
    progress(2, 2)
    assert log.getvalue().splitlines()[-1] == "[100%] 2/2 epochs"


def test_a_line_tells_percent_count_time_left_and_text(clock):
    log = io.StringIO()
    progress = Progress("epochs", stream=log)
    clock[0] += 3.0
    progress(340, 2000, "loss 0.0131")
    line = log.getvalue()
    assert line == "[ 17%] 340/2000 epochs, 15 s left; loss 0.0131\n"
    match = LINE.match(line)
    assert match["percent"] == "17"
    assert match["text"] == "340/2000 epochs, 15 s left; loss 0.0131"


def test_nothing_done_or_nothing_to_do_is_no_division_by_zero(clock):
    log = io.StringIO()
    progress = Progress(stream=log)
    progress(0, 5)
    progress(0, 0)
    assert log.getvalue() == "[  0%] 0/5 steps\n[100%] 0/0 steps\n"


def test_it_writes_to_stderr_where_the_log_is(clock, capsys):
    Progress()(1, 4)
    assert LINE.match(capsys.readouterr().err)["percent"] == "25"
