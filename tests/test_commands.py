"""Every command of README.md and docs/ is run by a test, or its page says what it needs that tests do not have."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from conftest import ROOT, call
from ghost import cli
from test_readme import TEXT, code

# Commands that a test elsewhere runs, as they are or at a smaller scale.
ELSEWHERE = {
    r"ghost audit .*--verify( .*)?": "tests/audit/test_forgery.py::test_a_sealed_build_says_who_vouches_for_it",
    r"ghost audit --repair": "tests/audit/test_forgery.py::test_damaged_deleted_and_replaced_files_are_made_anew",
    r"ghost audit --rerun .*": "tests/audit/test_forgery.py::test_a_true_run_repeats_to_the_bit",
    r"ghost audit --diff .*": "tests/test_ci.py::test_the_cells_that_a_change_moves_are_listed_with_the_reason",
    r"ghost audit tab:lightweight/LSTM/.*": "tests/test_new_decoder.py::test_its_audit_names_its_file",
    r"ghost seal .*": "tests/audit/test_forgery.py::test_a_sealed_build_says_who_vouches_for_it",
    r"ghost bundle .*": "tests/audit/test_bundle.py::test_every_file_is_there_with_its_hash_and_no_other",
    r"ghost publish .*": "tests/project/test_publish.py::test_it_uploads_what_it_prepared_and_only_if_asked",
    r"ghost release .*": "tests/project/test_release.py::test_a_release_is_whole_and_the_same_each_time",
    r"ghost track .*": "tests/project/test_track.py::test_curves_and_values_are_those_of_the_run",
    r"ghost export .*": "tests/training/test_export.py::test_the_file_names_its_run",
    r"ghost serve .*|curl .*/health": "tests/serving/test_server.py",
    r"ghost score .*": "tests/libero/test_libero_harness.py",
    r"GHOST_SERVE=\S+ snakemake .*": "tests/libero/test_libero_served.py",
    r"ghost inspect .*|snakemake all( -n)? --config scale=cups": "tests/test_own_data_builds.py",
    r"snakemake .* libero_protocol=openpi": "tests/study/test_builds.py",
    r"snakemake \S+tab_libero10.tex .* backbone=groot .*": "tests/groot/test_groot_libero.py",
    r"ghost film .*": "tests/libero/test_libero_film.py::test_a_recorded_episode",
    r"dvc repro( fig_\w+)?": "tests/test_workflow.py::test_dvc_repro_builds_one_figure_and_then_does_nothing",
    r"dvc (push|pull|metrics|plots|exp) ?.*|git (add|commit|clone) .*|ghost (restore|keep)( .*)?|snakemake -n": (
        "tests/project/test_restore.py::test_a_restored_clone_has_nothing_to_do_at_two_scales_and_notices_edits"
    ),
    r"ghost pull .*|snakemake paper/generated/\w+.tex": (
        "tests/project/test_restore.py::test_the_runs_of_one_table_are_enough_to_make_it"
    ),
    r"ghost annotate .*": (
        "tests/claims/test_annotate.py::test_two_builds_give_the_same_bytes_and_leave_the_article_alone"
    ),
    r"ghost weave .*": "tests/claims/test_weave.py::test_numbers_and_figures_are_ours_and_the_best_is_bold",
    r"ghost ledger .*": "tests/claims/test_new_ledger.py::test_a_started_ledger_can_be_checked_and_is_not_overwritten",
    r"snakemake all --config scale=mylab( -n)?": "tests/groot/test_groot_workflow.py::test_from_features_to_a_table",
    r"snakemake (--profile slurm )?all( -n)? --config scale=paper": (
        "tests/test_profiles.py::test_the_plan_is_shown_where_there_is_no_slurm"
    ),
    r"snakemake all --set-scatter .*": "tests/test_workflow.py::test_work_divided_among_jobs_gives_the_same_bytes",
    r"make paper": "tests/project/test_place.py::test_a_path_that_cannot_work_is_named",
    r"make (test|test-cluster|test-groot)|\.ci/run.*": (
        "tests/test_ci.py::test_all_parts_run_or_the_one_that_is_named"
    ),
    r"make docs": "tests/test_docs_site.py::test_the_site_is_built_without_a_warning",
    r"make bench": "tests/benches/test_benches.py",
    r"make study|ghost ship": "tests/project/test_studies.py",  # hours of LIBERO; there, on made-up episodes
    r"ghost dvc": "tests/project/test_dvc.py",
    r"python -m ghost\.steps\.train .*": "tests/training/test_train.py",
    r"snakemake all --config scale=smoke|snakemake all|snakemake all -n": (
        "tests/test_workflow.py::test_a_second_run_does_nothing_and_is_quick"
    ),
    r"snakemake \S+ --config (scale=\w+ )?(experiments|steps)=.*": (
        "tests/test_readme.py::test_its_configurations_are_accepted"
    ),
    r"snakemake all --config scale=paper camera_ready=true": (
        "tests/report/test_readiness.py::test_camera_ready_is_a_setting"
    ),
}
# Commands that set up a shell, or belong to others' programs.
SET_UP = (
    r"source .*|export .*|(PIP_NO_DEPS=1 )?pip install .*|pre-commit .*|make \.venv\S*( .*)?|unzip .*|grep .*"
    r"|rocrate-validator .*"
)
# Pages about machines that the tests do not have. Their tests have a Slurm of one node, and a tiny GR00T.
MARKED = {"docs/cluster.md": "Slurm", "docs/groot.md": "weights", "docs/other-schedulers.md": "scheduler"}
QUESTIONS = r"ghost (list|audit|claims|plan|ready)\b.*"  # asked below
TARGETS = r"snakemake (figures|data)/\S+( --config scale=\w+)?"  # planned below


def by_page() -> list[tuple[str, str]]:
    """Every command of a shell block with its page, without comments."""
    found = []
    for page in TEXT:
        for block in code(page, "bash"):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                found += [(page, part.strip()) for part in re.split(r"&& |; ", " ".join(words)) if part.strip()]
    return found


def elsewhere(command: str) -> str:
    return next((test for pattern, test in ELSEWHERE.items() if re.fullmatch(pattern, command)), "")


@pytest.mark.parametrize(("page", "command"), by_page())
def test_it_is_run_or_marked(page, command):
    if page in MARKED:
        assert MARKED[page] in TEXT[page][:600]
    else:
        is_ours = re.fullmatch(f"{SET_UP}|{QUESTIONS}|{TARGETS}", command)
        assert is_ours or elsewhere(command), f"{page}: no test runs {command!r}; name one in ELSEWHERE"


def test_the_tests_elsewhere_exist():
    for test in ELSEWHERE.values():
        file, _, name = test.partition("::")
        assert (ROOT / file).exists(), test
        assert not name or f"def {name}(" in (ROOT / file).read_text(), test


@pytest.mark.slow
def test_the_questions_of_the_docs_have_answers(project, monkeypatch, capsys):
    """Every `ghost` command that only asks, of the smoke build, with a run, a host and a number that it has."""
    cells = [json.loads(line) for line in (project / "data/smoke/cells.jsonl").read_text().splitlines()]
    shown = next(cell for cell in cells if cell["id"] == "tab:lightweight/CVAE/test_mse")
    record = json.loads(next((project / "data/smoke/runs/mlp").glob("seed*/run.json")).read_text())
    known = {"0.0281": shown["shown"].split()[0], "node17": record["host"], "489514c4": record["run_id"][:8]}
    monkeypatch.chdir(project)
    asked = {command for _, command in by_page() if re.fullmatch(QUESTIONS, command) and not elsewhere(command)}
    assert len(asked) > 12
    for command in sorted(asked):
        words = [known.get(word, word) for word in command.split()]
        scale = words.index("--scale") + 1 if "--scale" in words else 0
        words = [*words[:scale], "smoke", *words[scale + 1 :]] if scale else [*words, "--scale", "smoke"]
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        assert ended.value.code in (0, 1), (command, said.err)  # `claims` and `ready` may find something
        assert said.out.strip(), command


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["laptop", "closed_loop", "closed_loop_easy"])
def test_the_targets_of_the_docs_can_be_made(project, scale):
    commands = {command for _, command in by_page() if re.fullmatch(TARGETS, command)}
    wanted = [
        command
        for command in commands
        if re.search(rf"scale={scale}\b", command) or (scale == "laptop" and "--config" not in command)
    ]
    assert wanted
    targets = sorted({command.split()[1] for command in wanted if Path(command.split()[1]).stem != "relaxation"})
    said = call(project, "snakemake", *targets, "-n", "--config", f"scale={scale}")
    assert "This was a dry-run" in said.stdout + said.stderr
