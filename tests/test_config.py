import pytest
import yaml

from ghost import config
from ghost.errors import GhostError
from ghost.experiments import EXPERIMENTS


def test_laptop_is_the_default_and_paper_reduces_nothing(root):
    assert config.load({}, root).scale == "laptop"
    paper = config.load({"scale": "paper"}, root)
    assert all(not paper.row(row.name)["reduced"] for row in EXPERIMENTS)


def test_what_a_scale_makes_smaller_is_known(root):
    smoke = config.load({"scale": "smoke"}, root)
    reduced = smoke.row("learned_potential")["reduced"]
    assert reduced["epochs"]["paper"] == 2000
    assert reduced["epochs"]["here"] < 2000


def test_every_scale_file_loads(root):
    for scale in config.SCALES:
        config.load({"scale": scale}, root)


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


def test_seeds_can_be_fewer(root):
    asked = {"experiments": {"learned_potential": {"seeds": 1}}}
    loaded = config.load(asked, root)
    assert loaded.experiment("learned_potential").seeds == (0,)
    assert loaded.row("learned_potential")["reduced"]["seeds"]["here"] == [0]


def test_smoke_keeps_to_its_own_folder(root):
    smoke, laptop = config.load({"scale": "smoke"}, root), config.load({}, root)
    assert str(smoke.pdf) == "data/smoke/paper/ghost.pdf"
    assert str(laptop.pdf) == "paper/ghost.pdf"
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
        ({"experiments": {"learned_potential": {"seeds": 99}}}, "seeds must be 1 to"),
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
    with pytest.raises(GhostError, match="expected keys and values"):
        config.load({}, tmp_path)
