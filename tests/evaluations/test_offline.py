import io
from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch

from ghost.data import samples
from ghost.data.dual_arm import ARM, DIMENSIONS, GRIPPER, LIFT
from ghost.data.samples import Samples
from ghost.errors import GhostError
from ghost.evaluations import offline
from ghost.evaluations.offline import Settings, cosines, evaluate
from ghost.runs.progress import Progress
from ghost.training.head import FineTunedHead


@pytest.fixture
def cache():
    return tiny.cache()


@pytest.fixture
def small_ghost():
    return tiny.small_ghost()


def values(outcome):
    return {(m.condition, m.metric): m.value for m in outcome.measured}


def run(settings, cache, decoder, seed=0):
    return evaluate(settings, cache, {"it": decoder}, seed=seed, progress=Progress(stream=io.StringIO()))


def test_the_kinds_of_dimensions_are_all_of_them():
    assert sorted((*ARM, *GRIPPER, *LIFT)) == list(range(DIMENSIONS))


def test_the_truth_has_no_error_and_an_offset_has_its_own(cache):
    found = values(run(Settings("sample"), cache, tiny.Truth()))
    for task in ("all", "mean_of_tasks", *cache.task_names):
        for metric in ("mse", "arm_mse", "gripper_mse", "lift_mse"):
            assert found[task, metric] == 0
        assert found[task, "cosine"] == pytest.approx(1)
        assert found[task, "predict_the_mean_mse"] > 0
    assert found["model", "parameters"] == 1
    shifted = values(run(Settings("sample"), cache, tiny.Truth(0.5)))
    assert shifted["all", "mse"] == pytest.approx(0.25, rel=1e-5)
    assert shifted["Take_book", "lift_mse"] == pytest.approx(0.25, rel=1e-5)
    for dimension in range(DIMENSIONS):
        assert found[f"dimension_{dimension}", "offset"] == 0
        assert shifted[f"dimension_{dimension}", "offset"] == pytest.approx(0.5, rel=1e-5)


def test_metrics_agree_with_plain_loops(cache, small_ghost):
    outcome = run(Settings("sample"), cache, small_ghost)
    found = values(outcome)
    train, test = cache.split("sample")
    sums = {}
    for index in test:
        with torch.no_grad():
            predicted = small_ghost.act(Samples(cache, np.array([index])).batch(torch.arange(1)))[0].numpy()
        task = cache.task_names[cache.task[index]]
        same = [i for i in train if cache.task[i] == cache.task[index]]
        for name, dimensions in (("mse", range(17)), ("arm_mse", ARM), ("gripper_mse", GRIPPER), ("lift_mse", LIFT)):
            errors = [(predicted[h, d] - cache.action[index, h, d]) ** 2 for h in range(4) for d in dimensions]
            sums.setdefault((task, name), []).append(np.mean(errors))
        mean = np.mean([cache.action[i] for i in same], axis=0)
        errors = [(mean[h, d] - cache.action[index, h, d]) ** 2 for h in range(4) for d in range(17)]
        sums.setdefault((task, "predict_the_mean_mse"), []).append(np.mean(errors))
        one_mean = np.mean([cache.action[i] for i in train], axis=0)
        errors = [(one_mean[h, d] - cache.action[index, h, d]) ** 2 for h in range(4) for d in range(17)]
        sums.setdefault((task, "predict_one_mean_mse"), []).append(np.mean(errors))
        a, b = predicted[:, :17].ravel(), cache.action[index][:, :17].ravel()
        sums.setdefault((task, "cosine"), []).append(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    for (task, metric), collected in sums.items():
        assert found[task, metric] == pytest.approx(np.mean(collected), rel=1e-4)
    for share, mean in (("task", "predict_the_mean_mse"), ("training", "predict_one_mean_mse")):
        worst = max(np.mean(sums[task, "mse"]) / np.mean(sums[task, mean]) for task in cache.task_names)
        assert found["worst_task", f"share_of_{share}_mean"] == pytest.approx(worst, rel=1e-4)
    for metric in ("mse", "cosine"):
        every = np.concatenate([sums[task, metric] for task in cache.task_names])
        assert found["all", metric] == pytest.approx(every.mean(), rel=1e-4)
        by_task = np.mean([np.mean(sums[task, metric]) for task in cache.task_names])
        assert found["mean_of_tasks", metric] == pytest.approx(by_task, rel=1e-4)
    parts = 14 * found["all", "arm_mse"] + 2 * found["all", "gripper_mse"] + found["all", "lift_mse"]
    assert found["all", "mse"] == pytest.approx(parts / 17)
    assert outcome.arrays["chunk/recorded"].shape == outcome.arrays["chunk/predicted"].shape == (4, 17)


def test_results_do_not_depend_on_the_batch_size(cache, small_ghost, monkeypatch):
    before = values(run(Settings("sample"), cache, small_ghost))
    monkeypatch.setattr(samples, "CHUNK", 5)
    assert values(run(Settings("sample"), cache, small_ghost)) == pytest.approx(before, rel=1e-5)


def test_tasks_are_chosen_by_name(cache):
    found = values(run(Settings("episode", ("Move_parts",)), cache, tiny.Truth(1.0)))
    tasks = {task for task, _ in found if not task.startswith("dimension_")}
    assert tasks == {"model", "all", "mean_of_tasks", "worst_task", "Move_parts"}
    with pytest.raises(GhostError, match="no task 'Move_part'; did you mean Move_parts"):
        run(Settings("episode", ("Move_part",)), cache, tiny.Truth())
    with pytest.raises(GhostError, match="no split 'samples'; did you mean sample"):
        run(Settings("samples"), cache, tiny.Truth())
    with pytest.raises(GhostError, match="needs one trained decoder, got none"):
        offline.evaluate(Settings("sample"), cache, {}, seed=0, progress=Progress())


def test_a_chunk_of_zeros_points_nowhere():
    assert cosines(np.zeros((1, 2, 3)), np.ones((1, 2, 3))) == [0]
    assert cosines(-np.ones((1, 2, 3)), np.ones((1, 2, 3))) == pytest.approx([-1])


def test_a_window_has_the_chunks_before_in_the_same_episode():
    """The tiny cache has two steps an episode."""
    cache = tiny.cache()
    made = Samples(cache, np.arange(8), window=3, gap=1)
    batch = made.batch(torch.tensor([3, 2]))
    older, before = batch.history
    assert before.real.tolist() == [True, False]
    assert older.real.tolist() == [False, False]
    assert (before.state[0] == made.state[2]).all()
    assert [len(chunk) for chunk in batch.window] == [2, 2, 2]
    assert Samples(cache, np.arange(8)).batch(torch.tensor([3])).history == ()


def test_groots_head_is_tested_on_its_cached_predictions_of_unseen_episodes(cache):
    head = FineTunedHead("dit/seed42", 1_000, train_episodes=12)
    with pytest.raises(GhostError, match="the feature cache has no predicted actions"):
        run(Settings("episode"), cache, head)
    with_head = replace(cache, action_shards=(cache.action + np.float32(0.5),))
    found = values(run(Settings("episode"), with_head, head))
    assert found["all", "mse"] == pytest.approx(0.25)
    assert found["model", "parameters"] == 1_000
    with pytest.raises(GhostError, match=r"first 13 episodes: it cannot be tested on episode 12$"):
        run(Settings("episode"), with_head, replace(head, train_episodes=13))
    with pytest.raises(GhostError, match="it cannot be tested on episode"):
        run(Settings("sample"), with_head, head)
