import re

import yaml

from ghost.lock import environment_text, installed, read_lock


def test_conda_has_the_same_environment_as_pip(root):
    pins = read_lock(root / "requirements.lock")
    text = (root / "environment.yml").read_text()
    assert text == environment_text(pins)
    listed = next(entry["pip"] for entry in yaml.safe_load(text)["dependencies"] if isinstance(entry, dict))
    assert listed == [f"{name}=={version}" for name, version in pins.items()]


def test_what_runs_here_is_what_is_locked(root):
    pins, here = read_lock(root / "requirements.lock"), installed()
    assert {name: here.get(name) for name in pins} == pins


def test_torch_is_pinned_and_every_import_of_ours_is_locked(root):
    pins = read_lock(root / "requirements.lock")
    assert pins["torch"] == "2.13.0"
    project = (root / "pyproject.toml").read_text()
    asked = re.findall(r'^  "([A-Za-z0-9_-]+)', project, re.MULTILINE)
    assert "snakemake" in asked
    assert {name.lower().replace("_", "-") for name in asked} - {"n803", "ruf001", "ann401"} <= set(pins)
