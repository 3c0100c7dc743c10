"""A build with candidates has one training and one rollout more for every policy and rate, otherwise as they are."""

from ghost.study import builds
from ghost.study.candidates import POLICIES, rollout_name, training_name
from ghost.study.closed_loop import targets
from ghost.study.closed_loop_claims import AT_EASY, EASY, HARD

CHOICE = "closed_loop_choice"


def test_every_policy_is_tried_with_every_rate_and_the_same_effort(root):
    config = builds.load({"scale": CHOICE}, root)
    rates = [0.002, 0.001, 0.004]
    for policy in POLICIES:
        own = config.experiment(policy)
        for number, rate in enumerate(rates, 1):
            tried, acting = (config.experiment(name(policy, number)) for name in (training_name, rollout_name))
            assert tried.settings == {**own.settings, "learning_rate": rate}
            assert tried.seeds == acting.seeds == own.seeds[:1]
            assert acting.needs == ("libero_features", tried.name)
            assert (acting.settings["env_seed"], acting.settings["trials"]) == (9, 2)
    assert len(config.experiments) == len(builds.load({"scale": HARD}, root).experiments) + 2 * len(rates) * len(
        POLICIES
    )


def test_the_choice_meets_no_trial_of_the_study(root):
    """Its scenes have an env_seed of their own."""
    choice, study = (builds.load({"scale": scale}, root) for scale in (CHOICE, HARD))
    rollouts = [each for each in study.experiments if each.step == "rollout"]
    used = {
        seed
        for each in rollouts
        for seed in ([each.settings["env_seed"]] if "env_seed" in each.settings else each.seeds)
    }
    assert choice.experiment(rollout_name("libero_mlp", 1)).settings["env_seed"] not in used


def test_the_levels_differ_in_their_demonstrations_and_epochs_alone(root):
    hard, easy = (builds.load({"scale": scale}, root) for scale in (HARD, EASY))
    differing = {
        (a.name, key)
        for a, b in zip(hard.experiments, easy.experiments, strict=True)
        for key in a.settings
        if a.settings[key] != b.settings[key]
    }
    assert differing == {("libero_demos", "attempts"), *((policy, "epochs") for policy in AT_EASY)}


def test_every_row_of_the_study_rests_on_so_many_trials(root):
    config = builds.load({"scale": HARD}, root)
    for each in config.experiments:
        if each.step == "rollout" and not each.settings.get("misdirect"):
            assert each.settings["trials"] * len(each.settings["tasks"]) * len(each.seeds) >= 300, each.name
        elif each.step == "rollout":
            assert each.settings["trials"] == 20


def test_what_a_study_makes(root):
    found = {}
    for scale in (HARD, EASY, CHOICE):
        config = builds.load({"scale": scale}, root)
        found[scale] = targets(config.data, scale, tuple(each.name for each in config.experiments))
    assert [path.suffix for path in found[HARD]] == [".jsonl"] * 4
    assert next(path.parent.name for path in found[EASY]) == "libero_mlp_rollout"
    assert len(found[EASY]) == 3
    assert len(found[CHOICE]) == 3 * len(POLICIES)
