"""The native backend: our packet engine in this process (``dcqcn_gym._core``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dcqcn_gym import _core
from dcqcn_gym.envs.backends.base import DeviceSetting
from dcqcn_gym.envs.backends.groups import Devices, resolve
from dcqcn_gym.envs.backends.replay import report_from_dict
from dcqcn_gym.envs.compile import compile_scenario
from dcqcn_gym.errors import BackendError, ConfigError, StateError
from dcqcn_gym.interval import IntervalReport

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenarios import Scenario

__all__ = ["NativeBackend"]

SEED_LIMIT = 2**64


@dataclass
class _Open:
    """A running simulation and what Python needs to know about it."""

    simulation: _core.Simulation
    devices: Devices
    interval_ps: int
    applied: bool = False
    index: int = 0


class NativeBackend:
    """A :class:`~dcqcn_gym.envs.backends.base.Backend` over the C++ engine.

    Every mutable thing lives in one simulation object, so any number of backends can run in one
    process, each in its own thread; ``advance`` releases the GIL.
    """

    def __init__(self) -> None:
        self._open: _Open | None = None

    @property
    def done(self) -> bool:
        """True once all workloads are exhausted and no flow is left; False while closed."""
        return self._open is not None and bool(self._open.simulation.done)

    def open(self, scenario: Scenario, seed: int) -> None:
        """Build the network of ``scenario`` at time 0; raise ConfigError if it cannot be built."""
        if self._open is not None:
            raise StateError("open() on an open backend; call close() first")
        if not 0 <= seed < SEED_LIMIT:
            raise ConfigError(f"seed {seed} is out of range; expected 0 to 2^64 - 1")
        compiled = compile_scenario(scenario)
        try:
            simulation = self._simulate(compiled, seed)
        except ValueError as error:
            raise ConfigError(f"scenario {scenario.name!r}: {error}") from error
        ports = simulation.port_table()
        devices = Devices(
            n_hosts=int(simulation.n_hosts),
            port_node=[int(n) for n in ports["node"]],
            port_index=[int(i) for i in ports["index"]],
            tiers=_tiers(compiled),
        )
        self._open = _Open(simulation, devices, scenario.monitor_interval_ps)

    def _simulate(self, compiled: str, seed: int) -> _core.Simulation:
        return _core.Simulation(compiled, seed)

    def apply(self, setting: DeviceSetting) -> None:
        """Put a setting in force from the current instant on."""
        opened = self._opened("apply")
        nic, ecn = resolve(setting, opened.devices)
        try:
            opened.simulation.apply(nic, ecn)
        except ValueError as error:
            raise ConfigError(f"setting: {error}") from error
        opened.applied = True

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        """Run one monitor interval (or ``duration_ps``) and report it."""
        opened = self._opened("advance")
        if not opened.applied:
            raise StateError("advance() without a setting; call apply() first")
        span = opened.interval_ps if duration_ps is None else duration_ps
        try:
            opened.simulation.advance(int(opened.simulation.now_ps) + span)
            figures = opened.simulation.report()
        except (ValueError, RuntimeError) as error:
            raise BackendError(f"the packet engine stopped: {error}") from error
        opened.index += 1
        return report_from_dict({**figures, "index": opened.index - 1})

    def close(self) -> None:
        """Release everything; allowed in every state."""
        self._open = None

    def totals(self) -> Mapping[str, Any]:
        """Return the engine's running totals since time 0."""
        totals: Mapping[str, Any] = self._opened("totals").simulation.totals()
        return totals

    def _opened(self, call: str) -> _Open:
        if self._open is None:
            raise StateError(f"{call}() on a closed backend; call open() first")
        return self._open


def _tiers(compiled: str) -> dict[int, int]:
    """Return {switch node: tier} from the ``switch`` lines of a compiled scenario."""
    tiers: dict[int, int] = {}
    for line in compiled.splitlines():
        if line.startswith("switch "):
            _, node, *pairs = line.split()
            tiers[int(node)] = int(dict(p.split("=", 1) for p in pairs)["tier"])
    return tiers
