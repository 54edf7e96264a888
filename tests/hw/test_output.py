"""What commands on a fleet print: devices that are alike in one row, and all of it as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleets import fleet_file, nic_fleet, rates, typed
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.hw.agent.server import AgentServer

NAMES = [f"nic-{i}" for i in range(6)]


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[dict[str, AgentServer]]:
    with nic_fleet(tmp_path, 6) as agents:
        yield agents


def facts(fleet: str, *words: str, code: int = 0) -> Any:
    """Type a command with --json; return what it printed on standard output, which is all JSON."""
    done = CliRunner().invoke(app, ["hw", *words, "--fleet", fleet, "--json"])
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_devices_that_are_alike_share_a_row(tmp_path: Path, agents: dict[str, AgentServer]) -> None:
    fleet = fleet_file(tmp_path, agents)
    setting = ["--set", "rp_ai_rate=50", "--set", "rp_gd=10"]
    code, said = typed("apply", "--fleet", fleet, *setting, "--dry-run")
    assert code == 0
    assert said.count("6: nic-0 to nic-5") == said.count("rp_") == 2
    assert typed("apply", "--fleet", fleet, *setting, "--device", "nic-3")[0] == 0
    code, said = typed("status", "--fleet", fleet)
    assert (code, said.count("idle")) == (0, 2)
    assert "5: nic-0 to nic-5" in said
    assert said.count("nic-3") == 1


def test_every_command_that_says_facts_says_them_as_json(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    fleet, setting = fleet_file(tmp_path, agents), ["--set", "rp_ai_rate=50"]
    plan = facts(fleet, "apply", *setting, "--dry-run")["places"]
    assert list(plan) == NAMES
    line = {"place": "rp_ai_rate", "before": "5", "after": "50", "unit": "Mb/s", "note": ""}
    assert plan["nic-0"] == [line]
    tried = facts(fleet, "apply", *setting, "--hold", "600")
    assert (tried["confirmed"], tried["changed"]) == (False, NAMES)
    found = facts(fleet, "status", code=1)
    assert {own["state"] for own in found["devices"].values()} == {"applied"}
    assert found["devices"]["nic-0"]["transaction"] == tried["transaction"]
    assert found["places"] == {name: [line] for name in NAMES}
    assert facts(fleet, "confirm", "--dry-run")["places"] == {name: [line] for name in NAMES}
    kept = facts(fleet, "confirm")
    assert kept == {"transaction": tried["transaction"], "confirmed": NAMES}
    agents["nic-5"].close()
    back = facts(fleet, "rollback", code=1)
    assert (back["transaction"], back["back"]) == (kept["transaction"], NAMES[:5])
    assert "does not answer" in back["left"]["nic-5"]
    assert rates(tmp_path) == [5] * 5 + [50]
    found = facts(fleet, "status", code=1)
    assert found["devices"]["nic-5"]["state"] == "not known"
    assert list(found["left"]) == ["nic-5"]
    assert (found["split"], found["audit"]) == ({}, "")
    assert facts(fleet, "reconcile", code=1)["moved"] == {}
    stopped = facts(fleet, "stop", code=1)
    assert stopped["states"] == dict.fromkeys(NAMES[:5], "stopped")
    assert list(stopped["left"]) == ["nic-5"]


def test_status_shows_what_a_driver_of_the_sites_own_may_run(tmp_path: Path) -> None:
    with nic_fleet(tmp_path, 1, more='programs = ["vendor-tool"]') as agents:
        fleet = fleet_file(tmp_path, agents)
        assert "mlx5 (may run vendor-tool)" in typed("status", "--fleet", fleet)[1]
        assert facts(fleet, "status")["devices"]["nic-0"]["programs"] == ["vendor-tool"]
