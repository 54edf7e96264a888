"""A tuning run is one trial with a heartbeat: nothing is confirmed, or outlives its controller."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fabrics import SMALL, fabric_of
from fleets import controller_of, fleet_file, fleet_of, rates, restarted, strike, typed
from guarded import OTHER, WANTED, WHO, Device

from dcqcn_gym.core.errors import DeviceError, StateError
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.server import AgentServer, load_agent


def step(device: Device, name: str, targets: Any, lease_s: float = 5.0) -> None:
    device.guard.stage(name, targets, WHO)
    device.guard.apply(name, lease_s)


def test_steps_follow_each_other_and_silence_leads_to_before_the_run(device: Device) -> None:
    step(device, "run:1", WANTED)
    device.clock.now += 4.0
    step(device, "run:2", OTHER)
    assert device.held()["rp_ai_rate"] == "7"
    assert device.held()["rp_threshold"] == "5"  # the first step's, which the second left
    device.clock.now += 4.0
    device.guard.apply("run:2", 5.0)  # the heartbeat
    device.clock.now += 4.0
    device.guard.tick()
    assert device.guard.status.transaction == "run:2"
    device.clock.now += 1.0
    device.guard.tick()
    assert (device.held(), device.guard.status.state) == (device.factual, "idle")
    assert device.guard.status.confirmed == "start"
    with pytest.raises(StateError, match="run:2 is not open here"):
        device.guard.apply("run:2", 5.0)


def test_a_step_is_never_confirmed_and_comes_in_order(device: Device) -> None:
    step(device, "run:2", WANTED)
    with pytest.raises(StateError, match="never confirmed"):
        device.guard.confirm("run:2", WHO)
    for late in ("run:1", "other:3", "other"):
        with pytest.raises(StateError, match="run:2 of test is on trial"):
            device.guard.stage(late, OTHER, WHO)
    with pytest.raises(StateError, match="run:1 is not open"):
        device.guard.apply("run:1", 5.0)
    device.guard.rollback(WHO, "other")
    assert device.held() != device.factual
    device.guard.rollback(WHO, "run")
    assert device.held() == device.factual


def test_a_restart_in_a_run_leads_to_before_it_and_steps_fill_no_journal(device: Device) -> None:
    step(device, "run:1", WANTED)
    size = (device.folder / "journal").stat().st_size
    for i in range(2, 200):
        step(device, f"run:{i}", OTHER if i % 2 else WANTED)
    assert (device.folder / "journal").stat().st_size == size
    device.restarted()
    assert device.held() == device.factual


def test_a_hands_work_in_a_run_is_not_overwritten(device: Device) -> None:
    step(device, "run:1", OTHER)
    device.file("rp_hai_rate").write_text("77\n")
    with pytest.raises(StateError, match="somebody changed the device"):
        device.guard.stage("run:2", WANTED, WHO)


def test_a_step_that_fails_on_one_device_ends_the_run_on_all(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    with controller_of(tmp_path, fleet_of(agents)) as controller:
        steps = [{n: {"": {"rp_ai_rate": r}} for n in agents} for r in (20, 30)]
        assert controller.runs.step("r", 1, steps[0], 60.0) == "r:1"
        assert rates(tmp_path) == [20] * 3
        strike(agents["nic-1"], "30", error=True)
        with pytest.raises(DeviceError, match="nic-1: rp_ai_rate: the device said no"):
            controller.runs.step("r", 2, steps[1], 60.0)
    assert rates(tmp_path) == [5] * 3
    assert {a.guard.status.state for a in agents.values()} == {"idle"}


def test_two_runs_do_not_tune_one_fleet(tmp_path: Path, agents: dict[str, AgentServer]) -> None:
    with controller_of(tmp_path, fleet_of(agents)) as controller:
        targets = {n: {"": {"rp_ai_rate": 20}} for n in agents}
        controller.runs.step("one", 1, targets, 60.0)
        with pytest.raises(StateError, match="one:1 of dcqcn-gym is on trial"):
            controller.runs.step("two", 1, targets, 60.0)
        controller.runs.keep_alive("one:1", 60.0)
        assert rates(tmp_path) == [20] * 3


def test_an_agent_that_does_not_answer_for_a_while_does_not_end_a_run(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    with controller_of(tmp_path, fleet_of(agents, timeout_s=5.0)) as controller:
        controller.runs.step("r", 1, {n: {"": {"rp_ai_rate": 20}} for n in agents}, 600.0)
        agents["nic-1"].close()
        controller.runs.keep_alive("r:1", 600.0)
        assert rates(tmp_path) == [20] * 3
    agents["nic-1"] = restarted(tmp_path, agents["nic-1"], "nic-1")
    with controller_of(tmp_path, fleet_of(agents, timeout_s=5.0)) as controller:
        with pytest.raises(StateError, match="nic-1: transaction r:1 is not open here"):
            controller.runs.keep_alive("r:1", 600.0)
        assert controller.runs.end("r", "left") == {}
    assert rates(tmp_path) == [5] * 3


def test_a_killed_run_confirmed_nothing_and_a_rollback_or_its_lease_ends_it(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    with controller_of(tmp_path, fleet_of(agents)) as controller:
        controller.runs.step("r", 1, {n: {"": {"rp_ai_rate": 20}} for n in agents}, 600.0)
    file = tmp_path / "fleet.toml"  # and then kill -9: nobody ends it
    file.write_text(toml_text(fleet_of(agents).model_dump(mode="json", exclude_none=True)))
    code, said = typed("status", "--fleet", str(file))
    assert (code, said.count("applied"), said.count("start")) == (1, 3, 3)
    code, said = typed("rollback", "--fleet", str(file))
    assert (code, rates(tmp_path)) == (0, [5] * 3)
    assert "3 devices were on trial; 3 are at their confirmed setting" in said


def test_a_run_is_taken_back_by_its_name(tmp_path: Path, agents: dict[str, AgentServer]) -> None:
    file = ["--fleet", fleet_file(tmp_path, agents)]
    with controller_of(tmp_path, fleet_of(agents)) as controller:
        run = controller.runs.begin("a run").run
        controller.runs.step(run, 1, {n: {"": {"rp_ai_rate": 20}} for n in agents}, 600.0)
    code, said = typed("rollback", *file, "--run", "another")
    assert (code != 0, rates(tmp_path)) == (True, [20] * 3)
    assert "run 'another' is not in this fleet's audit log" in said
    assert typed("rollback", *file, "--run", run, "--transaction", "t")[0] != 0
    code, said = typed("rollback", *file, "--run", run)
    assert (code, rates(tmp_path)) == (0, [5] * 3)
    assert "3 devices were on trial; 3 are at their confirmed setting" in said
    code, said = typed("rollback", *file, "--run", run)
    assert (code, rates(tmp_path)) == (0, [5] * 3)
    assert f"run {run} is over, and its setting was not kept" in said


def test_a_run_over_the_backend_is_one_trial_until_it_is_closed(
    small: Scenario, tmp_path: Path
) -> None:
    (tmp_path / "small-fabric.toml").write_text(SMALL)
    with fabric_of(small) as fabric:
        folder = fabric.fleet.parent
        before, backend = rates(folder), make_backend(f"hardware:{fabric.fleet}")
        backend.open(small, 1)
        for rate in (20, 30):
            backend.apply(small.initial_setting().replace(rp_ai_rate=rate))
            assert rates(folder) == [rate] * 4
            assert {a.guard.status.confirmed for a in fabric.agents} == {"start"}
            backend.advance()
        backend.close()
        assert rates(folder) == before
        audit = [json.loads(x) for x in (folder / "audit.jsonl").read_text().splitlines()]
        assert [x["event"] for x in audit] == ["step", "step", "rollback"]


def test_an_agent_that_was_killed_in_a_run_gives_the_cache_of_counters_back(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    (file,) = (tmp_path / "nic-0/root").glob("sys/class/infiniband/*/ports/1/hw_counters/lifespan")
    for _ in range(2):  # of the second interval nothing is remembered but the first one's
        agents["nic-0"].guard.cadence.prepare(2.0)
    assert file.read_text().strip() == "1"
    killed = load_agent(tmp_path / "nic-0" / "agent.toml")  # it begins with the journal alone
    killed.guard.start()
    assert file.read_text().strip() == "10"
    events = [r["event"] for r in killed.journal.records]
    assert [e for e in events if "re" in e] == ["prepared", "released"]


def test_the_cache_of_counters_lasts_as_long_as_before_once_a_run_or_the_agent_ends(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    counters = "sys/class/infiniband/*/ports/1/hw_counters"
    files = [
        f
        for nic in sorted(tmp_path.glob("nic-*"))
        for f in (nic / "root").glob(f"{counters}/lifespan")
    ]

    def held() -> list[str]:
        return [file.read_text().strip() for file in files]

    before = held()
    with controller_of(tmp_path, fleet_of(agents)) as controller:
        for number in (1, 2):
            controller.agents.ask_all("Prepare", pb.Interval(ms=2.0))
            controller.runs.step("r", number, {n: {"": {"rp_ai_rate": 20}} for n in agents}, 60.0)
        assert held() == ["1"] * 3
        for name in ("nic-0", "nic-1"):
            agents[name].guard.rollback(WHO)  # as its lease does
        agents["nic-2"].close()
    assert held() == before == ["10"] * 3
