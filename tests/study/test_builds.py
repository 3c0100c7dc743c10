import re
import shutil
from fnmatch import fnmatch

import pytest
import yaml

from ghost.backbones import groot_files
from ghost.errors import GhostError
from ghost.report.inventory import outputs
from ghost.study import ARTEFACTS, EXPERIMENTS
from ghost.study import builds as config
from ghost.study import groot as groot_study
from ghost.study.declarations import check
from ghost.study.seeds import SEEDS


def test_laptop_is_the_default_and_paper_reduces_nothing(root):
    assert config.load({}, root).scale == "laptop"
    paper = config.load({"scale": "paper"}, root)
    # what was shipped was recorded elsewhere, at a size of its own
    assert all(not paper.declaration(e.name)["reduced"] for e in EXPERIMENTS if e.step != "read_study")


def test_what_a_scale_makes_smaller_is_known(root):
    smoke = config.load({"scale": "smoke"}, root)
    reduced = smoke.declaration("learned_potential")["reduced"]
    assert reduced["epochs"]["paper"] == 2000
    assert reduced["epochs"]["here"] < 2000


def test_episodes_in_libero_are_shared_where_a_scale_says_so(root):
    loaded = config.load({"scale": "closed_loop", "workers": 3}, root)
    names = ("libero_demos", "libero_mlp", "libero_mlp_rollout", "dual_arm")
    assert [loaded.threads(name) for name in names] == [3, 1, 3, 1]
    assert config.load({}, root).threads("libero_mlp_rollout") == 1
    assert str(loaded.pdf).startswith("data/closed_loop/")  # not over the project's own


def test_the_papers_file_shows_every_key_that_a_lab_may_fill_in(lab, root):
    """Its comments, as somebody would copy them, are a build."""
    lines = (root / "config/paper.yaml").read_text().splitlines()
    own = [line.removeprefix("#") for line in lines if re.match(r"#(\w|  \w)", line)]
    (lab / "config/own.yaml").write_text("\n".join(own))
    shown, schema = yaml.safe_load("\n".join(own)), yaml.safe_load((root / config.SCHEMA).read_text())["properties"]
    assert shown.keys() == schema.keys() - {"scale"}
    assert shown["groot"].keys() == schema["groot"]["properties"].keys()
    loaded = config.load({"scale": "own"})
    assert [path.stem for path in loaded.files] == ["paper", "own"]
    assert (loaded.backbone, loaded.camera_ready, loaded.workers) == ("groot", True, 16)
    assert loaded.experiment("dual_arm").settings["path"] == "/data/dual_arm"


def test_every_scale_file_loads(root):
    assert {"smoke", "laptop", "closed_loop", "paper"} <= set(config.names(root))
    for scale in config.names(root):
        config.load({"scale": scale}, root)


@pytest.fixture
def lab(root, tmp_path, monkeypatch):
    """A checkout with builds of a lab: `mylab` extends smoke, `tiny` extends mylab."""
    for name in ("config", "workflow/schemas"):
        shutil.copytree(root / name, tmp_path / name)
    own = {"extends": "smoke", "backbone": "groot", "demos": "recorded", "experiments": {"dit": {"steps": 7}}}
    (tmp_path / "config/mylab.yaml").write_text(yaml.safe_dump(own))
    tiny = {"extends": "mylab", "experiments": {"dual_arm_features": {"batch_size": 3}, "mlp": {"seeds": 1}}}
    (tmp_path / "config/tiny.yaml").write_text(yaml.safe_dump(tiny))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_build_extends_another_one(lab):
    smoke, mylab, tiny = (config.load({"scale": name}) for name in ("smoke", "mylab", "tiny"))
    assert mylab.experiment("cvae").settings == smoke.experiment("cvae").settings
    assert mylab.experiment("dual_arm").settings == {"path": "recorded", "revision": ""}
    assert mylab.experiment("dit").settings["steps"] == 7
    assert tiny.experiment("dual_arm_features").settings["batch_size"] == 3  # of GR00T's features, in a file
    assert len(tiny.experiment("mlp").seeds) == 1
    assert [path.stem for path in tiny.files] == ["smoke", "mylab", "tiny"]
    assert str(mylab.pdf).startswith("data/mylab/")


def test_a_build_that_extends_nothing_there_or_itself_is_one_line(lab):
    (lab / "config/mylab.yaml").write_text("extends: papper\n")
    with pytest.raises(GhostError, match="no scale 'papper'; did you mean paper"):
        config.load({"scale": "mylab"})
    (lab / "config/mylab.yaml").write_text("extends: tiny\n")
    with pytest.raises(GhostError, match="extends itself: mylab -> tiny -> mylab"):
        config.load({"scale": "mylab"})
    with pytest.raises(GhostError, match="belongs into a file"):
        config.load({"scale": "smoke", "extends": "paper"})


def test_commands_read_a_build_as_it_was_made(lab):
    asked = {"scale": "smoke", "demos": "recorded", "experiments": {"mlp": {"epochs": "7"}}, "workers": 2}
    config.load(asked).remember()
    made = config.opened("smoke")
    assert made.experiment("dual_arm").module == "ghost.data.recorded"
    assert made.experiment("mlp").settings["epochs"] == 7
    assert made.workers == 1  # how it was built is no part of it
    config.load({"scale": "smoke"}).remember()
    assert config.opened("smoke").experiment("dual_arm").module == "ghost.data.dual_arm"
    assert config.opened("laptop") == config.load({"scale": "laptop"})  # not built yet
    config.load(asked).memory.write_text('{"overrides": {"scale": "paper", "mlp": 1}}')
    with pytest.raises(GhostError, match="no key 'mlp'"):
        config.opened("smoke")


def test_command_line_text_is_read_as_the_tables_type(root):
    """Snakemake hands nested values of --config over as text."""
    asked = {"experiments": {"switch_speed": {"dt": "1", "euler_steps": ["3", "4"], "max_steps": "7"}}}
    settings = config.load(asked, root).experiment("switch_speed").settings
    assert settings["dt"] == 1.0
    assert isinstance(settings["dt"], float)
    assert settings["euler_steps"] == [3, 4]
    assert settings["max_steps"] == 7


def test_a_step_can_be_made_smaller_as_a_whole_and_one_experiment_otherwise(root):
    asked = {"steps": {"simulate": {"tolerance": 0.3}}, "experiments": {"switch_speed": {"tolerance": 0.2}}}
    loaded = config.load(asked, root)
    assert loaded.experiment("learned_potential").settings["tolerance"] == 0.3
    assert loaded.experiment("switch_speed").settings["tolerance"] == 0.2
    assert "tolerance" not in loaded.experiment("dwell_time").settings


def seeds(root, name, **asked):
    return config.load({"scale": "paper", **asked}, root).experiment(name).seeds


@pytest.mark.parametrize(
    ("name", "asked", "expected"),
    [
        ("mlp", 2, SEEDS[:2]),
        ("mlp", 7, SEEDS[:7]),
        ("mlp", "7", SEEDS[:7]),  # Snakemake hands nested values over as text
        ("mlp", 12, (*SEEDS, 1, 2)),
        ("learned_potential", 5, (0, 1, 2, 42, 123)),
        ("cvae", [6, 5], (6, 5)),
        ("cvae", "[6, 5]", (6, 5)),
    ],
)
def test_seeds_are_how_many_or_which(root, name, asked, expected):
    assert seeds(root, name, experiments={name: {"seeds": asked}}) == expected


def test_more_seeds_are_no_reduction_and_fewer_are_none_either(root):
    """How many runs there are is seen in the manifest; what one run is does not depend on it."""
    for number in (1, 9):
        loaded = config.load({"scale": "paper", "experiments": {"mlp": {"seeds": number}}}, root)
        assert len(loaded.declaration("mlp")["seeds"]) == number
        assert loaded.declaration("mlp")["reduced"] == {}


def test_an_evaluation_follows_its_trainings(root):
    assert seeds(root, "mlp_offline") == seeds(root, "mlp") == SEEDS[:5]
    assert seeds(root, "mlp_offline", experiments={"mlp": {"seeds": 7}}) == SEEDS[:7]
    assert seeds(root, "mlp_offline", experiments={"mlp": {"seeds": 7}, "mlp_offline": {"seeds": 2}}) == SEEDS[:2]
    assert seeds(root, "libero_ghost_pg_rollout", experiments={"libero_ghost_pg": {"seeds": [8]}}) == (8,)


def test_an_evaluation_of_two_trainings_has_the_seeds_that_both_have(root):
    asked = {"ghost": {"seeds": [5, 42, 6]}, "mlp": {"seeds": [6, 7, 5]}}
    assert seeds(root, "ghost_switching", experiments=asked) == (5, 6)
    with pytest.raises(GhostError, match=r"ghost_switching .* share none: ghost, mlp; name seeds"):
        seeds(root, "ghost_switching", experiments={**asked, "mlp": {"seeds": [8]}})


def test_the_most_seeds_of_a_build(root):
    assert seeds(root, "mlp", max_seeds=2) == seeds(root, "mlp_offline", max_seeds=2) == SEEDS[:2]
    assert seeds(root, "latency", max_seeds=2) == (0,)
    named = {"mlp": {"seeds": 4}}  # stronger, since it speaks of one experiment
    assert seeds(root, "mlp", max_seeds=2, experiments=named) == SEEDS[:4]
    assert seeds(root, "mlp_offline", max_seeds=2, experiments=named) == SEEDS[:4]
    assert seeds(root, "cvae_offline", max_seeds=2, experiments=named) == SEEDS[:2]
    # the command line is stronger than the file
    assert seeds(root, "mlp", scale="smoke") == SEEDS[:2]
    assert seeds(root, "mlp", scale="smoke", max_seeds=1) == SEEDS[:1]
    assert seeds(root, "mlp", scale="smoke", experiments=named) == SEEDS[:4]
    assert seeds(root, "libero_ghost_pg", scale="laptop") == SEEDS[:2]
    assert seeds(root, "libero_ghost_pg", scale="laptop", max_seeds=1) == SEEDS[:1]


def test_a_step_receives_all_modules_whose_code_it_runs(root):
    loaded = config.load({}, root)
    modules = {e.name: loaded.declaration(e.name)["modules"] for e in loaded.experiments}
    assert modules["cvae_offline"] == ["ghost.steps.evaluate", "ghost.evaluations.offline", "ghost.decoders.cvae"]
    assert modules["ghost_distilled"][2:] == ["ghost.decoders.dit"]  # its teacher
    assert modules["libero_mlp_rollout"][2:] == ["ghost.decoders.mlp", "ghost.backbones.libero_standin"]
    assert "ghost.agents.rl2" in modules["dark_room_switching"]
    assert {"ghost.decoders.transformer", "ghost.decoders.dit"} < set(modules["latency"])


def test_how_a_fine_tuning_is_cut_is_no_part_of_it(root):
    asked = {"backbone": "groot", "groot": {"checkpoint": "/w"}, "scale": "paper"}
    cut, whole = config.load({**asked, "micro_batch": 2, "workers": 8}, root), config.load(asked, root)
    assert (cut.environment("dit"), cut.threads("dit")) == ({"GHOST_MICRO_BATCH": "2"}, 8)
    assert (whole.environment("dit"), whole.threads("dit")) == ({}, 1)
    assert cut.declaration("dit") == whole.declaration("dit")
    assert cut.environment("mlp") == {}


def test_another_backbone_changes_the_features_and_the_diffusion_transformer(root):
    """GR00T's fine-tuned head is the diffusion transformer, and nothing else behind the features changes."""
    asked = {"backbone": "groot", "groot": {"checkpoint": "/w", "python": "/g/python"}, "scale": "paper"}
    groot, standin = config.load(asked, root), config.load({"scale": "paper"}, root)
    assert groot.groot_python == "/g/python"
    assert sorted(e.name for e in groot.experiments) == sorted(e.name for e in standin.experiments)
    check(groot.experiments, ARTEFACTS)
    changed = {e.name for e in standin.experiments if e != groot.experiment(e.name)}
    assert changed == {"dual_arm_features", "dit", "ghost_distilled", "dit_offline", "latency"}
    features = groot.experiment("dual_arm_features")
    assert features.needs == ("dual_arm", "dit")
    assert (features.settings["tokens"], features.settings["d_token"]) == (64, 2048)
    assert "weights_seed" not in features.settings
    assert not groot.declaration("dit")["reduced"]
    assert not groot.declaration("dual_arm_features")["reduced"]
    assert {e.name for e in groot.experiments if groot.in_groot(e.name)} == {"dit", "dual_arm_features", "latency"}
    assert {e.step for e in groot.experiments if groot.in_groot(e.name)} == {"finetune", "cache_features", "time_head"}
    assert not any(standin.in_groot(e.name) for e in standin.experiments)
    for name in ("ghost_distilled", "dit_offline"):
        assert groot.experiment(name).needs == standin.experiment(name).needs == ("dual_arm_features", "dit")
        assert "ghost.decoders.dit" not in groot.experiment(name).modules
    assert groot.experiment("dit_offline").seeds == groot.experiment("dit").seeds == standin.experiment("dit").seeds
    assert "dit" not in groot.experiment("latency").settings["decoders"]  # the head itself is timed


def test_the_folders_that_experiments_read_are_known(root, tmp_path):
    asked = {"backbone": "groot", "groot": {"checkpoint": str(tmp_path)}, "demos": str(tmp_path)}
    loaded = config.load({**asked, "libero_assets": str(tmp_path)}, root)
    loaded.check_places()
    assert {e.name: sorted(loaded.places(e.name)) for e in loaded.experiments if loaded.places(e.name)} == {
        "dual_arm": ["path"],
        "dit": ["checkpoint"],
        **{e.name: ["libero_assets"] for e in loaded.experiments if loaded.in_libero(e.name)},
    }
    before = {e.name: loaded.outside(e.name) for e in loaded.experiments}
    (tmp_path / "model.safetensors").write_text("")
    now = config.load({**asked, "libero_assets": str(tmp_path)}, root)
    changed = {e.name for e in now.experiments if now.outside(e.name) != before[e.name]}
    assert changed == {"dual_arm", "dit", *(e.name for e in now.experiments if now.in_libero(e.name))}
    hub = {"checkpoint": "nvidia/GR00T-N1.5-3B", "revision": "0" * 40, "processor": "lerobot/eagle"}
    named = config.load({"backbone": "groot", "groot": {**hub, "processor_revision": "1" * 40}}, root)
    named.check_places()
    assert not any(named.places(e.name) for e in named.experiments)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"demos": "/nope"}, "^demos: there is no folder '/nope'"),
        ({"demos": "nope/nope"}, "^demos: there is no folder 'nope/nope'"),
        ({"libero_assets": "/nope"}, "libero_assets: there is no folder '/nope'"),
        ({"backbone": "groot"}, "groot.checkpoint: .*as a name on the hub it needs groot.revision"),
        ({"backbone": "groot", "groot": {"checkpoint": "/nope"}}, "groot.checkpoint: there is no folder '/nope'"),
    ],
)
def test_a_missing_folder_is_refused_before_anything_runs(root, asked, message):
    loaded = config.load(asked, root)  # what reads a finished build does not need it
    loaded.declaration("dual_arm")
    with pytest.raises(GhostError, match=message):
        loaded.check_places()


def test_the_files_of_a_checkpoint_that_count_are_those_that_are_read():
    assert set(groot_files.WEIGHTS) <= set(groot_study.FILES)
    for name in groot_files.ASSETS:
        assert any(fnmatch(name, pattern) for pattern in groot_study.PROCESSOR), name
        assert any(fnmatch(f"{groot_files.EAGLE}/{name}", pattern) for pattern in groot_study.FILES), name


def test_a_build_adds_to_the_keys_of_groot_and_may_be_camera_ready(lab):
    (lab / "config/tiny.yaml").write_text("extends: mylab\ngroot: {checkpoint: /w}\ncamera_ready: true\n")
    made = config.load({"scale": "tiny", "groot": {"python": "/g/python"}})
    assert made.experiment("dit").settings["checkpoint"] == "/w"
    assert made.groot_python == "/g/python"
    assert made.camera_ready
    assert not config.load({"scale": "tiny", "camera_ready": "false"}).camera_ready


def test_groots_fine_tuning_is_the_papers(root):
    settings = config.load({"backbone": "groot", "scale": "paper"}, root).experiment("dit").settings
    recipe = {"steps": 15000, "learning_rate": 5e-5, "batch_size": 4, "accumulation": 2, "euler_steps": 4}
    recipe |= {"train_episodes": 1800, "horizon": 17}
    assert {key: settings[key] for key in recipe} == recipe


def test_a_scales_file_speaks_of_the_stand_ins_and_not_of_what_replaces_them(root):
    smoke = config.load({"scale": "smoke", "backbone": "groot", "demos": "/data/set"}, root)
    features = smoke.experiment("dual_arm_features").settings
    assert (features["tokens"], features["d_token"], features["samples_per_shard"]) == (64, 2048, 64)
    assert smoke.experiment("dual_arm").settings == {"path": "/data/set", "revision": ""}
    assert (
        smoke.experiment("dit").settings["train_episodes"] == features["train_episodes"] == 32
    )  # never what is tested
    assert smoke.declaration("dit")["reduced"] == {"train_episodes": {"here": 32, "paper": 1800}}
    asked = {"dual_arm_features": {"d_token": 64, "cameras": ["head"]}}
    changed = config.load({"scale": "smoke", "backbone": "groot", "experiments": asked}, root)
    assert changed.experiment("dual_arm_features").settings["d_token"] == 64
    assert changed.experiment("dual_arm_features").settings["cameras"] == ["head"]
    assert changed.experiment("dit").settings["cameras"] == ["head"]  # it is trained on what it sees later


def test_a_missing_groot_environment_names_the_command_that_makes_it(root, tmp_path):
    loaded = config.load({"backbone": "groot", "groot": {"python": str(tmp_path / "python")}}, root)
    with pytest.raises(GhostError, match=r"python is missing; `make \.venv-groot/ready` makes it"):
        config.find_groot_python(loaded)


def test_smoke_keeps_to_its_own_folder(root):
    smoke, laptop = config.load({"scale": "smoke"}, root), config.load({}, root)
    assert str(smoke.pdf) == "data/smoke/paper/ghost.pdf"
    assert str(laptop.pdf) == "paper/ghost.pdf"
    assert [str(path) for path in smoke.pdfs] == [str(smoke.pdf), "data/smoke/paper/ghost_supplement.pdf"]
    assert str(smoke.figures) == "data/smoke/figures"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"scale": "laptob"}, "no scale 'laptob'; did you mean laptop?"),
        ({"skale": "laptop"}, "no key 'skale'; did you mean scale?"),
        ({"steps": {"simulat": {}}}, "no step 'simulat'; did you mean simulate?"),
        ({"steps": {"simulate": {"epoch": 1}}}, "no simulate has a setting 'epoch'; did you mean epochs"),
        ({"experiments": {"swich_speed": {}}}, "no experiment 'swich_speed'; did you mean switch_speed"),
        ({"experiments": {"switch_speed": {"dtt": 1}}}, "no setting 'dtt'; did you mean dt"),
        ({"experiments": {"switch_speed": {"max_steps": 1.5}}}, "max_steps must be int, like"),
        ({"experiments": {"switch_speed": {"dt": "fast"}}}, "dt must be float, like"),
        ({"experiments": {"switch_speed": {"euler_steps": 3}}}, "euler_steps must be list"),
        ({"experiments": {"switch_speed": 3}}, "experiments.switch_speed: 3 is not of type 'object'"),
        ({"experiments": {"mlp": {"seeds": 0}}}, "mlp.seeds must be how many, 1 to 1000, or a list of different seeds"),
        ({"experiments": {"mlp": {"seeds": True}}}, "mlp.seeds must be how many"),
        ({"experiments": {"mlp": {"seeds": [1, 1]}}}, "mlp.seeds must be how many"),
        ({"experiments": {"mlp": {"seeds": []}}}, "mlp.seeds must be how many"),
        ({"experiments": {"mlp": {"seeds": [1.5]}}}, "mlp.seeds must be how many"),
        ({"experiments": {"mlp": {"seeds": 10**12}}}, "mlp.seeds must be how many"),
        ({"experiments": {"mlp": {"seeds": [-1]}}}, "none negative"),
        ({"experiments": {"mlp": {"seeds": "[1"}}}, "mlp.seeds is not YAML"),
        ({"experiments": {"mlp": {"epochs": "!!python/object:os.system"}}}, "mlp.epochs is not YAML"),
        ({"experiments": {"mlp": {"epochs": "[[["}}}, "mlp.epochs is not YAML"),
        ({"experiments": {"mlp": {"epochs": "a: b\n\tc"}}}, "mlp.epochs is not YAML"),
        ({"experiments": {"mlp": {"epochs": "9" * 5000}}}, "mlp.epochs is not YAML"),
        ({"experiments": {"mlp": {"epochs": "!!int ''"}}}, "mlp.epochs is not YAML"),
        ({"experiments": {"mlp": {"epochs": "2001-99-99"}}}, "mlp.epochs is not YAML"),
        ({"experiments": {"mlp": {"epochs": "[" * 5000}}}, "mlp.epochs has values nested deeper"),
        ({"experiments": {"mlp": {"epochs": 10**12}}}, "mlp.epochs must be at most"),
        ({"experiments": {"mlp": {"epochs": 10**30}}}, "mlp.epochs must be int"),
        ({"experiments": {"mlp": {"learning_rate": ".nan"}}}, "mlp.learning_rate must be float"),
        ({"experiments": {"mlp": {"learning_rate": float("inf")}}}, "mlp.learning_rate must be float"),
        ({"experiments": {"mlp": {"learning_rate": 10**400}}}, "mlp.learning_rate must be float"),
        ({"experiments": {"mlp": {7: 1}}}, "mlp has no setting 7"),
        ({"experiments": {"latency": {"decoders": {}}}}, "latency.decoders must be dict"),
        ({"workers": 1_000_000}, "workers: 1000000 is greater than the maximum of 1024"),
        ({"workers": 10**9}, "workers: 1000000000 is greater than the maximum of 1024"),
        ({"max_seeds": 10**9}, "max_seeds: 1000000000 is greater"),
        ({7: 1}, "no key 7"),
        ({"max_seeds": 0}, "max_seeds: 0 is less than the minimum of 1"),
        ({"backbone": "grot"}, "backbone: 'grot' is not one of ['standin', 'pixels', 'groot']"),
        ({"groot": {"chekpoint": "x"}}, "no key 'chekpoint'; did you mean checkpoint?"),
        ({"workers": 0}, "workers: 0 is less than the minimum of 1"),
        ({"backbone": "groot", "experiments": {"dual_arm_features": {"hidden": 3}}}, "has no setting 'hidden'"),
    ],
)
def test_bad_input_is_named_with_what_would_be_right(root, asked, message):
    with pytest.raises(GhostError) as error:
        config.load(asked, root)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_broken_scale_file_is_named(root, tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "workflow/schemas").mkdir(parents=True)
    schema = root / config.SCHEMA
    (tmp_path / config.SCHEMA).write_text(schema.read_text())
    (tmp_path / "config/laptop.yaml").write_text("experiments: [")
    with pytest.raises(GhostError, match=r"laptop\.yaml is not YAML"):
        config.load({}, tmp_path)
    (tmp_path / "config/laptop.yaml").write_text(yaml.safe_dump(["a"]))
    with pytest.raises(GhostError, match="must be an object, got"):
        config.load({}, tmp_path)


def test_a_protocol_sets_all_rollouts_and_a_named_setting_is_stronger(root):
    asked = {"scale": "paper", "libero_protocol": "nvidia", "experiments": {"libero_mlp_rollout": {"trials": 7}}}
    loaded = config.load(asked, root)
    plain, ensemble = (
        loaded.experiment(f"libero_ghost_pg_{name}").settings for name in ("rollout", "ensemble_rollout")
    )
    assert (plain["max_steps"], plain["execute"], plain["trials"], plain["env_seed"]) == (1000, 1, 5, 0)
    assert (ensemble["max_steps"], "env_seed" in ensemble) == (1000, False)
    assert loaded.experiment("libero_mlp_rollout").settings["trials"] == 7
    as_published = config.load({"scale": "paper", "libero_protocol": "article"}, root)
    assert all(not as_published.declaration(e.name)["reduced"] for e in EXPERIMENTS)
    with pytest.raises(GhostError, match="libero_protocol"):
        config.load({"libero_protocol": "openvla"}, root)


def test_a_rollout_with_groot_has_a_server_and_its_simulators_in_one_job_with_a_gpu(root):
    from ghost.study.parts import uses_gpu

    loaded = config.load({"scale": "groot", "workers": 8}, root)
    for name in ("libero_mlp_rollout", "libero_dit_rollout"):
        assert loaded.served(name)
        assert not loaded.in_groot(name)
        assert uses_gpu(loaded, name)
        assert loaded.threads(name) == 8
        assert loaded.environment(name)["GHOST_SERVE"] == ".venv-groot/bin/python"
        assert loaded.experiment(name).settings["rows"] == 8
        assert not {"rows", "backbone"} & loaded.declaration(name)["reduced"].keys()
    plain = config.load({"scale": "paper"}, root)
    assert not uses_gpu(plain, "libero_mlp_rollout")
    assert plain.environment("libero_mlp_rollout") == {}


SOME = ["libero_gru_phase", "libero_*_misdirected"]


def test_what_is_left_out_is_missing_with_all_that_needs_it(root):
    """A table loses its rows, a figure that lacks one is not built, and there is no report but tables."""
    build = config.load({"scale": "smoke", "leave_out": SOME}, root)
    names = {experiment.name for experiment in build.experiments}
    assert not [name for name in names if name.startswith("libero_gru_phase") or name.endswith("_misdirected")]
    assert {"libero_mlp_rollout", "libero_ghost_pz_ensemble_rollout"} <= names
    table = build.artefact("tab:libero10")
    rows = [row[0][0].plain for group in table.table.groups for row in group]
    assert "GRU, phase" not in rows
    assert len(rows) == 7
    assert not [cell.name for cell in table.cells if "GRU" in cell.name or cell.name.startswith("misdirected")]
    assert {cell.experiment for cell in table.cells} - {""} <= names
    made = set(map(str, outputs(build, tex=True)))
    assert "data/smoke/paper/tab_libero10.pdf" in made
    assert not {"data/smoke/paper/ghost.pdf", "data/smoke/paper/ghost_supplement.pdf"} & made
    whole = set(map(str, outputs(config.load({"scale": "smoke"}, root), tex=True)))
    assert not [path for path in whole if "tab_" in path and path.endswith(".pdf")]


def test_a_comparison_with_what_is_left_out_is_a_dash(root):
    build = config.load({"scale": "smoke", "leave_out": ["libero_mlp"]}, root)
    table = build.artefact("tab:libero10").table
    rows, column = [row for group in table.groups for row in group], [text.plain for text in table.head]
    gains = [row[column.index("Gain (points)")] for row in rows]
    assert len(rows) == 7
    assert {part.plain for entry in gains for part in entry} == {"—"}
    assert build.artefact("fig:libero_complexity").step == ""
    assert build.artefact("fig:libero_per_task").cells == ()


def test_an_experiment_to_leave_out_that_is_unknown_is_one_line(root):
    with pytest.raises(GhostError, match=r"leave_out: no experiment 'libero_mlpp'.*libero_mlp"):
        config.load({"scale": "smoke", "leave_out": ["libero_mlpp"]}, root)
