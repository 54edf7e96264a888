"""Looking into a simulation over the bridge, and settings that go with the next interval."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError, StateError
from dcqcn_gym.core.knobs import Setting, expert_setting
from dcqcn_gym.envs.backends.base import Backend, Watchable
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.ns3.backend import Ns3Backend
from dcqcn_gym.extras.ns3.bridge import simulation
from dcqcn_gym.simulation.run import Extras, simulate
from dcqcn_gym.simulation.trace import TRACE_FILES, parse_trace

STORM = load_scenario("mini-storm").model_copy(update={"monitor_interval_us": 250.0})
NATIVE_PEER = [sys.executable, str(Path(__file__).with_name("native_peer.py"))]


@pytest.fixture
def peer() -> Iterator[Ns3Backend]:
    backend = Ns3Backend(command=NATIVE_PEER)
    yield backend
    backend.close()


def seen(backend: Backend, every_ps: int, ports: list[int]) -> list[Any]:
    samples: list[Any] = []

    def look(now: int, ports: Any, flows: Any) -> None:
        samples.append(
            (now, {k: np.array(v).tolist() for k, v in (*ports.items(), *flows.items())})
        )

    assert isinstance(backend, Watchable)
    backend.open(STORM, 2)
    backend.apply(STORM.initial_setting())
    backend.watch(every_ps, ports, look)
    for _ in range(2):
        backend.advance()
    backend.close()
    return samples


@pytest.mark.parametrize("ports", [[], [0], [3, 1, 20]])
def test_a_watch_sees_what_it_sees_natively(peer: Ns3Backend, ports: list[int]) -> None:
    there = seen(peer, 33_333_333, ports)
    assert len(there) == 15
    assert there == seen(NativeBackend(), 33_333_333, ports)


def test_many_samples_come_in_batches(peer: Ns3Backend) -> None:
    ports = list(range(40))
    there = seen(peer, 50_000, ports)
    assert len(there) == 10_000
    assert len(there) * 25 * len(ports) > 4 * simulation.BATCH_BYTES
    assert there == seen(NativeBackend(), 50_000, ports)


def test_a_look_that_fails_ends_the_simulation_cleanly(peer: Ns3Backend) -> None:
    def look(*_: object) -> None:
        raise ConfigError("enough")

    peer.open(STORM, 2)
    peer.apply(STORM.initial_setting())
    peer.watch(1_000_000, [0], look)
    with pytest.raises(ConfigError, match="enough"):
        peer.advance()
    assert peer.process_id == 0
    peer.open(STORM, 2)


@pytest.mark.parametrize("change", [{"every_ps": 0}, {"ports": [40]}, {"ports": [-1]}])
def test_a_bad_watch_is_refused_and_harms_nothing(peer: Ns3Backend, change: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"every_ps": 10_000_000, "ports": [0], **change}
    with pytest.raises(StateError, match=r"call open\(\) first"):
        peer.watch(**arguments, look=lambda *_: None)
    peer.open(STORM, 2)
    with pytest.raises(ConfigError, match="expected"):
        peer.watch(**arguments, look=lambda *_: None)
    peer.apply(STORM.initial_setting())
    assert peer.advance().index == 0


def test_a_world_that_cannot_be_looked_into_says_so(toy: Callable[..., Ns3Backend]) -> None:
    backend = toy()
    backend.open(STORM, 1)
    with pytest.raises(ConfigError, match="cannot be looked into"):
        backend.watch(1_000_000, [0], lambda *_: None)


@pytest.mark.slow
def test_traces_on_ns3_are_those_of_the_native_engine(tmp_path: Path) -> None:
    words = ("queue,rate,pause", "10us", "all", "all", "csv")
    trace = parse_trace(*words, STORM.fabric)
    for backend in ("native", "ns3"):
        simulate(
            STORM,
            tmp_path / backend,
            intervals=2,
            seed=3,
            backend=backend,
            extras=Extras(trace=trace),
        )
    names = sorted(p.name for p in (tmp_path / "native").iterdir() if p.name != "timing.json")
    assert set(names) & set(TRACE_FILES) >= {"trace_ports.csv", "trace_flows.csv"}
    for name in names:
        native, ns3 = ((tmp_path / d / name).read_bytes() for d in ("native", "ns3"))
        assert native == ns3, name


def settings(scenario: Scenario) -> list[list[Setting]]:
    """Return what is applied before each of four intervals: one, two at once, none, an odd one."""
    default, expert = scenario.initial_setting(), expert_setting(scenario.line_rate_bps)
    slow = default.replace({"rp_max_rate": 2_000})
    beyond = default.replace({"kmin": 0.001, "kmax": 0.001})  # legal to the engine alone
    with pytest.raises(ConfigError):
        beyond.replace({"pmax": 1.5}).check(scenario.line_rate_bps)
    return [[default], [slow, expert], [], [beyond]]


def reports(backend: Backend) -> list[Any]:
    backend.open(STORM, 5)
    found = []
    for several in settings(STORM):
        for setting in several:
            backend.apply(setting)
        found.append(backend.advance())
    backend.close()
    return found


def test_settings_that_wait_come_into_force_in_their_order(peer: Ns3Backend) -> None:
    assert reports(peer) == reports(NativeBackend())


def test_values_that_the_engine_refuses_are_refused_at_once(peer: Ns3Backend) -> None:
    peer.open(STORM, 1)
    with pytest.raises(ConfigError, match="pmax"):
        peer.apply(STORM.initial_setting().replace({"pmax": 2.0}))
    with pytest.raises(ConfigError, match="must be a number"):
        peer.apply(STORM.initial_setting().replace({"rp_ai_rate": float("nan")}))
    peer.apply(STORM.initial_setting())
    assert peer.advance().index == 0


def test_time_in_the_simulator_is_told(peer: Ns3Backend) -> None:
    assert peer.busy_s == 0.0
    peer.open(STORM, 1)
    peer.apply(STORM.initial_setting())
    peer.advance()
    first = peer.busy_s
    peer.advance()
    assert peer.busy_s > first > 0.0
