"""Rules that keep a fleet safe, each at its limit: trials, stops, steps, probes, goodput."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from guarded import OTHER, WANTED, WHO, Device
from test_load import LATENCY

from dcqcn_gym.core.abort_rules import Seen
from dcqcn_gym.core.errors import ConfigError, DeviceError, StateError
from dcqcn_gym.hw.device_state import follows
from dcqcn_gym.hw.fleet import Probe
from dcqcn_gym.hw.waves import Completion


def test_a_trial_lasts_an_hour_at_most(device: Device) -> None:
    device.guard.stage("t1", WANTED, WHO)
    with pytest.raises(ConfigError, match="3601"):
        device.guard.apply("t1", 3601.0)
    device.guard.apply("t1", 3600.0)
    assert device.guard.status.left_s == pytest.approx(3600.0, abs=5.0)


def test_each_stopper_takes_back_its_own_stop_alone(device: Device) -> None:
    device.guard.stop(True, WHO)
    device.guard.stop(True, WHO, by="file")
    device.guard.stop(False, WHO)
    with pytest.raises(StateError, match="stop file"):
        device.guard.stage("t1", OTHER, WHO)
    device.guard.stop(True, WHO)
    device.guard.stop(False, WHO, by="file")
    with pytest.raises(StateError, match="stopped by hand"):
        device.guard.stage("t1", OTHER, WHO)
    device.guard.stop(False, WHO)
    device.guard.stage("t1", OTHER, WHO)


@pytest.mark.parametrize(
    ("name", "before", "expected"),
    [("r:4", "r:3", True), ("r:3", "r:3", False), ("r:2", "r:3", False), ("r:10", "r:9", True),
     ("s:4", "r:3", False), ("r:1", "", True), ("r", "", False)],
)  # fmt: skip
def test_a_step_of_a_run_has_a_larger_number(name: str, before: str, expected: bool) -> None:
    assert follows(name, before) is expected


@pytest.mark.parametrize(("now_us", "well"), [("2.13", True), ("2.15", False)])
def test_a_probe_may_take_so_many_times_as_long(now_us: str, well: bool) -> None:
    said = [LATENCY, LATENCY.replace("1.07", now_us)]

    def ask(device: str, method: str, request: Any) -> Any:
        if method == "Load":
            return SimpleNamespace(running=False, code=0, output=said.pop(0))
        return None

    probe = Probe(client="nic-0", server="nic-2", slower=2.0)
    gate = Completion(probe, "127.0.0.1", 5.0, ask, lambda seconds: None)
    if well:
        gate.judge("1 of 2")
    else:
        with pytest.raises(DeviceError, match=r"2\.01 times as long"):
            gate.judge("1 of 2")


def test_packets_sent_again_are_no_goodput_and_errors() -> None:
    report: Any = SimpleNamespace(
        retransmitted_packets=40, scheme_counters={}, data_packets=100, duration_s=0.5, drops=3
    )
    seen = Seen.of_report(report, 0.75, 0.5)
    assert (seen.packets_per_s, seen.errors, seen.drops, seen.paused) == (120.0, 40, 3, 0.25)
