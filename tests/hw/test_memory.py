"""What an agent's memory and clock survive: damaged journals, defects of plug-ins, ill devices."""

from __future__ import annotations

import contextlib
import os
import resource
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from devices import NIC
from guarded import OTHER, WANTED, WHO, Device, Failing, on_trial

from dcqcn_gym.core.errors import ConfigError, DeviceError, StateError
from dcqcn_gym.hw.agent.ticker import Ticker
from dcqcn_gym.hw.device_state import begun_ms, new_name
from dcqcn_gym.hw.drivers import Surroundings, Values
from dcqcn_gym.hw.drivers.mlx5 import Mlx5Driver
from dcqcn_gym.hw.journal import Journal, confirmed_before
from dcqcn_gym.hw.runner import RecordedRunner


class Raising(Mlx5Driver):
    """A plug-in's driver: reverts raise what no driver should, so often."""

    def __init__(self, device: Device, times: int, error: type[BaseException]) -> None:
        around = Surroundings(device.root, RecordedRunner(device.root / "commands"))
        super().__init__(Mlx5Driver.Settings.model_validate(NIC), around)
        self.left, self.error = times, error

    def revert(self, values: Values) -> None:
        if self.left:
            self.left -= 1
            raise self.error("a defect")
        super().revert(values)


@pytest.mark.parametrize("error", [KeyError, OSError, SystemExit])
def test_a_trial_ends_whatever_a_plug_in_raises(device: Device, error: type[BaseException]) -> None:
    guard = device.restarted(Raising(device, 2, error))
    on_trial(guard)
    ticker = Ticker()
    ticker._calls.append(guard.tick)
    device.clock.now += 5.0
    ticker.call_all()
    assert str(guard.status.state) != "idle"
    with pytest.raises((DeviceError, StateError, SystemExit)):
        guard.confirm("t1", WHO)
    ticker.call_all()
    ticker.call_all()
    assert device.held() == device.factual
    assert guard.status.state == "idle"


def test_one_agents_defect_stops_no_others_clock() -> None:
    called: list[str] = []

    def defect() -> None:
        called.append("defect")
        raise RuntimeError("a defect")

    ticker = Ticker()
    ticker._calls += [defect, lambda: called.append("other")]
    ticker.call_all()
    ticker.call_all()
    assert called == ["defect", "other"] * 2


def test_a_change_is_taken_back_whatever_a_plug_in_raises(device: Device) -> None:
    class Defect(Failing):
        def apply(self, values: Values) -> None:
            super().apply(values)
            if self.writes == 2:
                raise KeyError("a defect")

    guard = device.restarted(Defect(device, 99, lies=False))
    guard.stage("t1", OTHER, WHO)
    with pytest.raises(KeyError):
        guard.apply("t1", 5.0)
    assert (device.held(), guard.status.state) == (device.factual, "idle")


def test_an_agent_starts_though_its_device_is_ill_and_tries_again(device: Device) -> None:
    on_trial(device.guard)
    file = device.file("rp_ai_rate")
    file.rename(file.with_name("away"))
    file.mkdir()  # what cannot be read
    assert device.restarted().status.state == "broken"
    file.rmdir()
    file.with_name("away").rename(file)
    device.guard.tick()
    assert (device.held(), device.guard.status.state) == (device.factual, "idle")


def two_changes(device: Device) -> list[Values]:
    held = [device.held()]
    for name, wanted in (("t1", WANTED), ("t2", OTHER)):
        device.guard.stage(name, wanted, WHO)
        device.guard.apply(name, 5.0)
        device.guard.confirm(name, WHO)
        held.append(device.held())
    return held


def flip(device: Device, text: bytes, at: int) -> None:
    """Flip a bit of the line of a journal that holds a text, the ``at``-th one."""
    path = device.folder / "journal"
    lines = path.read_bytes().split(b"\n")
    i = [i for i, line in enumerate(lines) if text in line][at]
    lines[i] = lines[i][:20] + bytes([lines[i][20] ^ 1]) + lines[i][21:]
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize("damage", ["flip", "delete", "garbage", "empty"])
def test_a_damaged_journal_makes_no_trial_the_confirmed_setting(
    device: Device, damage: str
) -> None:
    on_trial(device.guard)
    path = device.folder / "journal"
    if damage == "flip":
        flip(device, b'"confirmed"', 0)
    elif damage == "delete":
        path.unlink()
    else:
        path.write_bytes(b"" if damage == "empty" else bytes(range(256)))
    guard = device.restarted()
    assert device.held() == device.factual
    assert guard.status.confirmed == "start"
    assert guard.history[-1]["event"] == "reverted"
    told = [r["why"] for r in guard.history if r["event"] == "damaged"]
    assert told == ["1 lines of the journal are damaged or missing"]
    assert device.journal().last("confirmed") == guard.history[-3]


def test_a_damaged_line_moves_no_device_and_is_told(device: Device) -> None:
    held = two_changes(device)
    flip(device, b'"confirmed"', -1)
    guard = device.restarted()
    assert device.held() == held[2]
    assert guard.status.confirmed == "t2"
    assert [r["event"] for r in guard.history].count("damaged") == 1
    assert device.journal().bad_lines == 1  # the damaged line is still there to be seen
    guard.undo("t2", WHO)
    assert device.held() == held[1]


def test_without_the_copy_it_is_the_last_setting_known_to_be_good(device: Device) -> None:
    held = two_changes(device)
    flip(device, b'"confirmed"', -1)
    (device.folder / "journal.confirmed").unlink()
    guard = device.restarted()
    assert (device.held(), guard.status.confirmed) == (held[1], "t1")
    assert device.journal().bad_lines == 1


def test_a_journal_without_any_confirmed_setting_confirms_nothing(device: Device) -> None:
    on_trial(device.guard)
    trial = device.held()
    flip(device, b'"confirmed"', 0)
    (device.folder / "journal.confirmed").unlink()
    with pytest.raises(DeviceError, match=r"is damaged and holds no confirmed setting.*move"):
        device.restarted()
    assert device.held() == trial
    assert device.journal().last("confirmed") is None


def test_an_undo_does_not_step_over_a_damaged_line(device: Device) -> None:
    held = two_changes(device)
    flip(device, b'"confirmed"', 1)  # t1's
    guard = device.restarted()
    with pytest.raises(ConfigError, match="does not hold what was before transaction t2"):
        guard.undo("t2", WHO)
    assert device.held() == held[2]


def test_a_torn_line_on_a_disk_that_cannot_be_written_takes_back_all_the_same(
    device: Device,
) -> None:
    on_trial(device.guard)
    with (device.folder / "journal").open("ab") as file:
        file.write(b"deadbeef {")
    (device.folder / "journal.new").mkdir()  # no file can be written in its place
    device.restarted()
    assert device.held() == device.factual
    assert device.journal().bad_lines == 0


def test_a_trial_ends_though_every_file_is_taken(device: Device) -> None:
    on_trial(device.guard)
    device.clock.now += 5.0
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 5, before[1]))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        device.guard.tick()
        state = device.guard.status.state
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for number in taken:
            os.close(number)
    assert (device.held(), state) == (device.factual, "idle")
    assert device.guard.history[-1]["event"] == "reverted"


def test_a_flood_of_calls_that_change_nothing_shortens_no_journal(device: Device) -> None:
    held = two_changes(device)
    lines = len(device.guard.history)
    for _ in range(50):
        device.guard.rollback(WHO)
    assert len(device.guard.history) == lines
    device.guard.undo("t2", WHO)
    assert device.held() == held[1]


def test_a_shortened_journal_still_holds_the_settings_before(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", 20_000)
    for i in range(5):
        journal.append({"event": "confirmed", "name": f"t{i}", "values": {"a": str(i)}})
    for i in range(600):
        journal.append({"event": "reverted", "name": f"r{i}", "why": "x" * 50})
    assert (tmp_path / "journal").stat().st_size <= 20_000
    again = Journal(tmp_path / "journal", 20_000)
    names = [r["name"] for r in again.records if r["event"] == "confirmed"]
    assert names == [f"t{i}" for i in range(5)]
    assert confirmed_before(again.records, "t4")["name"] == "t3"


def test_late_messages_of_a_finished_transaction_are_refused_for_good(device: Device) -> None:
    held = two_changes(device)
    for guard in (device.guard, device.restarted()):
        for name in ("t1", "t2"):
            with pytest.raises(StateError, match=f"transaction {name} is over here"):
                guard.stage(name, WANTED, WHO)
        with pytest.raises(StateError, match="t1 is not open here"):
            guard.apply("t1", 5.0)
    device.guard.stage("run:1", OTHER, WHO)
    device.guard.apply("run:1", 5.0)
    device.guard.rollback(WHO, "run")
    with pytest.raises(StateError, match="run:7 is over here"):
        device.guard.stage("run:7", WANTED, WHO)
    assert device.held() == held[2]


def test_what_a_shortened_journal_forgot_is_refused_by_the_time_in_its_name(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path / "journal", 20_000)
    begun = [f"{1_700_000_000_000 + 1000 * i:011x}{i:05x}" for i in range(900)]
    for i, name in enumerate(begun):
        claimed = "fffffffffff00000" if i == 5 else name  # in the year 2527
        journal.append({"event": "applying", "name": claimed, "unix_s": begun_ms(name) / 1e3})
    late = "fffffffffff00000"
    for again in (journal, Journal(tmp_path / "journal", 20_000)):
        assert len(again.records) < 300
        assert all(again.over(name) for name in begun)
        assert again.over(f"{begun[0]}:7")  # a step of a run
        assert not again.over(new_name())
        assert not again.over(f"{new_name()}:1")
        assert not again.over(late)  # nobody's clock is believed against the agent's own
        assert [r["event"] for r in again.records].count("forgot") == 1


def test_a_change_that_changes_nothing_is_not_kept_in_mind(device: Device) -> None:
    assert device.guard.stage("t1", {"": {"rp_ai_rate": 5.0}}, WHO) == []
    assert device.guard.status.state == "idle"


def test_a_line_that_was_taken_out_or_moved_is_told(device: Device) -> None:
    held = two_changes(device)
    path = device.folder / "journal"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for spoilt in ([*lines[:2], *lines[3:]], lines[1:], [lines[1], lines[0], *lines[2:]]):
        path.write_bytes(b"".join(spoilt))
        assert device.journal().bad_lines >= 1
        assert device.restarted().status.confirmed == "t2"
        assert device.held() == held[2]
    path.write_bytes(whole)
    assert device.journal().bad_lines == 0


@pytest.mark.slow
def test_of_1000_flipped_bits_none_moves_a_device_and_all_of_a_journal_are_told(
    device: Device,
) -> None:
    held = two_changes(device)
    files = [device.folder / "journal", device.folder / "journal.confirmed"]
    texts = [file.read_bytes() for file in files]
    random, outcomes = Random(1), Counter[str]()
    for i in range(1000):
        which = i % 10 == 9  # every tenth in the copy
        at, bit = random.randrange(len(texts[which])), 1 << random.randrange(8)
        for file, text in zip(files, texts, strict=True):
            file.write_bytes(text)
        spoilt = bytearray(texts[which])
        spoilt[at] ^= bit
        files[which].write_bytes(bytes(spoilt))
        guard = device.restarted()
        assert (device.held(), guard.status.confirmed) == (held[2], "t2"), (at, bit)
        told = any(r["event"] == "damaged" for r in guard.history)
        torn = at == len(texts[0]) - 1  # the last line's end: as if a crash had cut it off
        assert told or which or torn
        outcomes["told" if told else "made good from the journal" if which else "torn"] += 1
    assert outcomes["told"] >= 890
    assert outcomes["made good from the journal"] == 100
