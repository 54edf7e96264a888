"""The packets that a network's ToRs count, made once and shown to several monitors.

The setting is fixed and nothing that a monitor does changes the traffic, so every monitor sees
the very same packets as it would inside the simulation (a test holds both to the same bits).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym import _core
from dcqcn_gym.benchmarks.monitors.accuracy import Accuracy, Seen, accuracy, sizes_of
from dcqcn_gym.core.groups import same_everywhere
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario

__all__ = [
    "Probe",
    "Steps",
    "Study",
    "Traffic",
    "judge",
    "keys_of",
    "monitor_line",
    "replay",
    "simulate",
]

IntArray = npt.NDArray[np.int64]


def monitor_line(compiled: str, options: Mapping[str, object]) -> str:
    """Return a compiled scenario with other options of its monitor."""

    def changed(match: re.Match[str]) -> str:
        word, *pairs = match.group().split()
        now = dict(pair.split("=", 1) for pair in pairs)
        now |= {key: str(value) for key, value in options.items()}
        return " ".join([word, *(f"{key}={value}" for key, value in now.items())])

    return re.sub(r"(?m)^monitor .*$", changed, compiled)


@dataclass
class Probe:
    """One monitor at one interval length, and what it said."""

    name: str
    interval_ps: int
    options: Mapping[str, object]
    clocked: bool = False
    """Measure its CPU time; then it keeps no labels."""
    seen: list[Seen] = field(default_factory=list)
    costs: list[dict[str, int]] = field(default_factory=list)
    record_s: float = 0.0
    close_s: float = 0.0
    packets: int = 0

    def build(self, compiled: str, seed: int) -> _core.Monitor:
        """Return the fresh monitor."""
        options = {**self.options, "labels": int(not self.clocked)}
        return _core.Monitor(monitor_line(compiled, options), seed)

    def close(self, monitor: _core.Monitor, now_ps: int, keep: bool) -> None:
        """End an interval; ``keep`` what was said unless it belongs to the warm-up."""
        before = time.thread_time()
        fsd = monitor.end_interval(now_ps)
        spent = time.thread_time() - before
        if not keep:
            return
        self.close_s += spent
        self.costs.append({name: int(fsd[name]) for name in COSTS})
        if not self.clocked:
            self.seen.append(Seen.of(monitor.labels(), fsd))

    def record(self, monitor: _core.Monitor, trace: Mapping[str, Any], keep: bool) -> None:
        """Show packets to the monitor."""
        before = time.thread_time()
        monitor.record(**trace)
        if keep:
            self.record_s += time.thread_time() - before
            self.packets += len(trace["key"])


COSTS = (
    "monitor_bytes",
    "data_plane_bytes",
    "control_plane_bytes",
    "tracked_flows",
    "untracked_flows",
)


@dataclass(frozen=True)
class Study:
    """Traffic and how long it is watched: ``warmup_ps`` first, then ``length_ps`` that counts."""

    scenario: Scenario
    seed: int
    step_ps: int
    warmup_ps: int
    length_ps: int


Steps = Iterator[tuple[int, dict[str, Any], dict[str, Any]]]
Traffic = Callable[[Study], Steps]
"""What moves the flows of a study: :func:`simulate` or another model of the network."""


def simulate(study: Study) -> Steps:
    """Yield (now, packets, flows) of every step; flows are those finished and, last, those live."""
    text = monitor_line(compile_scenario(study.scenario), {"kind": "none", "trace": 1})
    simulation = _core.Simulation(text, study.seed)
    setting = study.scenario.initial_setting()
    simulation.apply(*same_everywhere(setting, simulation.n_hosts, simulation.n_ports))
    end = study.warmup_ps + study.length_ps
    for now in range(study.step_ps, end + 1, study.step_ps):
        simulation.advance(now)
        finished = simulation.report()["finished"]
        yield now, simulation.take_trace(), finished
    yield end, {}, simulation.live_flows()


def keys_of(flows: Mapping[str, IntArray]) -> IntArray:
    """Return what monitors know flows by, from their ``src`` and ``ordinal``."""
    return _core.flow_keys(flows["src"], flows["ordinal"])


def replay(study: Study, probes: list[Probe], traffic: Traffic = simulate) -> IntArray:
    """Run the traffic once and fill every probe; return the flows as rows of (key, size).

    Interval lengths are multiples of the study's step and divide its warm-up.
    """
    for probe in probes:
        if probe.interval_ps % study.step_ps or study.warmup_ps % probe.interval_ps:
            raise ValueError(f"an interval of {probe.interval_ps} ps does not fit the study")
    compiled = compile_scenario(study.scenario)
    monitors = [probe.build(compiled, study.seed) for probe in probes]
    flows: list[IntArray] = []
    for now, trace, known in traffic(study):
        keys = keys_of(known)
        flows.append(np.stack([keys, known["bytes"]]))
        keep = now > study.warmup_ps
        for probe, monitor in zip(probes, monitors, strict=True) if trace else ():
            probe.record(monitor, trace, keep)
            if now % probe.interval_ps == 0:
                probe.close(monitor, now, keep)
    return np.concatenate(flows, axis=1)


def judge(probe: Probe, flows: IntArray, tau: int) -> list[Accuracy | None]:
    """Return the accuracy of every interval of a probe, in time order."""
    keys, sizes = flows
    return [accuracy(seen, sizes_of(seen.key, keys, sizes), tau) for seen in probe.seen]
