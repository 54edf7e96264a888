"""What devices count and what follows from it: interval reports as counters, and back.

A :class:`Ledger` adds up the reports of a network as its devices would: whole numbers, in the
devices' units (bytes, packets, microseconds of pause, nanoseconds of round trips), growing from the
start. :func:`report_of` makes a report of two readings. What lies between, rounding and what no
device counts, is the same whether a simulation is seen this way in one process or over a fleet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dcqcn_gym.core.abort_rules import NIC_ERRORS
from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.groups import Devices
from dcqcn_gym.core.interval import (
    REPORT_FIELDS,
    FloatArray,
    FlowSizeDistribution,
    IntervalReport,
    report_with,
)
from dcqcn_gym.core.sums import count

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario

PS_PER_US = 1_000_000
PS_PER_NS = 1_000
STUCK_BYTES = 20_000
"""More bytes than this in no packet at all are no packet at the edge of an interval."""

UNKNOWN = frozenset(
    {
        *("delivered_bytes", "acks", "retransmitted_packets", "pauses", "resumes", "port_pfc_sent"),
        *("packet_hops", "rate_cuts", "rate_increases", "active_flows"),
        *(name for name in REPORT_FIELDS if name.startswith("finished.")),
    }
)
"""Figures of a report that no device counts. PAUSE and resume frames are counted together."""

NO_FSD = frozenset(name for name in REPORT_FIELDS if name.startswith("fsd."))
"""What is unknown too where no collector keeps a flow-size distribution."""

_PORT = {
    "tx_bytes": "port_tx_bytes",
    "tx_packets": "port_tx_packets",
    "marked_packets": "port_marked_packets",
    "marked_bytes": "port_marked_bytes",
    "dropped_packets": "port_dropped_packets",
    "pfc_received": "port_pfc_received",
    "pfc_sent": "port_pfc_sent",
}
_GAUGES = {"queue_bytes": "port_queue_bytes", "max_queue_bytes": "port_max_queue_bytes"}

Counters = Mapping[str, int]


@dataclass(frozen=True)
class Shape:
    """The network that was counted: its devices, and the rates of hosts and ports in bit/s."""

    devices: Devices
    host_rate_bps: FloatArray
    port_rate_bps: FloatArray

    @property
    def switch_ports(self) -> range:
        """Numbers of the ports of switches; those of hosts come before."""
        return range(self.devices.n_hosts, len(self.devices.port_node))


def shape_of(scenario: Scenario) -> Shape:
    """Return the shape of a scenario's network, ports numbered as in reports."""
    fabric = scenario.fabric
    rates: list[list[float]] = [[] for _ in range(fabric.n_nodes)]
    for link in fabric.links:
        rates[link.a].append(link.rate_bps)
        rates[link.b].append(link.rate_bps)
    devices = fabric.devices
    ports = [rates[n][i] for n, i in zip(devices.port_node, devices.port_index, strict=True)]
    hosts = [link.rate_bps for link in fabric.host_link]
    return Shape(devices, np.array(hosts, np.float64), np.array(ports, np.float64))


@dataclass(frozen=True)
class Counted:
    """All counters at one instant: of every NIC, then of every switch port."""

    nics: Sequence[Counters]
    ports: Sequence[Counters]


@dataclass
class Ledger:
    """Adds up reports, from zero; what it shows never becomes less but for queues."""

    shape: Shape
    _nics: list[dict[str, int]] = field(init=False)
    _ports: list[dict[str, int]] = field(init=False)
    _pause_ps: FloatArray = field(init=False)
    _rtt_ps: dict[tuple[int, int], list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        names = ("tx_bytes", "tx_packets", "pfc_received", "pfc_sent", "pause_us", "cnps_sent")
        self._nics = [dict.fromkeys(names, 0) for _ in range(self.shape.devices.n_hosts)]
        zeros = dict.fromkeys((*_PORT, *_GAUGES, "pause_us"), 0)
        self._ports = [dict(zeros) for _ in self.shape.switch_ports]
        self._pause_ps = np.zeros(len(self.shape.devices.port_node))

    def add(self, report: IntervalReport) -> None:
        """Count an interval. CNPs, which a report counts as a whole, are those of the first NIC."""
        self._pause_ps = self._pause_ps + report.port_pause_ps
        for host, nic in enumerate(self._nics):
            nic["tx_bytes"] += int(report.host_tx_bytes[host])
            for name in ("tx_packets", "pfc_received", "pfc_sent"):
                nic[name] += int(getattr(report, _PORT[name])[host])
            nic["pause_us"] = int(self._pause_ps[host] / PS_PER_US)
        self._nics[0]["cnps_sent"] += report.cnps
        for port, number in zip(self._ports, self.shape.switch_ports, strict=True):
            for name, column in _PORT.items():
                port[name] += int(getattr(report, column)[number])
            for name, column in _GAUGES.items():
                port[name] = int(getattr(report, column)[number])
            port["pause_us"] = int(self._pause_ps[number] / PS_PER_US)
        self._add_round_trips(report)

    def _add_round_trips(self, report: IntervalReport) -> None:
        columns = (report.rtt_src, report.rtt_dst, report.rtt_count, report.rtt_sum_ps)
        for src, dst, n, total_ps, base_ps in zip(*columns, report.rtt_base_ps, strict=True):
            pair = self._rtt_ps.setdefault((int(src), int(dst)), [0, 0])
            pair[0] += int(n)
            pair[1] += int(total_ps)
            nic = self._nics[int(src)]
            nic[f"rtt/{dst}/count"] = pair[0]
            nic[f"rtt/{dst}/sum_ns"] = pair[1] // PS_PER_NS
            nic[f"rtt/{dst}/base_ns"] = int(base_ps) // PS_PER_NS

    def reading(self) -> Counted:
        """Return the counters of now; later intervals do not change it."""
        return Counted([dict(n) for n in self._nics], [dict(p) for p in self._ports])


def report_of(
    shape: Shape,
    before: Counted,
    after: Counted,
    span: tuple[int, int, int],
    fsd: FlowSizeDistribution | None,
) -> IntervalReport:
    """Return the report of the time between two readings; ``span`` is index, start and end in ps.

    Raises DeviceError if a counter went back, as it does when a device starts again: such an
    interval is not known and no figure is made up for it.
    """
    index, start_ps, end_ps = span
    nics = _grown(before.nics, after.nics, "NIC")
    ports = _grown(before.ports, after.ports, "switch port")
    columns: dict[str, Any] = {
        c: _column(nics, ports, name) for name, c in _PORT.items() if c not in UNKNOWN
    }
    pause_ps = _column(nics, ports, "pause_us").astype(np.float64) * PS_PER_US
    for name, column in _GAUGES.items():  # what a NIC queues, no device tells
        columns[column] = _column([{}] * len(nics), after.ports, name)
    src, dst, counts, sums, bases = _round_trips(before.nics, after.nics)
    errors = count(n.get(NIC_ERRORS, 0) for n in nics)
    return report_with(
        shape.host_rate_bps,
        np.array(shape.devices.port_node, dtype=np.int64),
        shape.port_rate_bps,
        index=index, start_ps=start_ps, end_ps=end_ps,
        host_tx_bytes=_ints(n["tx_bytes"] for n in nics),
        rtt_src=src, rtt_dst=dst, rtt_count=counts, rtt_sum_ps=sums, rtt_base_ps=bases,
        port_pause_ps=np.minimum(pause_ps, float(end_ps - start_ps)),
        **columns,
        data_packets=count(n["tx_packets"] for n in nics),
        cnps=count(n["cnps_sent"] for n in nics),
        marks=count(p["marked_packets"] for p in ports),
        drops=count(p["dropped_packets"] for p in ports),
        fsd=FlowSizeDistribution(known=False) if fsd is None else fsd,
        unknown=UNKNOWN | (NO_FSD if fsd is None else frozenset()),
        scheme_counters={NIC_ERRORS: errors} if errors else {},
    )  # fmt: skip


def _grown(
    before: Sequence[Counters], after: Sequence[Counters], kind: str
) -> list[dict[str, int]]:
    """Return the growth of every counter but gauges; raise DeviceError for one that went back."""
    found = []
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        growth = {
            name: value - old.get(name, 0)
            for name, value in new.items()
            if name not in _GAUGES and not name.startswith("rtt/")
        }
        for name, value in growth.items():
            if value < 0:
                raise DeviceError(
                    f"{kind} {i}: its counter {name} went from {old[name]} to {new[name]}; the "
                    "device may have started again, so this interval is not known"
                )
        if growth.get("tx_bytes", 0) > STUCK_BYTES and growth.get("tx_packets") == 0:
            raise DeviceError(
                f"{kind} {i}: it sent {growth['tx_bytes']} bytes in no packet; a counter is stuck, "
                "so this interval is not known"
            )
        found.append(growth)
    return found


def _column(
    nics: Sequence[Counters], ports: Sequence[Counters], name: str
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return a figure of every port; 0 for a host's where its NIC does not count it."""
    return _ints([*(n.get(name, 0) for n in nics), *(p[name] for p in ports)])


def _ints(values: object) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(list(values), dtype=np.int64)  # type: ignore[call-overload]


def _round_trips(
    before: Sequence[Counters], after: Sequence[Counters]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]:
    """Return src, dst, count, sum and base (ps) of every pair that has new samples."""
    rows = []
    for src, (old, new) in enumerate(zip(before, after, strict=True)):
        peers = sorted(int(name.split("/")[1]) for name in new if name.endswith("/count"))
        for dst in peers:
            key = f"rtt/{dst}"
            n, ns = (new[f"{key}/{f}"] - old.get(f"{key}/{f}", 0) for f in ("count", "sum_ns"))
            if n < 0 or ns < 0:
                raise DeviceError(
                    f"NIC {src}: its round trips to {dst} became fewer; the prober may have "
                    "started again, so this interval is not known"
                )
            if n:
                rows.append((src, dst, n, ns * PS_PER_NS, new[f"{key}/base_ns"] * PS_PER_NS))
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 5)
    return tuple(np.ascontiguousarray(table[:, i]) for i in range(5))
