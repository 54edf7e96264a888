"""A fleet's state without its log: agents know each change, its devices and its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fleets import controller_of, fleet_file, fleet_of, rates, restarted, typed
from guarded import WHO, Device, on_trial

from dcqcn_gym.core.errors import ConfigError, DeviceError
from dcqcn_gym.hw.agent.server import AgentServer
from dcqcn_gym.hw.members import MOST_BYTES, packed, unpacked


def targets(agents: dict[str, AgentServer], mbps: float) -> dict[str, Any]:
    return {n: {"": {"rp_ai_rate": mbps, "rp_hai_rate": mbps + 50.0}} for n in agents}


def change(folder: Path, agents: dict[str, AgentServer], mbps: float) -> str:
    with controller_of(folder, fleet_of(agents)) as controller:
        return controller.carry_out(targets(agents, mbps), "x").transaction


def behind(folder: Path, agents: dict[str, AgentServer]) -> str:
    """Have a controller die in its confirmation: nic-1 was never asked, and its timer ends."""
    with controller_of(folder, fleet_of(agents)) as controller:
        name = controller.try_out(targets(agents, 50), "x", 600.0).transaction
    for device in ("nic-0", "nic-2"):
        agents[device].guard.confirm(name, WHO)
    agents["nic-1"].guard.rollback(WHO)
    return name


def ahead(folder: Path, agents: dict[str, AgentServer]) -> str:
    """Have a change undone everywhere but on nic-1, which was out of reach."""
    name = change(folder, agents, 50)
    agents["nic-1"].close()
    with controller_of(folder, fleet_of({n: a for n, a in agents.items() if n != "nic-1"})) as c:
        request = c._requests.named(name, "x", agents)
        c.agents.ask_all("Undo", request)
    agents["nic-1"] = restarted(folder, agents["nic-1"], "nic-1")
    return name


def lose(audit: Path) -> None:
    audit.unlink()


def cut(audit: Path) -> None:
    audit.write_bytes(b"")


def swap(audit: Path) -> None:
    """Put the log of another host there, which knows nothing of this fleet's changes."""
    audit.write_text(json.dumps({"event": "apply", "transaction": "elsewhere", "changes": {}}))


def shorten(audit: Path) -> None:
    """Keep what was written before the last change began."""
    lines = audit.read_bytes().splitlines(keepends=True)
    began = [i for i, line in enumerate(lines) if b'"event": "begin"' in line]
    audit.write_bytes(b"".join(lines[: began[-1]]))


@pytest.mark.parametrize("harm", [lose, cut, swap, shorten])
@pytest.mark.parametrize(("split", "end"), [(behind, 50), (ahead, 20)])
def test_a_split_fleet_shows_and_is_mended_whatever_became_of_the_log(
    split: Any, end: int, harm: Any, tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    change(tmp_path, agents, 20)
    split(tmp_path, agents)
    held = rates(tmp_path)
    assert sorted(set(held)) == [20, 50]
    harm(tmp_path / "audit.jsonl")
    code, said = typed("status", "--fleet", fleet)
    assert (code, "to mend split (nic-1): dcqcn-gym hw reconcile" in said) == (1, True)
    assert rates(tmp_path) == held
    assert typed("reconcile", "--fleet", fleet)[0] == 0
    assert rates(tmp_path) == [end] * 3
    assert typed("status", "--fleet", fleet)[0] == 0


@pytest.mark.parametrize("changed", [False, True])
def test_what_another_fleets_log_decided_is_not_wanted_here(
    changed: bool, tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet, audit = fleet_file(tmp_path, agents), tmp_path / "audit.jsonl"
    if changed:
        change(tmp_path, agents, 20)
    swap(audit)
    decided = {"event": "confirmed", "transaction": "elsewhere", "devices": list(agents)}
    audit.write_text(f"{audit.read_text()}\n{json.dumps(decided)}\n")
    code, said = typed("status", "--fleet", fleet)
    assert (code, "to mend split" in said) == (1, False)
    assert "it decided elsewhere, which no agent ever had: another fleet's log" in said
    assert typed("reconcile", "--fleet", fleet)[0] == 1
    assert rates(tmp_path) == [20 if changed else 5] * 3
    if changed:
        assert typed("rollback", "--fleet", fleet)[0] == 1
    assert rates(tmp_path) == [5] * 3


def test_a_second_controller_on_another_host_confirms_and_undoes(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    first = fleet_file(tmp_path, agents)
    second = fleet_file(tmp_path, agents, "second", audit="second.jsonl")
    change(tmp_path, agents, 20)
    assert typed("status", "--fleet", second)[0] == 0
    with controller_of(tmp_path, fleet_of(agents)) as controller:
        controller.try_out(targets(agents, 50), "x", 600.0)
    assert "3 devices confirmed" in typed("confirm", "--fleet", second)[1]
    for fleet in (first, second):
        code, said = typed("status", "--fleet", fleet)
        assert code == 0, said
    assert typed("rollback", "--fleet", second)[0] == 0
    assert rates(tmp_path) == [20] * 3
    for fleet in (first, second):
        code, said = typed("status", "--fleet", fleet)
        assert code == 0, said
    assert typed("rollback", "--fleet", second)[0] == 0
    assert rates(tmp_path) == [5] * 3


def test_a_change_whose_devices_nobody_knows_is_not_healthy(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    guard = agents["nic-1"].guard
    guard.stage("by-another-tool", targets(agents, 50)["nic-1"], WHO)
    guard.apply("by-another-tool", 60.0)
    guard.confirm("by-another-tool", WHO)
    code, said = typed("status", "--fleet", fleet)
    assert code == 1
    assert "holds a change of which no agent knows the devices" in said
    assert "hw rollback --transaction by-another-tool" in said
    assert typed("reconcile", "--fleet", fleet)[0] == 1
    assert typed("rollback", "--fleet", fleet, "--transaction", "by-another-tool")[0] == 0
    assert typed("status", "--fleet", fleet)[0] == 0


def spoil(folder: Path, name: str, file: str = "rp_gd") -> tuple[Path, str]:
    place = next((folder / name).glob(f"root/sys/kernel/debug/mlx5/*/cc_params/{file}"))
    text = place.read_text()
    place.rename(place.with_name("away"))
    place.mkdir()  # a read and a write both fail
    return place, text


def mend(place: Path) -> None:
    place.rmdir()
    place.with_name("away").rename(place)


@pytest.mark.parametrize("first", [None, "trial-only", "stop"])
def test_one_sick_device_leaves_the_rollback_of_the_others_alone(
    first: str | None, tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    change(tmp_path, agents, 20)
    change(tmp_path, agents, 50)
    place, _ = spoil(tmp_path, "nic-1")
    if first == "trial-only":
        assert typed("rollback", "--trial-only", "--fleet", fleet)[0] == 1
    if first == "stop":
        assert typed("stop", "--fleet", fleet)[0] == 1
        typed("stop", "--release", "--fleet", fleet)
    code, said = typed("rollback", "--fleet", fleet)
    assert code == 1
    assert rates(tmp_path) == [20, 20, 20]  # of the sick one every place that can be written
    assert "to mend broken (nic-1)" in said
    assert "hw rollback --trial-only --device nic-1" in said
    mend(place)
    assert typed("rollback", "--fleet", fleet, "--trial-only", "--device", "nic-1")[0] == 0
    assert typed("status", "--fleet", fleet)[0] == 0
    code, said = typed("rollback", "--fleet", fleet)
    assert (code, rates(tmp_path)) == (0, [5] * 3), said


@pytest.mark.parametrize("how", ["timer", "stop", "restart", "rollback"])
def test_a_file_that_cannot_be_read_keeps_no_other_at_a_trials_value(
    how: str, tmp_path: Path
) -> None:
    device = Device(tmp_path)
    on_trial(device.guard)
    place = device.file("rp_rate_to_set_on_first_cnp")
    before = {name: device.file(name).read_text() for name in device.factual
              if name != place.name}  # fmt: skip
    assert {n: t.strip() for n, t in before.items()} != {
        n: t for n, t in device.factual.items() if n != place.name
    }
    place.rename(tmp_path / "away")
    place.mkdir()
    if how == "timer":
        device.clock.now += 6.0
        device.guard.tick()
    elif how == "stop":
        device.guard.stop(True, WHO)
    elif how == "restart":
        device.restarted()
    else:
        with pytest.raises(DeviceError, match=place.name):
            device.guard.rollback(WHO)
    for name, text in device.factual.items():
        if name != place.name:
            assert device.file(name).read_text().strip() == text, name
    assert device.guard.status.state == "broken"
    assert place.name in device.guard.status.problem
    place.rmdir()
    (tmp_path / "away").rename(place)
    device.guard.tick()
    assert device.held() == device.factual
    assert device.guard.status.problem == ""


def test_status_and_reconcile_have_one_definition_of_healthy(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    place, _ = spoil(tmp_path, "nic-2")
    agents["nic-2"].guard._drift._looked_s -= 60.0
    agents["nic-2"].guard.tick()
    for command in ("status", "reconcile"):
        code, said = typed(command, "--fleet", fleet)
        assert (code, "hw rollback --trial-only --device nic-2" in said) == (1, True)
    mend(place)
    agents["nic-2"].guard.tick()
    for command in ("status", "reconcile"):
        assert typed(command, "--fleet", fleet)[0] == 0


def test_names_of_devices_come_back_whole_or_not_at_all() -> None:
    names = [f"nic-{i:05d}" for i in range(10_000)]
    assert list(unpacked(packed(names))) == names
    assert len(packed(names)) < 64 << 10
    assert unpacked(packed([])) == ()
    for wrong in (b"x", packed(names)[:-3], packed(["x" * (MOST_BYTES + 1)]), packed(["a"])[:2]):
        with pytest.raises(ConfigError, match="the devices of a change"):
            unpacked(wrong)
