"""Attacks on a small fleet, each to its end: silence, replay, floods, a stolen key, a bad agent.

docs/measured/results.md has the outcomes as a table.
"""

from __future__ import annotations

import resource
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from fleets import controller_of, fleet_file, fleet_of, nic_fleet, rates, typed

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, DeviceError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent import server
from dcqcn_gym.hw.agent.server import AgentServer
from dcqcn_gym.hw.agent.service import AgentService

SILENT = 1300


def wanted(agents: dict[str, AgentServer], mbps: float) -> dict[str, Any]:
    return {name: {"": {"rp_ai_rate": mbps}} for name in agents}


@pytest.mark.slow
def test_1300_silent_connections_delay_nothing_beyond_their_seconds(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 2 * SILENT:
        pytest.skip(f"no more than {before[1]} files may be open here, for {SILENT} connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 2 * SILENT), before[1]))
    silent: list[socket.socket] = []
    try:
        with controller_of(tmp_path, fleet_of(agents)) as controller:
            controller.try_out(wanted(agents, 50.0), "a trial", 2.0)
        host, _, port = agents["nic-0"].address.rpartition(":")
        for _ in range(SILENT):
            silent.append(socket.create_connection((host, int(port)), timeout=60.0))
        time.sleep(2.5)
        assert rates(tmp_path) == [5, 5, 5]  # the trial's timer asks nobody
        assert agents["nic-0"].guard.history[-1]["event"] == "reverted"
        assert {one.recv(1) for one in silent} == {b""}  # each was closed by the agent
        with controller_of(tmp_path, fleet_of(agents, timeout_s=3 * server.HANDSHAKE_S)) as again:
            again.carry_out(wanted(agents, 50.0), "after the attack")
        assert rates(tmp_path) == [50] * 3
    finally:
        for one in silent:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_stolen_key_goes_no_further_than_the_agents_let_it(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet = fleet_file(tmp_path, agents)
    with controller_of(tmp_path, fleet_of(agents)) as thief:
        client = thief.agents.clients["nic-0"]
        deadly = [{"rp_ai_rate": 2147483647.0}, {"rp_min_rate": 90_000.0}, {"../../x": 1.0}]
        for knobs in deadly:
            with pytest.raises(DcqcnGymError):
                thief.carry_out({"nic-0": {"": knobs}}, "deadly")
        with pytest.raises(DcqcnGymError, match="ib_write_bw"):
            client.ask("StartLoad", pb.LoadJob(program="ib_write_bw"))
        with pytest.raises((DcqcnGymError, ConfigError)):
            client.ask("Confirm", pb.Named(transaction="t", who="x", why="y" * 100_000))
        bad = thief.carry_out(wanted(agents, 50.0), "within the limits")
    assert rates(tmp_path) == [50] * 3  # which nothing but limits prevents
    assert [a.guard.history[-1]["who"] for a in agents.values()] == ["dcqcn-gym"] * 3
    assert typed("rollback", "--fleet", fleet, "--transaction", bad.transaction)[0] == 0
    assert rates(tmp_path) == [5] * 3


HOSTILE = "\x1b[2J\x1b[31mall is well\r\n" * 20


@pytest.mark.parametrize("act", ["words", "garbage", "huge", "silence", "another"])
def test_a_hostile_agent_stands_for_its_device_alone(
    act: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = [False]

    def status(self: AgentService, request: pb.Nothing) -> Any:
        if self._device != "nic-1" or not hostile[0]:
            return self._status()
        if act == "silence":
            time.sleep(3.5)
        if act == "garbage":
            raise DeviceError(HOSTILE)
        name = {"another": "nic-2", "huge": "x" * 6_000_000}.get(act, HOSTILE)
        return pb.Status_(state="idle", confirmed=name)

    monkeypatch.setattr(AgentService, "Status", status)
    with nic_fleet(tmp_path, 3) as agents:
        fleet = fleet_file(tmp_path, agents, timeout_s=3.0 if act == "silence" else 60.0)
        assert typed("apply", "--fleet", fleet, "--set", "rp_ai_rate=50", "--hold", "600")[0] == 0
        hostile[0] = True
        code, said = typed("status", "--fleet", fleet)
        assert code == 1
        assert said.count("applied") == 2
        assert "\x1b" not in said
        assert len(said) < 20_000
        assert "\x1b" not in typed("rollback", "--fleet", fleet)[1]
        assert [rates(tmp_path)[i] for i in (0, 2)] == [5, 5]
