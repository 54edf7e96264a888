"""Flow sizes from what switches export: datagrams in, a distribution per interval out.

The same collector listens on a fleet (``dcqcn-gym hw collect``) and, fed with datagrams that
simulated switches make, is a monitor in simulation (:mod:`dcqcn_gym.hw.collectors.exporters`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from dcqcn_gym.core.flow_export.fields import DatagramError
from dcqcn_gym.core.flow_export.netflow import RECORDS, TemplateReader
from dcqcn_gym.core.flow_export.roce_flows import is_roce, payload_bytes, sampled_flow
from dcqcn_gym.core.flow_export.sflow import parse
from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.envs.monitors.base import FloatArray, IntArray, summarise

Grown = Mapping[Hashable, float]
DATAGRAMS = "datagrams"


@dataclass
class FlowWindow:
    """Flows by what they sent so far, in ternary states (PARALEON section III-B).

    A flow is an elephant from ``tau_bytes`` on, a potential one once it was seen in ``delta``
    intervals, and forgotten after ``delta`` intervals without a byte.
    """

    tau_bytes: int
    delta: int = 3
    most_flows: int = 65_536
    untracked: int = 0
    """Flows that found the window full, in all."""
    shares: dict[Hashable, float] = field(default_factory=dict)
    """How much of an elephant each flow of the last interval is, in 0..1."""
    _flows: dict[Hashable, tuple[float, int, int]] = field(default_factory=dict)
    _now: int = 0
    _most_bytes: int = 0

    def close(self, grown: Grown, wire_bytes: int) -> FlowSizeDistribution:
        """Add an interval's bytes per flow; return the distribution of its flows."""
        known: dict[Hashable, tuple[float, int]] = {}
        for name, sent in grown.items():
            before = self._flows.get(name, (0.0, 0, 0))
            if name not in self._flows and len(self._flows) >= self.most_flows:
                self.untracked += 1
                continue
            known[name] = before[0] + sent, before[1] + 1
            self._flows[name] = (*known[name], self._now)
        so_far = np.array([row[0] for row in known.values()], dtype=np.float64)
        active = np.array([row[1] for row in known.values()], dtype=np.int64)
        self._most_bytes = max(self._most_bytes, 32 * len(self._flows))
        found = self._judged(so_far, active, list(known), wire_bytes)
        self._now += 1
        oldest = self._now - self.delta
        self._flows = {name: flow for name, flow in self._flows.items() if flow[2] >= oldest}
        return replace(found, tracked_flows=len(self._flows), untracked_flows=self.untracked)

    def _judged(
        self, so_far: FloatArray, active: IntArray, names: list[Hashable], wire_bytes: int
    ) -> FlowSizeDistribution:
        elephant = so_far >= self.tau_bytes
        potential = ~elephant & (active >= self.delta)
        weights = np.minimum(so_far / self.tau_bytes, 1.0)
        shares = np.where(elephant, 1.0, np.where(potential, weights, 0.0))
        self.shares = dict(zip(names, shares.tolist(), strict=True))
        return summarise(
            so_far.astype(np.int64), shares, potential=potential, monitor_bytes=wire_bytes,
            control_plane_bytes=self._most_bytes,
        )  # fmt: skip


@dataclass
class Collector:
    """Reads the datagrams of one form and adds up payload per flow until an interval closes.

    ``sampling`` is the rate of NetFlow's records whose exporter announces none.
    """

    form: str
    window: FlowWindow
    sampling: int = 1
    datagrams: int = 0
    tally: Tally = field(default_factory=Tally)
    """Datagrams, samples and records that came: taken, or left out by reason."""
    _grown: dict[Hashable, float] = field(default_factory=dict)
    _totals: dict[Hashable, int] = field(default_factory=dict)
    """Payload so far of flows whose exporter counts from their begin."""
    _wire: int = 0

    def __post_init__(self) -> None:
        self._templates = TemplateReader(self.sampling, self.tally)

    @property
    def unannounced(self) -> int:
        """Records whose sampling rate nobody told: ``sampling`` was taken."""
        return self._templates.unannounced

    def feed(self, data: bytes, exporter: str) -> None:
        """Read a datagram of an exporter; one that is none is counted and left out as a whole."""
        self.datagrams += 1
        self._wire += len(data)
        self.tally.came(DATAGRAMS)
        try:
            rows = FORMS[self.form](self, data, exporter)
        except DatagramError as error:
            self.tally.leave_out(DATAGRAMS, "datagrams are none of that form", error)
            return
        self.tally.take(DATAGRAMS)
        for name, sent in rows.items():
            self._grown[name] = self._grown.get(name, 0.0) + sent

    def close(self) -> FlowSizeDistribution:
        """End the interval; return the distribution of the flows that it saw."""
        grown, wire = self._grown, self._wire
        self._grown, self._wire = {}, 0
        return self.window.close(grown, wire)

    def _sflow(self, data: bytes, exporter: str) -> dict[Hashable, float]:
        rows: dict[Hashable, float] = {}
        datagram = parse(data)
        for other in datagram.other:
            self.tally.note(other)
        for sample in datagram.samples:
            found = sampled_flow(sample, self.tally)
            if found is not None:
                key, size = found
                rows[key] = rows.get(key, 0.0) + float(size * sample.rate)
        return rows

    def _netflow(self, data: bytes, exporter: str) -> dict[Hashable, float]:
        rows: dict[Hashable, float] = {}
        for record in self._templates.parse(data, exporter):
            if not is_roce(record.protocol, record.target_port):
                self.tally.leave_out(RECORDS, "records are of other protocols than RoCE")
                continue
            self.tally.take(RECORDS)
            payload = payload_bytes(record.octets, record.packets, record.rate)
            key = (record.source, record.target, record.source_port, 0)
            if record.total:
                payload = self._grown_since(key, payload)
            rows[key] = rows.get(key, 0.0) + float(payload)
        return rows

    def _grown_since(self, key: Hashable, total: int) -> int:
        """Return what a flow sent since its last record; one that begins anew counts from 0."""
        before = self._totals.pop(key, 0)
        self._totals[key] = total
        while len(self._totals) > self.window.most_flows:
            del self._totals[next(iter(self._totals))]  # the one that is longest silent
        return total - before if total >= before else total


FORMS: Mapping[str, Callable[[Collector, bytes, str], dict[Hashable, float]]] = {
    "sflow": Collector._sflow,
    "netflow": Collector._netflow,
    "ipfix": Collector._netflow,
}
"""Form of datagrams -> how they are read; NetFlow v9 and IPFIX name their version."""
