import re
import tomllib
from importlib import metadata

import yaml
from packaging.specifiers import SpecifierSet

from ghost.project.lock import GROOT_HEAD, environment_text, installed, read_lock


def test_conda_has_the_same_environment_as_pip(root):
    pins = read_lock(root / "requirements.lock")
    text = (root / "environment.yml").read_text()
    assert text == environment_text(pins)
    listed = next(entry["pip"] for entry in yaml.safe_load(text)["dependencies"] if isinstance(entry, dict))
    assert listed == [f"{name}=={version}" for name, version in pins.items()]


def test_groots_environments_are_locks_of_their_own(root):
    envs = root / "workflow/envs"
    pins, on_cpu = read_lock(envs / "groot.lock"), read_lock(envs / "groot-cpu.lock")
    assert (envs / "groot.yml").read_text() == environment_text(pins, "groot", GROOT_HEAD)
    assert pins["lerobot"] == on_cpu["lerobot"] == "0.4.4"  # the last one with GR00T N1.5 for Python 3.11
    assert on_cpu["torch"] == read_lock(root / "requirements.lock")["torch"]  # a CPU build; any other is gigabytes
    assert "lerobot" not in read_lock(root / "requirements.lock")


def test_what_runs_here_is_what_is_locked(root):
    pins, here = read_lock(root / "requirements.lock"), installed()
    assert {name: here.get(name) for name in pins} == pins


def test_torch_is_pinned_and_every_import_of_ours_is_locked(root):
    pins = read_lock(root / "requirements.lock")
    assert pins["torch"] == "2.13.0"
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    asked = {re.split("[=<>]", line)[0].lower() for line in project["dependencies"]}
    assert {"snakemake", "snakemake-executor-plugin-slurm"} <= asked <= set(pins)


def test_every_rule_names_the_locked_environment(root):
    """For `--sdm conda`; that environment.yml is the lock is tested above."""
    rules = 0
    for path in sorted((root / "workflow/rules").glob("*.smk")):
        for body in re.split(r"^ *rule\b.*:$", path.read_text(), flags=re.MULTILINE)[1:]:
            named = re.search(r"^ +conda:\n +(.+)$", body, re.MULTILINE)
            assert named is not None, f"{path.name}: a rule without conda:{body[:80]}"
            assert named[1] == '"../../environment.yml"' or named[1].startswith("conda_of(")  # GR00T's own, in runs.smk
            rules += 1
    assert rules >= 10


def test_the_lock_installs_on_debians_own_python(root):
    """Debian 12 has Python 3.11.2: no pinned package may ask for a later one."""
    pins = read_lock(root / "requirements.lock")
    for name in pins:
        asked = metadata.metadata(name)["Requires-Python"]
        assert not asked or SpecifierSet(asked).contains("3.11.2"), f"{name} asks for Python {asked}"
