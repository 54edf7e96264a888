"""Whole sessions of ns3-gym's client: the end of an episode, several, other seeds, and errors.

The published client is on no package index, so what it sends is made here, byte for byte as it was
recorded (``ns3gym_client_bytes.txt``); the first test holds the two against each other.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass

import numpy as np
import pytest
from test_ns3gym_client import ACTIONS, EPISODES, RECORDED, SCENARIO, _Client, client
from test_ns3gym_client import simulation_command as command_of

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.ns3.bridge import codec
from dcqcn_gym.extras.ns3.bridge import ns3gym_pb2 as pb
from dcqcn_gym.extras.ns3.ns3gym import GymDialogue
from waiting import LONG_S

__all__ = ["client"]  # a fixture

ACK, STOP = RECORDED[0], RECORDED[-1]


def action(*values: float, dtype: int = pb.FLOAT) -> bytes:
    """Return the message with which the client sends an action."""
    box = pb.BoxDataContainer(dtype=dtype, shape=[len(values)], floatData=values)  # type: ignore[arg-type]
    data = pb.DataContainer(type=pb.Box)
    data.data.Pack(box)
    return pb.EnvActMsg(actData=data).SerializeToString()


def test_what_is_made_here_is_what_was_recorded() -> None:
    assert EPISODES
    for sent, values in zip(EPISODES, ACTIONS, strict=True):
        assert sent[0] == pb.SimInitAck(done=True).SerializeToString()
        assert sent[-1] == pb.EnvActMsg(stopSimReq=True).SerializeToString()
        assert [action(*[value] * 14) for value in values] == sent[1:-1]


@dataclass
class Session:
    """What the simulation said until it was over, and how it ended."""

    states: list[pb.EnvStateMsg]
    status: int
    words: str


def play(client: _Client, seed: int, messages: list[bytes]) -> Session:
    """Send the messages, then stop; as the client does, stop at once when the game is over."""
    command = command_of("toy", f"--openGymPort={client.port}", f"--simSeed={seed}")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        client.receive()
        client.socket.send(ACK)
        states: list[pb.EnvStateMsg] = []
        for message in [*messages, STOP]:
            states.append(codec.decode(pb.EnvStateMsg, client.receive()))
            client.socket.send(STOP if states[-1].isGameOver else message)
            if states[-1].isGameOver:
                break
        _, words = process.communicate(timeout=LONG_S)
    return Session(states, process.returncode, words)


@pytest.mark.slow
def test_episodes_of_several_seeds_to_their_end(client: _Client) -> None:
    seen: list[list[float]] = []
    for seed in (3, 4, 3):
        env = DcqcnEnv(SCENARIO, backend=FakeBackend())
        expected, _ = env.reset(seed=seed)
        values = np.random.default_rng(seed).uniform(-1, 1, env.intervals).astype(np.float32)
        messages = [action(*[float(value)] * 14) for value in values]
        found = play(client, seed, [*messages, messages[0]])
        assert found.status == 0
        assert len(found.states) == env.intervals + 1
        reward = 0.0
        for at, state in enumerate(found.states):
            np.testing.assert_array_equal(codec.decode_box(state.obsData, len(expected)), expected)
            assert state.reward == np.float32(reward)
            assert json.loads(state.info)["seed"] == seed
            assert state.isGameOver == (at == env.intervals)
            if not state.isGameOver:
                expected, reward, *_ = env.step(np.full(14, float(values[at])))
        assert found.states[-1].reason == pb.EnvStateMsg.SimulationEnd
        seen.append([state.reward for state in found.states])
    assert seen[0] == seen[2] != seen[1]


def discrete() -> bytes:
    data = pb.DataContainer(type=pb.Discrete)
    data.data.Pack(pb.DiscreteDataContainer(data=3))
    return pb.EnvActMsg(actData=data).SerializeToString()


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (action(0.5, -0.5), "expected a box of 14 numbers, got 2"),
        (action(*[float("nan")] * 14), "number 0 of the box is not finite"),
        (discrete(), "expected a box of 14 numbers, got container type"),
        (b"", "expected a box of 14 numbers"),
        (b"\xff\xff no protobuf", "expected the message EnvActMsg"),
    ],
)
def test_a_bad_action_is_answered_and_named(client: _Client, bad: bytes, says: str) -> None:
    good = action(*[0.0] * 14)
    found = play(client, 1, [good, bad, good])
    assert [state.isGameOver for state in found.states] == [False, False, True]
    last = found.states[-1]
    assert last.reason == pb.EnvStateMsg.GameOver
    assert says in json.loads(last.info)["error"]
    assert len(codec.decode_box(last.obsData, len(DcqcnEnv(SCENARIO, "fake").reset()[0]))) > 0
    assert found.status == 2
    assert says in found.words


def test_a_first_answer_that_is_none_ends_it(client: _Client) -> None:
    """Whoever sends it may be silent from then on."""
    command = command_of("toy", f"--openGymPort={client.port}", "--simSeed=1")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        client.receive()
        client.socket.send(b"")
        _, words = process.communicate(timeout=LONG_S)
    assert process.returncode == 2
    assert "expected SimInitAck with done = true" in words


class Unbuilt(FakeBackend):
    """A network that cannot be built."""

    def open(self, scenario: Scenario, seed: int) -> None:
        raise ConfigError("captures: no place for them")


def test_a_network_that_cannot_be_built_is_told_to_the_client() -> None:
    """It would wait for ever for the first state."""
    told: list[pb.EnvStateMsg] = []

    def ask(message: bytes) -> bytes:
        told.append(codec.decode(pb.EnvStateMsg, message))
        return STOP

    scenario = load_scenario(SCENARIO)
    with pytest.raises(ConfigError, match="no place"):
        GymDialogue().serve(ask, Unbuilt(), scenario, 1)
    [state] = told
    assert (state.isGameOver, state.reason) == (True, pb.EnvStateMsg.GameOver)
    assert json.loads(state.info) == {"error": "captures: no place for them"}
    codec.decode_box(state.obsData, len(DcqcnEnv(SCENARIO, "fake").reset()[0]))
