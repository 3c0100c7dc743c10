"""An independent harness plays our policy: vla-eval's own LIBERO benchmark, in LIBERO's own environment."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from ctypes.util import find_library
from pathlib import Path

import pytest
from vla_eval.results.collector import ResultCollector

from conftest import declaration, make_runs
from ghost.data.results import Outcome
from ghost.errors import GhostError
from ghost.libero.tasks import TASKS
from ghost.runs.driver import Plan, execute
from ghost.serving.harness import checked, compare, report
from ghost.steps.cache_features import cache_features
from ghost.steps.make_demos import make_demos
from ghost.steps.train import train
from trained import declared

TASK = 5
PIXELS = {"tokens": 24, "d_token": 64, "text_tokens": 4, "hidden": 64, "weights_seed": 0, "cameras": []}
DRAWN = {"stride": 4, "test_episodes": 1, "horizon": 16, "d_state": 64, "d_action": 7, "samples_per_shard": 64}
TRAINING = {"split": "episode", "epochs": 3, "batch_size": 64, "learning_rate": 1e-3}
CRASH = """
import sys
from ghost.serving.harness import score
score(sys.argv[1], [5], episodes=2, max_steps=12, benchmark="crashing:Crashing")
"""


def recorded(episodes, **broken):
    """A result of vla-eval's own collector."""
    collector = ResultCollector("LIBERO", metric_keys={"success": "mean"})
    for number in range(episodes):
        collector.record("put", {"episode_id": number, "metrics": {"success": number == 0}, "steps": 3, **broken})
    return collector.get_benchmark_result()


def test_an_episode_with_an_error_is_no_failed_trial():
    whole = recorded(3)
    assert checked(whole, 3) is whole
    assert report(whole, None).splitlines() == [
        "   1 of    3  [6 to 79 %]  put",
        "   1 of    3  [6 to 79 %]  succeeded",
    ]
    crash = {"failure_reason": "env_step", "failure_detail": "Traceback\nmujoco.FatalError: gladLoadGL error"}
    with pytest.raises(GhostError, match=r"3 of 3 episodes had an error, the first mujoco\.FatalError: gladLoadGL"):
        checked(recorded(3, **crash), 3)
    with pytest.raises(GhostError, match="vla-eval played 3 episodes of 4"):
        checked(whole, 4)
    with pytest.raises(GhostError, match="vla-eval played 3 episodes of 3"):
        checked({**whole, "partial": True}, 3)


def rolled_out(folder, won, **settings):
    """A rollout of a policy, as its step writes it: which trials of task 5 it won. Returns its manifest, and vla-eval's
    words about the policy."""
    trained = folder / "runs/mlp/manifest.json"
    (run,) = make_runs(trained, lambda seed: Outcome([]), name="mlp", seeds=[1])
    header = "condition,task,trial,init_state,success\n"
    rows = [f"T{TASK},{TASK},{trial},{trial},{success}\n" for trial, success in enumerate(won)]

    def play(unit):
        (unit.folder / "episodes.csv").write_text(header + "".join(rows))
        return Outcome([], files=("episodes.csv",))

    given = declaration(
        "rollout", needs=["mlp"], seeds=[1], settings={"stepping": "libero", "max_steps": 9, **settings}
    )
    manifest = folder / "runs/rollout/manifest.json"
    execute(lambda job: Plan(play), json.dumps(given), manifest, [trained])
    return manifest, {"server_info": {"ghost": {"trained": [run.run_id]}}, "config": {"max_steps": 9}}


def scored(won):
    """vla-eval's count of the first trials of task 5."""
    episodes = [{"episode_id": trial, "metrics": {"success": success}} for trial, success in enumerate(won)]
    return {"tasks": [{"task": TASKS[TASK].instruction, "episodes": episodes}]}


def test_both_rates_are_compared_over_the_episodes_that_both_played(tmp_path):
    manifest, said = rolled_out(tmp_path, [True] * 6 + [False] * 6)
    assert compare(said | scored([True] * 7 + [False] * 3), manifest).splitlines() == [
        "   7 of   10  [40 to 89 %]  by vla-eval",
        "   6 of   10  [31 to 83 %]  by our rollout",
        "+10 points  [-15 to +34]; 9 episodes end alike",
    ]
    with pytest.raises(GhostError, match="do not have the same success rate\n   0 of   12 "):
        compare(said | scored([False] * 12), manifest)


@pytest.mark.parametrize(
    ("settings", "served", "error"),
    [
        ({"stepping": "fast"}, {}, "its stepping is fast, not libero"),
        ({"max_steps": 520}, {}, "its max_steps is 520, not 9"),
        ({}, {"server_info": {"ghost": {"trained": ["another"]}}}, "is no rollout of the policy that is served"),
        ({}, {"tasks": []}, "vla-eval played none of its episodes"),
    ],
)
def test_what_is_not_alike_is_not_compared(tmp_path, settings, served, error):
    manifest, said = rolled_out(tmp_path, [True] * 3, **settings)
    with pytest.raises(GhostError, match=error):
        compare({**said, **scored([True] * 3), **served}, manifest)


@pytest.fixture(scope="module")
def seeing(tmp_path_factory) -> Path:
    """A training on two filmed demonstrations in the public format, by the backbone of pixels."""
    if not find_library("OSMesa"):
        pytest.skip("no OSMesa here: apt-get install libosmesa6")
    folder = tmp_path_factory.mktemp("build")
    film = [
        sys.executable,
        str(Path(__file__).with_name("filmed.py")),
        str(folder / "set"),
        "v2.1",
        str(TASK),
        "2",
        "64",
    ]
    subprocess.run(film, check=True, env={**os.environ, "MUJOCO_GL": "osmesa"})
    made = {name: folder / "runs" / name / "manifest.json" for name in ("demos", "features", "mlp")}
    demos = {"path": str(folder / "set"), "revision": "", "convention": "ipec", "tasks": [TASK]}
    execute(make_demos, declared("demos", "make_demos", "ghost.libero.recorded", demos, [0], []), made["demos"])
    text = declared("features", "cache_features", "ghost.backbones.pixels", {**PIXELS, **DRAWN}, [0], ["demos"])
    execute(cache_features, text, made["features"], [made["demos"]])
    widths = {"hidden": 32, "d_context": 16, "d_latent": 16}
    text = declared("mlp", "train", "ghost.decoders.mlp", {**TRAINING, **widths}, [1], ["features"])
    execute(train, text, made["mlp"], [made["features"]])
    return made["mlp"]


@pytest.mark.slow
def test_vla_evals_own_libero_plays_our_served_policy(seeing, tmp_path, root):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "ghost.cli"]
    server = subprocess.Popen([*command, "serve", str(seeing), "--port", str(port)], cwd=root)
    try:
        wait_for(f"http://127.0.0.1:{port}/health", server)
        asked = ["--tasks", str(TASK), "--episodes", "2", "--max-steps", "12", "--out", str(tmp_path / "result.json")]
        said = subprocess.run(
            [*command, "score", f"ws://127.0.0.1:{port}", *asked], cwd=root, capture_output=True, text=True, check=False
        )
        assert said.returncode == 0, said.stdout + said.stderr
        broken = subprocess.run(
            [sys.executable, "-c", CRASH, f"ws://127.0.0.1:{port}"],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        server.terminate()
        assert server.wait(30) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["harness_version"] == "0.8.0"
    assert result["num_errors"] == 0
    assert [episode["steps"] for episode in result["tasks"][0]["episodes"]] == [12, 12]
    assert result["server_info"]["observation_params"]["send_wrist_image"] is True
    assert "Spec mismatch" not in said.stderr
    assert "   0 of    2  [0 to 66 %]  succeeded" in said.stdout
    # vla-eval itself counts these as failures and ends well
    assert broken.returncode != 0
    assert "GhostError: 2 of 2 episodes had an error" in broken.stderr
    assert broken.stderr.strip().endswith("RuntimeError: the simulator died")


def wait_for(health, server):
    until = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(health) as answer:
                assert answer.status == 200
                return
        except urllib.error.URLError:
            assert server.poll() is None
            assert time.monotonic() < until
            time.sleep(0.2)
