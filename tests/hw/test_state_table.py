"""Every state of a device against every event, by the one table; each arrow is walked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest
from guarded import OTHER, WANTED, WHO, Device

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError
from dcqcn_gym.hw.agent.units import unit_text
from dcqcn_gym.hw.audit import AuditLog
from dcqcn_gym.hw.device_state import DRIFT_S, STATES
from dcqcn_gym.hw.maintenance_windows import open_for_s
from dcqcn_gym.hw.runner import RecordedRunner, SystemRunner
from dcqcn_gym.hw.state_table import EVENTS, REFUSED, TABLE
from dcqcn_gym.hw.transaction import MOST_TRIAL_S

BEFORE = {"": {"rp_ai_rate": 20.0}}


def sicken(device: Device) -> None:
    """Have one file fail at reads and writes."""
    place = device.file("rp_gd")
    if place.is_file():
        place.rename(device.folder / "away")
        place.mkdir()


def heal(device: Device) -> None:
    place = device.file("rp_gd")
    if place.is_dir():
        place.rmdir()
        (device.folder / "away").rename(place)


def confirm_one(device: Device) -> None:
    device.guard.stage("first", BEFORE, WHO)
    device.guard.apply("first", 5.0)
    device.guard.confirm("first", WHO)


def put(device: Device, state: str) -> None:
    """Bring a device that confirmed one change into a state."""
    confirm_one(device)
    guard = device.guard
    if state in ("staged", "applied"):
        guard.stage("t1", WANTED, WHO)
    if state == "applied":
        guard.apply("t1", 5.0)
    if state == "broken":
        sicken(device)
        with pytest.raises(DcqcnGymError):
            guard.rollback(WHO)
    if state == "stopped":
        guard.stop(True, WHO)
    if state == "drifted":
        device.file("rp_ai_rate").write_text("77\n")
        device.clock.now += DRIFT_S
        guard.tick()
    assert guard.status.state == state


def later(device: Device) -> None:
    device.clock.now += MOST_TRIAL_S + DRIFT_S + 1.0
    device.guard.tick()


def meddle(device: Device) -> None:
    """Have somebody else change the device; the guard looks when it is time to."""
    device.file("rp_ai_rate").write_text("78\n")
    device.clock.now += DRIFT_S
    device.guard.tick()


def mended(device: Device) -> None:
    heal(device)
    device.guard.tick()


def restart(device: Device) -> None:
    device.restarted()


DO: dict[str, Callable[[Device], object]] = {
    "stage": lambda d: d.guard.stage("t2", OTHER, WHO),
    "apply": lambda d: d.guard.apply("t1", 5.0),
    "confirm": lambda d: d.guard.confirm("t1", WHO),
    "rollback": lambda d: d.guard.rollback(WHO),
    "undo": lambda d: d.guard.undo("first", WHO),
    "stop": lambda d: d.guard.stop(True, WHO),
    "release": lambda d: d.guard.stop(False, WHO),
    "time": later,
    "meddled": meddle,
    "mended": mended,
    "restart": restart,
}


def test_the_table_has_every_cell() -> None:
    assert set(TABLE) == set(STATES)
    assert set(DO) == set(EVENTS)
    assert all(set(row) == set(EVENTS) for row in TABLE.values())


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", STATES)
def test_an_arrow(state: str, event: str, tmp_path: Path) -> None:
    device = Device(tmp_path)
    put(device, state)
    confirmed = device.guard.status.confirmed
    wanted = TABLE[state][event]  # type: ignore[index]
    if wanted == REFUSED:
        with pytest.raises(DcqcnGymError):
            DO[event](device)
        assert device.guard.status.state == state
        assert device.guard.status.confirmed == confirmed
        return
    try:
        DO[event](device)
    except DcqcnGymError:
        assert wanted == "broken"  # it went as far as it can, and says so
    assert device.guard.status.state == wanted
    if wanted == "idle":  # what is called idle holds its confirmed setting, place by place
        assert device.held() == device.guard._confirmed["values"]


def test_a_driver_of_ones_own_runs_what_its_agents_file_allows(tmp_path: Path) -> None:
    (tmp_path / "swctl_show.txt").write_text("said")
    assert RecordedRunner(tmp_path, ("swctl",)).run("swctl", "show") == "said"
    with pytest.raises(ConfigError, match="'swctl' may not be run here"):
        RecordedRunner(tmp_path).run("swctl", "show")
    with pytest.raises(ConfigError, match="'swctl' may not be run here"):
        SystemRunner(programs=("niccli",)).run("swctl", "show")


def test_journals_and_logs_are_their_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        device = Device(tmp_path)
        confirm_one(device)
        AuditLog(tmp_path / "audit.jsonl", "x").write({"event": "stop"})
    finally:
        os.umask(before)
    for name in ("journal", "journal.confirmed", "audit.jsonl"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600, name


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
@pytest.mark.parametrize("kind", ["nic", "switch"])
def test_units_are_exposed_at_most_3(kind: str, tmp_path: Path) -> None:
    unit = tmp_path / "agent.service"
    unit.write_text(unit_text("/usr/bin/true", kind, "/etc/agent.toml"))
    words = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(r"exposure level.*?: (\d+\.\d+)", done.stdout)
    assert found is not None, done.stderr
    assert float(found[1]) <= 3.0, done.stdout[-3000:]
    assert "/sys/devices" not in unit.read_text()


def test_a_run_that_cannot_end_in_its_window_is_known_before() -> None:
    now = datetime(2026, 11, 27, 8, 0, tzinfo=timezone.utc)
    assert open_for_s([], [], now, 7200.0) == 7200.0
    assert open_for_s(["08:30-09:00"], [], now, 7200.0) == 1800.0
    assert open_for_s([], ["07:00-08:10"], now, 7200.0) == 600.0
    assert open_for_s([], ["09:00-10:00"], now, 7200.0) == 0.0
