"""What tests of devices share: a scenario, a fleet, a device, certificates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fabrics import SMALL
from faulty_network import make_certificates
from fleets import nic_fleet
from guarded import Device

from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.hw.agent.server import AgentServer


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Return the scenario of the digital fabric, read from a file."""
    file = tmp_path_factory.mktemp("scenario") / "small-fabric.toml"
    file.write_text(SMALL)
    return load_scenario(file)


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[dict[str, AgentServer]]:
    """Yield the agents of three NICs."""
    with nic_fleet(tmp_path, 3) as agents:
        yield agents


@pytest.fixture
def device(tmp_path: Path) -> Device:
    return Device(tmp_path)


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of certificates of a small fleet."""
    folder = tmp_path_factory.mktemp("certs")
    make_certificates(folder)
    return folder
