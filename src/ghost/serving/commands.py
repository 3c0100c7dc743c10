"""The commands of `ghost` that serve and score policies. They import what they need when called."""

from pathlib import Path
from typing import Literal

import tyro


def serve(
    manifest: tyro.conf.Positional[Path],
    seed: int | None = None,
    ensemble: bool = False,
    features: Path | None = None,
    rows: int = 1,
    execute: int = 8,
    host: str = "127.0.0.1",
    port: int = 8000,
    unix: Path | None = None,
    token_file: Path | None = None,
    python: str = "",
) -> None:
    """Serve a trained policy to simulators, by the protocol of vla-eval 0.8.

    Args:
        manifest: the manifest of a training, such as data/laptop/runs/libero_mlp/manifest.json.
        seed: the seed of the training; without it, the first one.
        ensemble: all seeds act together, their chunks are averaged.
        features: the manifest of the features; without it, those that the decoder was trained on.
        rows: how many simulators are planned for in one pass of the networks.
        execute: a harness that asks at every step gets so many actions of a chunk before the next plan.
        host: the address to listen on; one that other machines reach needs a token.
        port: and its port.
        unix: a Unix socket to listen on, in place of host and port.
        token_file: a file with the token that clients must know.
        python: the interpreter; without it, GR00T's for a policy that sees with GR00T, this one otherwise.
    """
    from ghost.serving.service import become_server

    place = {"host": host, "port": port} | ({"unix": unix} if unix else {})
    place |= {"token-file": token_file} if token_file else {}
    become_server(manifest, features, seed, ensemble, python, {"rows": rows, "execute": execute, **place})


def score(
    url: tyro.conf.Positional[str],
    tasks: tuple[int, ...] = (),
    episodes: int = 20,
    max_steps: int = 520,
    render: Literal["cpu", "gpu"] = "cpu",
    out: Path | None = None,
    against: Path | None = None,
) -> None:
    """Score a served policy with an independent harness: vla-eval's own LIBERO benchmark.

    Args:
        url: the address of the server, such as ws://127.0.0.1:8000.
        tasks: numbers of LIBERO-10's tasks, 0 to 9; without them, all.
        episodes: how many of each task, from official init state 0 on.
        max_steps: of an episode.
        render: pictures by the CPU (OSMesa) or by a GPU (EGL).
        out: a JSON file to write with everything that vla-eval says.
        against: the manifest of a rollout of the same policy; exit code 2 if the two success rates differ.
    """
    from ghost.serving.harness import compare, report
    from ghost.serving.harness import score as score_policy

    result = score_policy(url, tasks, episodes, max_steps, render)
    print(report(result, out))
    if against:
        print(compare(result, against))


SERVING = (serve, score)
