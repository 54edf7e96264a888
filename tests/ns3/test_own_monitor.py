"""A monitor in Python behind the bridge: it runs in the simulation process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.errors import BackendError
from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.envs.backends.base import Backend
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.monitor import monitor_of
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.ns3.backend import Ns3Backend

EXAMPLE = f"{Path(__file__).resolve().parents[2]}/examples/06_own_monitor.py:Window"
PEERS: dict[str, dict[str, Any]] = {
    "peer": {"command": [sys.executable, str(Path(__file__).with_name("native_peer.py"))]},
    "ns3": {},
}


@pytest.fixture(params=PEERS)
def bridged(request: pytest.FixtureRequest) -> Iterator[Ns3Backend]:
    backend = Ns3Backend(**PEERS[request.param])
    yield backend
    backend.close()


def seen(backend: Backend, kind: str) -> list[FlowSizeDistribution]:
    monitor = monitor_of({"kind": kind})
    scenario = load_scenario("mini-fb-hadoop").model_copy(update={"monitor": monitor})
    backend.open(scenario, 2)
    backend.apply(scenario.initial_setting())
    return [backend.advance().fsd for _ in range(3)]


def test_it_says_the_same_everywhere(bridged: Ns3Backend) -> None:
    told = seen(bridged, EXAMPLE)
    assert told == seen(NativeBackend(), EXAMPLE)
    assert sum(fsd.mice for fsd in told) > 0


def test_its_failure_is_one_sentence(bridged: Ns3Backend, tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(
        "from dcqcn_gym.envs.monitors import FlowMonitor\n\n\n"
        "class Bad(FlowMonitor):\n    def observe(self, log):\n        return log.nothing\n"
    )
    with pytest.raises(BackendError, match=r"Bad' failed in observe .* no attribute 'nothing'"):
        seen(bridged, f"{file}:Bad")
