"""What `--verify` promises against an accident, a careless edit and a forger; in copies of a finished smoke build."""

from __future__ import annotations

import shutil
import subprocess
from itertools import cycle
from pathlib import Path

import pytest
from small_build import forge

from conftest import SMOKE, call
from ghost.audit.affected import Query
from ghost.audit.answer import Verification, answer
from ghost.audit.build import Build
from ghost.audit.rerun import rerun
from ghost.audit.seal import seal
from ghost.audit.verify import verify
from ghost.errors import GhostError
from ghost.files import hashes, read_json, write_json
from ghost.study.builds import load

pytestmark = pytest.mark.slow
RUNS = Path("data/smoke/runs")


@pytest.fixture
def config(project, tmp_path, monkeypatch):
    """A copy of the build, which a test may spoil."""
    shutil.copytree(project, tmp_path / "copy", symlinks=True, ignore=shutil.ignore_patterns("units", ".git"))
    shutil.copytree(project / ".git", tmp_path / "copy/.git")
    monkeypatch.chdir(tmp_path / "copy")
    return load({"scale": "smoke"})


def said(config, *parts: str) -> str:
    found = verify(config, parts) if parts else verify(config)
    return "\n".join(f"{problem.kind} {problem.where}: {problem.says}" for problem in found)


def halve(folder: Path, seed: int) -> dict[str, dict[str, str]]:
    """The measured errors of a run, halved; returns the hashes of its files as a record has them."""
    path = folder / f"seed{seed}/measured.csv"
    lines = [line.split(",") for line in path.read_text().splitlines()]
    halved = [[a, b, repr(float(v) / 2), n] if b == "mse" else [a, b, v, n] for a, b, v, n in lines[1:]]
    path.unlink()  # the unit keeps the true values
    path.write_text("\n".join(",".join(line) for line in (lines[0], *halved)) + "\n")
    outputs = read_json(folder / f"seed{seed}/run.json")["outputs"]
    return {**outputs, "measured.csv": hashes(path)}


def make_all(*options: str) -> None:
    call(Path(), "snakemake", "all", *options, *SMOKE)


# ------------------------------------------------------------------------------------------------------- forged marks


def test_forged_marks_and_origins_are_named(config):
    """Values halved; stand-ins and reductions gone; commit and environment invented; every hash made to fit."""
    folder = RUNS / "cvae_offline"
    for seed in (42, 123):
        outputs = halve(folder, seed)

        def change(record, outputs=outputs):
            record.update(outputs=outputs, stand_ins=[], reduced={}, commit="0" * 40, lock_sha256="0" * 64)

        forge(folder / "manifest.json", seed, change)
    make_all()
    found = said(config)
    for seed in (42, 123):
        record = f"{folder}/seed{seed}/run.json"
        assert f'marks {record}: stand_ins is []; study, build and inputs give ["GR00T N1.5 backbone",' in found
        assert f"marks {record}: reduced is {{}}; study, build and inputs give" in found
        assert f"inputs {record}: names the commit 000000000000, which this repository does not have" in found
        assert f"inputs {record}: is stale: its environment was another one" in found


def test_a_run_that_names_other_inputs_is_named(config):
    """Without its inputs it would inherit no mark."""
    folder = RUNS / "cvae_offline"
    forge(folder / "manifest.json", 42, lambda record: record.update(inputs={}, stand_ins=[], reduced={}))
    assert "used runs of nothing; the study has dual_arm_features, cvae" in said(config, "runs")


def test_another_environment_is_named(config):
    Path("requirements.lock").write_text("numpy==1.0\n")
    found = said(config, "runs")
    assert "is stale: its environment was another one; requirements.lock has changed since" in found


def test_an_edited_host_is_named(config):
    path = RUNS / "cvae/seed42/run.json"
    record = read_json(path)
    write_json(path, {**record, "host": "cluster17"})
    assert f"records {path}: the record was edited" in said(config, "runs")


def test_a_second_run_shows_forged_values(config):
    """Nothing else can: the values hold together, and the marks are true."""
    folder = RUNS / "cvae_offline"
    outputs = halve(folder, 42)
    forge(folder / "manifest.json", 42, lambda record: record.update(outputs=outputs))
    assert "cvae_offline/seed42" not in said(config, "runs")
    build = Build.open(config)
    run = next(run for run in build.manifests["cvae_offline"] if run.seed == 42)
    (second,) = rerun(build, run.run_id, 1)
    assert (second.same, second.differing) == (False, ("measured.csv",))
    assert second.largest == pytest.approx(0.5)
    text, code = answer(config, "", Query(), rerun=run.run_id)
    assert (code, text) == (1, str(second))


def test_a_true_run_repeats_to_the_bit(config):
    found = rerun(Build.open(config), "tab:lightweight/CVAE/test_mse", 3, seed=0)
    assert len(found) == 3
    assert all(second.same and not second.differing for second in found)
    with pytest.raises(GhostError, match="no cell"):
        rerun(Build.open(config), "tab:nothing", 1)


# ---------------------------------------------------------------------------------------------------------- signature


def new_key(folder: Path, name: str) -> tuple[Path, str]:
    """A key, and its line of a list of allowed signers."""
    key = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)], check=True)
    return key, f"{name}@lab.org {key.with_suffix('.pub').read_text()}"


def test_a_sealed_build_says_who_vouches_for_it(config, tmp_path):
    verification = Verification()
    assert answer(config, "", Query(), verification) == (
        "consistent: everything holds together\nnot signed: nobody vouches for the values (`ghost seal`)",
        0,
    )
    alice, allowed = new_key(tmp_path, "alice")
    mallory, _ = new_key(tmp_path, "mallory")
    seal(config.inventory, alice)
    text, code = answer(config, "", Query(), verification)
    assert code == 0
    assert "signed with ED25519 key SHA256:" in text
    assert "authentic" not in text
    Path("config/allowed_signers").write_text(allowed)
    text, code = answer(config, "", Query(), verification)
    assert code == 0
    assert "authentic: signed by alice@lab.org with ED25519 key" in text
    # a forger without the key: every file follows, the signature cannot
    forge(RUNS / "cvae/manifest.json", 42, lambda record: record.update(host="elsewhere"))
    assert "files data/smoke/runs/cvae/seed42/run.json: was changed" in said(config, "inventory")
    make_all("--forcerun", "inventory")
    assert said(config, "inventory") == ""
    found = said(config)
    assert "seal data/smoke/inventory.json.sig: the signature does not hold" in found
    seal(config.inventory, mallory)
    assert "which config/allowed_signers does not list" in said(config, "seal")
    config.inventory.with_name("inventory.json.sig").unlink()
    assert "inventory.json.sig: is missing, though config/allowed_signers lists who may sign" in said(config, "seal")
    config.inventory.with_name("inventory.json.sig").write_text("nonsense")
    assert "the signature does not hold" in said(config, "seal")


def test_a_build_with_problems_is_not_signed(config, tmp_path):
    key, _ = new_key(tmp_path, "alice")
    (config.figures / "switch_speed.png").write_bytes(b"")
    done = call(Path(), "ghost", "seal", "--key", str(key), "--scale", "smoke", check=False)
    assert done.returncode == 1
    assert "switch_speed.png: was changed" in done.stdout
    assert not config.inventory.with_name("inventory.json.sig").exists()


# ------------------------------------------------------------------------------------------------ damage and its repair


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


GARBAGE = b"\x00\xff{[ no file of ours \xe2\x80\xa8"
DAMAGED = (  # files, each of another kind
    *("runs/mlp/manifest.json", "runs/cvae/seed42/run.json", "runs/cvae_offline/seed42/measured.csv"),
    *("runs/switch_speed/seed0/arrays.safetensors", "runs/ghost/seed42/model.safetensors"),
    *("runs/dual_arm_features/seed0/shards.json", "runs/libero_mlp_rollout/seed42/episodes.csv"),
    *(
        "runs/libero_mlp_rollout/seed42/units.csv",
        "cells.jsonl",
        "cells/tab_meta_rl.jsonl",
        "cells/fig_dwell_time.jsonl",
    ),
    *("results.csv", "metrics/Ghost.json", "audit.html", "notebooks/ghost_walkthrough.html"),
    *("paper/generated/numbers.tex", "paper/generated/tab_lightweight.tex", "figures/dwell_time.pgf"),
    *("figures/switch_speed.png", "paper/ghost.pdf", "paper/ghost_supplement.pdf"),
)


def overwrite(path: Path) -> None:
    path.write_bytes(GARBAGE)


def clear(path: Path) -> None:
    path.write_bytes(b"")


SPOIL = (flip, overwrite, clear)


@pytest.mark.parametrize("spoil", SPOIL)
def test_damaged_files_are_all_named(config, spoil):
    for name in DAMAGED:
        spoil(config.data / name)
    found = said(config)
    missing = [name for name in DAMAGED if f" {config.data / name}" not in found]
    assert not missing, found


def test_damaged_deleted_and_replaced_files_are_made_anew(config):
    """Each is damaged in another way than its neighbours."""
    figure = (config.figures / "diagnostic.png").read_bytes()
    for name, spoil in zip(DAMAGED, cycle(SPOIL), strict=False):
        spoil(config.data / name)
    (RUNS / "transformer/manifest.json").unlink()
    shutil.copy(config.figures / "dwell_time.png", config.figures / "diagnostic.png")
    (config.data / "audit.html").unlink()
    found = said(config)
    assert "seeds data/smoke/runs/transformer/manifest.json: no runs of transformer" in found
    assert "files data/smoke/figures/diagnostic.png: was changed" in found
    assert "page data/smoke/audit.html: is missing" in found
    text, code = answer(config, "", Query(), Verification(repair=True))
    assert code == 1
    assert "`snakemake all` makes them anew" in text
    make_all()
    assert said(config) == ""
    assert (config.figures / "diagnostic.png").read_bytes() == figure
