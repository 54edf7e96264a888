"""What is true of the whole fleet: split, drifted, undone on a part, decided but not written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from fleets import controller_of, fleet_file, fleet_of, nic_fleet, rates, restarted, typed
from guarded import OTHER, WANTED, WHO, Device

from dcqcn_gym.core.errors import DcqcnGymError, DeviceError
from dcqcn_gym.hw.agent.server import AgentServer
from dcqcn_gym.hw.client import AgentClient, UnreachableError
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.device_state import DRIFT_S


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[dict[str, AgentServer]]:
    with nic_fleet(tmp_path, 4) as agents:
        yield agents


def change(folder: Path, agents: dict[str, AgentServer], mbps: int) -> str:
    with controller_of(folder, fleet_of(agents)) as controller:
        targets = {name: {"": {"rp_ai_rate": mbps}} for name in agents}
        return controller.carry_out(targets, f"to {mbps}").transaction


class Lost(grpc.RpcError):  # type: ignore[misc]
    """gRPC's future of a call whose answer the network lost."""

    def code(self) -> Any:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "lost on purpose"

    def result(self) -> Any:
        raise self

    def add_done_callback(self, tell: Any) -> None:
        tell(self)


class CutOff(AgentClient):
    """nic-1's link is lost at its confirmation: that is carried out, its answer never comes."""

    cut = False

    def send(self, method: str, request: Any) -> Any:
        if self.name == "nic-1" and method == "Confirm" and not self.cut:
            super().send(method, request).result()
            self.cut = True
        return Lost() if self.cut else super().send(method, request)


def test_a_split_fleet_is_told_and_a_rollback_mends_it_first(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    change(tmp_path, agents, 20)
    assert typed("status", "--fleet", fleet)[0] == 0
    controller = Controller(fleet_of(agents), tmp_path, CutOff)
    controller.agents.open()
    with pytest.raises(UnreachableError):
        controller.carry_out({n: {"": {"rp_ai_rate": 50}} for n in agents}, "split")
    assert list(controller.rollback.not_back) == ["nic-1"]
    controller.close()
    assert rates(tmp_path) == [20, 50, 20, 20]
    code, said = typed("status", "--fleet", fleet)
    assert code == 1
    assert "to hold what was before, as was decided" in said
    assert "the fleet is split: 1 of 4 devices" in said
    code, said = typed("rollback", "--fleet", fleet)
    assert (code, rates(tmp_path)) == (0, [20] * 4)
    assert "1 devices are back" in said
    assert typed("status", "--fleet", fleet)[0] == 0
    assert typed("rollback", "--fleet", fleet)[0] == 0
    assert rates(tmp_path) == [5] * 4


def test_an_undo_below_a_newer_change_keeps_it_undoable(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    some = {name: agents[name] for name in ("nic-0", "nic-1")}
    fleet = fleet_file(tmp_path, agents)
    below = change(tmp_path, agents, 20)
    change(tmp_path, some, 50)
    assert typed("rollback", "--fleet", fleet, "--transaction", below)[0] == 0
    assert rates(tmp_path) == [50, 50, 5, 5]
    assert typed("rollback", "--fleet", fleet)[0] == 0
    assert rates(tmp_path) == [20, 20, 5, 5]
    assert typed("rollback", "--fleet", fleet)[0] == 0
    assert rates(tmp_path) == [5] * 4


def test_nothing_is_confirmed_that_the_audit_log_cannot_hold(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    with controller_of(tmp_path, fleet_of(agents)) as controller:
        trial = controller.try_out({n: {"": {"rp_ai_rate": 50}} for n in agents}, "x", 600.0)
        (tmp_path / "audit.jsonl").rename(tmp_path / "away")
        (tmp_path / "audit.jsonl").mkdir()  # what a write meets
        with pytest.raises(DeviceError, match="the audit log cannot be written"):
            controller.confirm(trial.transaction, trial.changed, "x")
    assert rates(tmp_path) == [5] * 4


def test_a_disk_that_fills_after_the_decision_loses_no_undo(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    audit = tmp_path / "audit.jsonl"
    with controller_of(tmp_path, fleet_of(agents)) as controller:
        confirm = agents["nic-3"].guard.confirm

        def and_fill(name: str, who: Any) -> None:
            audit.rename(tmp_path / "away")
            audit.mkdir()
            confirm(name, who)

        agents["nic-3"].guard.confirm = and_fill  # type: ignore[method-assign]
        controller.carry_out({n: {"": {"rp_ai_rate": 50}} for n in agents}, "x")
        assert "the audit log cannot be written" in controller.log.unwritten
    audit.rmdir()
    (tmp_path / "away").rename(audit)
    assert typed("status", "--fleet", fleet)[0] == 0
    assert "4 devices are back" in typed("rollback", "--fleet", fleet)[1]


def test_what_a_reset_changed_is_noticed_within_an_interval(tmp_path: Path) -> None:
    device = Device(tmp_path)
    device.guard.stage("t1", WANTED, WHO)
    device.guard.apply("t1", 5.0)
    device.guard.confirm("t1", WHO)
    device.guard.tick()
    assert device.guard.status.state == "idle"
    for name, text in device.factual.items():  # a driver that was loaded again
        device.file(name).write_text(text + "\n")
    device.clock.now += DRIFT_S
    device.guard.tick()
    status = device.guard.status
    assert (status.state, status.confirmed) == ("drifted", "t1")
    assert "somebody else changed it: it holds {" in status.problem
    assert device.held() == device.factual
    with pytest.raises(DcqcnGymError, match="beside the agent"):
        device.guard.stage("t2", OTHER, WHO)
    device.guard.rollback(WHO)
    assert str(device.guard.status.state) == "idle"
    file = device.file("rp_gd")
    file.rename(file.with_name("away"))
    file.mkdir()
    device.clock.now += DRIFT_S
    device.guard.tick()
    assert "it cannot be read: " in device.guard.status.problem
    file.rmdir()
    file.with_name("away").rename(file)
    device.guard.tick()
    assert (device.guard.status.state, device.guard.status.problem) == ("idle", "")


def test_status_exits_non_zero_for_a_device_that_drifted(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    place = next((tmp_path / "nic-2").glob("root/sys/kernel/debug/mlx5/*/cc_params/rp_ai_rate"))
    place.write_text("77\n")
    agents["nic-2"].guard._drift._looked_s -= DRIFT_S
    agents["nic-2"].guard.tick()
    code, said = typed("status", "--fleet", fleet)
    assert code == 1
    assert "drifted" in said
    agents["nic-2"] = restarted(tmp_path, agents["nic-2"], "nic-2")
    assert rates(tmp_path) == [5] * 4


def test_a_few_hosts_are_changed_first(tmp_path: Path, agents: dict[str, AgentServer]) -> None:
    fleet = fleet_file(tmp_path, agents)
    few = ["--set", "rp_ai_rate=50", "--device", "nic-0", "--device", "nic-2"]
    assert typed("apply", "--fleet", fleet, *few, "--dry-run")[1].count("rp_ai_rate") == 2
    assert "2 devices changed" in typed("apply", "--fleet", fleet, *few)[1]
    assert rates(tmp_path) == [50, 5, 50, 5]
    assert typed("status", "--fleet", fleet)[0] == 0
    code, said = typed("apply", "--fleet", fleet, *few[:2], "--device", "nic-9")
    assert code != 0
    assert "unknown device 'nic-9'; did you mean" in said
    assert typed("rollback", "--fleet", fleet)[0] == 0
    assert rates(tmp_path) == [5] * 4
