"""The native backend: our packet engine in this process (``dcqcn_gym._core``)."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dcqcn_gym import _core
from dcqcn_gym.core.errors import BackendError, ConfigError, StateError
from dcqcn_gym.core.groups import Devices, DeviceSetting, resolve
from dcqcn_gym.core.interval import IntervalReport, LiveFlows
from dcqcn_gym.core.knobs import KnobTable
from dcqcn_gym.core.version import code_versions, version_difference
from dcqcn_gym.envs.backends.base import SIMULATED, Look, Opens
from dcqcn_gym.envs.backends.report_dict import ReportReader
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.monitor import OwnMonitor

if TYPE_CHECKING:
    from dcqcn_gym.envs.backends.flow_log import FlowLogReader
    from dcqcn_gym.envs.scenario.scenario import Scenario

SEED_LIMIT = 2**64
_CPUS = os.cpu_count() or 1  # asked once: the answer takes a while


@dataclass
class _Watch:
    """Who looks at which ports how often; sums up to the last report make figures cumulative."""

    every_ps: int
    ports: np.ndarray[Any, np.dtype[np.int64]]
    look: Look
    tx_bytes: np.ndarray[Any, np.dtype[np.int64]]
    pause_ps: np.ndarray[Any, np.dtype[np.float64]]

    def run(self, simulation: _core.Simulation, until_ps: int) -> None:
        """Advance to ``until_ps``, stopping at every multiple of the period to look."""
        while (stop := (int(simulation.now_ps) // self.every_ps + 1) * self.every_ps) <= until_ps:
            simulation.advance(stop)
            ports = simulation.sample(self.ports)
            ports["tx_bytes"] += self.tx_bytes
            ports["pause_ps"] += self.pause_ps
            self.look(stop, ports, by_source(simulation.flow_rates()))
        simulation.advance(until_ps)

    def count(self, figures: Mapping[str, Any]) -> None:
        """Add the sums of a closed interval."""
        self.tx_bytes += figures["port_tx_bytes"][self.ports]
        self.pause_ps += figures["port_pause_ps"][self.ports]


def by_source(flows: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the rows by source and ordinal: an order that every engine has."""
    order = np.lexsort((flows["ordinal"], flows["src"]))
    return {name: column[order] for name, column in flows.items()}


@dataclass
class _Open:
    """A running simulation and what Python needs to know about it.

    A copy and a pickle go on with the same bytes. A pickle holds the scenario and the state of the
    simulation, for this version of the package; a copy shares what never changes.
    """

    scenario: Scenario
    seed: int
    simulation: _core.Simulation
    devices: Devices
    table: KnobTable
    interval_ps: int
    flow_log: FlowLogReader | None
    """Of a monitor in Python; None: the engine's own makes the distribution."""
    engine: str = "default"
    """By which name the engine makes the simulation anew."""
    applied: bool = False
    watch: _Watch | None = None
    reader: ReportReader = field(default_factory=ReportReader)
    ahead_ps: int | None = None
    """Up to where :func:`run_ahead` was asked to run it; ``advance`` ends there."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _Open:
        """Return another one in this state."""
        same = {"scenario", "seed", "devices", "table", "interval_ps", "engine", "applied"}
        values = {n: v if n in same else deepcopy(v, memo) for n, v in self._state().items()}
        return _Open(simulation=self.simulation.clone(), **values)

    def __getstate__(self) -> dict[str, Any]:
        """Return everything, the simulation as bytes."""
        return {
            **self._state(),
            "simulation": self.simulation.snapshot(),
            "versions": code_versions(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Go on from what was pickled; raise ConfigError for one of another version."""
        if differs := version_difference(state["versions"]):
            raise ConfigError(
                f"a network pickled by other code cannot go on: {differs}; expected the same"
            )
        compiled = compile_scenario(state["scenario"])
        simulation = _core.Simulation(compiled, state["seed"], state["engine"])
        try:
            simulation.restore(state["simulation"])
        except ValueError as error:
            raise ConfigError(f"pickled network: {error}") from error
        del state["versions"]
        vars(self).update({**state, "simulation": simulation})

    def _state(self) -> dict[str, Any]:
        """Return all but the simulation; raise ConfigError if it cannot be copied."""
        if self.watch is not None:
            raise ConfigError("a network that is watched cannot be copied or pickled")
        if self.ahead_ps is not None:
            raise ConfigError("a network that ran ahead is copied or pickled after advance() only")
        if not hasattr(self.simulation, "snapshot"):
            raise ConfigError("only the native backend's networks can be copied or pickled")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "simulation"}


class NativeBackend(Opens[_Open]):
    """A :class:`~dcqcn_gym.envs.backends.base.Backend` over the C++ engine.

    Every mutable thing lives in one simulation object, so any number of backends can run in one
    process, each in its own thread; ``advance`` releases the GIL.
    """

    offers = SIMULATED
    unknown: frozenset[str] = frozenset()
    engine = "default"
    """What the C++ engine calls itself; ``default`` moves packets."""
    engine_s = 0.0
    """CPU seconds that the engine has spent in ``advance`` over all episodes, in this thread."""

    @property
    def done(self) -> bool:
        """True once all workloads are exhausted and no flow is left; False while closed."""
        return self._open is not None and bool(self._open.simulation.done)

    def open(self, scenario: Scenario, seed: int) -> None:
        """Build the network of ``scenario`` at time 0; raise ConfigError if it cannot be built."""
        self._check_closed()
        if not 0 <= seed < SEED_LIMIT:
            raise ConfigError(f"seed {seed} is out of range; expected 0 to 2^64 - 1")
        compiled = compile_scenario(scenario)
        flow_log, span = None, scenario.monitor_interval_ps
        if isinstance(scenario.monitor, OwnMonitor):
            from dcqcn_gym.envs.backends.flow_log import FlowLogReader

            switches = scenario.fabric.n_nodes - scenario.n_hosts
            flow_log = FlowLogReader(scenario.monitor, switches, span, seed)
        try:
            simulation = self._simulate(compiled, seed)
        except ValueError as error:
            raise ConfigError(f"scenario {scenario.name!r}: {error}") from error
        table = scenario.table
        devices = replace(scenario.fabric.devices, nic_knobs=scenario.nic_knobs())
        self._open = _Open(
            scenario, seed, simulation, devices, table, span, flow_log, engine=self.engine
        )

    def _simulate(self, compiled: str, seed: int) -> _core.Simulation:
        return _core.Simulation(compiled, seed, self.engine)

    def apply(self, setting: DeviceSetting) -> None:
        """Put a setting in force from the current instant on."""
        opened = self._opened("apply")
        nic, ecn = resolve(setting, opened.devices, opened.table)
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
            ahead, opened.ahead_ps = opened.ahead_ps, None
            end = ahead or int(opened.simulation.now_ps) + span
            before = time.thread_time()
            if opened.watch is None:
                opened.simulation.advance(end)
            else:
                opened.watch.run(opened.simulation, end)
            self.engine_s += time.thread_time() - before
            closed = ahead is not None and opened.simulation.closed_ps == ahead
            simulation = opened.simulation
            figures = simulation.closed_report() if closed else simulation.report()
        except (ValueError, RuntimeError) as error:
            raise BackendError(f"the packet engine stopped: {error}") from error
        if opened.watch is not None:
            opened.watch.count(figures)
        if opened.flow_log is not None:
            log = opened.simulation.flow_log()
            fsd = opened.flow_log.read(log, figures["start_ps"], figures["end_ps"])
            figures["fsd"] = dict(vars(fsd))
        if self.unknown:
            figures["unknown"] = self.unknown
        return opened.reader.read(figures)

    @property
    def can_run_ahead(self) -> bool:
        """Whether :func:`run_ahead` takes it: while it is open and nobody looks into it."""
        opened = self._open
        return (
            opened is not None
            and opened.watch is None
            and isinstance(opened.simulation, _core.Simulation)
        )

    def watch(self, every_ps: int, ports: Sequence[int], look: Look) -> None:
        """Call ``look(now_ps, ports, flows)`` at every multiple of ``every_ps``, until close.

        ``ports`` are the numbers of ports; ``look`` gets their ``queue_bytes`` and ``paused`` at
        that instant, ``tx_bytes`` and ``pause_ps`` since this call, and of every queue pair with
        work, by source and ordinal, ``src``, ``dst``, ``ordinal`` and ``workload`` of its oldest
        flow, its ``rate_bps``, a number for the ``queue_pair`` and its ``sent_bytes`` (data on the
        wire since it was opened). Results stay the same to the bit. Call it after ``open``.
        """
        opened = self._opened("watch")
        if not hasattr(opened.simulation, "sample"):
            raise ConfigError(f"{type(self).__name__} cannot be looked into; use the native one")
        if every_ps < 1:
            raise ConfigError(f"every_ps = {every_ps}: expected at least 1")
        n = len(ports)
        chosen = np.asarray(ports, dtype=np.int64)
        if n and (chosen.min() < 0 or chosen.max() >= opened.simulation.n_ports):
            raise ConfigError(f"ports: expected numbers from 0 to {opened.simulation.n_ports - 1}")
        counts, pauses = np.zeros(n, np.int64), np.zeros(n, np.float64)
        opened.watch = _Watch(every_ps, chosen, look, counts, pauses)

    def trace_schemes(self) -> None:
        """Keep CNPs, cuts and increases of every queue pair from now on, until close."""
        simulation = self._opened("trace_schemes").simulation
        if not hasattr(simulation, "trace_schemes"):
            raise ConfigError(f"{type(self).__name__} keeps no events; use the native one")
        simulation.trace_schemes(True)

    def take_scheme_trace(self) -> Sequence[Mapping[str, Any]]:
        """Return the events since the last call, as the protocol ``Eventful`` says."""
        taken: Sequence[Mapping[str, Any]] = self._opened(
            "take_scheme_trace"
        ).simulation.take_scheme_trace()
        return taken

    def live_flows(self) -> LiveFlows:
        """Return the flows that have not finished, by source and ordinal."""
        return LiveFlows(**by_source(self._opened("live_flows").simulation.live_flows()))

    def close(self) -> None:
        """Release everything; allowed in every state."""
        self._open = None


def run_ahead(backends: Sequence[Any], threads: int | None = None) -> None:
    """Run one monitor interval of each, in threads, in one call of the engine.

    The next ``advance()`` of each only reads its report; nothing else may be called before it. A
    second call, as after one that was interrupted, runs those that are not there yet.
    ``backends`` are different ones, of this module, that have ``can_run_ahead``. ``threads`` are
    one per CPU without a number; they change no byte.
    """
    opened: list[_Open] = [backend._opened("run_ahead") for backend in backends]
    ends = [o.ahead_ps or int(o.simulation.now_ps) + o.interval_ps for o in opened]
    for one, end in zip(opened, ends, strict=True):
        one.ahead_ps = end
    try:
        _core.advance_all([o.simulation for o in opened], ends, threads or _CPUS)
    except (ValueError, RuntimeError) as error:
        raise BackendError(f"the packet engine stopped: {error}") from error
