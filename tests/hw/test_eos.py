"""NAPALM's own driver against a stand-in of an EOS switch: trials end in the switch."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.knobs import ECN_KNOBS, expert_setting
from dcqcn_gym.hw.device_state import Who
from dcqcn_gym.hw.driver_case import DriverCase
from dcqcn_gym.hw.drivers import Driver, Surroundings, Targets, make_driver
from dcqcn_gym.hw.journal import Journal
from dcqcn_gym.hw.transaction import Guard

pytest.importorskip("napalm", reason="the extra napalm is not installed")
from eos_stand_in import LINE, EosStandIn, eos_stand_in
from killed_guard import TRIAL_S, killed_in_a_trial

Running = tuple[EosStandIn, dict[str, Any]]
OPERATOR = Who("controller", "test")
USUAL, TRIED = LINE.format(150_000, 1_500_000, 10), LINE.format(200_000, 1_500_000, 10)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with eos_stand_in(tmp_path) as running:
        yield running
        gc.collect()  # NAPALM's destructor talks to the switch, which is still there now


def driver_of(running: Running, **more: object) -> Driver:
    return make_driver("eos", {**running[1], **more}, Surroundings(), "test")


class TestEos(DriverCase):
    counts = False

    @pytest.fixture(autouse=True)
    def _switch(self, running: Running) -> None:
        self.running = running

    def new_driver(self) -> Driver:
        return driver_of(self.running)

    def targets(self) -> Targets:
        return {"": {name: expert_setting()[name] for name in ECN_KNOBS}}


def guard_of(running: Running, folder: Path) -> Guard:
    guard = Guard(driver_of(running), Journal(folder / "journal"))
    guard.start()
    return guard


def tried(guard: Guard, name: str, seconds: float, kmin: float = 200.0) -> None:
    guard.stage(name, {"": {"kmin": kmin}}, OPERATOR)
    guard.apply(name, seconds)


def held(running: Running) -> set[str]:
    return set(running[0].lines.values())


def test_a_confirmed_trial_stays(running: Running, tmp_path: Path) -> None:
    guard = guard_of(running, tmp_path)
    tried(guard, "c1", 60.0)
    assert held(running) == {TRIED}
    assert running[0].pending is not None
    guard.confirm("c1", OPERATOR)
    assert running[0].ended == ["confirmed"]  # and nothing waits: a second one ends as well
    tried(guard, "c2", 60.0, 250.0)
    guard.rollback(OPERATOR, "c2")
    assert running[0].ended == ["confirmed", "aborted"]
    assert held(running) == {TRIED}


def test_the_switch_goes_back_by_itself_when_the_agent_was_killed(
    running: Running, tmp_path: Path
) -> None:
    begun = killed_in_a_trial("eos", running[1], tmp_path)
    assert held(running) == {TRIED}
    while running[0].pending is not None and time.monotonic() < begun + 10 * TRIAL_S:
        time.sleep(0.05)
    assert running[0].ended == ["timed out"]
    assert held(running) == {USUAL}
    assert guard_of(running, tmp_path).status.state == "idle"


def test_a_rollback_aborts_the_commit(running: Running, tmp_path: Path) -> None:
    guard = guard_of(running, tmp_path)
    tried(guard, "c1", 60.0)
    guard.rollback(OPERATOR, "c1")
    assert running[0].ended == ["aborted"]
    assert held(running) == {USUAL}


def test_steps_of_a_run_add_up_and_never_reach_the_startup_configuration(
    running: Running, tmp_path: Path
) -> None:
    guard = guard_of(running, tmp_path)
    for step, knob in enumerate(({"kmin": 200.0}, {"kmax": 900.0}, {"pmax": 0.5})):
        guard.stage(f"run:{step}", {"": knob}, OPERATOR)
        guard.apply(f"run:{step}", 60.0)
    guard.apply("run:2", 60.0)  # its heartbeat
    assert held(running) == {LINE.format(200_000, 900_000, 50)}
    assert running[0].pending is not None  # an hour at most, whatever becomes of the agent
    assert running[0].ended == ["aborted"] * 2
    guard.rollback(OPERATOR, "run")
    assert held(running) == {USUAL}
    assert running[0].startup == 3  # each abort writes what was before, and nothing else does


def test_a_run_that_holds_a_setting_begins_its_timer_anew(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "dcqcn_gym.hw.drivers.eos.EosDriver.run_s", 4
    )  # NAPALM counts whole seconds
    guard = guard_of(running, tmp_path)
    tried(guard, "run:0", 60.0)
    for _ in range(3):
        time.sleep(2.1)
        guard.apply("run:0", 60.0)
        assert held(running) == {TRIED}
    assert "timed out" not in running[0].ended


def test_a_switch_that_refuses_keeps_nothing(running: Running, tmp_path: Path) -> None:
    guard = guard_of(running, tmp_path)
    running[0].refuse = "session is locked"
    with pytest.raises(DeviceError, match="eos at localhost"):
        tried(guard, "c1", 60.0)
    running[0].refuse = ""
    guard.tick()
    assert guard.status.state == "idle"
    assert held(running) == {USUAL}


def test_what_does_not_mark_and_what_others_read_is_refused(running: Running) -> None:
    running[0].lines["Ethernet2"] = "bandwidth percent 10"
    with pytest.raises(DeviceError, match="queue 3 of 'Ethernet2' does not mark"):
        driver_of(running).knobs()
    Path(str(running[1]["password_file"])).chmod(0o644)
    with pytest.raises(DeviceError, match="expected mode 0600"):
        driver_of(running).read()


def test_another_authority_is_not_talked_to(running: Running, tmp_path: Path) -> None:
    from dcqcn_gym.hw.certs import write_all

    write_all(tmp_path / "other", ["localhost"], ["controller"])
    with pytest.raises(DeviceError, match="eos at localhost"):
        driver_of(running, ca=str(tmp_path / "other" / "ca.pem")).read()


def test_ports_may_differ(running: Running) -> None:
    driver = driver_of(running)
    driver.apply(driver.stage({"Ethernet2": {"kmin": 300.0, "pmax": 0.5}}))
    assert running[0].lines["Ethernet1"] == USUAL
    assert running[0].lines["Ethernet2"] == LINE.format(300_000, 1_500_000, 50)


def test_a_switch_that_is_gone_leaves_no_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with eos_stand_in(tmp_path) as running:
        lost, waits = driver_of(running), driver_of(running)
        lost.read()
        waits.begin_trial("c1", 60.0)
        waits.apply(waits.stage({"": {"kmin": 200.0}}))
    for driver in (lost, waits):
        with pytest.raises(DeviceError, match="eos at localhost"):
            driver.read()
    del driver, lost, waits
    gc.collect()  # NAPALM's destructors
    assert caplog.text == ""
