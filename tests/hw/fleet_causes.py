"""The nineteen causes for which an early fleet was left where nobody put it, struck again.

Each is a function of a :class:`Campaign`: it draws devices and moments from the fleet's seed, does
what went wrong then, and holds files against what is promised. The campaign's judge follows.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

import fleet_oracle as oracle
from faulty_network import SWITCH, TRIAL_S, CrashError
from fleet_campaign import KILLED, Campaign, controller_of
from fleets import typed

from dcqcn_gym.core.errors import DcqcnGymError, DeviceError
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.journal import Journal

__all__ = ["CAUSES"]

_PROFILE = "WRED_PROFILE|AZURE_LOSSLESS_Ethernet0"


def _try_out(c: Campaign) -> str:
    controller = controller_of(c.fleet)
    try:
        return controller.try_out(c.targets(), "a trial").transaction
    finally:
        controller.close()


def _change(c: Campaign) -> str:
    """Change every device, and note what each held before."""
    before = c.held()
    controller = controller_of(c.fleet)
    try:
        name = controller.carry_out(c.targets(), "a change").transaction
    finally:
        controller.close()
    c.before[name] = before
    return name


def _at_home(c: Campaign, *but: str) -> None:
    """Every device, ``but`` these, holds what its journal confirmed last."""
    held = c.held(*but)
    for name in held:
        _, confirmed = oracle.confirmed_of(c.fleet.folder / name / "journal")
        wrong = oracle.wrong_places(held[name], confirmed, {})
        assert not wrong, f"{c.run.kind}: {name} holds {wrong}"


def _say(c: Campaign, *words: str) -> tuple[int, str]:
    return typed(*words, "--fleet", str(c.file))


def _device(c: Campaign, *, nic: bool = False) -> str:
    return c.fleet.random.choice(c.fleet.names[:3] if nic else c.fleet.names)


def sick_device(c: Campaign) -> None:
    """F1: a device that is ill or dead keeps no other from a stop or a rollback."""
    _try_out(c)
    fleet, name = c.fleet, _device(c)
    if name == SWITCH and fleet.switch is not None:
        fleet.switch.stop()
        heal: Callable[[], object] = fleet.switch.restart
    elif fleet.random.random() < 0.5:
        file = fleet.cc_file(name, "rp_ai_rate")
        file.rename(file.with_name("gone"))
        heal = lambda: file.with_name("gone").rename(file)  # noqa: E731
    else:
        fleet.agents[name].close()
        heal = lambda: fleet.start(name)  # noqa: E731
    code, said = _say(c, *fleet.random.choice((("stop",), ("rollback",))))
    assert code == 1, said
    assert name in said, said
    _at_home(c, name)
    heal()


def split(c: Campaign) -> None:
    """F2: replies are lost when a change is confirmed, and the way back with them."""
    before = c.held()
    c.prelude("reconcile")
    for name in oracle.decided_by(c.written()).changes:
        c.before[name] = before


def killed_run(c: Campaign) -> None:
    """F3: the controller of a tuning run is killed; the lease ends the run."""
    before, controller = c.held(), controller_of(c.fleet)
    try:
        for number in range(1, c.fleet.random.randrange(2, 4)):
            controller.runs.step("a-run", number, c.targets(), TRIAL_S)
            if number == 1:
                c.fleet.armed[(_device(c), "Stage")] = KILLED
    except (DcqcnGymError, CrashError):
        pass
    finally:
        controller.close()
        c.fleet.armed.clear()
    c.fleet.pass_time(2.0 * TRIAL_S)
    assert c.held() == before, c.run


def silent_connections(c: Campaign) -> None:
    """F4: connections without a certificate while a trial runs."""
    agent = c.fleet.agents[_device(c)]
    host, _, port = agent.address.rpartition(":")
    _try_out(c)
    silent = [socket.create_connection((host, int(port)), timeout=60.0) for _ in range(60)]
    c.fleet.pass_time(1.2 * TRIAL_S)
    _at_home(c)
    for one in silent:
        one.close()


def damaged_journal(c: Campaign) -> None:
    """F5: bits flip, or the file goes, during a trial; the agent starts again."""
    before, name, rng = c.held(), _device(c), c.fleet.random
    _try_out(c)
    journal = c.fleet.folder / name / "journal"
    if rng.random() < 0.3:
        journal.unlink()
    else:
        data = bytearray(journal.read_bytes())
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        journal.write_bytes(bytes(data))
    c.fleet.start(name)
    c.fleet.pass_time(1.2 * TRIAL_S)
    assert c.held() == before, c.run
    code, said = _say(c, "status", "--history", name)
    assert code == 0, said


def torn_and_read_only(c: Campaign) -> None:
    """F6: half a line in the journal and a disk that takes none, when the agent starts again."""
    before, name = c.held(), _device(c)
    _try_out(c)
    with (c.fleet.folder / name / "journal").open("ab") as file:
        file.write(b"5f3a {half a li")

    def full(self: Journal, record: object) -> Any:
        raise DeviceError("the journal cannot be written (read-only, on purpose)")

    append, Journal.append = Journal.append, full  # type: ignore[method-assign]
    try:
        c.fleet.start(name)
        assert c.held()[name] == before[name], c.run
    finally:
        Journal.append = append  # type: ignore[method-assign]
    c.fleet.start(name)


def stop_file_that_cannot_be_looked_for(c: Campaign) -> None:
    """F7: the look-up of the stop file fails while a trial runs."""
    name = _device(c)
    file = c.fleet.files[name]
    text = file.read_text()
    file.write_text(text.replace("\n[tls]", '\nstop_file = "off/stop"\n[tls]', 1))
    c.fleet.start(name)
    _try_out(c)
    link = c.fleet.folder / name / "off" / "stop"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to("x" * 300)
    c.fleet.pass_time(1.2 * TRIAL_S)
    c.fleet.agents[name].look_for_stop_file()
    _at_home(c)
    code, said = _say(c, "apply", "--set", "rp_ai_rate=33", "--set", "kmin=77")
    assert code != 0, said
    link.unlink()
    file.write_text(file.read_text().replace('stop_file = "off/stop"\n', ""))
    c.fleet.start(name)


def driver_that_raises(c: Campaign) -> None:
    """F8: a driver raises what no driver should, once, on the way back."""
    name = _device(c)
    _try_out(c)
    driver: Any = c.fleet.devices[name]
    write = driver.apply

    def once(values: Any) -> None:
        driver.apply = write
        raise KeyError("what no driver should raise")

    driver.apply = once
    c.fleet.pass_time(1.5 * TRIAL_S)
    driver.apply = write
    _at_home(c)


def deadly_values(c: Campaign) -> None:
    """F9: values that are legal for the device and deadly for a fabric."""
    before = c.held()
    deadly = ("rp_min_rate=90000", "rp_max_rate=1", "rp_rate_to_set_on_first_cnp=2147483647",
              "rp_ai_rate=2147483647", "kmin=4000000")  # fmt: skip
    code, said = _say(c, "apply", "--set", c.fleet.random.choice(deadly))
    assert code != 0, said
    assert c.held() == before, c.run


def colours_that_do_not_mark(c: Campaign) -> None:
    """F10: thresholds of colours that do not mark stay as they are."""
    if c.fleet.switch is None:
        return
    redis = c.fleet.switch._config
    others = {"yellow_min_threshold": "1000000", "red_max_threshold": "1500000"}
    for key in redis.keys("WRED_PROFILE|*"):
        redis.hset(key, mapping={"ecn": "ecn_green", **others})
    c.fleet.folder.joinpath(SWITCH, "journal").unlink()
    c.fleet.folder.joinpath(SWITCH, "journal.confirmed").unlink(missing_ok=True)
    c.fleet.start(SWITCH)
    _change(c)
    assert {redis.hget(_PROFILE, f) for f in others} == set(others.values()), c.run


def asic_that_refuses(c: Campaign) -> None:
    """F11: ASIC_DB never follows: what it did not take is not confirmed."""
    if c.fleet.switch is None:
        return
    before, file = c.held(), c.fleet.files[SWITCH]
    file.write_text(file.read_text().replace("asic_wait_s = 0.0", "asic_wait_s = 0.3"))
    c.fleet.start(SWITCH)
    code, said = _say(c, "apply", "--set", "kmin=77")
    assert code != 0, said
    file.write_text(file.read_text().replace("asic_wait_s = 0.3", "asic_wait_s = 0.0"))
    c.fleet.start(SWITCH)
    c.fleet.pass_time(1.2 * TRIAL_S)
    assert c.held() == before, c.run


def undo_of_a_part(c: Campaign) -> None:
    """F12: what was undone on one device is undone on the rest afterwards."""
    before, name = c.held(), _device(c)
    _change(c)
    code, said = _say(c, "rollback", "--device", name)
    assert (code, c.held()[name]) == (0, before[name]), said
    code, said = _say(c, "rollback")
    assert (code, c.held()) == (0, before), said


def name_that_is_not_there(c: Campaign) -> None:
    """F13: a rollback of an unknown name ends no trial."""
    _try_out(c)
    held = c.held()
    code, said = _say(c, "rollback", "--transaction", "doesnotexist")
    assert code != 0, said
    assert c.held() == held, c.run
    assert _say(c, "rollback")[0] == 0


def flooded_journal(c: Campaign) -> None:
    """F14: trials and rollbacks without end leave the way back."""
    before, name = c.held(), _device(c)
    bad = _change(c)
    c.fleet.agents[name].journal._most_bytes = 16_384
    controller = controller_of(c.fleet)
    client = controller.agents.clients[name]
    targets = [pb.Target(knobs={"kmin": 60.0} if name == SWITCH else {"rp_ai_rate": 60.0})]
    for i in range(60):
        flood: Any = {"transaction": f"flood-{i}", "who": "a thief", "why": "x" * 400}
        client.ask("Stage", pb.Wanted(targets=targets, **flood))
        client.ask("Apply", pb.Trial(transaction=f"flood-{i}", revert_after_s=60.0))
        client.ask("Rollback", pb.Named(**flood))
    controller.close()
    code, said = _say(c, "rollback", "--transaction", bad)
    assert (code, c.held()) == (0, before), said


def replay(c: Campaign) -> None:
    """F15: a recorded transaction comes again after it is over."""
    controller = controller_of(c.fleet)
    name = _device(c)
    client: Any = controller.agents.clients[name]
    before = c.held()
    done = controller.carry_out(c.targets(), "recorded")
    c.before[done.transaction] = before
    recorded = [x for x in client._earlier if x[0] in ("Stage", "Apply", "Confirm")]
    between = c.held()
    later = controller.carry_out(c.targets(), "later")
    c.before[later.transaction] = between
    held = c.held()
    for method, request in recorded:
        try:
            client.ask(method, request)
        except DcqcnGymError:
            continue
        raise AssertionError(f"{method} of a finished transaction was accepted by {name}")
    controller.close()
    assert c.held() == held, c.run


def audit_full_after_confirm(c: Campaign) -> None:
    """F16: the audit log cannot be written any more once all have confirmed."""
    before, controller = c.held(), controller_of(c.fleet)
    write = controller.log.write

    def full(record: dict[str, Any]) -> None:
        if record["event"] == "confirmed":
            raise DeviceError("the audit log cannot be written (on purpose)")
        write(record)

    controller.log.write = full  # type: ignore[method-assign]
    try:
        controller.carry_out(c.targets(), "a change")
    except DcqcnGymError:
        c.run.refused += 1
    finally:
        controller.close()
    code, said = _say(c, "rollback")
    assert (code, c.held()) == (0, before), said


def frozen_confirm(c: Campaign) -> None:
    """F17: frozen times hold for a confirmation; the way back stays open."""
    before = c.held()
    _try_out(c)
    frozen = c.fleet.fleet.model_copy(update={"freeze_utc": ("00:00-24:00",)})
    file = c.fleet.folder / "frozen.toml"
    file.write_text(toml_text(frozen.model_dump(mode="json", exclude_none=True)))
    code, said = typed("confirm", "--fleet", str(file))
    assert code != 0, said
    assert typed("rollback", "--fleet", str(file))[0] == 0
    assert c.held() == before, c.run


def reset_under_a_running_agent(c: Campaign) -> None:
    """F18: a firmware reset or a hand changes a device: status says so within an interval."""
    _change(c)
    held, name = c.held(), _device(c, nic=True)
    c.fleet.cc_file(name, "rp_ai_rate").write_text("3\n")
    c.fleet.pass_time(12.0)
    code, said = _say(c, "status")
    assert code == 1, said
    assert "drifted" in said, said
    assert _say(c, "rollback", "--trial-only")[0] == 0
    assert c.held() == held, c.run


def small_ones(c: Campaign) -> None:
    """F19: history of every device reads; what changes nothing leaves nothing staged."""
    _change(c)
    nic = c.fleet.names[0]
    rate = c.held()[nic]["rp_ai_rate"]
    assert _say(c, "apply", "--set", f"rp_ai_rate={rate}")[0] == 0
    for name in c.fleet.names:
        code, said = _say(c, "status", "--history", name)
        assert code == 0, said
    assert "staged" not in _say(c, "status")[1]
    os.stat(c.audit)


CAUSES: Mapping[str, Callable[[Campaign], None]] = {
    f"F{number}-{act.__name__.replace('_', '-')}": act
    for number, act in enumerate(
        (sick_device, split, killed_run, silent_connections, damaged_journal, torn_and_read_only,
         stop_file_that_cannot_be_looked_for, driver_that_raises, deadly_values,
         colours_that_do_not_mark, asic_that_refuses, undo_of_a_part, name_that_is_not_there,
         flooded_journal, replay, audit_full_after_confirm, frozen_confirm,
         reset_under_a_running_agent, small_ones), 1)
}  # fmt: skip
"""Name -> what is done; the numbers are those of the first findings."""
