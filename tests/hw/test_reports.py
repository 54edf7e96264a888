"""Reports of agents whose clocks differ or jump, that come late or not at all: none is made up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fabrics import fabric_of
from faulty_network import LostError
from fleets import controller_of, fleet_of, nic_fleet

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.backend import HardwareBackend
from dcqcn_gym.hw.client import AgentClient
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.fabric.fabric import DigitalFabric
from dcqcn_gym.hw.fleet import load_fleet
from dcqcn_gym.hw.gather import AgentClock, Gathered, Times


def answer(random: Random, now: float, ahead: float, slowest: float = 0.2) -> Times:
    """Return the times of a call at ``now`` to an agent that is so far ahead."""
    there, work, back = (random.uniform(0.0, slowest) for _ in range(3))
    arrived = now + there
    return Times(now, arrived + ahead, arrived + work + ahead, arrived + work + back)


def test_the_difference_of_clocks_is_known_within_its_error() -> None:
    for seed in range(200):
        random, clock = Random(seed), AgentClock()
        ahead = random.uniform(-1e6, 1e6)
        assert clock.error_s == float("inf")
        for i in range(30):
            times = answer(random, 10.0 * i, ahead)
            assert not clock.learn(times)
            assert abs(clock.ahead_s - ahead) <= clock.error_s + 1e-6
            true = times.ended_s - ahead
            assert abs(clock.here(times) - true) <= clock.error_s + 1e-6
            assert times.asked_s <= clock.here(times) <= times.answered_s
        quickest = min(answer(Random(seed), 0.0, ahead).error_s, 0.2)
        assert clock.error_s <= max(quickest, 0.15)  # the best of several, not the last


def test_a_jump_is_seen_and_drift_is_none() -> None:
    random, clock = Random(1), AgentClock()
    for i in range(50):  # 100 parts in a million
        assert not clock.learn(answer(random, 10.0 * i, 3.0 + 1e-4 * 10.0 * i, slowest=1e-4))
    assert clock.learn(answer(random, 500.0, 8.0, slowest=1e-4))
    assert not clock.learn(answer(random, 510.0, 8.0, slowest=1e-4))
    assert clock.ahead_s == pytest.approx(8.0, abs=1e-3)


def test_figures_have_their_interval_and_their_time(tmp_path: Path) -> None:
    class Watch:
        ahead = 5000.0

        def __call__(self) -> float:
            return time.monotonic() + self.ahead

    watch = Watch()
    with nic_fleet(tmp_path, 2, watch) as agents, controller_of(tmp_path, fleet_of(agents)) as c:
        first = c.agents.gather(7)
        assert (list(first.figures), first.missing, first.jumped) == (["nic-0", "nic-1"], {}, ())
        for clock in c.agents._gatherer.clocks.values():
            assert abs(clock.ahead_s - 5000.0) <= clock.error_s < 5.0
        again = c.agents.gather(8)
        assert all(again.read_s[name] > first.instant_s for name in agents)
        assert again.later_than(first.instant_s) == list(agents)
        assert not again.later_than(again.instant_s + 10.0)
        watch.ahead = 100.0
        jumped = c.agents.gather(9)
        assert jumped.jumped == ("nic-0", "nic-1")
        assert all(jumped.read_s[name] >= again.read_s[name] for name in agents)
        agents["nic-1"].close()
        assert list(c.agents.gather(10).missing) == ["nic-1"]


def test_figures_of_another_interval_are_missing(tmp_path: Path) -> None:
    class Stuck(AgentClient):
        """Whoever answers is behind by an interval."""

        def send(self, method: str, request: Any) -> Any:
            if method == "Counters" and self.name == "nic-0":
                request = pb.Ask(interval=request.interval - 1)
            return super().send(method, request)

    with nic_fleet(tmp_path, 2) as agents:
        controller = Controller(fleet_of(agents), tmp_path, Stuck)
        controller.agents.open()
        try:
            found = controller.agents.gather(4)
            assert "of interval 3, not of 4" in found.missing["nic-0"]
            assert list(found.figures) == ["nic-1"]
        finally:
            controller.close()


class World:
    """A fleet's time: it passes when somebody sleeps, and the devices' traffic with it."""

    fabric: DigitalFabric

    def __init__(self) -> None:
        self.now, self.ahead = 50.0, 1000.0  # of the agents' clocks
        self.slow: dict[str, float] = {}
        self.silent: dict[str, int] = {}

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.fabric.Advance(pb.Span(ps=round(seconds * 1e12)))

    def connect(self, *args: Any, **more: Any) -> AgentClient:
        return _Delayed(self, *args, **more)


class _Delayed(AgentClient):
    """Counters that are read late, or are never told."""

    def __init__(self, world: World, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._world = world

    def send(self, method: str, request: Any) -> Any:
        world = self._world
        if method == "Counters" and world.silent.get(self.name, 0):
            world.silent[self.name] -= 1
            return LostError()
        if method == "Counters":
            world.now += world.slow.get(self.name, 0.0)
        return super().send(method, request)


@pytest.fixture
def world(small: Scenario) -> Iterator[World]:
    world = World()
    with fabric_of(small, clock=lambda: world.now + world.ahead) as world.fabric:
        yield world


def opened(world: World, scenario: Scenario, **more: Any) -> HardwareBackend:
    """Return the fabric's fleet as one of the real world: its time is not the controller's."""
    fabric = world.fabric
    fleet = load_fleet(fabric.fleet).model_copy(update={"fabric": None, "attempts": 1, **more})
    backend = HardwareBackend(fleet, fabric.fleet.parent, world.clock, world.sleep, world.connect)
    fabric.Reset(pb.Begin(seed=4, scenario=fabric._spec.scenario))
    backend.open(scenario, 4)
    backend.apply(scenario.initial_setting())
    return backend


def test_a_missing_report_makes_the_interval_longer_and_nothing_up(
    world: World, small: Scenario
) -> None:
    backend = opened(world, small)
    try:
        sound = backend.advance()
        assert (sound.scheme_counters, sound.duration_ps) == ({}, 10**9)
        world.silent["nic-1"] = 2
        longer = backend.advance()
        assert longer.scheme_counters == {"missing_reports": 2}
        assert longer.duration_ps == 3 * 10**9
    finally:
        backend.close()
    whole = opened(world, small)
    try:
        whole.advance()
        assert whole.advance(3 * 10**9).host_tx_bytes.tolist() == longer.host_tx_bytes.tolist()
    finally:
        whole.close()


def test_a_report_that_stays_away_is_no_interval(world: World, small: Scenario) -> None:
    backend = opened(world, small, missing_intervals=1)
    world.silent["switch-4"] = 2
    try:
        with pytest.raises(DeviceError, match=r"1 reports are missing.*agent switch-4 at"):
            backend.advance()
    finally:
        backend.close()


def test_late_reports_and_clocks_that_jump_are_marked(world: World, small: Scenario) -> None:
    backend = opened(world, small)
    try:
        assert backend.advance().scheme_counters == {}
        world.slow["switch-6"] = 0.05e-3  # the last that is asked: within a tenth of the interval
        assert backend.advance().scheme_counters == {}
        world.slow["switch-6"] = 0.2e-3
        assert backend.advance().scheme_counters["late_reports"] >= 1
        world.slow.clear()
        world.ahead = -77.0
        assert backend.advance().scheme_counters == {"clock_jumps": 7}
        assert backend.advance().scheme_counters == {}
    finally:
        backend.close()


def test_what_is_counted_while_settings_change_belongs_to_no_interval(
    world: World, small: Scenario
) -> None:
    backend = opened(world, small)
    try:
        first = backend.advance()
        world.sleep(2e-3)  # a change takes its time
        backend.apply(small.initial_setting().replace({"kmin": 90.0}))
        second = backend.advance()
        assert (second.start_ps, second.duration_ps) == (first.end_ps, 10**9)
        assert second.host_tx_bytes.max() < 25e9 / 8 * 1e-3 * 1.1  # of one interval, not of three
    finally:
        backend.close()


def test_the_instant_is_a_median_and_late_is_after_it() -> None:
    found = Gathered({}, {"a": 1.0, "b": 2.0, "c": 9.0})
    assert found.instant_s == 2.0
    assert found.later_than(2.0) == ["c"]  # the one at the very instant is not late
