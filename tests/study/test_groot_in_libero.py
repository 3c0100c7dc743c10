"""`backbone: groot` with `libero_demos`: what is replaced, what is shared, and what a build without it leaves out."""

import pytest

from ghost.errors import GhostError
from ghost.study import builds, find_artefact
from ghost.study.parts import units_of, uses_gpu

HEADS = ("libero_dit", "libero_dit4")


def loaded(root, **more):
    asked = {"scale": "smoke", "backbone": "groot", "libero_demos": "recordings", "groot": {"checkpoint": "tiny"}}
    return builds.load({**asked, **more}, root)


def test_libero_is_replaced_and_the_dual_arm_part_is_not(root):
    config = loaded(root, libero_convention="ipec")
    demos = config.experiment("libero_demos")
    assert (demos.module, demos.stand_ins) == ("ghost.libero.recorded", ())
    assert demos.settings["tasks"] == [5]  # the build's
    assert demos.settings["convention"] == "ipec"
    features = config.experiment("libero_features")
    assert (features.module, features.needs) == ("ghost.backbones.groot", ("libero_demos", "libero_dit"))
    assert (features.settings["tokens"], features.settings["stride"]) == (64, 4)  # of GR00T, and of the build
    assert config.experiment("dit").step == "train"
    assert config.experiment("dual_arm_features").module == "ghost.backbones.standin"
    both = loaded(root, demos="cups")
    assert both.experiment("dit").step == both.experiment("libero_dit").step == "finetune"


def test_the_fine_tuning_sees_what_the_features_see_and_no_test_episode(root):
    asked = {"libero_features": {"test_episodes": 3, "cameras": ["image"], "crop": 0.8}}
    settings = loaded(root, experiments=asked).experiment("libero_dit").settings
    assert (settings["test_episodes"], settings["cameras"], settings["crop"]) == (3, ["image"], 0.8)
    assert (settings["steps"], settings["batch_size"], settings["horizon"], settings["pixels"]) == (60000, 128, 16, 224)


def test_simulators_stay_in_our_environment_beside_a_server_in_groots(root):
    config = loaded(root)
    for name in ("libero_mlp_rollout", "libero_dit_rollout", "libero_ghost_pz_misdirected"):
        assert config.served(name)
        assert not config.in_groot(name)
        assert config.environment(name)["GHOST_SERVE"] == builds.GROOT_PYTHON
        assert uses_gpu(config, name)
        assert len(config.locks(name)) == 3
    assert config.in_groot("libero_dit4")
    assert not builds.load({"scale": "smoke"}, root).served("libero_mlp_rollout")


def test_shards_of_recorded_demonstrations_can_be_shared(root):
    assert units_of(loaded(root), "libero_features") == ("shards", 7)  # 50 episodes of 520 steps at most, every fourth


def test_the_heads_are_rows_only_where_there_is_a_head(root):
    table = find_artefact("tab:libero10")
    plain = table.within([experiment.name for experiment in builds.load({"scale": "smoke"}, root).experiments])
    full = table.within([experiment.name for experiment in loaded(root).experiments])
    assert full == table
    assert not {*HEADS, *(f"{name}_rollout" for name in HEADS)} & set(plain.experiments)
    assert {*HEADS, *(f"{name}_rollout" for name in HEADS)} <= set(full.experiments)
    assert sum(map(len, full.table.groups)) - sum(map(len, plain.table.groups)) == 2
    names = {cell.name for cell in plain.cells}
    parts = [part for group in plain.table.groups for row in group for entry in row for part in entry]
    assert all(part in names for part in parts if isinstance(part, str))


def test_pixels_are_seen_in_recorded_demonstrations_without_a_server(root):
    config = loaded(root, backbone="pixels", groot={}, libero_convention="ipec")
    demos, features = config.experiment("libero_demos"), config.experiment("libero_features")
    assert (demos.module, demos.settings["convention"]) == ("ghost.libero.recorded", "ipec")
    assert (features.module, features.needs) == ("ghost.backbones.pixels", ("libero_demos",))
    assert [mark.of for mark in features.stand_ins] == ["GR00T N1.5 backbone"]
    assert (features.settings["tokens"], features.settings["stride"]) == (64, 4)  # of the backbone, and of the build
    assert config.experiment("dual_arm_features").module == "ghost.backbones.standin"
    for name in ("libero_mlp_rollout", "libero_ghost_pg_ensemble_rollout", "libero_ghost_pz_misdirected"):
        assert config.experiment(name).settings["backbone"] == "pixels"
        assert "ghost.backbones.pixels" in config.experiment(name).modules
        assert "ghost.backbones.libero_standin" not in config.experiment(name).modules
        assert not config.served(name)
    assert not {*HEADS, *(f"{name}_rollout" for name in HEADS)} & {each.name for each in config.experiments}


def test_recorded_demonstrations_need_a_backbone_that_sees(root):
    with pytest.raises(GhostError, match="reads poses, which recorded demonstrations do not have"):
        loaded(root, backbone="standin")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"libero_demos": "nowhere"}, "libero_demos: there is no folder 'nowhere'"),
        ({"libero_demos": "lab/libero"}, "it needs libero_demos_revision, a commit"),
    ],
)
def test_a_data_set_that_is_not_there_is_refused_before_anything_runs(root, asked, said):
    with pytest.raises(GhostError, match=said):
        loaded(root, **asked).check_places()
