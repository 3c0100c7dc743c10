"""The stand-in backbone for LIBERO: what is named is seen, relative to hand and place; nothing else is."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.lib.format import open_memmap

from conftest import declaration
from ghost.backbones import Observations, libero_standin
from ghost.backbones.libero_standin import GROUNDING, PART, WIDTH, Settings, encode, shuffled_goals
from ghost.data.features import INDEX, SMALL, FeatureCache, Sizes, shard_lengths, without_padding
from ghost.data.results import Outcome
from ghost.errors import GhostError
from ghost.files import write_json
from ghost.libero.tasks import ROWS, TASKS, THINGS
from ghost.runs.driver import Plan, execute
from ghost.study.libero import DEMOS, DRAWN, STANDIN

SETTINGS = Settings(tokens=4, d_token=WIDTH + 3, weights_seed=0)
SAMPLES = len(DEMOS["tasks"]) * DEMOS["attempts"] * DEMOS["max_steps"]  # of the paper's size, at most


def observe(instructions, things, hand=None):
    n = len(instructions)
    hand = np.zeros((n, 9), np.float32) if hand is None else hand
    columns = {"things": things, "hand": hand, "joints": np.zeros((n, 3), np.float32)}
    scene = {f"observation.scene.{name}": value for name, value in columns.items()}
    return Observations(tuple(instructions), scene, lambda _: None, (), np.zeros((n, 1)), np.zeros((n, 2), np.int64))


def scene(**at):
    things = np.zeros((1, len(THINGS), 9), np.float32)
    for name, position in at.items():
        things[0, ROWS[name], :3] = position
        things[0, ROWS[name], 3] = things[0, ROWS[name], 7] = 1
    return things


def test_offsets_to_hand_and_place():
    things = scene(alphabet_soup=(0.2, 0, 0.5), tomato_sauce=(0, 0.1, 0.5), basket=(0, 0.3, 0.4))
    hand = np.zeros((1, 9), np.float32)
    hand[0, :3] = (0.1, 0, 0.5)
    assert shuffled_goals(TASKS[0].instruction, 1)[0].thing == "alphabet_soup"
    tokens = encode(replace(SETTINGS, weights_seed=1), observe([TASKS[0].instruction], things, hand))
    assert tokens.shape == (1, 4, WIDTH + 3)
    assert tokens.dtype == np.float16
    assert tokens[0, 0, :3] == pytest.approx([0.5, 0, 0], abs=1e-3)  # 5 x (thing - hand)
    assert tokens[0, 0, 3] == pytest.approx(np.tanh(10), abs=1e-3)
    assert tokens[0, 0, 15:18] == pytest.approx([1.0, -1.5, 0.5], abs=2e-3)  # 5 x (thing - place)
    assert (tokens[0, 1, :PART] == tokens[0, 0, :PART]).all()
    assert (tokens[0, 2, PART : 2 * PART] == tokens[0, 0, PART : 2 * PART]).all()


def test_the_experts_order_does_not_reach_the_tokens(monkeypatch):
    """The same tokens whichever part the expert takes first; and over seeds, either part stands first equally often."""
    rng = np.random.default_rng(0)
    seen = observe([task.instruction for task in TASKS], rng.normal(size=(10, len(THINGS), 9)).astype(np.float32))
    tokens = encode(SETTINGS, seen)
    monkeypatch.setattr(libero_standin, "GROUNDING", {text: goals[::-1] for text, goals in GROUNDING.items()})
    shuffled_goals.cache_clear()
    assert (encode(SETTINGS, seen) == tokens).all()
    shuffled_goals.cache_clear()
    for task in TASKS:
        first = [shuffled_goals(task.instruction, seed)[0] == task.goals[0] for seed in range(200)]
        assert 0.35 < np.mean(first) < 0.65 or len(task.goals) == 1


def test_what_the_instruction_does_not_name_is_not_seen():
    things = scene(alphabet_soup=(0.2, 0, 0.5), tomato_sauce=(0, 0.1, 0.5), basket=(0, 0.3, 0.4), butter=(0, 0, 0.5))
    first = encode(SETTINGS, observe([TASKS[0].instruction], things))
    things[0, ROWS["butter"], :3] += 0.1
    assert (encode(SETTINGS, observe([TASKS[0].instruction], things)) == first).all()
    things[0, ROWS["tomato_sauce"], :3] += 0.1
    assert (encode(SETTINGS, observe([TASKS[0].instruction], things)) != first).any()


def test_a_thing_that_is_not_there_is_zero():
    tokens = encode(SETTINGS, observe([TASKS[5].instruction], scene(basket=(0, 0.3, 0.4))))
    assert (tokens[0, 0, : 2 * PART] == 0).all()
    assert (tokens[0, 0, 2 * PART :] != 0).any()  # the words are heard all the same


def test_batches_do_not_change_the_bytes():
    rng = np.random.default_rng(0)
    things = rng.normal(size=(6, len(THINGS), 9)).astype(np.float32)
    words = [TASKS[i % 10].instruction for i in range(6)]
    whole = encode(SETTINGS, observe(words, things))
    parts = [encode(SETTINGS, observe([words[i]], things[i : i + 1])) for i in range(6)]
    assert (np.concatenate(parts) == whole).all()


def test_an_unknown_instruction_is_one_line():
    with pytest.raises(GhostError, match="does not know 'put the soup away'"):
        encode(SETTINGS, observe(["put the soup away"], scene(basket=(0, 0, 1))))


@pytest.fixture(scope="module")
def stored():
    """A sample of the paper's size with every instruction: as the model sees it, and what a shard holds."""
    rng = np.random.default_rng(0)
    things = rng.normal(size=(len(TASKS), len(THINGS), 9)).astype(np.float32)
    tokens = encode(Settings(**STANDIN), observe([task.instruction for task in TASKS], things))
    assert tokens.shape[1:] == (64, 2048)
    return tokens[0], without_padding(tokens)[0]


def test_a_cache_of_the_papers_size_takes_less_than_two_gigabytes(stored):
    """Even if no attempt ended before its last step, and every instruction were the longest."""
    seen, held = stored
    assert held.shape[1] == WIDTH
    small = 4 * (DRAWN["d_state"] + DRAWN["horizon"] * DRAWN["d_action"]) + 8 * 5  # state, actions; task and so on
    assert SAMPLES * (held.nbytes + small) < 2e9
    assert SAMPLES * seen.nbytes > 60e9  # what the padding would take


def test_it_opens_at_once(stored, tmp_path):
    """All its files in their sizes, with holes for tokens: opening reads the small arrays, and a line of each shard."""
    sizes = Sizes(64, 2048, DRAWN["d_state"], DRAWN["horizon"], DRAWN["d_action"])
    per_shard = DRAWN["samples_per_shard"]
    arrays = {name: np.zeros(SAMPLES, np.int64) for name in SMALL} | {"action_mask": np.ones(sizes.d_action, np.uint8)}
    arrays |= {"state": np.zeros((SAMPLES, sizes.d_state), np.float32)}
    arrays |= {"action": np.zeros((SAMPLES, sizes.horizon, sizes.d_action), np.float32)}
    arrays |= {f"split/episode/{part}": np.arange(10) for part in ("train", "test")}

    def run(unit):
        names = []
        (unit.folder / "tokens").mkdir()
        for number, length in enumerate(shard_lengths(SAMPLES, per_shard)):
            names.append(f"tokens/{number:05d}.npy")
            open_memmap(unit.folder / names[-1], "w+", np.float16, (length, *stored[1].shape))
        index = {"sizes": vars(sizes), "task_names": ["a"], "samples_per_shard": per_shard, "shards": names}
        write_json(unit.folder / INDEX, {**index, "starts": [], "normalisation": None})
        unread = {"sha256": "0" * 64, "md5": "0" * 32}
        return Outcome([], arrays, (INDEX, *names), dict.fromkeys(names, unread))

    manifest = tmp_path / "features/manifest.json"
    execute(lambda job: Plan(run), json.dumps(declaration("features", settings={}, seeds=[7])), manifest)
    sizes_of = {found.st_ino: found.st_size for found in (path.stat() for path in manifest.parent.rglob("*.*"))}
    assert 1e9 < sum(sizes_of.values()) < 2e9
    start_s = time.process_time()
    cache = FeatureCache.open(manifest)
    assert cache.stored() == stored[1].shape
    assert time.process_time() - start_s < 2
    assert len(cache) == SAMPLES
