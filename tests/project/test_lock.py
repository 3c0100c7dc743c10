"""The lock: complete, hashed, the same for conda, what is installed here. A package with another hash is refused."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from ghost.errors import GhostError
from ghost.project import lock
from ghost.project.lock import (
    CONDA,
    GROOT_CONDA,
    HEADS,
    environment_text,
    fits,
    groot_declaration,
    line,
    read_lock,
    write_lock,
)
from ghost.runs.environment import installed
from locked import asked_for

SYSTEMS = [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")]
LOCKS = ("cuda", "groot", "groot-cpu")
EITHER = "platform_machine == 'x86_64' or platform_machine == 'arm64'"


def lines_of(path) -> list[str]:
    return [text for text in path.read_text().splitlines() if not text.startswith("#")]


@pytest.mark.parametrize(
    ("path", "pinned", "name"),
    [(CONDA, "requirements.lock", "ghost"), (GROOT_CONDA, "workflow/envs/groot.lock", "groot")],
)
def test_conda_has_the_same_environment_as_pip(root, path, pinned, name):
    text, lines = (root / path).read_text(), lines_of(root / pinned)
    assert text == environment_text(lines, name, HEADS[path])
    listed = next(entry["pip"] for entry in yaml.safe_load(text)["dependencies"] if isinstance(entry, dict))
    assert listed == [line.partition(" --hash")[0] for line in lines]


def test_groots_environments_are_locks_of_their_own(root):
    envs = root / "workflow/envs"
    pins, on_cpu = read_lock(envs / "groot.lock"), read_lock(envs / "groot-cpu.lock")
    assert pins["lerobot"] == on_cpu["lerobot"] == "0.4.4"  # the last one with GR00T N1.5 for Python 3.11
    ours = lines_of(root / "requirements.lock")
    torch = [
        [text for text in lines if text.startswith("torch==")] for lines in (ours, lines_of(envs / "groot-cpu.lock"))
    ]
    assert torch[0] == torch[1]  # a CPU build; any other is gigabytes
    assert "lerobot" not in read_lock(root / "requirements.lock")


def test_groots_environments_are_declared_beside_ours(root):
    tool = tomllib.loads((root / "pyproject.toml").read_text())["tool"]
    gpu = tomllib.loads(groot_declaration(tool))
    assert gpu["project"]["dependencies"] == tool["ghost"]["groot"]["requires"]
    assert gpu["tool"]["uv"]["exclude-dependencies"] == []  # ours leaves transformers out
    cpu = tomllib.loads(groot_declaration(tool, **tool["ghost"]["groot-cpu"]))
    assert {*gpu["project"]["dependencies"]} - {*cpu["project"]["dependencies"]} == {"timm<1.1"}
    assert "torch==2.13.0" in cpu["tool"]["uv"]["override-dependencies"]
    pinned = read_lock(root / "workflow/envs/groot-cpu.lock", here=False)
    assert not pinned.keys() & {*tool["ghost"]["groot-cpu"]["exclude"]}


def test_what_runs_here_is_what_is_locked(root):
    pins, here = read_lock(root / "requirements.lock"), installed()
    assert {name: here.get(name, "missing").partition("+")[0] for name in pins} == pins


def test_the_lock_is_what_the_declaration_asks_for_and_nothing_else(root):
    """Without a network: from pyproject.toml along what each installed package says that it needs."""
    asked = tomllib.loads((root / "pyproject.toml").read_text())
    left_out = set(asked["tool"]["uv"]["exclude-dependencies"])
    pins = read_lock(root / "requirements.lock")
    project = asked["project"]
    needs = (*project["dependencies"], *project["optional-dependencies"]["test"])
    assert asked_for(needs, pins, left_out) == set(pins)


def test_every_locked_package_has_its_hashes(root):
    ours, cuda, *groot = (
        lines_of(root / path) for path in ("requirements.lock", *(f"workflow/envs/{name}.lock" for name in LOCKS))
    )
    for text in (*ours, *cuda, *groot[0], *groot[1]):
        assert re.fullmatch(r"[a-z0-9-]+==[^ ]+( ; [^-]+)?( --hash=sha256:[0-9a-f]{64})+", text), text
    assert all("darwin" not in text and " ; " in text for text in cuda)
    builds = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["ghost"]["cpu-builds"]
    (torch,) = [text for text in ours if text.startswith("torch==2.13.0 ")]
    assert torch.count("--hash") == 3 + len(builds)  # three systems of the usual index, and PyTorch's own
    assert all(sha256 in torch for sha256 in builds.values())


def entry(*wheels: str, **fields) -> dict:
    files = [{"url": f"x://y/{name}", "hashes": {"sha256": f"{n:064x}"}} for n, name in enumerate(wheels)]
    return {"name": "a", "version": "1.0", "wheels": files, **fields}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a-1.0-py3-none-any.whl", True),
        ("a-1.0-py2.py3-none-any.whl", True),
        ("a-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", True),
        ("a-1.0-cp39-abi3-macosx_11_0_arm64.whl", True),
        ("a-1.0-cp312-abi3-manylinux_2_28_x86_64.whl", False),
        ("a-1.0-cp312-cp312-manylinux_2_28_x86_64.whl", False),
        ("a-1.0-cp311-cp311-musllinux_1_2_x86_64.whl", False),
        ("a-1.0-cp311-cp311-win_amd64.whl", False),
    ],
)
def test_a_hash_stands_for_a_file_that_can_be_installed(name, expected):
    assert fits({"url": f"x://y/{name}"}) is expected


def test_a_line_of_the_lock_says_where_it_holds():
    asked = {"ghost": {"cpu-builds": {"a-1.0+cpu-py3-none-any.whl": "c" * 64, "a-1.1+cpu-py3-none-any.whl": "d" * 64}}}
    hashes = f"--hash=sha256:{0:064x} --hash=sha256:{'c' * 64}"
    assert line(entry("a-1.0-py3-none-any.whl"), SYSTEMS, asked) == f"a==1.0 {hashes}"
    some = line(entry("a-1.0-py3-none-any.whl", marker=EITHER), SYSTEMS, asked)
    assert "aarch64" not in some
    assert "(sys_platform == 'darwin' and platform_machine == 'arm64') --hash" in some
    with pytest.raises(GhostError, match=r"a 2\.0 has no file for Python 3\.11"):
        line(entry("a-2.0-cp312-cp312-win_amd64.whl", version="2.0"), SYSTEMS, asked)


def test_without_uv_ghost_lock_says_so(monkeypatch, root):
    monkeypatch.chdir(root)
    monkeypatch.setattr(lock.shutil, "which", lambda name: None)
    with pytest.raises(GhostError, match="pip install uv"):
        write_lock()


def wheel(folder: Path, name: str, version: str) -> str:
    """A package without content; the answer is its sha256."""
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def install(
    tmp_path, root, tools: Path, builds=("2.13.0", "2.13.0+cpu"), *, has_cuda_lock: bool = True, **changed: str
):
    """workflow/envs/install.sh with real pips, packages of our own and a lock of them; what was installed."""
    wheels, venv = tmp_path / "wheels", tmp_path / "venv"
    for folder in (wheels, venv / "bin", venv / "lib/python3.11/site-packages", tools):
        folder.mkdir(parents=True, exist_ok=True)
    pip = venv / "bin/pip"
    pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip "$@" --target {venv}/lib/python3.11/site-packages\n')
    pip.chmod(0o755)
    tiny, cuda = wheel(wheels, "tiny", "1.0"), wheel(wheels, "nvidia_tiny", "1.0")
    torch = [wheel(wheels, "torch", version) for version in builds]
    hashes = " ".join(f"--hash=sha256:{sha256}" for sha256 in torch)
    text = f"# head\ntiny==1.0 --hash=sha256:{tiny}\ntorch==2.13.0 {hashes}\n"
    for old, new in changed.items():
        text = text.replace({"tiny": tiny, "torch": torch[-1]}[old], new)
    (tmp_path / "lock").write_text(text)
    (tmp_path / "cuda").write_text(f"nvidia_tiny==1.0 --hash=sha256:{cuda}\n")
    places = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(wheels)}
    env = {**os.environ, "PATH": f"{tools}:/usr/bin:/bin", **places}
    given = [root / "workflow/envs/install.sh", venv, tmp_path / "lock", *[tmp_path / "cuda"][: int(has_cuda_lock)]]
    done = subprocess.run(["bash", *map(str, given)], capture_output=True, text=True, check=False, env=env)
    return done, {path.stem for path in venv.glob("lib/*/site-packages/*.dist-info")}


def test_without_a_gpu_torch_is_the_build_without_cuda(tmp_path, root):
    done, there = install(tmp_path, root, tmp_path / "tools")
    assert done.returncode == 0, done.stderr
    assert there == {"tiny-1.0", "torch-2.13.0+cpu"}


def test_with_a_gpu_torch_comes_with_the_libraries_of_cuda(tmp_path, root):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "nvidia-smi").write_text("#!/bin/sh\n")
    (tools / "nvidia-smi").chmod(0o755)
    done, there = install(tmp_path, root, tools)
    assert done.returncode == 0, done.stderr
    assert there == {"tiny-1.0", "torch-2.13.0", "nvidia_tiny-1.0"}


def test_a_lock_for_gpus_has_all_libraries_and_is_taken_as_it_is(tmp_path, root):
    """As groot.lock: also on a login node without a GPU, where a build without CUDA, not in the lock, is at hand."""
    done, there = install(tmp_path, root, tmp_path / "tools", has_cuda_lock=False, torch="0" * 64)
    assert done.returncode == 0, done.stderr
    assert there == {"tiny-1.0", "torch-2.13.0"}


@pytest.mark.parametrize(("name", "beside"), [("groot", []), ("groot-cpu", ["workflow/envs/cuda.lock"])])
def test_make_sets_up_groots_environment_with_hashes(root, name, beside):
    path = f"workflow/envs/{name}.lock"
    asked = ["make", "-n", "-W", path, f"GROOT_LOCK={path}", ".venv-groot/ready"]
    said = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=True).stdout
    (command,) = [text for text in said.splitlines() if "install.sh" in text]
    assert command.split()[1:] == ["workflow/envs/install.sh", ".venv-groot", path, *beside]


@pytest.mark.parametrize("name", ["tiny", "torch"])
def test_a_package_with_another_hash_is_refused(tmp_path, root, name):
    done, there = install(tmp_path, root, tmp_path / "tools", **{name: "0" * 64})
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not any(package.startswith(name) for package in there)


@pytest.mark.skipif(shutil.which("uv") is None, reason="there is no uv here")
def test_uv_refuses_it_too(tmp_path, root):
    tools = tmp_path / "tools"
    tools.mkdir()
    uv = str(shutil.which("uv"))
    (tools / "uv").symlink_to(uv)
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(tmp_path / "venv")], check=True)
    done, there = install(tmp_path, root, tools, tiny="0" * 64)
    assert done.returncode != 0
    assert "Hash mismatch" in done.stderr
    assert "tiny-1.0" not in there


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
