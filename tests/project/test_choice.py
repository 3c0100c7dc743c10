"""`ghost choose` takes the rate with the most successes, writes down what it saw, and gives a build that loads."""

import pytest

from conftest import make_runs
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.project.choice import choose
from ghost.study import builds
from ghost.study.candidates import POLICIES, rollout_name

TRIALS = 20
SUCCESSES = {"libero_mlp": (12, 15, 9), "libero_ghost": (7, 7, 3)}  # at the three rates; all others: none


@pytest.fixture
def tried(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = builds.load({"scale": "closed_loop_choice"}, root)
    for policy in POLICIES:
        for number, found in enumerate(SUCCESSES.get(policy, (0, 0, 0)), 1):
            outcome = Outcome([Measured("all", "success", found / TRIALS, TRIALS)])
            name = rollout_name(policy, number)
            make_runs(config.manifest(name), lambda seed, made=outcome: made, name=name, seeds=[42])
    return config


def test_the_best_rate_is_chosen_and_the_first_of_equals(tried, root, tmp_path):
    (tmp_path / "config").mkdir()
    for path in (root / "config").glob("*.yaml"):
        (tmp_path / "config" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "workflow").symlink_to(root / "workflow")
    assert "10 policies" in choose(tried)
    text = (tmp_path / "config/closed_loop_chosen.yaml").read_text()
    assert "libero_mlp: {learning_rate: 0.001} # 12, 15, 9 of 20; " in text
    study = builds.load({"scale": "closed_loop"}, tmp_path)
    rates = {policy: study.experiment(policy).settings["learning_rate"] for policy in POLICIES}
    assert rates == {**dict.fromkeys(POLICIES, 0.002), "libero_mlp": 0.001}


def test_a_rate_at_which_the_training_diverged_is_left_out(tried, tmp_path):
    """The log has what the training loop says; the manifest is not there."""
    tried.manifest(rollout_name("libero_mlp", 2)).unlink()
    with pytest.raises(GhostError, match="libero_mlp_rate2_rollout"):
        choose(tried, tmp_path / "chosen.yaml")
    log = tmp_path / "logs/closed_loop_choice/train/libero_mlp_rate2.log"
    log.parent.mkdir(parents=True)
    log.write_text("ghost: the loss is not finite in epoch 3; try a smaller learning_rate\n")
    choose(tried, tmp_path / "chosen.yaml")
    assert "libero_mlp: {learning_rate: 0.002} # 12, diverged, 9 of 20; " in (tmp_path / "chosen.yaml").read_text()


def test_without_the_rollouts_nothing_is_chosen(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GhostError, match="snakemake study --config scale=closed_loop_choice"):
        choose(builds.load({"scale": "closed_loop_choice"}, root))
    with pytest.raises(GhostError, match="has no candidates"):
        choose(builds.load({"scale": "closed_loop"}, root))
