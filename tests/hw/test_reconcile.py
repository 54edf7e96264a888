"""A split fleet goes to either side, an undo to a part of it; when a change is decided; the log."""

from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from fleets import controller_of, fleet_file, fleet_of, rates, restarted, typed

from dcqcn_gym.core.errors import StateError
from dcqcn_gym.hw.agent.server import AgentServer
from dcqcn_gym.hw.audit import AuditLog
from dcqcn_gym.hw.device_state import Who

WHO = Who("test")


def change(folder: Path, agents: dict[str, AgentServer], mbps: int) -> str:
    with controller_of(folder, fleet_of(agents)) as controller:
        targets = {name: {"": {"rp_ai_rate": mbps}} for name in agents}
        return controller.carry_out(targets, f"to {mbps}").transaction


def lose(agents: dict[str, AgentServer], folder: Path) -> str:
    """Decide on a change that nic-2 never hears of: its timer ends, as the controller dies."""
    with controller_of(folder, fleet_of(agents)) as controller:
        trial = controller.try_out({n: {"": {"rp_ai_rate": 50}} for n in agents}, "x", 600.0)
        decided = {"event": "confirming", "transaction": trial.transaction}
        controller.log.write({**decided, "devices": list(agents)})
    for name in ("nic-0", "nic-1"):
        agents[name].guard.confirm(trial.transaction, WHO)
    agents["nic-2"].guard.rollback(WHO)
    return trial.transaction


def keep(agents: dict[str, AgentServer], folder: Path) -> str:
    """Take a change back that nic-2 confirmed, out of reach since."""
    name = change(folder, agents, 50)
    for device in ("nic-0", "nic-1"):
        agents[device].guard.undo(name, WHO, list(agents))  # as a controller does
    AuditLog(folder / "audit.jsonl", "test").write({"event": "taken back", "transaction": name})
    return name


SIDES = [(lose, 50, (20, 50)), (keep, 20, (50, 20))]


@pytest.mark.parametrize(("split", "decided", "_"), SIDES)
def test_a_split_fleet_goes_where_the_log_decided(
    split: Any, decided: int, _: Any, tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    change(tmp_path, agents, 20)
    name = split(agents, tmp_path)
    assert sorted(set(rates(tmp_path))) == [20, 50]
    assert typed("status", "--fleet", fleet)[0] == 1
    code, said = typed("reconcile", "--fleet", fleet)
    assert (code, rates(tmp_path)) == (0, [decided] * 3)
    assert f"1 devices moved (transaction {name}): nic-2" in said
    assert typed("status", "--fleet", fleet)[0] == 0
    assert "the fleet is not split" in typed("reconcile", "--fleet", fleet)[1]
    for there in ([20] * 3, [5] * 3) if decided == 50 else ([5] * 3,):
        assert typed("rollback", "--fleet", fleet)[0] == 0
        assert rates(tmp_path) == there


@pytest.mark.parametrize("to", ["new", "old"])
@pytest.mark.parametrize(("split", "_", "__"), SIDES)
def test_a_split_fleet_goes_to_either_side(
    split: Any, _: Any, __: Any, to: str, tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    change(tmp_path, agents, 20)
    split(agents, tmp_path)
    code, said = typed("reconcile", "--fleet", fleet, "--to", to)
    assert code == 0, said
    assert rates(tmp_path) == [50 if to == "new" else 20] * 3
    assert typed("status", "--fleet", fleet)[0] == 0
    for name in agents:
        agents[name] = restarted(tmp_path, agents[name], name)  # the journals say the same
    assert rates(tmp_path) == [50 if to == "new" else 20] * 3
    assert typed("rollback", "--fleet", fleet)[0] == 0
    assert rates(tmp_path) == [20 if to == "new" else 5] * 3


def test_the_next_change_takes_along_who_missed_one(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    name = lose(agents, tmp_path)
    code, said = typed("apply", "--fleet", fleet, "--set", "rp_hai_rate=77", "--device", "nic-0")
    assert (code, rates(tmp_path)) == (0, [50] * 3)
    assert f"1 devices moved (transaction {name}): nic-2" in said
    assert typed("status", "--fleet", fleet)[0] == 0
    assert "moved" not in typed("apply", "--fleet", fleet, "--set", "rp_hai_rate=78")[1]


def test_in_a_freeze_a_split_fleet_goes_back_alone(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    frozen = fleet_file(tmp_path, agents, freeze_utc=["00:00-24:00"])
    change(tmp_path, agents, 20)
    lose(agents, tmp_path)
    assert "the fleet is frozen" in typed("reconcile", "--fleet", frozen)[1]
    assert rates(tmp_path) == [50, 50, 20]
    assert typed("reconcile", "--fleet", frozen, "--to", "old")[0] == 0
    assert rates(tmp_path) == [20] * 3


def test_a_device_that_is_dead_follows_when_it_is_back(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    lose(agents, tmp_path)
    agents["nic-2"].close()
    code, said = typed("reconcile", "--fleet", fleet)
    assert code == 1
    assert "nic-2 is left as it is: agent nic-2 at" in said
    agents["nic-2"] = restarted(tmp_path, agents["nic-2"], "nic-2")
    assert rates(tmp_path) == [50, 50, 5]
    assert typed("reconcile", "--fleet", fleet)[0] == 0
    assert rates(tmp_path) == [50] * 3


def test_nothing_moves_below_a_trial_a_later_change_or_another_controllers(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    keep(agents, tmp_path)
    alone = fleet_of({"nic-0": agents["nic-0"]})  # whose controller does not see the split
    with controller_of(tmp_path, alone) as controller:
        controller.try_out({"nic-0": {"": {"rp_ai_rate": 30}}}, "later", 60.0)
    code, said = typed("reconcile", "--fleet", fleet)
    assert code != 0
    assert "is on trial on nic-0, so nothing was moved" in said
    assert typed("confirm", "--fleet", fleet)[0] == 0
    code, said = typed("reconcile", "--fleet", fleet, "--to", "new")
    assert code != 0
    assert "nic-0 has the later change" in said
    assert rates(tmp_path) == [30, 5, 50]
    (tmp_path / "audit.jsonl").rename(tmp_path / "other.jsonl")
    code, said = typed("reconcile", "--fleet", fleet)
    assert (code, rates(tmp_path)) == (0, [30, 5, 5])  # agents know it without a log
    assert typed("rollback", "--fleet", fleet)[0] == 0
    assert rates(tmp_path) == [5, 5, 5]


def test_a_rollback_of_some_devices_leaves_the_others_to_undo(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    change(tmp_path, agents, 20)
    named = change(tmp_path, agents, 50)
    some = ["--fleet", fleet, "--device", "nic-1"]
    assert "1 devices are back" in typed("rollback", *some, "--transaction", named)[1]
    assert rates(tmp_path) == [50, 20, 50]
    assert typed("status", "--fleet", fleet)[0] == 0
    assert "1 devices are back" in typed("rollback", *some)[1]
    assert rates(tmp_path) == [50, 5, 50]
    assert "2 devices are back" in typed("rollback", "--fleet", fleet)[1]
    assert rates(tmp_path) == [20, 5, 20]
    assert "unknown device 'nic-9'" in typed("rollback", *some[:3], "nic-9")[1]


def test_a_change_is_decided_before_its_margin_or_not_at_all(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    with controller_of(tmp_path, fleet_of(agents)) as controller:
        targets = {name: {"": {"rp_ai_rate": 50.0}} for name in agents}
        for seconds, left in ((600.0, 0.99), (2.0, 0.39)):
            trial = controller.try_out(targets, "x", seconds)
            with pytest.raises(StateError, match=f"{left:g} s of the trial of .* are left"):
                controller.confirm(trial.transaction, trial.changed, "late", left)
            assert rates(tmp_path) == [5] * 3
        trial = controller.try_out(targets, "x", 600.0)
        controller.confirm(trial.transaction, trial.changed, "in time", 1.5)
    assert rates(tmp_path) == [50] * 3


def test_a_line_that_somebody_changed_or_took_out_of_the_audit_log_shows(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet, file = fleet_file(tmp_path, agents), tmp_path / "audit.jsonl"
    change(tmp_path, agents, 20)
    change(tmp_path, agents, 50)
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert typed("status", "--fleet", fleet)[0] == 0
    forged = lines[2].replace(b'"dcqcn-gym"', b'"somebody"')
    spoilt = ([*lines[:3], *lines[4:]], [*lines[:2], forged, *lines[3:]], lines[1:],
              [lines[1], lines[0], *lines[2:]], [*lines, b'{"event": "taken back"}\n'])  # fmt: skip
    for found in spoilt:
        file.write_bytes(b"".join(found))
        code, said = typed("status", "--fleet", fleet)
        assert code == 1
        assert "the audit log is not what was written: " in said
    file.write_bytes(whole)
    assert typed("status", "--fleet", fleet)[0] == 0


def test_a_line_that_a_crash_cut_off_takes_no_later_one_with_it(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    file.write_text('{"event": "from before lines were chained"}\n')
    log = AuditLog(file, "test")
    log.write({"event": "apply", "transaction": "a", "changes": {"nic-0": {"x" * 5000: "1"}}})
    with file.open("ab") as cut:
        cut.write(b'{"event": "confirmi')
    log.write({"event": "confirming", "transaction": "a", "devices": ["nic-0"]})
    assert log.expected().of("nic-0") == "a"
    assert log.broken() == ""
    file.write_bytes(file.read_bytes().replace(b"confirmi\n", b"\n"))
    assert "line 4 does not follow" in log.broken()


def test_the_systems_log_gets_each_lines_digest_and_may_be_away(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    where = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    where.bind(("127.0.0.1", 0))
    where.settimeout(10.0)
    more = {"syslog": f"127.0.0.1:{where.getsockname()[1]}"}
    with controller_of(tmp_path, fleet_of(agents, **more)) as controller:
        controller.carry_out({"nic-0": {"": {"rp_ai_rate": 50.0}}}, "told")
    for line in (tmp_path / "audit.jsonl").read_bytes().splitlines():
        told, record = where.recv(4096).rstrip(b"\0").decode(), json.loads(line)
        assert f"{record['event']} {record['transaction']} by dcqcn-gym: " in told
        assert told.endswith(hashlib.sha256(line).hexdigest())
    where.close()
    for away in (more, {"syslog": str(tmp_path / "none")}):
        with controller_of(tmp_path, fleet_of(agents, **away)) as controller:
            controller.rollback.undo(controller.rollback.newest(), "nobody listens")
            controller.carry_out({"nic-0": {"": {"rp_ai_rate": 50.0}}}, "nor now")
    assert rates(tmp_path) == [50, 5, 5]
