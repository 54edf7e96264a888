"""The driver over gNMI against the kit and a fake server: sharing, refusals, rounding."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.errors import ConfigError, DeviceError
from dcqcn_gym.core.knobs import ECN_KNOBS, expert_setting
from dcqcn_gym.hw.certs import write_all
from dcqcn_gym.hw.device_state import Who
from dcqcn_gym.hw.driver_case import DriverCase
from dcqcn_gym.hw.drivers import Driver, Surroundings, Targets, make_driver
from dcqcn_gym.hw.journal import Journal
from dcqcn_gym.hw.transaction import Guard

pytest.importorskip("pygnmi", reason="the extra gnmi is not installed")
from fake_gnmi import BOUND, PROFILES, FakeGnmi, fake_gnmi
from killed_guard import TRIAL_S, killed_in_a_trial

Running = tuple[FakeGnmi, dict[str, Any]]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with fake_gnmi(tmp_path) as running:
        yield running


def driver_of(running: Running, **more: object) -> Driver:
    return make_driver("gnmi", {**running[1], **more}, Surroundings(), "test")


class TestGnmi(DriverCase):
    counts = False

    @pytest.fixture(autouse=True)
    def _fake(self, running: Running) -> None:
        self.running = running

    def new_driver(self) -> Driver:
        return driver_of(self.running)

    def targets(self) -> Targets:
        return {"": {name: expert_setting()[name] for name in ECN_KNOBS}}


def test_bytes_and_percents_go_out_in_one_set(running: Running) -> None:
    fake, _ = running
    driver = driver_of(running)
    driver.apply(driver.stage({"": {"kmin": 200.0, "kmax": 800.0, "pmax": 0.25}}))
    assert fake.sets == 1
    for name in ("LOSSLESS", "UPLINK"):
        held = fake.tree[PROFILES.format(name)]
        assert held["openconfig-qos:min-threshold"] == "200000"
        assert (held["max-threshold"], held["max-drop-probability-percent"]) == ("800000", 25)
        assert (held["enable-ecn"], held["drop"]) == (True, False)  # nothing else is touched


def test_ports_that_share_a_profile_are_shown_and_cannot_differ(running: Running) -> None:
    driver = driver_of(running)
    lines = driver.diff(driver.read(), driver.stage({"": {"kmin": 100.0}}))
    assert {line.place: line.shared_by for line in lines} == {
        "LOSSLESS/min-threshold": ("eth1", "eth2"), "UPLINK/min-threshold": (),
    }  # fmt: skip
    with pytest.raises(DeviceError, match="eth1 and eth2 share the profile LOSSLESS"):
        driver.stage({"eth1": {"kmin": 100.0}, "eth2": {"kmin": 200.0}})
    with pytest.raises(DeviceError, match="port 'eth7' is not one of eth1"):
        driver.stage({"eth7": {"kmin": 100.0}})
    with pytest.raises(
        DeviceError, match="min-threshold 2000000 would be above max-threshold 1536000"
    ):
        driver.stage({"": {"kmin": 2000.0}})


def test_a_switch_that_rounds_or_refuses_keeps_nothing(running: Running) -> None:
    fake, _ = running
    driver = driver_of(running)
    before = driver.read()
    fake.step = 6144
    with pytest.raises(DeviceError, match="holds 196608 after 200000 was set; the switch rounds"):
        driver.apply(driver.stage({"": {"kmin": 200.0}}))
    fake.step = 1
    driver.revert(before)
    fake.refuse = "min and max must differ"
    with pytest.raises(DeviceError, match=r"gNMI at 127.0.0.1:\d+: .*min and max must differ"):
        driver.apply(driver.stage({"": {"kmin": 100.0}}))
    fake.refuse = ""
    assert driver.read() == before  # connected again


def test_what_is_not_there_or_does_not_mark_is_refused(running: Running) -> None:
    fake, _ = running
    fake.tree[PROFILES.format("UPLINK")]["enable-ecn"] = False
    with pytest.raises(DeviceError, match="profile UPLINK does not mark"):
        driver_of(running).knobs()
    fake.tree[BOUND.format("eth3", "RDMA")] = {"queue-management-profile": "a]/b"}
    with pytest.raises(DeviceError, match=r"profile 'a\]/b'; bind one with a plain name"):
        driver_of(running).read()
    del fake.tree[BOUND.format("eth3", "RDMA")]
    with pytest.raises(DeviceError, match=r"gNMI at .*no /qos/interfaces"):
        driver_of(running).read()
    fake.tree[BOUND.format("eth3", "RDMA")] = {"queue-management-profile": "LOSSLESS"}
    fake.tree[PROFILES.format("LOSSLESS")]["max-threshold"] = "many"
    with pytest.raises(DeviceError, match="holds 'many'; expected a whole number"):
        driver_of(running).setting()


def test_only_a_switch_of_this_authority_is_talked_to(running: Running, tmp_path: Path) -> None:
    write_all(tmp_path / "other", ["leaf-9"], ["controller"])
    with pytest.raises(DeviceError, match=r"gNMI at 127\.0\.0\.1"):
        driver_of(running, ca=str(tmp_path / "other" / "ca.pem")).read()
    with pytest.raises(ConfigError, match="queue"):
        driver_of(running, queue="x]/y[")


def test_a_largest_threshold_as_openconfigs_tests_set_it_is_read_and_put_back(
    running: Running,
) -> None:
    fake, driver = running[0], driver_of(running)
    held = fake.tree[PROFILES.format("LOSSLESS")]
    held["max-threshold"] = str(2**64 - 1)
    before = driver.read()
    assert before["LOSSLESS/max-threshold"] == "18446744073709551615"
    driver.apply(driver.stage({"": {"kmin": 200.0, "kmax": 800.0}}))
    driver.revert(before)
    assert int(held["max-threshold"]) == 2**64 - 1
    held["max-threshold"] = str(2**64)
    with pytest.raises(DeviceError, match="expected a whole number"):
        driver.setting()


KMIN = {"": {"kmin": 200.0}}
OPERATOR = Who("controller", "test")


def guard_of(running: Running, folder: Path, **more: object) -> Guard:
    driver = driver_of(running, commit_confirmed=True, **more)
    guard = Guard(driver, Journal(folder / "journal"))
    guard.start()
    return guard


def kmin(running: Running) -> str:
    return str(running[0].tree[PROFILES.format("LOSSLESS")]["openconfig-qos:min-threshold"])


def tried(guard: Guard, name: str, seconds: float, targets: Targets = KMIN) -> None:
    guard.stage(name, targets, OPERATOR)
    guard.apply(name, seconds)


def test_a_confirmed_trial_is_a_confirmed_commit(running: Running, tmp_path: Path) -> None:
    guard = guard_of(running, tmp_path)
    tried(guard, "c1", 60.0)
    assert kmin(running) == "200000"
    assert running[0].waiting is not None
    guard.confirm("c1", OPERATOR)
    assert running[0].ended == [("c1", "confirmed")]
    tried(guard, "c2", 60.0, {"": {"kmin": 300.0}})  # nothing waits any more
    assert kmin(running) == "300000"


def test_the_switch_goes_back_by_itself_when_agent_and_controller_are_gone(
    running: Running, tmp_path: Path
) -> None:
    begun = killed_in_a_trial("gnmi", {**running[1], "commit_confirmed": True}, tmp_path)
    assert kmin(running) == "200000"
    while running[0].waiting is not None and time.monotonic() < begun + 10 * TRIAL_S:
        time.sleep(0.05)
    assert running[0].ended == [("c1", "timed out")]
    assert kmin(running) == "153600"
    again = guard_of(running, tmp_path)  # the agent is started anew: nothing to take back
    assert again.status.state == "idle"


def test_a_rollback_cancels_the_commit(running: Running, tmp_path: Path) -> None:
    guard = guard_of(running, tmp_path)
    tried(guard, "c1", 60.0)
    guard.rollback(OPERATOR, "c1")
    assert running[0].ended == [("c1", "cancelled")]
    assert kmin(running) == "153600"
    assert guard.status.state == "idle"


def test_an_agent_that_starts_anew_waits_for_the_switchs_timer(
    running: Running, tmp_path: Path
) -> None:
    tried(guard_of(running, tmp_path), "c1", 2.0)
    again = guard_of(running, tmp_path)  # it does not know the commit, and may not write over it
    states = [again.status.state]
    until = time.monotonic() + 10
    while states[-1] == "broken" and time.monotonic() < until:
        time.sleep(0.05)
        again.tick()
        states.append(again.status.state)
    assert (states[0], states[-1]) == ("broken", "idle")
    assert kmin(running) == "153600"


def test_steps_of_a_run_go_on_in_commits_of_their_own(running: Running, tmp_path: Path) -> None:
    guard = guard_of(running, tmp_path)
    for step, value in enumerate((200.0, 250.0, 300.0)):
        guard.stage(f"run:{step}", {"": {"kmin": value}}, OPERATOR)
        guard.apply(f"run:{step}", 60.0)
        assert kmin(running) == f"{value:.0f}000"
    guard.apply("run:2", 60.0)  # its heartbeat: the commit waits anew
    assert running[0].waiting is not None
    guard.rollback(OPERATOR, "run")
    assert kmin(running) == "153600"
    assert [how for _, how in running[0].ended] == ["cancelled"] * 3


def test_a_confirmation_that_does_not_arrive_keeps_nothing(
    running: Running, tmp_path: Path
) -> None:
    guard = guard_of(running, tmp_path)
    tried(guard, "c1", 60.0)
    running[0].refuse = "not now"
    with pytest.raises(DeviceError, match="confirm of a confirmed commit"):
        guard.confirm("c1", OPERATOR)
    running[0].refuse = ""
    guard.tick()
    assert guard.status.confirmed != "c1"
    running[0]._go_back("c1")
    guard.tick()
    assert kmin(running) == "153600"
    assert guard.status.state == "idle"


def test_a_switch_without_the_extension_is_told_so(running: Running, tmp_path: Path) -> None:
    running[0].commits = False
    guard = guard_of(running, tmp_path)
    with pytest.raises(DeviceError, match="commit_confirmed = false"):
        tried(guard, "c1", 60.0)
    assert kmin(running) == "153600"
    assert guard.status.state == "idle"


def test_a_switch_that_ignores_the_extension_is_found_out(running: Running, tmp_path: Path) -> None:
    running[0].ignores = True
    guard = guard_of(running, tmp_path)
    with pytest.raises(DeviceError, match="ignores gNMI's extension Commit"):
        tried(guard, "c1", 60.0)
    assert kmin(running) == "153600"
    assert guard.status.state == "idle"


def test_a_later_step_keeps_what_earlier_ones_set(running: Running, tmp_path: Path) -> None:
    guard = guard_of(running, tmp_path)
    for step, knob in enumerate(({"kmin": 200.0}, {"kmax": 900.0}, {"pmax": 0.5})):
        guard.stage(f"run:{step}", {"": knob}, OPERATOR)
        guard.apply(f"run:{step}", 60.0)
    held = running[0].tree[PROFILES.format("LOSSLESS")]
    assert (kmin(running), held["max-threshold"]) == ("200000", "900000")
    assert held["max-drop-probability-percent"] == 50
    guard.rollback(OPERATOR, "run")
    assert (kmin(running), held is not None) == ("153600", True)
