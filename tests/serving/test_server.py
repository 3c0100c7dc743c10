"""The policy server: the same plans for one simulator and for many; whatever one does, the others do not notice."""

import asyncio
import contextlib
import socket
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect, unix_connect

from acting import SENSES, alone, look, random_policy, same, told
from ghost.data.lerobot import STATE
from ghost.errors import GhostError
from ghost.libero.conventions import find_convention
from ghost.libero.policy import Asked
from ghost.libero.sensing import Senses
from ghost.libero.tasks import trial_seeds
from ghost.serving.client import Client
from ghost.serving.observing import episode_of, observation_of, specifications
from ghost.serving.protocol import ACTION, ERROR, LIMIT_BYTES, OBSERVATION, START, Message, pack, unpack
from ghost.serving.server import Place, Server, _token, run

RUNS = {"features": "f", "trained": ["t"], "rows": 4}
STEPS = 5


@contextlib.contextmanager
def serving(place, policy, token=""):
    """A server in a thread of this process; yields when it listens."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    ending = asyncio.Event()

    async def serve():
        server = Server(policy, RUNS, 8, token)
        async with place.listen(server), asyncio.TaskGroup() as tasks:
            planning = tasks.create_task(server.plan_forever())
            ready.set()
            await ending.wait()
            planning.cancel()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(10)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def policy(torch_as_it_was):
    torch.set_num_threads(1)
    return random_policy("ghost_phase", 4, (0, 1), persistent=True)


@pytest.fixture
def address(policy, tmp_path):
    with serving(Place(tmp_path / "policy", "", 0), policy):
        yield f"unix:{tmp_path}/policy"


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def episode(address, number, pause_s=0.0):
    client = Client(address, SENSES, RUNS)
    client.start(number)
    found = []
    for step in range(STEPS):
        time.sleep(pause_s)
        found.append(client.plan(look(number, step), told(number)))
    client.close()
    return found


def plain(address, **options):
    """A connection that sends what it likes."""
    return unix_connect(address.removeprefix("unix:"), "ws://localhost/", **options)


def unharmed(address, policy):
    return all(map(same, episode(address, 3), alone(policy, 3)))


def test_one_simulator_and_six_at_once_get_the_plans_of_a_policy_alone(address, policy):
    expected = [alone(policy, number) for number in range(6)]
    assert all(map(same, episode(address, 0), expected[0]))
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda number: episode(address, number), range(6)))
    assert all(same(*pair) for pairs in zip(found, expected, strict=True) for pair in zip(*pairs, strict=True))


def test_a_batch_of_one_of_four_and_of_eight_give_the_same_plans(torch_as_it_was):
    """How many share a pass is looked at, and shows in no plan."""
    torch.set_num_threads(1)
    policy = random_policy("ghost_phase", 8, (0, 1), persistent=True)
    expected, shared, plan = [alone(policy, number) for number in range(8)], [], policy.plan
    policy.plan = lambda asked: (shared.append(len(asked)), plan(asked))[1]

    async def episodes(simulators):
        server = Server(policy, RUNS, 8)
        planning = asyncio.create_task(server.plan_forever())
        sessions, found = [policy.session(number) for number in range(simulators)], []
        for step in range(STEPS):
            asked = [Asked(session, look(n, step), told(n)) for n, session in enumerate(sessions)]
            found.append(await asyncio.gather(*map(server.plan, asked)))
        planning.cancel()
        return found

    for simulators in (1, 4, 8):
        shared.clear()
        found = asyncio.run(episodes(simulators))
        assert shared == [simulators] * STEPS
        assert all(same(plan, expected[n][step]) for step, plans in enumerate(found) for n, plan in enumerate(plans))


def test_noise_is_that_of_the_episode_and_of_nobody_else(torch_as_it_was, tmp_path):
    """Of a decoder that draws: the same seed draws the same beside others, another seed something else."""
    torch.set_num_threads(1)
    policy = random_policy("diffusion", 4)
    assert policy.draw == [True]
    expected = [alone(policy, number) for number in range(4)]
    with serving(Place(tmp_path / "policy", "", 0), policy):
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda number: episode(f"unix:{tmp_path}/policy", number), range(4)))
        client = Client(f"unix:{tmp_path}/policy", SENSES, RUNS)
        client.start(1)
        other = client.plan(look(0, 0), told(0))
        client.close()
    assert all(same(*pair) for plans in zip(found, expected, strict=True) for pair in zip(*plans, strict=True))
    assert not same(other, expected[0][0])


def test_a_slow_simulator_keeps_nobody_waiting(address, policy):
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(episode, address, 1, 0.4)
        time.sleep(0.2)
        start_s = time.monotonic()
        assert unharmed(address, policy)
        assert time.monotonic() - start_s < 1.5
        assert not slow.done()
        assert all(map(same, slow.result(), alone(policy, 1)))


def test_a_simulator_that_is_killed_disturbs_nobody(address, policy):
    """Its connection ends without a farewell, in an episode, and with a plan that is still to be made."""
    gone = Client(address, SENSES, RUNS)
    gone.start(1)
    gone._send(OBSERVATION, {"raw": look(1, 0), "task_description": told(1)})
    gone.connection.socket.shutdown(socket.SHUT_RDWR)
    assert unharmed(address, policy)


@pytest.mark.parametrize(
    "sent",
    [b"", b"\x80", "text", b"\xc1" * 100, pack(Message(ACTION, {}))[:-3]],
    ids=["empty", "empty map", "text", "never used", "cut off"],
)
def test_what_is_not_a_message_ends_its_own_connection_alone(sent, address, policy):
    with plain(address) as connection:
        connection.send(sent)
        assert unpack(connection.recv()).type == ERROR
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(timeout=5)
        assert closed.value.rcvd.code == 1003
    assert unharmed(address, policy)


def test_a_huge_message_ends_its_own_connection_alone(address, policy):
    with plain(address) as connection:
        with contextlib.suppress(ConnectionClosed, OSError):
            connection.send(bytes(LIMIT_BYTES + 1))
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(timeout=20)
        assert closed.value.rcvd is None or closed.value.rcvd.code == 1009
    assert unharmed(address, policy)


def test_half_a_message_disturbs_nobody(address, policy):
    """A frame that says 1,000 bytes, and then nothing more comes."""
    with plain(address, close_timeout=0.1) as connection:
        connection.socket.sendall(b"\x82\xfe\x03\xe8\x00\x00\x00\x00abc")
        assert unharmed(address, policy)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({}, "task_description: it must be text"),
        ({"task_description": "put"}, "reads poses of the scene"),
        ({"task_description": "juggle", "raw": look(0, 0)}, "does not know 'juggle'"),
        ({"task_description": told(0), "raw": {}}, "no 'observation.state'|must be an object"),
        ({"task_description": told(0), "raw": {**look(0, 0), STATE: np.zeros(99, np.float32)}}, "ValueError"),
        ({"task_description": told(0), "raw": {STATE: np.zeros(13, np.float32)}}, "wants a column"),
    ],
)
def test_an_observation_that_cannot_be_planned_is_an_error_of_its_own(payload, said, address, policy):
    """Also when it shares a pass with others: they ask again, and get what they would have got."""
    client = Client(address, SENSES, RUNS)
    client.start(0)
    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(episode, address, number) for number in range(3)]
        for _ in range(10):
            with pytest.raises(GhostError, match=said):
                client._ask(OBSERVATION, payload, ACTION)
        for number, other in enumerate(others):
            assert all(map(same, other.result(), alone(policy, number)))
    client.start(0)
    assert same(client.plan(look(0, 0), told(0)), alone(policy, 0)[0])


def test_an_observation_before_an_episode_is_refused(address):
    client = Client(address, SENSES, RUNS)
    with pytest.raises(GhostError, match="came before its episode_start"):
        client.plan(look(0, 0), told(0))


def test_a_client_refuses_another_policy_than_it_means(address):
    with pytest.raises(GhostError, match=r"serves .*'rows': 4.*, not .*'rows': 8"):
        Client(address, SENSES, {**RUNS, "rows": 8})


def test_a_server_that_ends_is_one_clear_line(policy, tmp_path):
    with serving(Place(tmp_path / "policy", "", 0), policy):
        client = Client(f"unix:{tmp_path}/policy", SENSES, RUNS)
        client.start(0)
        client.plan(look(0, 0), told(0))
    with pytest.raises(GhostError, match=r"is gone .* this episode is not recorded; run the job again"):
        client.plan(look(0, 1), told(0))
    with pytest.raises(GhostError, match="no policy server at unix:"):
        Client(f"unix:{tmp_path}/policy", SENSES, RUNS)


def test_a_fault_of_the_device_ends_the_server(policy, tmp_path):
    """It does not answer with something; every simulator fails loudly."""

    def fault(seen):
        raise RuntimeError("CUDA error: unspecified launch failure")

    policy.encode = fault
    place = Place(tmp_path / "policy", "", 0)

    async def serve():
        server = Server(policy, RUNS, 8)
        async with place.listen(server), asyncio.TaskGroup() as tasks:
            tasks.create_task(server.plan_forever())
            client = await asyncio.to_thread(Client, f"unix:{place.unix}", SENSES, RUNS)
            client.start(0)
            await asyncio.to_thread(client.plan, look(0, 0), told(0))

    with pytest.raises(ExceptionGroup) as found:
        asyncio.run(asyncio.wait_for(serve(), 20))
    assert found.group_contains(RuntimeError, match="CUDA error")


def test_a_server_that_does_not_answer_is_one_clear_line(policy, tmp_path):
    encode = policy.encode
    policy.encode = lambda seen: (time.sleep(1), encode(seen))[1]
    with serving(Place(tmp_path / "policy", "", 0), policy):
        client = Client(f"unix:{tmp_path}/policy", SENSES, RUNS, answer_s=0.5)
        client.start(0)
        with pytest.raises(GhostError, match=r"did not answer within 0\.5 s"):
            client.plan(look(0, 0), told(0))


def test_only_who_knows_the_token_connects_and_no_browser(policy, port):
    token = "t" * 16
    with serving(Place(None, "127.0.0.1", port), policy, token):
        for user in ("", "ghost:wrong@", f"root:{token}@"):
            with pytest.raises(GhostError, match="HTTP 401") as unauthorised:
                Client(f"ws://{user}127.0.0.1:{port}", SENSES, RUNS)
            assert token not in str(unauthorised.value)
        right = f"ws://ghost:{token}@127.0.0.1:{port}"
        Client(right, SENSES, RUNS).close()
        with pytest.raises(InvalidStatus) as refused:
            connect(right, origin="https://example.org")
        assert refused.value.response.status_code == 403
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as health:
            assert (health.status, health.read()) == (200, b'{"status": "ok"}\n')
        with pytest.raises(urllib.error.HTTPError) as other:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/config?max_batch_size=8")
        assert other.value.code == 401
        other.value.close()


def test_other_machines_need_a_token(tmp_path):
    with pytest.raises(GhostError, match=r"other machines can connect to 0\.0\.0\.0: name a file with a token"):
        run(tmp_path, tmp_path, host="0.0.0.0")
    (tmp_path / "token").write_text("short\n")
    with pytest.raises(GhostError, match="at least 16 signs"):
        _token(tmp_path / "token")
    (tmp_path / "token").write_text("0123456789abcdef\n")
    assert _token(tmp_path / "token") == "0123456789abcdef"


def test_a_harness_that_asks_at_every_step_gets_the_actions_of_a_chunk_one_by_one(address, policy):
    """With the seed of our trial, and a plan after 8 of the 16 steps."""
    seed = trial_seeds(0, 5, 2)[1]
    expected = [plan.actions[:8] for plan in alone(policy, seed, 2)]
    with plain(address) as connection:
        connection.send(pack(Message(START, {"task": {"name": "t", "task_id": 5, "episode_idx": 2}})))
        found = []
        for step in range(16):
            raw = look(seed, step // 8)  # what is seen in between is not asked about
            payload = {"raw": raw, "task_description": told(seed)}
            connection.send(pack(Message(OBSERVATION, payload, step)))
            found.append(unpack(connection.recv()).payload["actions"])
    assert np.array_equal(np.stack(found), np.concatenate(expected).astype(np.float32))


def test_what_vla_eval_sees_is_what_our_rollouts_see():
    """Names, mirror and state of public data sets."""
    picture = np.random.default_rng(0).integers(0, 256, (4, 4, 3), np.uint8)
    sent = {"images": {"agentview": picture, "wrist": 255 - picture}, "states": np.arange(8.0)}
    sent["task_description"] = "put"
    public = Senses(find_convention("ipec"), ("observation.images.image", "observation.images.wrist_image"), 64)
    raw, instruction = observation_of(sent, public)
    assert instruction == "put"
    assert np.array_equal(raw["observation.images.image"], picture)
    assert np.array_equal(raw["observation.images.wrist_image"], 255 - picture)
    assert np.array_equal(raw[STATE], np.arange(8.0, dtype=np.float32))
    assert specifications(public)["observation_params"] == {
        "send_wrist_image": True,
        "send_state": True,
        "quat_no_antipodal": True,
    }
    for wrong in ({"images": {}}, {"images": {"agentview": picture}}, {"states": np.zeros(7)}, {"states": [1.0] * 8}):
        with pytest.raises(GhostError, match="an observation"):
            observation_of({**sent, **wrong}, public)


def test_seeds_of_other_harnesses_episodes_differ():
    tasks = [{"task_id": 1, "episode_idx": 0}, {"task_id": 1, "episode_idx": 1}, {"name": "a"}, {"name": "b"}, None]
    seeds = [episode_of({"task": task})[0] for task in tasks]
    assert len(set(seeds)) == len(tasks)
    assert seeds == [episode_of({"task": task})[0] for task in tasks]
