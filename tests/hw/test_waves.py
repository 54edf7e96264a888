"""A change in waves: who is in which, what a gate sees, and that all go back if it is not well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fleets import controller_of, fleet_file, fleet_of, nic_fleet, rates, typed

from dcqcn_gym.core.errors import ConfigError, DeviceError, StateError
from dcqcn_gym.hw.agent.server import AgentServer
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.waves import waves_of

GATE = {"seconds": 1.0, "paused": 0.05, "errors": 10}


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[dict[str, AgentServer]]:
    with nic_fleet(tmp_path, 4) as agents:
        yield agents


class World:
    """Time that passes while a wave is watched, and what NICs count meanwhile."""

    def __init__(self, folder: Path, agents: dict[str, AgentServer]) -> None:
        self.folder, self.agents = folder, agents
        self.watched: list[list[int]] = []
        """What the NICs held whenever the gate watched."""
        self.now = 0.0
        self.grow: Callable[[int], dict[str, dict[str, int]]] = lambda index: {}
        self.extra: dict[str, dict[str, int]] = {name: {} for name in agents}
        for name, agent in agents.items():
            read = agent.guard._driver.counters

            def counted(name: str = name, read: Any = read) -> dict[str, int]:
                found: dict[str, int] = read()
                return found | {k: found.get(k, 0) + n for k, n in self.extra[name].items()}

            agent.guard._driver.counters = counted  # type: ignore[method-assign]

    def sleep(self, seconds: float) -> None:
        self.watched.append(rates(self.folder))
        for name, figures in self.grow(len(self.watched) - 1).items():
            for figure, n in figures.items():
                self.extra[name][figure] = self.extra[name].get(figure, 0) + n
        self.now += seconds

    def controller(self, **more: Any) -> Controller:
        fleet = fleet_of(self.agents, gate=GATE, **more)
        found = Controller(fleet, self.folder, clock=lambda: self.now, sleep=self.sleep)
        found.agents.open()
        return found


@pytest.fixture
def world(tmp_path: Path, agents: dict[str, AgentServer]) -> World:
    return World(tmp_path, agents)


def wanted(agents: dict[str, AgentServer]) -> dict[str, Any]:
    return {name: {"": {"rp_ai_rate": 50.0}} for name in agents}


def test_waves_have_their_share_of_nics_and_of_switches() -> None:
    nics, switches = [f"n{i}" for i in range(5)], ["s0", "s1"]
    found = waves_of([*nics, *switches], nics, 3)
    assert found == [["n0"], ["n1", "n2", "s0"], ["n3", "n4", "s1"]]
    assert waves_of(nics, nics, 9) == [[name] for name in nics]


def test_every_wave_is_watched_before_the_next_and_all_are_confirmed(
    world: World, tmp_path: Path
) -> None:
    world.grow = lambda index: {"nic-0": {"pause_us": 200_000, "out_of_sequence": 5}}  # as before
    controller = world.controller()
    done = controller.carry_out(wanted(world.agents), "in waves", waves=2)
    controller.close()
    assert world.watched == [[5] * 4, [50, 50, 5, 5], [50] * 4]
    assert rates(tmp_path) == [50] * 4
    assert {a.guard.status.confirmed for a in world.agents.values()} == {done.transaction}


@pytest.mark.parametrize(
    ("figure", "size", "words"),
    [
        ("pause_us", 60_000, "nic-3 was paused for 0.06 more of the time than before in 1 s"),
        ("ack_timeouts", 11, "nic-3 counted 11 errors more than before"),
    ],
)
@pytest.mark.parametrize("wave", [1, 2])
def test_a_device_that_does_worse_takes_all_waves_back(
    figure: str, size: int, words: str, wave: int, world: World, tmp_path: Path
) -> None:
    world.grow = lambda index: {"nic-3": {figure: size}} if index == wave else {}
    controller = world.controller()
    with pytest.raises(DeviceError, match=f"after wave {wave} of 2 {words}"):
        controller.carry_out(wanted(world.agents), "in waves", waves=2)
    assert len(world.watched) == wave + 1
    assert rates(tmp_path) == [5] * 4
    assert {a.guard.status.state for a in world.agents.values()} == {"idle"}
    controller.carry_out(wanted(world.agents), "and again", waves=2)
    controller.close()
    assert rates(tmp_path) == [50] * 4


def gone() -> dict[str, int]:
    raise DeviceError("no such file")


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        (lambda _: {}, "nic-2 counts no pauses, so no wave can be watched there"),
        (lambda world: {"pause_us": 10**6 - round(world.now)}, "the counters of nic-2 began anew"),
        (lambda _: gone(), "a device does not report, so a wave cannot be watched: nic-2"),
    ],
)
def test_a_device_that_does_not_tell_is_not_well(
    counters: Any, words: str, world: World, tmp_path: Path
) -> None:
    driver = world.agents["nic-2"].guard._driver
    read = driver.counters
    driver.counters = lambda: counters(world) if rates(tmp_path)[0] == 50 else read()  # type: ignore[method-assign]
    controller = world.controller()
    with pytest.raises(DeviceError, match=words):
        controller.carry_out(wanted(world.agents), "in waves", waves=2)
    controller.close()
    assert rates(tmp_path) == [5] * 4


def test_waves_that_outlast_their_trial_are_refused(world: World, tmp_path: Path) -> None:
    controller = world.controller()
    with pytest.raises(ConfigError, match=r"1000 waves are watched for .* expected at most 1800 s"):
        controller.carry_out(wanted(world.agents), "in waves", waves=1000)
    world.grow = lambda index: setattr(world, "now", world.now + 20.0) or {}  # type: ignore[func-returns-value]
    with pytest.raises(StateError, match=r"s of the trial of .* are left"):
        controller.carry_out(wanted(world.agents), "slowly", waves=2)
    controller.close()
    assert rates(tmp_path) == [5] * 4


def test_the_command_takes_groups_percents_and_waves(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents, gate={"seconds": 0.01})
    setting = ["--fleet", fleet, "--set", "rp_ai_rate=50"]
    few = [*setting, "--group", "hosts", "--percent", "40"]
    assert "2 devices changed" in typed("apply", *few, "--waves", "2")[1]
    assert rates(tmp_path) == [50, 50, 5, 5]
    code, said = typed("apply", *setting, "--group", "tor")
    assert code != 0
    assert "no device that has these knobs is among those that were chosen" in said
    code, said = typed("apply", *setting, "--waves", "4", "--hold", "60")
    assert (code, rates(tmp_path)) == (0, [50] * 4)
    assert typed("confirm", "--fleet", fleet)[0] == 0
    assert typed("rollback", "--fleet", fleet)[0] == 0
    assert rates(tmp_path) == [50, 50, 5, 5]


def test_a_wave_that_dies_with_its_controller_goes_back_at_its_timer(tmp_path: Path) -> None:
    now = [100.0]
    with nic_fleet(tmp_path, 2, lambda: now[0]) as agents:
        fleet = fleet_of(agents, gate={"seconds": 0.01})
        with controller_of(tmp_path, fleet) as controller:
            controller.rollback.take_back = lambda *_, **__: None  # type: ignore[method-assign]
            slept: list[float] = []

            def die(seconds: float) -> None:
                slept.append(seconds)
                if len(slept) == 2:
                    raise SystemExit(137)

            controller._sleep = die
            with pytest.raises(SystemExit):
                controller.carry_out(wanted(agents), "in waves", waves=2)
        assert rates(tmp_path) == [50, 5]
        now[0] += 5.0 + 3 * (0.01 + fleet.timeout_s)
        for agent in agents.values():
            agent.guard.tick()
        assert rates(tmp_path) == [5, 5]
