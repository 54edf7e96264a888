"""The digital fabric of a scenario, with the native engine behind its devices."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import scenario_digest
from dcqcn_gym.hw.device_counters import shape_of

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario
    from dcqcn_gym.hw.fabric.fabric import DigitalFabric, FabricSpec, Simulation


def fabric_spec(scenario: Scenario) -> FabricSpec:
    """Return what the digital fabric of a scenario plays: the native engine."""
    from dcqcn_gym.hw.fabric.fabric import FabricSpec

    def begin(seed: int) -> Simulation:
        simulation = NativeBackend()
        simulation.open(scenario, seed)
        return simulation

    return FabricSpec(
        scenario_digest(scenario), shape_of(scenario), scenario.initial_setting(),
        scenario.monitor_interval_ps, begin,
    )  # fmt: skip


@contextmanager
def fabric_for_now(scenario: Scenario, **options: Any) -> Iterator[DigitalFabric]:
    """Run a scenario's fabric in this process and in a folder that goes with it.

    ``options`` are the fabric's. The folder has a short name, since sockets have short addresses.
    """
    from dcqcn_gym.hw.fabric.fabric import DigitalFabric

    folder = Path(tempfile.mkdtemp(prefix="dcqcn-"))
    fabric = DigitalFabric(folder / "f", fabric_spec(scenario), **options)
    try:
        fabric.start()
        yield fabric
    finally:
        fabric.close()
        shutil.rmtree(folder)
