"""The ns-3 backend and its toy twin against the kit of all backends; through the environment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from bridge_helpers import toy_command
from gymnasium.utils.env_checker import check_env

from dcqcn_gym.core.errors import ConfigError, StateError
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import expert_setting
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.backends.base import live_flows_of
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.learn.parallel import AgentsEnv
from dcqcn_gym.extras.ns3.backend import Ns3Backend
from dcqcn_gym.testing.backend_case import BackendCase


class _BridgeCase(BackendCase):
    """Closes every backend that a test of the kit made."""

    command: list[str] | None = None

    @pytest.fixture(autouse=True)
    def _close(self) -> Iterator[None]:
        self._made: list[Ns3Backend] = []
        yield
        for backend in self._made:
            backend.close()

    def new_backend(self) -> Ns3Backend:
        backend = Ns3Backend(command=self.command)
        self._made.append(backend)
        return backend


class TestToyPeer(_BridgeCase):
    command = toy_command()


class TestNs3(_BridgeCase):
    pass


def reports(backend: Ns3Backend | NativeBackend, scenario: Scenario) -> list[IntervalReport]:
    backend.open(scenario, 5)
    backend.apply(scenario.initial_setting())
    found = [backend.advance() for _ in range(3)]
    backend.apply(expert_setting(scenario.line_rate_bps))
    found += [backend.advance(duration_ps=700_000_001), backend.advance()]
    backend.close()
    return found


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_ns3_reports_what_the_native_engine_reports(transport: str) -> None:
    scenario = load_scenario("mini-fb-hadoop")
    ns3 = Ns3Backend(transport="ipc" if transport == "ipc" else "tcp")
    assert reports(ns3, scenario) == reports(NativeBackend(), scenario)


def test_unfinished_flows_are_those_of_the_native_engine() -> None:
    """Thus a run on ns-3 has a verdict."""
    scenario, found = load_scenario("mini-fb-hadoop"), []
    for backend in (Ns3Backend(), NativeBackend()):
        backend.open(scenario, 5)
        backend.apply(scenario.initial_setting())
        seen = [live_flows_of(backend)]
        for _ in range(3):
            report = backend.advance()
            backend.apply(expert_setting(scenario.line_rate_bps))  # waits on our side
            seen.append(live_flows_of(backend))
            assert seen[-1] is not None
            assert len(seen[-1].src) == report.active_flows > 0
        found.append(seen)
        backend.close()
    assert found[0] == found[1]


def test_a_world_that_cannot_know_its_unfinished_flows_says_so() -> None:
    backend, scenario = Ns3Backend(command=toy_command()), load_scenario("mini-fb-hadoop")
    with pytest.raises(StateError, match=r"live_flows.*open"):
        backend.live_flows()
    backend.open(scenario, 1)
    backend.apply(scenario.initial_setting())
    backend.advance()
    assert backend.live_flows() is None
    backend.close()


@pytest.mark.slow
def test_the_environment_runs_on_ns3_and_passes_the_checker() -> None:
    env = DcqcnEnv("mini-llm-alltoall", backend="ns3", intervals=3)
    check_env(env, skip_render_check=True)
    env.close()


def test_environment_steps_are_those_of_the_native_engine() -> None:
    outcomes = []
    for backend in ("native", "ns3"):
        with gymnasium.make(
            "dcqcn_gym:dcqcn/Dcqcn-v0", scenario="mini-llm-alltoall", backend=backend
        ) as env:
            observation, _ = env.reset(seed=11)
            steps = [observation]
            for sign in (1.0, -1.0):
                step = env.step(np.full(env.action_space.shape or (), sign * 0.5, np.float32))
                steps += [step[0], np.float64(step[1])]
            outcomes.append(np.concatenate([np.atleast_1d(s) for s in steps]))
    np.testing.assert_array_equal(outcomes[0], outcomes[1])


def test_the_registry_knows_ns3() -> None:
    assert isinstance(make_backend("ns3"), Ns3Backend)


def test_agents_of_ports_see_and_get_on_ns3_what_the_native_engine_gives() -> None:
    seen = []
    for backend in ("native", "ns3"):
        env = AgentsEnv("mini-llm-alltoall", backend, agents="port", decision_us=500, intervals=3)
        random, parts = np.random.default_rng(1), []
        observations, _ = env.reset(seed=7)
        while env.agents:
            drawn = {n: random.uniform(-1, 1, 3).astype(np.float32) for n in env.agents}
            observations, rewards, *_ = env.step(drawn)
            parts += [*observations.values(), np.array(list(rewards.values()))]
        env.close()
        seen.append(np.concatenate(parts))
    assert seen[0].size > 1000
    assert np.array_equal(seen[0], seen[1])


NATIVE_PEER = [sys.executable, str(Path(__file__).with_name("native_peer.py"))]


@pytest.fixture
def pair() -> Iterator[tuple[NativeBackend, Ns3Backend]]:
    """Yield the engine itself and behind the bridge, open with the initial setting."""
    scenario = load_scenario("mini-fb-hadoop")
    backends = NativeBackend(), Ns3Backend(command=NATIVE_PEER)
    for backend in backends:
        backend.open(scenario, 1)
        backend.apply(scenario.initial_setting())
    yield backends
    for backend in backends:
        backend.close()


def test_an_interval_without_length_is_one_on_both_sides(
    pair: tuple[NativeBackend, Ns3Backend],
) -> None:
    ours, theirs = ([b.advance(1000), b.advance(0), b.advance(5_000_000)] for b in pair)
    assert [report.end_ps for report in theirs] == [1000, 1000, 5_001_000]
    assert ours == theirs


def test_a_setting_of_no_group_is_refused_on_both_sides(
    pair: tuple[NativeBackend, Ns3Backend],
) -> None:
    for backend in pair:
        with pytest.raises(ConfigError, match="needs a Setting for the group 'cluster'"):
            backend.apply({})
        assert backend.advance(1000).end_ps == 1000
