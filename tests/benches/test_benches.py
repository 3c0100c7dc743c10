"""Pairs, their summary and files; what counts as worse; the plain alternatives compute what ours do."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from acting import look
from ghost.benches import (
    Pair,
    Place,
    Settings,
    cache,
    dag,
    feeding,
    growth,
    inference,
    interleaved,
    plain,
    read_pairs,
    rollouts,
    serving,
    summaries,
    training,
    write_pairs,
)
from ghost.data.features import FeatureCache, Sizes
from ghost.decoders import ghost, neural_ode
from ghost.decoders.contract import Batch
from ghost.errors import GhostError
from ghost.libero.tasks import TASKS
from ghost.report.over_cells import over_cells
from ghost.steps import bench, read_bench
from ghost.study import find_artefact
from ghost.study.benchmarks import GROWTH, LINES, Line
from trained import train_tiny

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("torch_as_it_was")
SIZES = Sizes(tokens=3, d_token=12, d_state=7, horizon=4, d_action=6)


def pairs(name, ratios, reference=2.0):
    return [Pair(name, k, ratio * reference, reference, "s") for k, ratio in enumerate(ratios)]


def test_the_two_sides_take_turns_and_the_first_does_not_count():
    said = []
    found = interleaved("x", lambda: said.append("ours"), lambda: said.append("theirs"), repeats=3)
    assert said == ["ours", "theirs"] * 4
    assert [pair.repeat for pair in found] == [0, 1, 2]
    assert all(pair.ours > 0 and pair.unit == "s" for pair in found)


def test_a_summary_is_of_the_ratios_of_pairs():
    (found,) = summaries([Pair("x", 0, 1, 1, "s"), Pair("x", 1, 20, 10, "s"), Pair("x", 2, 300, 100, "s")])
    assert (found.ratio, found.low, found.high) == (2.0, 1.5, 2.5)  # not of medians, which would be 2
    assert (found.ours, found.reference, found.repeats) == (20, 10, 3)


def test_files_give_back_what_was_written(tmp_path):
    written = [*pairs("a/b", [0.5, 0.25]), Pair("c", 0, 1e12, 3.0, "FLOP/s")]
    write_pairs(tmp_path / "x.csv", written)
    assert read_pairs(tmp_path / "x.csv") == written
    (tmp_path / "y.csv").write_text("name,repeat\nx,0\n")
    with pytest.raises(GhostError, match=r"y.csv is not a file of `make bench`"):
        read_pairs(tmp_path / "y.csv")


@pytest.mark.parametrize(
    ("line", "before", "now", "worse"),
    [
        (Line(), [1.0, 1.0, 1.0], [1.3, 1.3, 1.3], True),
        (Line(), [1.0, 1.0, 1.0], [1.2, 1.2, 1.2], False),
        (Line(), [1.0, 1.0, 1.0], [0.5, 1.3, 1.9], False),  # its lower quartile is not above
        (Line(), [1.0, 1.0, 1.0], [0.5, 0.5, 0.5], False),
        (Line(larger_is_better=True), [1.0, 1.0, 1.0], [0.7, 0.7, 0.7], True),
        (Line(larger_is_better=True), [1.0, 1.0, 1.0], [2.0, 2.0, 2.0], False),
    ],
)
def test_a_regression_is_a_ratio_that_got_worse_beyond_its_spread(line, before, now, worse):
    (a,), (b,) = summaries(pairs("x", before)), summaries(pairs("x", now))
    assert bench.regressed(line, a, b) == worse


def test_the_command_names_what_got_worse(tmp_path, monkeypatch, capsys):
    measured = iter([pairs("sequential", [1.0, 1.1, 1.2]), pairs("sequential", [2.0, 2.1, 2.2])])
    monkeypatch.setattr("ghost.benches.cache.measure", lambda place: next(measured))
    assert bench.bench(tmp_path / "m.json", tmp_path, ("cache",)) == 0
    assert "goal at most 1.3: met" in capsys.readouterr().out
    assert bench.bench(tmp_path / "m.json", tmp_path, ("cache",)) == 1
    said = capsys.readouterr().out
    assert "MISSED" in said
    assert "worse: cache/sequential: 1.1 before, 2.1 now" in said
    with pytest.raises(GhostError, match="no bench 'cach'; did you mean cache"):
        bench.bench(tmp_path / "m.json", tmp_path, ("cach",))


def test_the_report_reads_every_line_and_fits_the_growth():
    goals = {name: line.goal for name, line in LINES.items()}
    found = {bench: [] for bench in ("growth", *(name.split("/")[0] for name in LINES))}
    for name in LINES:
        of, rest = name.split("/", 1)
        found[of] += pairs(rest, [0.5, 0.7, 0.6])
    for name, least in GROWTH.items():
        found["growth"] += [Pair(f"{name}/{least * n}", 0, 3 * n**1.5, 3, "s") for n in (1, 2, 4, 8)]
    outcome = read_bench.outcome(found, Settings(goals, tuple(GROWTH)))
    values = {(m.condition, m.metric): m.value for m in outcome.measured}
    assert values["cache/sequential", "ratio"] == pytest.approx(0.6)
    assert values["cache/sequential", "goal"] == 1.3
    assert ("cache/shuffled", "goal") not in values
    assert values["growth/tokens", "exponent"] == pytest.approx(1.5)
    np.testing.assert_allclose(outcome.arrays["growth/tokens/sizes"], [16, 32, 64, 128])
    with pytest.raises(GhostError, match="data/bench lacks cache/bounded; run `make bench`"):
        read_bench.outcome({**found, "cache": []}, Settings({"cache/bounded": 1.0}, ()))


def test_the_table_says_of_every_goal_what_the_bench_says():
    """Computed from the kept files in two ways: by the cells of the table, and by the line's own rule."""
    bench_of = {path.stem: read_pairs(path) for path in (ROOT / "data/bench").glob("*.csv")}
    found = {f"{name}/{each.name}": each for name, of in bench_of.items() for each in summaries(of)}
    table = find_artefact("tab:benchmarks")
    goals = {name: line for name, line in LINES.items() if line.goal}
    known = [
        {"id": f"tab:benchmarks/{name}/{metric}", "value": value, "n": 1, "runs": [], "reduced": False, "stand_ins": []}
        for name, line in goals.items()
        for metric, value in (("ratio", found[name].ratio), ("ours", found[name].ours), ("goal", line.goal))
    ]
    said = {cell["id"]: cell["shown"] for cell in over_cells(table.declaration(), known)}
    assert said == {
        f"tab:benchmarks/{name}/met": "met" if line.met(found[name]) else "missed" for name, line in goals.items()
    }


def test_the_plain_ghost_is_ours():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        decoder = ghost.Decoder(ghost.Settings(hidden=16, d_context=8, d_latent=6), SIZES)
        batch = Batch(
            torch.randn(5, 3, 12), torch.randn(5, 7), torch.zeros(0), torch.ones(6, dtype=torch.bool), torch.zeros(5)
        )
    torch.testing.assert_close(plain.act(decoder, batch.tokens, batch.state), decoder.act(batch))


def test_torchdiffeq_integrates_the_same_ode():
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        decoder = neural_ode.Decoder(neural_ode.Settings(hidden=16, d_context=8, d_latent=6), SIZES)
        tokens, state = torch.randn(5, 3, 12), torch.randn(5, 7)
        batch = Batch(tokens, state, torch.zeros(0), torch.ones(6, dtype=torch.bool), torch.zeros(5))
        torch.testing.assert_close(inference.by_torchdiffeq(decoder, batch), decoder.act(batch))


def test_the_share_is_of_flops_and_the_same_work_every_time(monkeypatch):
    monkeypatch.setattr(training, "interleaved", lambda name, *given, **how: pairs(name, [3.0]))
    found, alone, *waited = training.share("laptop")
    assert {pair.name for pair in waited} == {"waiting/laptop"}
    assert alone == Pair("share/laptop/products", 0, found.ours, found.reference, "FLOP/s")
    assert found.unit == "FLOP/s"
    assert found.reference == 2 * 1024**3 / 2.0
    update = found.ours * 6.0 / training.UPDATES  # FLOPs; a sample's forward pass, and twice as much backward
    assert 64 * 2 * 3 * 8 * (256 * 128 + 128 * 32) < update + 64 * 2 * 8 * 256 * 128 < 1e9


def test_the_products_of_an_update_are_all_of_its_flops():
    x, w, b = torch.randn(5, 3), torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True)
    replay = training.products(lambda: (torch.addmm(b, x, w).tanh() @ w.T).sum().backward())
    with FlopCounterMode(display=False) as counter:
        replay()
    forward = 2 * 5 * 3 * 4 * 2
    assert counter.get_total_flops() == training.UPDATES * (forward + forward + 2 * 5 * 3 * 4)  # x needs no gradient


def test_a_line_that_was_never_measured_does_not_stop_the_dag(tmp_path):
    path, known = tmp_path / "dag.csv", Pair("no_op", 0, 2.5, 1.0, "s")
    write_pairs(path, [known])
    dag.fill(path)
    assert read_pairs(path)[0] == known
    assert {f"dag/{pair.name}" for pair in read_pairs(path)} == {name for name in LINES if name.startswith("dag/")}


def test_a_run_counts_as_its_record_says_and_another_job_whole(tmp_path):
    for name, rule, log, start, end in (
        ("a", "train", "train/x.log", 0, 9),
        ("b", "plot", "plot/y.log", 1.0, 3),
        ("c", "plot", "plot/y.log", 1.00003, 3),  # Snakemake notes the files of a job one after the other
        ("d", "plot", "plot/z.log", 1.0, 2),
        ("e", "typeset", "typeset.log", 3, 7),
    ):
        record = {"rule": rule, "log": [log], "starttime": start, "endtime": end}
        (tmp_path / ".snakemake/metadata").mkdir(parents=True, exist_ok=True)
        (tmp_path / ".snakemake/metadata" / name).write_text(json.dumps(record))
    for seed, wall_s in ((0, 1.5), (1, 2.0)):
        folder = tmp_path / f"data/smoke/runs/x/seed{seed}"
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"wall_s": wall_s}))
    assert dag.own_time(tmp_path) == pytest.approx((3.5 + 2 + 1 + 4, 4), abs=1e-4)  # two files of one job count once


def test_growing_work_is_measured_against_the_least(monkeypatch):
    monkeypatch.setattr(growth, "REPEATS", 1)
    found = growth.grow("samples")
    assert [pair.name for pair in found] == [f"samples/{n}" for n in (256, 512, 1024, 2048)]
    assert found[0].ratio == 1


def test_five_seeds_end_with_the_losses_of_plain_autograd(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "EPOCHS", 2)
    monkeypatch.setattr(training, "SEEDS", 2)
    monkeypatch.setattr(training, "SEED_REPEATS", 1)
    features = train_tiny(tmp_path / "data/smoke/runs")["features"]
    found = training.all_seeds(Place(ROOT, features, tmp_path))
    losses = [pair for pair in found if pair.name == "seeds/loss"]
    assert len(losses) == 2
    for pair in losses:
        assert pair.ratio == pytest.approx(1, rel=1e-3)
    assert json.loads((tmp_path / "seeds0/plain0.json").read_text())["loss"] > 0


@pytest.mark.slow
def test_the_two_steppings_of_libero_agree_over_a_short_way(monkeypatch):
    monkeypatch.setattr(rollouts, "STEPS", 10)
    actions = rollouts.demonstrate()
    mine, way = rollouts.episode(actions)
    theirs, _ = rollouts.episode(actions, plain=True)
    assert np.linalg.norm(mine - theirs) < 0.02 * way


def test_seconds_may_be_those_of_the_cores():
    (found,) = interleaved("x", lambda: time.sleep(0.2), lambda: time.sleep(0.2), 1, 0, time.process_time)
    assert max(found.ours, found.reference) < 0.1


def test_the_bench_of_the_cache_trains_from_the_disk(tmp_path):
    manifest = cache.write(tmp_path / "noise", 8)
    opened = FeatureCache.open(manifest)
    assert len(opened) == 8 * 2**20 // cache.SAMPLE_BYTES
    assert opened.shards[0].any()
    with (tmp_path / "noise/seed0/tokens/00000.npy").open("rb") as file:
        page = [bytearray(4096)]
        os.preadv(file.fileno(), page, 2**20, os.RWF_NOWAIT)  # what the system remembers is read without waiting
        cache.forget(opened, manifest.parent)
        with pytest.raises(BlockingIOError):
            os.preadv(file.fileno(), page, 2**20, os.RWF_NOWAIT)
    (found,) = cache.training(manifest, 1)
    assert (found.name, found.unit) == ("training", "samples/s")
    assert found.ours > 0


def test_the_bench_of_the_workers_decodes_every_picture(tmp_path):
    feed = feeding.pictures(feeding.filmed(tmp_path, episodes=2, steps=8), passes=3, batch_size=4)
    first = feed.read(0, 0, np.arange(4))["pictures"]
    assert first.shape == (4, len(feeding.CAMERAS), 224, 224, 3)
    assert first.float().std() > 20  # not black
    assert feeding.drain(feed, 2) == 3 * 4 * len(feeding.CAMERAS)


def test_the_bench_of_the_server_plans_what_a_forward_plans():
    torch.set_num_threads(1)
    policy = serving.made(serving.ROWS)
    (first, *_), told = serving.shared(policy, look(0, 0), TASKS[5].instruction), TASKS[5].instruction
    expected = serving.forward(policy, look(0, 0), told).action[0].numpy()
    assert np.array_equal(first.actions, expected.astype(np.float64))
