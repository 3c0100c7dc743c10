"""The command line explains itself."""

from __future__ import annotations

import tomllib

import pytest

from ghost import cli


@pytest.mark.parametrize("asked", [[], ["audit"]])
def test_without_a_question_it_prints_help(asked, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["ghost", *asked])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: {' '.join(['ghost', *asked])} ")
    assert ("--verify" if asked else "ghost list") in printed


def test_a_negative_number_is_a_question_not_an_option(monkeypatch, capsys, tmp_path, root):
    monkeypatch.chdir(root)
    monkeypatch.setattr("sys.argv", ["ghost", "audit", "-24.4", "--scale", "nowhere"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert "nowhere" in capsys.readouterr().err  # it got as far as the build


def test_the_version_is_that_of_the_checkout_anywhere(monkeypatch, capsys, tmp_path, root):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["ghost", "--version"])
    cli.main()
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert capsys.readouterr().out == f"ghost {version}\n"


def test_a_list_is_printed(monkeypatch, capsys, root):
    monkeypatch.chdir(root)
    monkeypatch.setattr("sys.argv", ["ghost", "list", "decoders", "--filter", "neural_ode", "--scale", "smoke"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 0
    assert capsys.readouterr().out == "neural_ode  src/ghost/decoders/neural_ode.py  neural_ode\n"
