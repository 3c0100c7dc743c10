import pytest

from ghost.runs.ending import why


@pytest.mark.parametrize(("code", "name"), [(-9, "SIGKILL"), (137, "SIGKILL"), (143, "SIGTERM"), (-11, "SIGSEGV")])
def test_a_signal_is_named_and_explained(code, name):
    assert why(code).startswith(f"{name} ended this step: ")
    assert len(why(code).split(": ", 1)[1].split()) > 3


@pytest.mark.parametrize("code", [0, 1, 2, 128, 255])
def test_a_step_that_ended_by_itself_has_no_signal(code):
    assert why(code) == ""
