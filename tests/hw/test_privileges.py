"""What an agent may do: the capabilities that it keeps, units that say the same, its code point."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fleets import controller_of, fleet_of, nic_agent_file
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.config import load_toml
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.hw.agent.config import AgentConfig
from dcqcn_gym.hw.agent.privileges import CAPABILITIES, KEPT, keep_only
from dcqcn_gym.hw.agent.server import load_agent
from dcqcn_gym.hw.certs import write_all
from dcqcn_gym.hw.controller import Controller

STATUS = """
from dcqcn_gym.hw.agent.privileges import keep_only
import subprocess
keep_only({kept!r})
print(open("/proc/self/status").read())
print(subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout)
"""


def sets_of(kept: tuple[str, ...]) -> list[dict[str, str]]:
    """Return what the kernel says of a process that kept these, and of a program it started."""
    done = subprocess.run(
        [sys.executable, "-c", STATUS.format(kept=kept)], capture_output=True, text=True, check=True
    )
    both = done.stdout.split("Name:")[1:]
    return [
        dict(line.split(":\t", 1) for line in one.splitlines() if ":\t" in line) for one in both
    ]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="capabilities are Linux's")
@pytest.mark.parametrize("kind", KEPT)
def test_an_agent_keeps_its_short_list_and_what_it_starts_gets_no_more(kind: str) -> None:
    allowed = 0
    for name in KEPT[kind]:
        allowed |= 1 << CAPABILITIES[name]
    both = sets_of(KEPT[kind])
    assert len(both) == 2
    for found in both:
        assert int(found["CapEff"], 16) & ~allowed == 0
        assert int(found["CapPrm"], 16) & ~allowed == 0
        assert int(found["CapInh"], 16) == 0
        assert found["NoNewPrivs"] == "1"
        if os.geteuid() == 0:
            assert int(found["CapBnd"], 16) & ~allowed == 0


def test_a_capability_that_no_agent_needs_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="CAP_SYS_MODULE"):
        keep_only(["CAP_SYS_MODULE"])


def unit(kind: str) -> str:
    done = CliRunner().invoke(
        app, ["hw", "agent", kind, "--unit", "--config", "/etc/dcqcn-gym/agent.toml"]
    )
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("kind", KEPT)
def test_a_unit_allows_what_the_agent_keeps(kind: str, tmp_path: Path) -> None:
    text = unit(kind)
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    service = parser["Service"]
    assert tuple(service["CapabilityBoundingSet"].split()) == KEPT[kind]
    assert service["ExecStart"].endswith(f"hw agent {kind} --config /etc/dcqcn-gym/agent.toml")
    assert (service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "strict")
    assert service["Restart"] == "always"
    if shutil.which("systemd-analyze"):
        file = tmp_path / "dcqcn-gym.service"
        program = service["ExecStart"].split()[0]
        file.write_text(text.replace(program, "/bin/true"))  # which verify wants to find
        done = subprocess.run(
            ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_an_agents_file_may_keep_one_more(tmp_path: Path) -> None:
    file = nic_agent_file(tmp_path, "nic-0", 'capabilities = ["CAP_SYS_ADMIN"]')
    assert load_toml(file, AgentConfig).capabilities == ("CAP_SYS_ADMIN",)
    file = nic_agent_file(tmp_path, "nic-1", 'capabilities = ["CAP_SYS_MODULE"]')
    with pytest.raises(ConfigError, match="unknown capability 'CAP_SYS_MODULE'"):
        load_toml(file, AgentConfig)


def test_an_authority_that_somebody_else_planted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(tmp_path / "certs", ["nic-0"], [])
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)  # the file is another account's now
    with pytest.raises(ConfigError, match=rf"ca\.key belongs to the account {own}, not to yours"):
        write_all(tmp_path / "certs", ["nic-1"], [])
    assert not (tmp_path / "certs" / "nic-1.pem").exists()


def test_units_name_users_and_folders_that_are_there() -> None:
    switch, nic = unit("switch"), unit("nic")
    assert "User=dcqcn-gym\nSupplementaryGroups=redis\n" in switch
    assert "ReadWritePaths=-/sys/kernel/debug/mlx5 -/sys/kernel/config/bnxt_re" in nic
    for text in (switch, nic):
        assert "StartLimitIntervalSec=0\n" in text.split("[Service]")[0]


@pytest.mark.skipif(shutil.which("ss") is None, reason="iproute2 is not installed")
def test_sockets_of_both_sides_carry_the_code_point(tmp_path: Path) -> None:
    write_all(tmp_path / "certs", ["nic-0"], ["controller"])
    agent = load_agent(nic_agent_file(tmp_path, "nic-0", "dscp = 10"))
    agent.start()
    try:
        lossless = fleet_of({"nic-0": agent}, lossless_dscp=[26, 10])
        refused = Controller(lossless, tmp_path)
        with pytest.raises(ConfigError, match="agent nic-0 sends with dscp = 10"):
            refused.agents.open()
        refused.close()
        with controller_of(tmp_path, fleet_of({"nic-0": agent}, dscp=12)):
            shown = subprocess.run(["ss", "--tos", "-tnHO"], capture_output=True, text=True).stdout
        port = agent.address.rpartition(":")[2]
        rows = [line.split() for line in shown.splitlines()]
        served = [row for row in rows if row[0] == "ESTAB" and row[3].endswith(f":{port}")]
        asking = [row for row in rows if row[0] == "ESTAB" and row[4].endswith(f":{port}")]
        assert served
        assert all("tclass:0x28" in row or "tos:0x28" in row for row in served)
        assert asking
        assert all("tclass:0x30" in row or "tos:0x30" in row for row in asking)
    finally:
        agent.close()
