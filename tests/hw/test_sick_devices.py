"""One device that is dead, ill or a stranger: stop, rollback and the end of a run reach all others.

Three NICs and a switch with a Redis of its own; agents, gRPC, TLS and files are real.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fabrics import SMALL, fabric_of
from fleets import TLS, controller_of, fleet_of, nic_fleet, rates, restarted, typed

from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent import server
from dcqcn_gym.hw.agent.server import AgentServer, load_agent
from dcqcn_gym.hw.agent.service import AgentService
from dcqcn_gym.hw.certs import write_all
from dcqcn_gym.hw.commands import tune as hw_tune
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.fabric.devices import QUEUE, PlayedSwitch


@dataclass
class Ill:
    """A fleet, and the switch whose Redis a test ends."""

    folder: Path
    agents: dict[str, AgentServer]
    switch: PlayedSwitch
    leaf: AgentServer

    def fleet(self, **more: Any) -> Any:
        leaf = {"name": "leaf-0", "address": self.leaf.address}
        return fleet_of(self.agents, switches=[leaf], timeout_s=5.0, **more)

    def file(self, **more: Any) -> str:
        file = self.folder / "fleet.toml"
        model = self.fleet(**more).model_dump(mode="json", exclude_none=True)
        file.write_text(toml_text(model))
        return str(file)

    def states(self) -> dict[str, str]:
        return {name: agent.guard.status.state for name, agent in self.agents.items()}


@pytest.fixture
def ill(tmp_path: Path) -> Iterator[Ill]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    switch = PlayedSwitch(tmp_path / "leaf-0", 2, default_setting(), 1.0, shared_profile=False)
    try:
        with nic_fleet(tmp_path, 3) as agents:
            write_all(tmp_path / "certs", ["leaf-0"], [])
            file = tmp_path / "leaf-0" / "agent.toml"
            file.write_text(
                'device = "leaf-0"\ndriver = "sonic"\nlisten = "127.0.0.1:0"\n'
                'journal = "journal"\nline_rate_gbps = 25\n\n'
                f"[tls]\n{TLS.format('leaf-0')}\n[settings]\n"
                f'socket = "{switch.socket}"\nqueue = {QUEUE}\nasic_wait_s = 0\n'
                f"ports = {json.dumps(switch.ports)}\n"
            )
            leaf = load_agent(file)
            leaf.start()
            try:
                yield Ill(tmp_path, agents, switch, leaf)
            finally:
                leaf.close()
    finally:
        switch.close()


def on_trial(ill: Ill, fleet: str, rate: int = 50) -> None:
    assert typed("apply", "--fleet", fleet, "--set", f"rp_ai_rate={rate}", "--hold", "600")[0] == 0
    assert rates(ill.folder) == [rate] * 3


def test_a_switch_without_its_database_keeps_no_other_from_stopping(ill: Ill) -> None:
    fleet = ill.file()
    on_trial(ill, fleet)
    ill.switch.stop()
    code, said = typed("stop", "--fleet", fleet)
    assert code == 1
    assert "4 devices refuse every change" in said
    assert "leaf-0 is not at its confirmed setting" in said
    assert rates(ill.folder) == [5] * 3
    assert set(ill.states().values()) == {"stopped"}
    ill.switch.restart()
    ill.leaf.guard.tick()
    assert ill.leaf.guard.status.state == "stopped"


@pytest.mark.parametrize("words", [(), ("--trial-only",)])
def test_a_switch_without_its_database_keeps_no_trial_from_ending(
    ill: Ill, words: tuple[str, ...]
) -> None:
    fleet = ill.file()
    on_trial(ill, fleet)
    ill.switch.stop()
    code, said = typed("rollback", "--fleet", fleet, *words)
    assert code == 1
    assert "3 devices were on trial; 3 are at their confirmed setting" in said
    assert "leaf-0 is left as it is: leaf-0: Redis at" in said
    assert rates(ill.folder) == [5] * 3


def test_a_dead_agent_keeps_no_other_from_an_undo_or_a_status(ill: Ill) -> None:
    fleet = ill.file()
    assert typed("apply", "--fleet", fleet, "--set", "rp_ai_rate=50")[0] == 0
    ill.agents["nic-1"].close()
    code, said = typed("status", "--fleet", fleet)
    assert code == 1
    assert said.count("idle") == 3
    assert "nic-1 is not known: agent nic-1 at" in said
    code, said = typed("rollback", "--fleet", fleet)
    assert code == 1
    assert "2 devices are back" in said
    assert "nic-1 is left as it is: agent nic-1 at" in said
    assert rates(ill.folder) == [5, 50, 5]
    ill.agents["nic-1"] = restarted(ill.folder, ill.agents["nic-1"], "nic-1")
    code, said = typed("rollback", "--fleet", fleet)
    assert (code, rates(ill.folder)) == (0, [5] * 3)
    assert "1 devices are back" in said


def make_a_stranger(ill: Ill, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start nic-1's agent again with another version of the protocol."""
    describe = AgentService.Describe

    def other(self: AgentService, request: pb.Nothing) -> pb.Description:
        found = describe(self, request)
        found.protocol += 2  # the next one is still understood
        return found

    with monkeypatch.context() as patch:
        patch.setattr(AgentService, "Describe", other)
        ill.agents["nic-1"] = restarted(ill.folder, ill.agents["nic-1"], "nic-1")


def test_another_protocol_keeps_no_other_from_stopping_or_a_rollback(
    ill: Ill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = ill.file()
    on_trial(ill, fleet)
    make_a_stranger(ill, monkeypatch)
    code, said = typed("rollback", "--fleet", fleet)
    assert code == 1
    assert "nic-1 is left as it is: agent nic-1 speaks version 5 of the protocol" in said
    assert rates(ill.folder) == [5] * 3
    assert typed("stop", "--fleet", fleet)[0] == 0
    assert set(ill.states().values()) == {"stopped"}


def test_the_end_of_a_run_passes_over_the_dead_the_ill_and_the_strange(
    ill: Ill, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets: dict[str, Any] = {name: {"": {"rp_ai_rate": 50.0}} for name in ill.agents}
    targets["leaf-0"] = {"": {"kmin": 50.0}}
    with controller_of(ill.folder, ill.fleet()) as controller:
        began = controller.runs.begin("a run")
        controller.carry_out(targets, "an interval")
    make_a_stranger(ill, monkeypatch)
    ill.agents["nic-2"].close()
    ill.switch.stop()
    controller = Controller(ill.fleet(), ill.folder)
    try:
        controller.agents.open(lenient=True)
        left = controller.runs.put_back(began, "the end")
    finally:
        controller.close()
    assert rates(ill.folder) == [5, 50, 50]
    assert sorted(left) == ["leaf-0", "nic-1", "nic-2"]
    assert "speaks version 5" in str(left["nic-1"])
    assert "Redis at" in str(left["leaf-0"])


def test_a_database_that_dies_during_a_run_leaves_one_switch_and_says_so(
    small: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "small-fabric.toml"
    file.write_text(SMALL)
    judge = hw_tune._judge
    with fabric_of(small) as fabric:
        before = rates(fabric.fleet.parent)

        def and_strike(line: Any, state: Any, rules: Any) -> None:
            judge(line, state, rules)
            if line["i"] == 1:
                assert rates(fabric.fleet.parent) != before
                fabric._switches[0].stop()

        monkeypatch.setattr(hw_tune, "_judge", and_strike)
        fleet = ["--fleet", str(fabric.fleet)]
        code, said = typed(
            "tune", *fleet, "-s", str(file), "--tuner", "random", "--out", str(tmp_path / "out")
        )
        assert code != 0
        assert rates(fabric.fleet.parent) == before
        assert "6 of 7 devices are at their setting before the run" in said
        assert "switch-4 is not at its setting before the run: " in said
        assert said.count("is not at its setting before the run") == 1


def test_an_unknown_name_is_rolled_back_nowhere_and_that_is_said(ill: Ill) -> None:
    fleet = ill.file()
    on_trial(ill, fleet)
    code, said = typed("rollback", "--fleet", fleet, "--transaction", "doesnotexist")
    assert code != 0
    assert "transaction 'doesnotexist' is no device's newest confirmed change" in said
    assert "nothing was changed" in said
    code, said = typed("rollback", "--fleet", fleet, "--trial-only", "--transaction", "other")
    assert code != 0
    assert "transaction 'other' is on trial on no device" in said
    assert (rates(ill.folder), set(ill.states().values())) == ([50] * 3, {"applied"})


def test_a_named_change_is_not_undone_below_a_trial(ill: Ill) -> None:
    fleet = ill.file()
    assert typed("apply", "--fleet", fleet, "--set", "rp_ai_rate=20")[0] == 0
    first = ill.agents["nic-0"].guard.status.confirmed
    on_trial(ill, fleet)
    trial = ill.agents["nic-0"].guard.status.transaction
    code, said = typed("rollback", "--fleet", fleet, "--transaction", first)
    assert code != 0
    assert f"transaction {trial} is on trial on nic-0" in said
    assert rates(ill.folder) == [50] * 3
    assert typed("rollback", "--fleet", fleet, "--transaction", trial)[0] == 0
    assert rates(ill.folder) == [20] * 3
    assert typed("rollback", "--fleet", fleet, "--transaction", first)[0] == 0
    assert rates(ill.folder) == [5] * 3


def test_frozen_times_hold_for_a_confirmation(ill: Ill) -> None:
    on_trial(ill, ill.file())
    frozen = ill.file(freeze_utc=["00:00-24:00"])
    code, said = typed("confirm", "--fleet", frozen)
    assert code != 0
    assert "the fleet is frozen (00:00-24:00 UTC" in said
    assert (rates(ill.folder), set(ill.states().values())) == ([50] * 3, {"applied"})
    assert typed("rollback", "--fleet", frozen)[0] == 0
    assert rates(ill.folder) == [5] * 3


def test_a_full_disk_of_the_controller_ends_no_way_back(ill: Ill) -> None:
    fleet = ill.file()
    on_trial(ill, fleet)
    audit = ill.folder / "audit.jsonl"
    audit.rename(ill.folder / "away")
    audit.mkdir()  # what a write meets
    for command in ("rollback", "stop"):
        code, said = typed(command, "--fleet", fleet)
        assert code == 1
        assert "done all the same: " in said
        assert "the audit log cannot be written" in said
        assert rates(ill.folder) == [5] * 3


def test_a_stop_file_that_cannot_be_looked_for_stops_and_does_not_stop_the_clock(
    tmp_path: Path,
) -> None:
    now = [100.0]
    with nic_fleet(tmp_path, 1, lambda: now[0], 'stop_file = "off/stop"') as agents:
        agent = agents["nic-0"]
        with controller_of(tmp_path, fleet_of(agents)) as controller:
            controller.try_out({"nic-0": {"": {"rp_ai_rate": 50.0}}}, "a trial", 5.0)
        assert rates(tmp_path) == [50]
        stop = tmp_path / "nic-0" / "off" / "stop"
        stop.parent.mkdir()
        looked = agent.look_for_stop_file
        stop.symlink_to("x" * 300)  # ENAMETOOLONG for whoever looks
        now[0] += 5.0
        server._TICKER.call_all()
        assert rates(tmp_path) == [5]
        looked()
        assert str(agent.guard.status.state) == "stopped"
        stop.unlink()
        looked()
        assert str(agent.guard.status.state) == "idle"


def test_connections_that_say_nothing_are_few_and_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HANDSHAKE_S", 0.1)
    with nic_fleet(tmp_path, 1) as agents:
        host, _, port = agents["nic-0"].address.rpartition(":")
        files = len(os.listdir("/proc/self/fd"))
        silent = [socket.create_connection((host, int(port)), timeout=60.0) for _ in range(200)]
        assert len(os.listdir("/proc/self/fd")) - files <= 200 + server.MOST_CONNECTIONS
        assert [one.recv(1) for one in silent] == [b""] * 200  # each waits until it is closed
        for one in silent:
            one.close()
        with controller_of(tmp_path, fleet_of(agents, timeout_s=30.0)) as controller:
            assert list(controller.agents.descriptions) == ["nic-0"]


def test_a_journals_event_that_is_no_json_is_told_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = pb.Events(json=['{"event": "confirmed"}', "{broken \x1b[31m"])
    monkeypatch.setattr(AgentService, "History", lambda self, request: told)
    with nic_fleet(tmp_path, 1) as agents:
        file = tmp_path / "fleet.toml"
        file.write_text(toml_text(fleet_of(agents).model_dump(mode="json", exclude_none=True)))
        code, said = typed("status", "--fleet", str(file), "--history", "nic-0")
    assert code == 0
    assert '{"event": "confirmed"}\n' in said
    assert "nic-0 reported an event that is not JSON: '{broken" in said
    assert "\x1b" not in said


def test_a_run_that_the_slowest_sensor_cannot_follow_is_refused_with_its_time(ill: Ill) -> None:
    file = ill.folder / "small.toml"
    file.write_text(SMALL.replace("= 1000.0", "= 1_000_000.0"))  # an interval of 1 s
    polls = {"PORT": 1000, "QUEUE": 10000, "QUEUE_WATERMARK": 60000}  # of an untouched switch
    for group, every in polls.items():
        ill.switch._config.hset(f"FLEX_COUNTER_TABLE|{group}", "POLL_INTERVAL", str(every))
    words = ("--fleet", ill.file(), "-s", str(file), "--intervals", "280")
    code, said = typed("tune", *words, "--out", str(ill.folder / "out"))
    said = " ".join(said.split())
    assert code == 1
    assert "polls its QUEUE counters every 10000 ms" in said
    assert "an interval of 60 s (monitor_interval_us = 60000000 in the scenario)" in said
    assert "280 intervals then take 280 minutes" in said
    assert set(ill.states().values()) == {"idle"}
    assert not (ill.folder / "out").exists()
