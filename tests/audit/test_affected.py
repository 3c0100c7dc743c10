"""The way back: from a run to every cell, figure and sentence that rests on it."""

from __future__ import annotations

import pytest
from small_build import OFFLINE, cell, mse, small_build, write_cells, write_paper, write_run

from ghost.audit.affected import Query, affected, report
from ghost.audit.build import Build, sentences_of
from ghost.errors import GhostError

MAIN = r"""
\begin{abstract}
Nothing here. The variational decoder has \cell{tab:lightweight/CVAE/test_mse}. Ghost has \cell{tab:other/mse}.
\end{abstract}
"""
SECTION = r"""
% \cell{tab:lightweight/CVAE/test_mse} in a comment
\begin{figure}
\caption{Errors. The spread is \cell{tab:lightweight/CVAE/p} at most.}
\end{figure}

\holds{worse}{It is worse. It stays worse.} It prints \published{tab:lightweight/CVAE/test_mse} there.

There are \verdicts{total} verdicts.
"""


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_paper(main=MAIN, offline=SECTION)
    return Build.open(small_build())


def test_a_training_reaches_the_evaluation_that_used_it_and_no_other(build):
    trained = next(run for run in build.manifests["cvae"] if run.seed == 123)
    found = affected(build, Query(run=trained.run_id[:10]))
    assert found.runs == [trained.run_id]
    above = [(build.runs[run_id].folder.name, build.runs[run_id].seed) for run_id in found.above]
    assert above == [("cvae_offline", 123)]
    assert found.cells == ["tab:lightweight/CVAE/test_mse", "tab:lightweight/CVAE/p"]
    assert found.artefacts == ["tab:lightweight"]


def test_what_a_run_used_is_what_its_record_names_whatever_the_seeds(build):
    used = ("dual_arm_features/seed0", "cvae/seed42")
    made = write_run(build.config, "cvae_offline", 123, "evaluate", OFFLINE, {("all", "mse"): 1.0}, used)
    again = Build.open(build.config)
    assert {run.seed for run in again.rests_on(made) if run.folder.name == "cvae"} == {42}
    below = [(depth, run.folder.name, run.seed) for depth, run in again.lineage([made])]
    assert below == [(0, "cvae_offline", 123), (1, "cvae", 42), (1, "dual_arm_features", 0), (2, "dual_arm", 0)]


def test_a_bad_run_reaches_every_sentence_that_uses_its_cell(build):
    found = affected(build, Query(run=build.manifests["cvae"][0].run_id)).sentences
    places = [sentence.partition(": ")[::2] for sentence in found]
    assert [(place, text.split(" ")[-1]) for place, text in places] == [
        ("paper/main.tex:3", r"\cell{tab:lightweight/CVAE/test_mse}."),  # the abstract, not its other sentences
        ("paper/sections/offline.tex:4", "most."),  # a caption
        ("paper/sections/offline.tex:7", "worse."),  # a predicate over the cell
        ("paper/sections/offline.tex:7", "worse."),  # in all of its sentences
        ("paper/sections/offline.tex:9", "verdicts."),  # which count the claim that the cell answers to
    ]
    assert r"\holds{worse}{It is worse." in places[2][1]


def test_generated_text_is_not_text_of_the_report(build, tmp_path):
    (tmp_path / "paper/generated").mkdir()
    (tmp_path / "paper/generated/numbers.tex").write_text(r"\cell{tab:lightweight/CVAE/test_mse}.")
    assert {sentence.path for sentence in build.sentences()} == {"paper/main.tex", "paper/sections/offline.tex"}


def test_other_ways_to_name_runs(build):
    assert set(affected(build, Query(host="node1")).runs) == set(build.runs)
    assert set(affected(build, Query(commit="cccc")).runs) == set(build.runs)
    seeds = affected(build, Query(seed=42)).runs
    assert {build.runs[run_id].seed for run_id in seeds} == {42}
    for file in (
        "src/ghost/data/dual_arm.py",
        "data/smoke/runs/dual_arm/manifest.json",
        "runs/dual_arm/seed0/measured.csv",
    ):
        found = affected(build, Query(file=file))
        assert [build.runs[run_id].folder.name for run_id in found.runs] == ["dual_arm"]
        assert len(found.above) == len(build.runs) - 1
    with pytest.raises(GhostError, match="no run with host node2; did you mean node1"):
        affected(build, Query(host="node2"))


def test_one_corrected_p_value_rests_on_all_of_its_table(build):
    run, other = build.manifests["cvae_offline"][0].run_id, build.manifests["ghost_basin_curriculum_offline"][0].run_id
    corrected = [
        cell(f"{name}/holm_p", "0.1", 0.1, estimator="holm_p", runs=[behind])
        for name, behind in (("tab:lightweight/CVAE", run), ("tab:lightweight/MLP", other), ("tab:ablation/x", other))
    ]
    write_cells(build.config, *corrected, cell("tab:lightweight/MLP/p", "0.1", 0.1, runs=[other]))
    found = affected(build, Query(run=run))
    assert found.cells == ["tab:lightweight/CVAE/holm_p", "tab:lightweight/MLP/holm_p"]


def test_a_run_that_no_cell_uses_affects_none(build):
    write_cells(build.config, cell("tab:lightweight/CVAE/test_mse", "1", mse("cvae_offline", 42)))
    found = affected(build, Query(seed=7))
    assert (found.cells, found.artefacts, found.sentences) == ([], [], [])
    assert "cells      0" in report(build, found)


def test_sentences_are_found_with_what_they_cite(tmp_path):
    path = tmp_path / "x.tex"
    path.write_text("First. Then \\cell{a/b} is\nbelow \\cell{a/c}. % \\cell{no}\n\n\\holds{p}{Order holds.} Last.\n")
    found = sentences_of(path)
    assert [(sentence.line, sentence.cites) for sentence in found] == [(1, ("a/b", "a/c")), (4, ("holds:p",))]
