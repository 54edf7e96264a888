"""The packets that a network's ToRs count, made once and shown to several monitors.

The setting is fixed and nothing that a monitor does changes the traffic, so every monitor sees
the very same packets as it would inside the simulation (a test holds both to the same bits).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dcqcn_gym import _core
from dcqcn_gym.benchmarks.papers.monitor_study.accuracy import (
    Accuracy,
    SeenFlows,
    accuracy,
    sizes_of,
)
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import same_everywhere
from dcqcn_gym.envs.backends.flow_log import SIZES_AND_FLOWS, FlowLogReader
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.monitor import KINDS, OwnMonitor
from dcqcn_gym.envs.scenario.scenario import Scenario

IntArray = npt.NDArray[np.int64]


def monitor_line(compiled: str, options: Mapping[str, object]) -> str:
    """Return a compiled scenario with other options of its monitor, by the engine's names.

    Of another kind: with its defaults, but for the options that both kinds have.
    """

    def changed(match: re.Match[str]) -> str:
        word, *pairs = match.group().split()
        now = dict(pair.split("=", 1) for pair in pairs)
        kind = str(options.get("kind", now["kind"]))
        fresh = KINDS[kind](kind=kind).words() if kind in KINDS else {}
        known = _core.MONITOR_KINDS.get(kind, tuple(now))
        kept = {key: value for key, value in now.items() if key in known}
        items = {**fresh, **kept, **options}
        return " ".join([word, *(f"{key}={value}" for key, value in items.items())])

    return re.sub(r"(?m)^monitor .*$", changed, compiled)


class Counter(Protocol):
    """A monitor that is shown packets: the engine's, or one in Python behind its flow log."""

    def record(self, tor: Any, key: Any, payload_bytes: Any) -> None:
        """Count data packets."""

    def end_interval(self, now_ps: int) -> dict[str, Any]:
        """End the interval; return its distribution and cost."""

    def labels(self) -> dict[str, Any]:
        """Return every flow active in the last interval, the truth and what the monitor held."""


class FedMonitor:
    """A monitor in Python, fed by the engine's flow log of the packets it is shown."""

    def __init__(self, log: _core.Monitor, reader: FlowLogReader) -> None:
        self._log = log
        self._reader = reader
        self._begin = self._end = 0
        self.record = log.record

    def end_interval(self, now_ps: int) -> dict[str, Any]:
        """End the interval; return its distribution and cost."""
        self._log.end_interval(now_ps)
        self._begin, self._end = self._end, now_ps
        return vars(self._reader.read(self._log.flow_log(), self._begin, now_ps))

    def labels(self) -> dict[str, Any]:
        """Return the truth and the monitor's shares; ConfigError if it knows no single flows."""
        labels = self._log.labels()  # in the order of the flow log
        shares = self._reader.elephant_shares(self._log.flow_log(), self._begin, self._end)
        if shares is None:
            raise ConfigError(
                f"monitor {self._reader.kind!r} knows no single flows, so its accuracy cannot be "
                "judged; give it the method elephant_shares"
            )
        seen = ~np.isnan(shares)
        states = np.where(shares >= 1.0, ELEPHANT, np.where(shares > 0.0, POTENTIAL, MOUSE))
        labels["state"] = np.where(seen, states, UNSEEN)
        labels["elephant_share"] = np.where(seen, shares, 0.0)
        return labels


UNSEEN, MOUSE, POTENTIAL, ELEPHANT = range(4)
"""States of a flow, as the engine numbers them."""


@dataclass
class Sample:
    """One monitor at one interval length, and what it said."""

    name: str
    interval_ps: int
    options: Mapping[str, object]
    own: OwnMonitor | None = None
    """The table of a monitor in Python; the engine's options are then those of a flow log."""
    seen: list[SeenFlows] = field(default_factory=list)
    costs: list[dict[str, int]] = field(default_factory=list)

    def build(self, compiled: str, study: Packets) -> Counter:
        """Return the fresh monitor; one in Python has its table in ``own``."""
        options = {**self.options, "labels": 1}
        counter = _core.Monitor(monitor_line(compiled, options), study.seed)
        if self.own is None:
            return counter
        net = study.scenario.fabric
        switches = net.n_nodes - net.n_hosts
        return FedMonitor(counter, FlowLogReader(self.own, switches, self.interval_ps, study.seed))

    def close(self, monitor: Counter, now_ps: int, keep: bool) -> None:
        """End an interval; ``keep`` what was said unless it belongs to the warm-up."""
        fsd = monitor.end_interval(now_ps)
        if keep:
            self.costs.append({name: int(fsd[name]) for name in SIZES_AND_FLOWS})
            self.seen.append(SeenFlows.of(monitor.labels(), fsd))


@dataclass(frozen=True)
class Packets:
    """Traffic and how long it is watched: ``warmup_ps`` first, then ``length_ps`` that counts."""

    scenario: Scenario
    seed: int
    step_ps: int
    warmup_ps: int
    length_ps: int


Steps = Iterator[tuple[int, dict[str, Any], dict[str, Any]]]
Traffic = Callable[[Packets], Steps]
"""What moves the flows of a study: :func:`simulate` or another model of the network."""


def simulate(study: Packets) -> Steps:
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


def replay(study: Packets, probes: list[Sample], traffic: Traffic = simulate) -> IntArray:
    """Run the traffic once and fill every probe; return the flows as rows of (key, size).

    Interval lengths are multiples of the study's step and divide its warm-up.
    """
    for probe in probes:
        if probe.interval_ps % study.step_ps or study.warmup_ps % probe.interval_ps:
            raise ValueError(f"an interval of {probe.interval_ps} ps does not fit the study")
    compiled = compile_scenario(study.scenario)
    monitors = [probe.build(compiled, study) for probe in probes]
    flows: list[IntArray] = []
    for now, trace, known in traffic(study):
        keys = keys_of(known)
        flows.append(np.stack([keys, known["bytes"]]))
        keep = now > study.warmup_ps
        for probe, monitor in zip(probes, monitors, strict=True) if trace else ():
            monitor.record(**trace)
            if now % probe.interval_ps == 0:
                probe.close(monitor, now, keep)
    return np.concatenate(flows, axis=1)


def judge(probe: Sample, flows: IntArray, tau: int) -> list[Accuracy | None]:
    """Return the accuracy of every interval of a probe, in time order."""
    keys, sizes = flows
    return [accuracy(seen, sizes_of(seen.key, keys, sizes), tau) for seen in probe.seen]
