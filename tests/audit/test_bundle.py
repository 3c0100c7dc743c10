"""The bundle is a Provenance Run Crate: the profile's required entities and properties, checked one by one."""

from __future__ import annotations

import hashlib
import json
import zipfile

import pytest

from ghost.audit.bundle import bundle
from ghost.study.builds import load

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def archive(project, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        out = tmp_path_factory.mktemp("bundle") / "ghost.zip"
        config = load({"scale": "smoke"})
        bundle(config, out)
        again = out.with_name("again.zip")
        bundle(config, again)
    assert out.read_bytes() == again.read_bytes()
    return zipfile.ZipFile(out)


@pytest.fixture(scope="module")
def graph(archive):
    metadata = json.loads(archive.read("ro-crate-metadata.json"))
    return {entity["@id"]: entity for entity in metadata["@graph"]}


def of_type(graph, kind):
    return [
        entity
        for entity in graph.values()
        if kind in ([entity["@type"]] if isinstance(entity["@type"], str) else entity["@type"])
    ]


def references(value):
    if isinstance(value, dict):
        yield from [value["@id"]] if "@id" in value else []
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_file_is_there_with_its_hash_and_no_other(archive, graph):
    names = set(archive.namelist()) - {"ro-crate-metadata.json", "SHA256SUMS"}
    files = {entity["@id"]: entity for entity in of_type(graph, "File")}
    assert names == set(files)
    for name in sorted(names)[::20]:
        assert hashlib.sha256(archive.read(name)).hexdigest() == files[name]["sha256"]
    assert {part["@id"] for part in graph["./"]["hasPart"]} == names
    assert {"data/smoke/paper/ghost.pdf", "data/smoke/paper/ghost_supplement.pdf"} <= names
    assert not [name for name in names if name.endswith(".safetensors")]


def test_the_root_and_its_descriptor(graph):
    assert graph["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    assert {"@id": "https://w3id.org/ro/crate/1.1"} in graph["ro-crate-metadata.json"]["conformsTo"]
    root = graph["./"]
    assert {"name", "description", "datePublished", "license", "mainEntity", "conformsTo"} <= set(root)
    assert root["license"] == {"@id": "https://spdx.org/licenses/Apache-2.0"}
    assert graph["data/smoke/paper/ghost.pdf"]["license"] == {"@id": "https://spdx.org/licenses/CC-BY-4.0"}
    for name in ("paper/sentences.yaml", "data/smoke/paper/ghost_supplement.pdf"):
        assert graph[name]["license"] == graph["data/smoke/paper/ghost.pdf"]["license"]
    assert "license" not in graph["src/ghost/cli.py"]  # as the whole
    assert {"LICENSE", "NOTICE", "paper/LICENSE"} <= graph.keys()
    for profile in root["conformsTo"]:
        assert graph[profile["@id"]]["@type"] == "CreativeWork"
    assert "https://w3id.org/ro/wfrun/provenance/0.5" in {profile["@id"] for profile in root["conformsTo"]}


def test_the_workflow_has_language_steps_tools_and_parameters(graph):
    workflow = graph[graph["./"]["mainEntity"]["@id"]]
    assert {"File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"} <= set(workflow["@type"])
    assert graph[workflow["programmingLanguage"]["@id"]]["@type"] == "ComputerLanguage"
    tools = {tool["@id"] for tool in workflow["hasPart"]}
    for step in workflow["step"]:
        assert graph[step["@id"]]["@type"] == "HowToStep"
        assert graph[step["@id"]]["workExample"]["@id"] in tools
    for parameter in (*workflow["input"], *workflow["output"]):
        assert {"name", "additionalType", "conformsTo"} <= set(graph[parameter["@id"]])


def test_every_action_has_instrument_and_result_and_is_mentioned(graph):
    actions = of_type(graph, "CreateAction")
    assert len(actions) > 70
    mentioned = {mention["@id"] for mention in graph["./"]["mentions"]}
    tools = {tool["@id"] for tool in graph["Snakefile"]["hasPart"]} | {"Snakefile"}
    for action in actions:
        assert action["@id"] in mentioned
        assert action["instrument"]["@id"] in tools
        assert action["result"]
        assert graph[action["instrument"]["@id"]]["@type"]
    (engine,) = of_type(graph, "OrganizeAction")
    assert engine["result"] == {"@id": "#workflow-run"}
    assert graph[engine["instrument"]["@id"]]["@type"] == "SoftwareApplication"
    controls = [graph[control["@id"]] for control in engine["object"]]
    assert {control["@type"] for control in controls} == {"ControlAction"}
    assert {graph[control["instrument"]["@id"]]["@type"] for control in controls} == {"HowToStep"}
    assert {control["object"]["@id"] for control in controls} == {a["@id"] for a in actions} - {"#workflow-run"}


def test_no_reference_dangles(graph):
    outside = ("http://", "https://")
    for entity in graph.values():
        for key, value in entity.items():
            for name in references(value) if key != "@id" else ():
                assert name in graph or name.startswith(outside), (entity["@id"], key, name)


def test_it_reaches_the_number(graph):
    cell = graph["#cell/tab:lightweight/CVAE/test_mse"]
    assert cell["@type"] == "PropertyValue"
    assert isinstance(cell["value"], float)
    measured = [source["@id"] for source in cell["isBasedOn"]]
    assert len(measured) == 2
    actions = of_type(graph, "CreateAction")
    (producer,) = [action for action in actions if {"@id": measured[0]} in action["result"]]
    assert producer["name"] == "cvae_offline, seed 42"
    used = [source["@id"] for source in producer["object"]]
    makers = {
        action["name"] for action in actions if {"@id": "data/smoke/runs/cvae/seed42/measured.csv"} in action["result"]
    }
    assert makers == {"cvae, seed 42"}
    assert "data/smoke/runs/cvae/seed42/measured.csv" in used
    assert "data/smoke/runs/cvae/seed123/measured.csv" not in used  # the run of its own seed alone
