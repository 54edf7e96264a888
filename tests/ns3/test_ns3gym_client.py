"""ns3-gym's own client against our simulation: recorded bytes always, the client if installed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zmq
from bridge_helpers import toy_command

from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.backends.ns3_bridge import codec
from dcqcn_gym.envs.backends.ns3_bridge import ns3gym_pb2 as pb
from dcqcn_gym.envs.backends.ns3_bridge.build import ensure_built
from dcqcn_gym.envs.dcqcn import DcqcnEnv

SCENARIO = "mini-llm-alltoall"
RECORDED = [
    bytes.fromhex(line)
    for line in Path(__file__).with_name("ns3gym_client_bytes.txt").read_text().splitlines()
    if not line.startswith("#")
]


def simulation_command(kind: str, *options: str) -> list[str]:
    common = [f"--scenario={SCENARIO}", "--simSeed=3", *options]
    if kind == "toy":
        return [*toy_command(), *common]
    build = ensure_built(say=lambda line: print(line, file=sys.stderr))
    module = "dcqcn_gym.envs.backends.ns3_bridge.simulation"
    return [sys.executable, "-m", module, f"--module={build.folder}", *common]


class _Client:
    """The REP socket of a client, with a deadline."""

    def __init__(self) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.socket = self._context.socket(zmq.REP)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.port = self.socket.bind_to_random_port("tcp://127.0.0.1")

    def receive(self) -> bytes:
        assert self.socket.poll(60_000), "the simulation says nothing"
        return self.socket.recv()

    def close(self) -> None:
        self.socket.close()
        self._context.term()


@pytest.fixture
def client() -> Iterator[_Client]:
    made = _Client()
    yield made
    made.close()


def session(kind: str, client: _Client) -> tuple[pb.SimInitMsg, list[pb.EnvStateMsg], int]:
    """Replay the recorded client; return what the simulation said and its exit status."""
    command = simulation_command(kind, f"--openGymPort={client.port}")
    with subprocess.Popen(command) as process:
        init = codec.decode(pb.SimInitMsg, client.receive())
        client.socket.send(RECORDED[0])
        states = []
        for message in RECORDED[1:]:
            states.append(codec.decode(pb.EnvStateMsg, client.receive()))
            client.socket.send(message)
        status = process.wait(30)
    return init, states, status


@pytest.mark.parametrize("kind", ["toy", "ns3"])
def test_the_recorded_client_attaches_steps_and_closes(kind: str, client: _Client) -> None:
    init, states, status = session(kind, client)
    assert status == 0
    action, observation = pb.BoxSpace(), pb.BoxSpace()
    assert init.actSpace.space.Unpack(action)
    assert init.obsSpace.space.Unpack(observation)
    assert (action.low, action.high, list(action.shape)) == (-1.0, 1.0, [14])

    world = FakeBackend() if kind == "toy" else "native"
    env = DcqcnEnv(SCENARIO, backend=world)
    expected, _ = env.reset(seed=3)
    size = len(expected)
    assert list(observation.shape) == [size]
    reward = 0.0
    for k, state in enumerate(states):
        assert not state.isGameOver
        np.testing.assert_array_equal(codec.decode_box(state.obsData, size), expected)
        assert state.reward == np.float32(reward)
        assert isinstance(json.loads(state.info), dict)
        expected, reward, *_ = env.step(np.full(14, 0.25 * (k - 1)))


def test_the_end_of_the_budget_is_the_end_of_the_simulation(client: _Client) -> None:
    command = simulation_command("toy", f"--openGymPort={client.port}")
    with subprocess.Popen(command) as process:
        client.receive()
        client.socket.send(RECORDED[0])
        steps = 0
        while not (state := codec.decode(pb.EnvStateMsg, client.receive())).isGameOver:
            client.socket.send(RECORDED[2])
            steps += 1
        client.socket.send(RECORDED[-1])
        assert process.wait(30) == 0
    assert steps == DcqcnEnv(SCENARIO, backend=FakeBackend()).intervals
    assert state.reason == pb.EnvStateMsg.SimulationEnd


def test_a_client_that_dies_ends_the_simulation(client: _Client) -> None:
    command = simulation_command("toy", f"--openGymPort={client.port}")
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        client.receive()
        client.close()
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert b"the client is gone" in err


CLIENT = """
import sys
import gymnasium
import numpy as np
np.int, np.float = np.int64, np.float64
import gymnasium.utils.seeding
for name in ("", ".spaces", ".utils", ".utils.seeding"):
    sys.modules.setdefault("gym" + name, sys.modules["gymnasium" + name])
from ns3gym.ns3env import Ns3Env
env = Ns3Env(port=int(sys.argv[1]), startSim=False)
assert len(env.reset()) == env.observation_space.shape[0]
for _ in range(3):
    observation, reward, done, info = env.step(np.zeros(14))
    assert 0 <= reward <= 1 and not done
env.close()
"""


@pytest.mark.skipif(
    importlib.util.find_spec("ns3gym") is None, reason="ns3-gym's Python client is not installed"
)
def test_the_installed_client_attaches_steps_and_closes() -> None:
    port = 15_555
    with subprocess.Popen([sys.executable, "-c", CLIENT, str(port)]) as process:
        simulation = subprocess.run(
            simulation_command("ns3", f"--openGymPort={port}"), timeout=120, check=False
        )
        assert process.wait(30) == 0
    assert simulation.returncode == 0
