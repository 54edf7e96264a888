"""A device always returns to a confirmed setting: timers, crashes, half writes, full disks."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from guarded import OTHER, WANTED, WHO, Device, Failing, on_trial

from dcqcn_gym.core.errors import ConfigError, DeviceError, StateError
from dcqcn_gym.hw.device_state import Who
from dcqcn_gym.hw.journal import Journal
from dcqcn_gym.hw.transaction import STAGED_S


def test_a_confirmed_change_stays(device: Device) -> None:
    lines = device.guard.plan(WANTED)
    assert device.held() == device.factual
    on_trial(device.guard)
    assert device.guard.status.state == "applied"
    assert device.guard.status.left_s == 5.0
    device.guard.confirm("t1", WHO)
    device.clock.now += 100
    device.guard.tick()
    assert {line.place: line.after for line in lines}.items() <= device.held().items()
    assert device.guard.status.confirmed == "t1"
    assert device.restarted().status.confirmed == "t1"
    assert device.guard.plan(WANTED) == []


def test_without_a_word_it_goes_back(device: Device) -> None:
    on_trial(device.guard)
    device.clock.now += 4.9
    device.guard.tick()
    assert device.held() != device.factual
    device.clock.now += 0.1
    device.guard.tick()
    assert device.held() == device.factual
    with pytest.raises(StateError, match="t1 is not open"):
        device.guard.confirm("t1", WHO)
    assert device.guard.history[-1]["event"] == "reverted"


def test_what_was_staged_and_never_applied_is_forgotten(device: Device) -> None:
    device.guard.stage("t1", WANTED, WHO)
    device.clock.now += STAGED_S
    device.guard.tick()
    assert device.guard.status.state == "staged"
    device.clock.now += 0.1
    device.guard.tick()
    assert str(device.guard.status.state) == "idle"
    with pytest.raises(StateError, match="t1 is not open here; stage it first"):
        device.guard.apply("t1", 5.0)


def test_a_confirmation_after_the_time_is_no_confirmation(device: Device) -> None:
    on_trial(device.guard)
    device.clock.now += 5.0
    with pytest.raises(StateError, match="over"):
        device.guard.confirm("t1", WHO)
    assert device.held() == device.factual


def test_a_reboot_of_the_device_brings_the_confirmed_setting_back(device: Device) -> None:
    on_trial(device.guard)
    device.guard.confirm("t1", WHO)
    confirmed = device.held()
    for name, text in device.factual.items():
        device.file(name).write_text(text + "\n")
    device.restarted()
    assert device.held() == confirmed


@pytest.mark.parametrize("lies", [False, True])
@pytest.mark.parametrize("at", [1, 2, 5, 9])
def test_half_a_change_is_taken_back(device: Device, at: int, lies: bool) -> None:
    guard = device.restarted(Failing(device, at, lies))
    guard.stage("t1", WANTED, WHO)
    with pytest.raises(DeviceError, match=r"said no|does not hold"):
        guard.apply("t1", 5.0)
    assert device.held() == device.factual
    assert guard.status.state == "idle"
    with pytest.raises(StateError, match="not open"):
        guard.confirm("t1", WHO)


def test_what_cannot_be_put_back_is_tried_until_it_can(device: Device) -> None:
    on_trial(device.guard)
    file = device.file("rp_ai_rate")
    file.rename(file.with_name("away"))
    device.clock.now += 5.0
    device.guard.tick()
    assert device.guard.status.state == "broken"
    assert "rp_ai_rate" in device.guard.status.problem
    with pytest.raises(DeviceError, match="not at its confirmed setting"):
        device.guard.stage("t2", OTHER, WHO)
    file.with_name("away").rename(file)
    device.guard.tick()
    assert device.held() == device.factual
    device.guard.stage("t2", OTHER, WHO)


def test_nothing_is_applied_that_cannot_be_remembered(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = DeviceError("the journal cannot be written (No space left on device)")

    def no_space(self: Journal, record: object) -> None:
        raise full

    device.guard.stage("t1", WANTED, WHO)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", no_space)
        with pytest.raises(DeviceError, match="No space"):
            device.guard.apply("t1", 5.0)
        assert device.held() == device.factual
    device.guard.stage("t2", WANTED, WHO)
    device.guard.apply("t2", 5.0)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", no_space)
        with pytest.raises(DeviceError, match="No space"):
            device.guard.confirm("t2", WHO)
        assert device.held() == device.factual
    assert device.restarted().status.confirmed == "start"


def test_repeated_calls_say_the_same(device: Device) -> None:
    first = device.guard.stage("t1", WANTED, WHO)
    assert device.guard.stage("t1", WANTED, WHO) == first
    device.guard.apply("t1", 5.0)
    device.clock.now += 1.0
    device.guard.apply("t1", 5.0)
    assert device.guard.status.left_s == 4.0  # a repetition gives no more time
    assert device.guard.stage("t1", WANTED, WHO) == first
    device.guard.confirm("t1", WHO)
    device.guard.confirm("t1", WHO)
    device.guard.rollback(WHO, "t1")  # late: it is over
    assert device.guard.status.confirmed == "t1"
    with pytest.raises(StateError, match="t1 is not open"):
        device.guard.apply("t1", 5.0)


def test_two_controllers_do_not_mix(device: Device) -> None:
    on_trial(device.guard)
    with pytest.raises(StateError, match="t1 of test is on trial"):
        device.guard.stage("t2", OTHER, Who("other"))
    device.guard.rollback(WHO, "t1")
    device.guard.stage("t2", OTHER, Who("other"))
    with pytest.raises(StateError, match="t1 is not open"):
        device.guard.apply("t1", 5.0)


def test_a_change_by_hand_is_not_overwritten(device: Device) -> None:
    device.guard.stage("t1", OTHER, WHO)
    device.file("rp_hai_rate").write_text("77\n")
    with pytest.raises(StateError, match=r"beside the agent \(rp_hai_rate = '77'\)"):
        device.guard.apply("t1", 5.0)
    device.guard.rollback(WHO)
    assert device.held() == device.factual


def test_confirmed_changes_can_be_undone_one_by_one(device: Device) -> None:
    held = [device.held()]
    for name, wanted in (("t1", WANTED), ("t2", OTHER)):
        device.guard.stage(name, wanted, WHO)
        device.guard.apply(name, 5.0)
        device.guard.confirm(name, WHO)
        held.append(device.held())
    device.guard.undo("t1", WHO)  # not the newest: nothing happens
    assert device.held() == held[2]
    device.guard.undo("t2", WHO)
    device.guard.undo("t2", WHO)  # repeated
    assert device.held() == held[1]
    assert device.restarted().status.confirmed == "t1"
    device.guard.undo("t1", WHO)
    assert device.held() == held[0] == device.factual
    with pytest.raises(ConfigError, match="what was before transaction start"):
        device.guard.undo("start", WHO)


def test_a_stop_by_hand_outlives_the_agent(device: Device) -> None:
    on_trial(device.guard)
    device.guard.stop(True, WHO)
    assert device.held() == device.factual
    for guard in (device.guard, device.restarted()):
        assert guard.status.state == "stopped"
        with pytest.raises(StateError, match="stopped by hand"):
            guard.stage("t2", OTHER, WHO)
    device.guard.stop(False, WHO)
    device.guard.stage("t2", OTHER, WHO)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e9, float("nan")])
def test_a_trial_has_an_end(device: Device, seconds: float) -> None:
    device.guard.stage("t1", WANTED, WHO)
    with pytest.raises(ConfigError, match="revert_after_s"):
        device.guard.apply("t1", seconds)


def test_a_journal_survives_every_cut(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    for i in range(3):
        journal.append({"event": "confirmed", "name": f"t{i}", "values": {"a": str(i)}})
    whole = path.read_bytes()
    for cut in (*range(0, len(whole), 11), len(whole) - 1, len(whole)):
        path.write_bytes(whole[:cut])
        found = Journal(path)
        lines = whole[:cut].count(b"\n")
        assert [r["name"] for r in found.records][:lines] == [f"t{i}" for i in range(lines)]
        found.append({"event": "reverted"})
        again = Journal(path)
        assert (again.records, again.bad_lines) == (found.records, 0)


def test_a_journal_notices_wrong_bytes_and_stays_bounded(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, 2048)
    journal.append({"event": "confirmed", "name": "first", "values": {}})
    for i in range(60):
        journal.append({"event": "reverted", "name": f"r{i}"})
        assert path.stat().st_size <= 2048
    last = Journal(path, 2048).last("confirmed")
    assert last is not None
    assert last["name"] == "first"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x20
    path.write_bytes(bytes(data))
    assert Journal(path, 2048).bad_lines == 1


def test_a_journal_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeviceError, match="changes nothing that it cannot remember"):
        Journal(tmp_path / "file" / "journal")


def _random_steps(device: Device, rng: random.Random) -> None:
    """Do what controllers, crashes and devices do, in any order."""
    n = [0]
    steps: list[Callable[[], object]] = [
        lambda: device.guard.stage(f"{rng.choice('ab')}{n[0]}", rng.choice((WANTED, OTHER)), WHO),
        lambda: device.guard.apply(f"{rng.choice('ab')}{n[0]}", rng.choice((1.0, 3.0))),
        lambda: device.guard.confirm(f"{rng.choice('ab')}{n[0]}", WHO),
        lambda: device.guard.rollback(WHO, rng.choice((f"a{n[0]}", f"b{n[0]}", ""))),
        lambda: n.append(n.pop() + 1),  # names that are over are refused
        lambda: setattr(device.clock, "now", device.clock.now + rng.choice((0.1, 1.0, 4.0))),
        lambda: device.restarted(Failing(device, rng.randrange(1, 40), rng.random() < 0.5)),
        lambda: device.restarted(),
        lambda: device.guard.tick(),
    ]
    for _ in range(25):
        try:
            rng.choice(steps)()
        except (DeviceError, StateError):
            continue


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_it_ends_at_a_confirmed_setting(tmp_path: Path, seed: int) -> None:
    device = Device(tmp_path)
    _random_steps(device, random.Random(seed))
    device.clock.now += 10.0
    for _ in range(3):
        device.guard.tick()
    confirmed = [r["values"] for r in device.guard.history if r["event"] == "confirmed"]
    assert device.guard.status.state in ("idle", "staged")
    assert device.held() == confirmed[-1]
    assert device.restarted().status.state == "idle"
    assert device.held() == confirmed[-1]
