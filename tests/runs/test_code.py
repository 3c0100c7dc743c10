import pytest

from ghost.errors import GhostError
from ghost.runs import code as sources
from ghost.study import EXPERIMENTS


@pytest.fixture
def package(tmp_path, monkeypatch):
    """a imports b (inside a function) and the table; c stands alone."""
    root = tmp_path / "ghost"
    (root / "sub").mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "a": "import os\nfrom ghost.study import X\ndef f():\n    from ghost.sub import b\n    return b\n",
        "c": "1\n",
        "experiments": "X = 1\n",
        "sub/__init__": "",
        "sub/b": '"""Doc."""\nY = 2\n',
    }.items():
        (root / f"{name}.py").write_text(text)
    monkeypatch.setattr(sources, "ROOT", root)
    clear()
    yield root
    clear()


def clear():
    for function in (sources._facts, sources.imports, sources.sources, sources.code_hash):
        function.cache_clear()


def names(*modules):
    return {path.stem if path.stem != "__init__" else path.parent.name for path in sources.sources(*modules)}


def test_the_closure_follows_imports_also_inside_functions(package):
    assert names("ghost.a") == {"a", "b", "sub"}
    assert names("ghost.c") == {"c"}


def test_the_table_is_left_out(package):
    before = sources.code_hash("ghost.a")
    (package / "experiments.py").write_text("X = 2\n")
    clear()
    assert sources.code_hash("ghost.a") == before


def test_a_change_behind_an_import_changes_the_hash_and_no_other(package):
    before = sources.code_hash("ghost.a"), sources.code_hash("ghost.c")
    (package / "sub/b.py").write_text("Y = 3\n")
    clear()
    after = sources.code_hash("ghost.a"), sources.code_hash("ghost.c")
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_comments_docstrings_and_layout_do_not_count(package):
    before = sources.code_hash("ghost.a")
    (package / "sub/b.py").write_text('"""Another."""\n\n# why\nY = (\n    2\n)\n')
    clear()
    assert sources.code_hash("ghost.a") == before


def test_an_unknown_module_is_named(package):
    with pytest.raises(GhostError, match=r"no module ghost\.nope"):
        sources.code_hash("ghost.nope")


def test_editing_one_simulation_does_not_touch_another():
    switch = {path.name for path in sources.sources("ghost.steps.simulate", "ghost.simulations.switch_speed")}
    assert "switch_speed.py" in switch
    assert not switch & {"dwell_time.py", "learned_potential.py", "networks.py", "experiments.py"}


def test_bookkeeping_does_not_rerun_runs_but_does_rerun_what_reads_them():
    modules = ("ghost.steps.simulate", "ghost.simulations.switch_speed")
    assert "records.py" not in {path.name for path in sources.sources(*modules, science=True)}
    assert "switch_speed.py" in {path.name for path in sources.sources(*modules, science=True)}
    assert "records.py" in {path.name for path in sources.sources("ghost.steps.summarize")}


def test_what_was_parsed_is_kept_and_a_broken_file_of_it_is_parsed_anew(package, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    clear()
    parsed = sources.code_hash("ghost.a")
    kept = sorted((tmp_path / "cache/ghost/sources").iterdir())
    assert len(kept) == 3
    clear()
    monkeypatch.setattr(sources.ast, "parse", None)  # nothing is parsed
    assert sources.code_hash("ghost.a") == parsed
    monkeypatch.undo()
    monkeypatch.setattr(sources, "ROOT", package)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for path in kept:
        path.write_text('{"sha256"')
    clear()
    assert sources.code_hash("ghost.a") == parsed


def test_what_writes_and_reads_the_values_is_part_of_every_run():
    """Doubling a value there must not go unnoticed."""
    for experiment in EXPERIMENTS:
        assert sources.ROOT / "data/results.py" in sources.sources(*experiment.modules, science=True), experiment.name
