"""Running a scenario and keeping what papers draw: queues and sending rates between intervals.

Rates are *sending* rates: wire bytes of data whose transmission began in the period, over it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import FinishedFlows, FloatArray, IntervalReport
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.simulation.trace import port_names

US = 1_000_000
"""Picoseconds."""


@dataclass
class RunProbe:
    """What was seen. Times in seconds, queues in bytes, rates in bit/s, one row per sample.

    ``flow_rates`` has one column per source: the rate of its queue pairs' reaction points, summed.
    """

    every_s: float
    time: FloatArray = field(default_factory=lambda: np.zeros(0))
    queue: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    """Of the chosen ports, one column each."""
    sent: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    """Sending rate of each host."""
    paused: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    """Share of the period in which PFC stopped each host."""
    finished: list[FinishedFlows] = field(default_factory=list)
    reports: list[IntervalReport] = field(default_factory=list)
    hops: int = 0
    unfinished: int = 0

    @property
    def rate(self) -> FloatArray:
        """Total sending rate."""
        return np.asarray(self.sent.sum(axis=1), dtype=np.float64)

    def after(self, start_s: float, stop_s: float = np.inf) -> npt.NDArray[np.bool_]:
        """Return which samples lie in (start, stop]."""
        return np.asarray((self.time > start_s + 1e-12) & (self.time <= stop_s + 1e-12))

    def fct_s(self) -> FloatArray:
        """Return every completion time, in the order of completion."""
        every = [flows.fct_ps for flows in self.finished]
        return _joined(every)

    def ends_s(self) -> FloatArray:
        """Return when each flow ended, in that order."""
        every = [flows.start_ps + flows.fct_ps for flows in self.finished]
        return _joined(every)


def _joined(parts_ps: Sequence[npt.NDArray[np.int64]]) -> FloatArray:
    """Return picoseconds of several arrays as seconds in one."""
    return np.concatenate([np.zeros(0), *(part * 1e-12 for part in parts_ps)])


def probe(
    scenario: Scenario,
    seed: int,
    length_ms: float,
    *,
    every_us: float = 0.0,
    ports: Sequence[tuple[int, int]] = (),
    setting: DeviceSetting | None = None,
    until_done: bool = False,
) -> RunProbe:
    """Run a scenario on the native engine for ``length_ms``, or until all flows are delivered.

    ``every_us``: the period of the samples, 0 for none. ``ports``: (node, peer) of switch ports
    whose queues are kept. ``until_done`` ends earlier than ``length_ms`` once nothing is left.
    """
    world = NativeBackend()
    world.open(scenario, seed)
    try:
        world.apply(scenario.initial_setting() if setting is None else setting)
        seen = RunProbe(every_us * 1e-6)
        sampler = _Sampler(scenario, ports, every_us) if every_us else None
        if sampler is not None:
            world.watch(round(every_us * US), sampler.numbers, sampler.look)
        left = round(length_ms * 1000 * US)
        while left > 0 and not (until_done and world.done):
            report = world.advance(min(left, scenario.monitor_interval_ps))
            left -= scenario.monitor_interval_ps
            seen.hops += report.packet_hops
            seen.unfinished = report.active_flows
            seen.finished.append(report.finished)
            seen.reports.append(report)
        if sampler is not None:
            sampler.fill(seen)
    finally:
        world.close()
    return seen


class _Sampler:
    """Keeps what the engine shows at every period: chosen queues, then the hosts' ports."""

    def __init__(self, scenario: Scenario, ports: Sequence[tuple[int, int]], every_us: float):
        net = scenario.fabric
        by_ends = {(port.node, port.peer): port.number for port in reversed(port_names(net))}
        self.queues = [by_ends[ends] for ends in ports]
        hosts = [port.number for port in port_names(net) if port.node < net.n_hosts]
        self.numbers = [*self.queues, *hosts]
        self.every_s = every_us * 1e-6
        self._rows: list[tuple[int, Any, Any, Any]] = []

    def look(self, now_ps: int, ports: Mapping[str, Any], flows: Mapping[str, Any]) -> None:
        """Take one sample."""
        n = len(self.queues)
        self._rows.append(
            (
                now_ps,
                ports["queue_bytes"][:n].copy(),
                ports["tx_bytes"][n:].copy(),
                ports["pause_ps"][n:].copy(),
            )
        )

    def fill(self, seen: RunProbe) -> None:
        """Turn sums into rates and shares."""
        if not self._rows:
            return
        seen.time = np.array([row[0] for row in self._rows]) * 1e-12
        seen.queue = np.array([row[1] for row in self._rows], dtype=np.float64)
        sent = np.array([row[2] for row in self._rows], dtype=np.float64)
        seen.sent = np.diff(sent, axis=0, prepend=0.0) * 8 / self.every_s
        paused = np.array([row[3] for row in self._rows], dtype=np.float64)
        seen.paused = np.diff(paused, axis=0, prepend=0.0) * 1e-12 / self.every_s


def thinned(x: FloatArray, y: FloatArray, points: int = 200) -> tuple[list[float], list[float]]:
    """Return means of groups of neighbours, at most so many, for a plot."""
    step = max(1, -(-x.size // points))
    groups = range(0, x.size, step)
    return (
        [float(np.mean(x[i : i + step])) for i in groups],
        [float(np.mean(y[i : i + step])) for i in groups],
    )
