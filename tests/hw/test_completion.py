"""A gate's transfer between two hosts: it completes as before, or every wave goes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleets import fleet_of, nic_fleet, rates
from test_load import LATENCY

from dcqcn_gym.core.errors import DcqcnGymError, DeviceError
from dcqcn_gym.hw.agent.server import AgentServer
from dcqcn_gym.hw.controller import Controller

GATE = {"seconds": 6.0, "probe": {"client": "nic-0", "server": "nic-2", "options": {"port": "9"}}}


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[dict[str, AgentServer]]:
    """Four NICs whose hosts have an ``ib_write_lat`` that prints the file ``said``, or fails."""
    programs = tmp_path / "bin"
    programs.mkdir()
    said = tmp_path / "said"
    said.write_text(LATENCY)
    script = programs / "ib_write_lat"
    script.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
        f"[ $# = 2 ] && exec sleep 60\n[ -s {said} ] || exec sleep 60\ncat {said}\n"
    )
    script.chmod(0o755)
    with nic_fleet(tmp_path, 4) as agents:
        for agent in agents.values():
            agent.loads._allowed = ("ib_write_lat",)
            agent.loads._folders = f"{programs}:/usr/bin:/bin"
        yield agents


def changed(folder: Path, agents: dict[str, AgentServer], at_gate: Any = None) -> None:
    """Change all NICs in two waves; ``at_gate`` is called when the gate watches the first."""
    seen: list[float] = []

    def sleep(seconds: float) -> None:
        if seconds == GATE["seconds"]:
            seen.append(seconds)
            if len(seen) == 1 and at_gate is not None:
                at_gate()

    controller = Controller(fleet_of(agents, gate=GATE), folder, sleep=sleep)
    controller.agents.open()
    try:
        controller.carry_out({n: {"": {"rp_ai_rate": 50.0}} for n in agents}, "in waves", waves=2)
    finally:
        controller.close()


def test_a_transfer_that_completes_as_before_lets_every_wave_follow(
    tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    changed(tmp_path, agents)
    assert rates(tmp_path) == [50] * 4
    asked = (tmp_path / "asked").read_text().splitlines()
    assert sorted(asked) == ["-p 9"] * 3 + ["-p 9 127.0.0.1"] * 3  # before, and after each wave
    assert not any(agent.loads.state()[0] for agent in agents.values())


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            LATENCY.replace("1.07", "2.20"),
            r"after wave 1 of 2 a round trip from nic-0 to nic-2 .*2",
        ),
        ("", "the probe from nic-0 to nic-2 did not complete within 6 s"),
        ("Couldn't connect\n", "no results"),
    ],
)
def test_one_that_does_not_takes_all_waves_back(
    said: str, words: str, tmp_path: Path, agents: dict[str, AgentServer]
) -> None:
    with pytest.raises(DeviceError, match=words):
        changed(tmp_path, agents, lambda: (tmp_path / "said").write_text(said))
    assert rates(tmp_path) == [5] * 4
    assert not any(agent.loads.state()[0] for agent in agents.values())


def test_a_probe_names_nics_of_the_fleet(agents: dict[str, AgentServer]) -> None:
    with pytest.raises(DcqcnGymError, match="nic-9"):
        fleet_of(agents, gate={"probe": {"client": "nic-9", "server": "nic-0"}})
