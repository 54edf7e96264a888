"""ns3-gym's own client against our simulation: recorded bytes always, the client if installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zmq
from bridge_helpers import toy_command
from record_ns3gym_client import record
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.errors import BackendError
from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.ns3.bridge import codec, simulation
from dcqcn_gym.extras.ns3.bridge import ns3gym_pb2 as pb
from dcqcn_gym.extras.ns3.bridge.build import ensure_built
from waiting import LONG_S

SCENARIO = "mini-llm-alltoall"
RECORDED = [
    bytes.fromhex(line)
    for line in Path(__file__).with_name("ns3gym_client_bytes.txt").read_text().splitlines()
    if not line.startswith("#")
]
EPISODES = (RECORDED[:5], RECORDED[5:])
ACTIONS = ((-0.25, 0.0, 0.25), (0.5,))
OWN_PYTHON = "DCQCN_GYM_NS3GYM_PYTHON"
"""Environment variable: a Python that has the published client, if it is not this one."""


def simulation_command(kind: str, *options: str) -> list[str]:
    common = [f"--scenario={SCENARIO}", "--simSeed=3", *options]
    if kind == "toy":
        return [*toy_command(), *common]
    build = ensure_built(say=lambda line: print(line, file=sys.stderr))
    module = "dcqcn_gym.extras.ns3.ns3gym"
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


def session(
    kind: str, client: _Client, sent: list[bytes]
) -> tuple[pb.SimInitMsg, list[pb.EnvStateMsg], int]:
    """Replay the recorded client; return what the simulation said and its exit status."""
    command = simulation_command(kind, f"--openGymPort={client.port}")
    with subprocess.Popen(command) as process:
        init = codec.decode(pb.SimInitMsg, client.receive())
        client.socket.send(sent[0])
        states = []
        for message in sent[1:]:
            states.append(codec.decode(pb.EnvStateMsg, client.receive()))
            client.socket.send(message)
        status = process.wait(30)
    return init, states, status


@pytest.mark.parametrize("kind", ["toy", "ns3"])
def test_the_recorded_client_resets_steps_and_closes(kind: str, client: _Client) -> None:
    for sent, actions in zip(EPISODES, ACTIONS, strict=True):
        check_session(kind, *session(kind, client, sent), actions)


def check_session(
    kind: str,
    init: pb.SimInitMsg,
    states: list[pb.EnvStateMsg],
    status: int,
    actions: tuple[float, ...],
) -> None:
    """Compare what the simulation said with the environment over the same network."""
    assert status == 0
    assert len(states) == len(actions) + 1
    action, observation = pb.BoxSpace(), pb.BoxSpace()
    assert init.actSpace.space.Unpack(action)
    assert init.obsSpace.space.Unpack(observation)
    assert (action.low, action.high, list(action.shape)) == (-1.0, 1.0, [14])

    backend = FakeBackend() if kind == "toy" else "native"
    env = DcqcnEnv(SCENARIO, backend=backend)
    expected, _ = env.reset(seed=3)
    size = len(expected)
    assert list(observation.shape) == [size]
    reward = 0.0
    for state, value in zip(states, (*actions, None), strict=True):
        assert not state.isGameOver
        np.testing.assert_array_equal(codec.decode_box(state.obsData, size), expected)
        assert state.reward == np.float32(reward)
        assert isinstance(json.loads(state.info), dict)
        if value is not None:
            expected, reward, *_ = env.step(np.full(14, value))


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
        _, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 2  # whoever started it sees that the episode was not ended
    assert b"the client is gone" in err


def test_no_client_and_no_endpoint_are_errors(tmp_path: Path) -> None:
    nobody = f"--endpoint=ipc://{tmp_path}/nobody"
    for option, words in (
        (nobody, f"no client has answered at ipc://{tmp_path}/nobody within 0.5 s"),
        ("--endpoint=nowhere", "endpoint 'nowhere': Invalid argument; expected tcp://HOST:PORT"),
    ):
        done = subprocess.run(
            [*simulation_command("toy", option), "--wait=0.5"],
            capture_output=True,
            text=True,
            timeout=LONG_S,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {words}")
        assert "Traceback" not in done.stderr
    done_port = CliRunner().invoke(app, ["ns3", "serve", "-s", SCENARIO, "--port", "70000"])
    assert done_port.exit_code == 2


def client_python() -> str | None:
    """Return the Python that has the published client, or None."""
    if python := os.environ.get(OWN_PYTHON):
        return python
    return sys.executable if importlib.util.find_spec("ns3gym") else None


needs_client = pytest.mark.skipif(
    client_python() is None, reason=f"ns3-gym's client is not installed, nor named by {OWN_PYTHON}"
)


@needs_client
@pytest.mark.parametrize("kind", ["toy", "ns3"])
def test_the_published_client_resets_steps_and_closes(kind: str) -> None:
    python, port = client_python(), 15_555
    assert python is not None
    assert record(python, simulation_command(kind), port, len(EPISODES)) == RECORDED


@needs_client
def test_the_published_client_starts_our_simulation(tmp_path: Path) -> None:
    ensure_built(say=lambda line: print(line, file=sys.stderr))
    assert CliRunner().invoke(app, ["ns3", "serve", "--launcher", str(tmp_path)]).exit_code == 0
    (tmp_path / SCENARIO).mkdir()
    command = [client_python() or "", str(Path(__file__).with_name("ns3gym_session.py"))]
    done = subprocess.run(
        command, cwd=tmp_path / SCENARIO, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Start command") == len(EPISODES)


def test_a_process_for_our_own_client_sends_another_one_to_the_command(client: _Client) -> None:
    backend, identity = FakeBackend(), simulation.Identity(load_scenario(SCENARIO), 3)
    said: list[BaseException] = []

    def serve() -> None:
        try:
            simulation.serve(backend, identity, f"tcp://127.0.0.1:{client.port}")
        except BackendError as error:
            said.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    init = codec.decode(pb.SimInitMsg, client.receive())
    client.socket.send(EPISODES[0][0])
    thread.join(30)
    assert not init.HasField("obsSpace")
    assert "start `dcqcn-gym ns3 serve`" in str(said)
