"""The report of one monitor interval: frozen dataclasses of arrays that every backend returns.

Times are integer picoseconds, sizes integer bytes. An interval is ``[start_ps, end_ps)``.
Nodes are numbered hosts first (``0..n_hosts-1``), then switches; a *port* is one egress side of a
link, numbered as in the compiled scenario. Arrays named ``port_*`` have one entry per port.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from dcqcn_gym.core.errors import ConfigError, UnknownNameError

FSD_BINS = 16
"""log2 bins of bytes sent so far: below 2 KiB, 2-4 KiB, ..., 16-32 MiB, 32 MiB and above."""

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Observation: TypeAlias = npt.NDArray[np.float32]
"""What an environment shows and a tuner is given: the slots of
:func:`dcqcn_gym.envs.observation.layout`, each within its documented bounds."""


def no_ints() -> IntArray:
    """Return a column without rows."""
    return np.zeros(0, dtype=np.int64)


class _ComparesArrays:
    """Equality field by field, array by array: the same bytes compare equal."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)


class ColumnTable(_ComparesArrays):
    """A dataclass whose fields are columns of one length."""

    def where(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return the rows that are chosen."""
        return type(self)(*(getattr(self, f.name)[chosen] for f in fields(self)))  # type: ignore[arg-type]

    def and_then(self, more: Self) -> Self:
        """Return these rows and more."""
        columns = ((getattr(self, f.name), getattr(more, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return type(self)(*map(np.concatenate, columns))


@dataclass(frozen=True, eq=False)
class JobSpans(ColumnTable):
    """Labels of jobs that were done at a host in the interval, and rounds, ordered by end.

    From the start of the first node with the label to the end of the last one; a transfer counts at
    both its ends. Label 0 and host -1 are a round of the job. ``workload`` is the job's index in
    the scenario, the name of a label stands in its graph.
    """

    workload: IntArray = field(default_factory=no_ints)
    label: IntArray = field(default_factory=no_ints)
    host: IntArray = field(default_factory=no_ints)
    begin_ps: IntArray = field(default_factory=no_ints)
    end_ps: IntArray = field(default_factory=no_ints)

    def __len__(self) -> int:
        return len(self.end_ps)

    def rows(self) -> list[list[int]]:
        """Return workload, label, host, begin and end of each, as JSON has them."""
        columns = (getattr(self, f.name).tolist() for f in fields(self))
        return [list(row) for row in zip(*columns, strict=True)]

    @classmethod
    def of_rows(cls, rows: npt.ArrayLike) -> JobSpans:
        """The inverse of :meth:`rows`; raise ValueError for anything else."""
        table = np.asarray(rows)
        if not table.size:
            return cls()
        if table.ndim != 2 or table.shape[1] != len(fields(cls)) or table.dtype.kind != "i":
            raise ValueError("expected rows of five whole numbers")
        return cls(*np.ascontiguousarray(table.T, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class LiveFlows(ColumnTable):
    """Flows that exist at an instant, by (src, ordinal), which names a flow.

    ``ordinal`` counts the flows of one source. ``ideal_fct_ps`` is the completion time of the same
    flow in an idle network. ``workload`` is the index of the generator in the scenario.
    """

    src: IntArray = field(default_factory=no_ints)
    dst: IntArray = field(default_factory=no_ints)
    ordinal: IntArray = field(default_factory=no_ints)
    bytes: IntArray = field(default_factory=no_ints)
    start_ps: IntArray = field(default_factory=no_ints)
    ideal_fct_ps: IntArray = field(default_factory=no_ints)
    workload: IntArray = field(default_factory=no_ints)


@dataclass(frozen=True, eq=False)
class FinishedFlows(LiveFlows):
    """Flows whose last ACK reached the sender in this interval, ordered by (finish, src, ordinal).

    ``fct/ideal >= 1``: exact with ``ack_every = 1``, otherwise at times some nanoseconds early.
    """

    fct_ps: IntArray = field(default_factory=no_ints)


@dataclass(frozen=True, eq=False)
class FlowSizeDistribution(_ComparesArrays):
    """The traffic of the interval by flow size, as the scenario's monitor saw it.

    ``elephants``, ``potential`` and ``mice`` count active flows by ternary state (PARALEON
    section III-B); ``weighted_elephants`` and ``weighted_mice`` split the potential elephants by
    min(1, bytes/tau). ``bins`` counts active flows by bytes so far (:data:`FSD_BINS` bins).
    ``kl`` is the Kullback-Leibler divergence (nats, 0.5 added to each count) from the last
    non-idle interval, ``triggered`` whether it exceeds theta. ``monitor_bytes`` is what the
    monitor would have sent over the wire. The last four fields are its cost and health, over all
    ToRs.
    """

    elephants: float = 0.0
    potential: float = 0.0
    mice: float = 0.0
    weighted_elephants: float = 0.0
    weighted_mice: float = 0.0
    bins: FloatArray = field(default_factory=lambda: np.zeros(FSD_BINS))
    kl: float = 0.0
    triggered: bool = False
    monitor_bytes: int = 0
    known: bool = True
    """False if the monitor gives no distribution (mu is then 0.5)."""
    data_plane_bytes: int = 0
    """Memory of the counters or sketches."""
    control_plane_bytes: int = 0
    """The most memory that the flow histories have needed so far."""
    tracked_flows: int = 0
    """Flows in the histories at the end of the interval."""
    untracked_flows: int = 0
    """Flows that found a history full, in all."""

    @property
    def elephant_share(self) -> float:
        """Weighted share of elephants in 0..1; 0.5 if nothing is known or nothing was sent."""
        total = self.weighted_elephants + self.weighted_mice
        return self.weighted_elephants / total if self.known and total > 0 else 0.5

    @property
    def mu(self) -> float:
        """Share of the dominant flow type, in 0.5..1 (PARALEON Algorithm 1, line 14)."""
        return max(self.elephant_share, 1.0 - self.elephant_share)

    @property
    def elephants_dominate(self) -> bool:
        """True if elephants are at least as many as mice."""
        return self.elephant_share >= 0.5


@dataclass(frozen=True)
class ReportField:
    """One figure of a report: a row of engine/sim/report_fields.hpp, which the build exports."""

    name: str
    """Its path in a report: ``"marks"``, ``"fsd.kl"``."""
    unit: str
    kind: str
    """``int``, ``float``, ``bool``, ``IntArray`` or ``FloatArray``."""
    meaning: str
    shown: frozenset[str]
    """Where it stands: ``log``, ``info``, ``csv``; ``sum``: in summaries, added up."""

    @property
    def flat(self) -> str:
        """Its name where there is one level only: ``fsd_kl`` of ``fsd.kl``."""
        return self.name.replace(".", "_")

    def of(self, report: IntervalReport) -> Any:
        """Return the figure of a report as a JSON value."""
        return self.plain(attrgetter(self.name)(report))

    def plain(self, value: Any) -> Any:
        """Return the figure as a JSON value."""
        return value.tolist() if self.kind.endswith("Array") else _PLAIN[self.kind](value)

    def zeros(self, length: int) -> Any:
        """Return what it holds if nothing is known; a column has this length."""
        if self.kind.endswith("Array"):
            return np.zeros(length, dtype=np.int64 if self.kind == "IntArray" else np.float64)
        return _PLAIN[self.kind]()


_PLAIN: Mapping[str, Callable[..., Any]] = {"int": int, "float": float, "bool": bool}


_FILE = Path(__file__).parents[1] / "configs" / "schema" / "report_fields.json"


def _table() -> Iterator[tuple[str, ReportField]]:
    for row in json.loads(_FILE.read_text(encoding="utf-8")):
        shown = frozenset(row.pop("shown").split())
        yield row["name"], ReportField(**row, shown=shown)


REPORT_FIELDS: Mapping[str, ReportField] = dict(_table())
"""Every figure of a report by its path, in order."""


def fields_shown(place: str, part: str = "") -> dict[str, ReportField]:
    """Return the fields that ``place`` shows, of ``fsd``, ``finished`` or neither, by name."""
    paths = ((f.name.rpartition("."), f) for f in REPORT_FIELDS.values() if place in f.shown)
    return {path[2]: f for path, f in paths if path[0] == part}


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgedFigures(_ComparesArrays):
    """What utility and verdict read of a monitor interval; :class:`IntervalReport` has all."""

    start_ps: int
    end_ps: int
    # hosts, one entry each
    host_tx_bytes: IntArray
    host_rate_bps: FloatArray
    # round trips, one entry per (src, dst) pair that had a sample
    rtt_count: IntArray
    rtt_sum_ps: IntArray
    rtt_base_ps: IntArray
    # ports, one entry each
    port_node: IntArray
    port_pause_ps: FloatArray
    # totals of the interval
    delivered_bytes: int
    data_packets: int
    active_flows: int
    unlimited_flows: int = 0
    """Flows without an end that exist at the end of the interval; they are nowhere else."""
    unknown: frozenset[str] = frozenset()
    """Fields that this backend cannot know (``"port_pause_ps"``, ``"fsd.kl"``); they hold zeros.

    A term of the utility that rests on one is 1, whatever the setting; the observation and every
    other figure show what the zeros say, as if nothing had been seen.
    """

    @property
    def duration_ps(self) -> int:
        """Length of the interval in picoseconds."""
        return self.end_ps - self.start_ps

    @property
    def duration_s(self) -> float:
        """Length of the interval in seconds."""
        return self.duration_ps * 1e-12

    @cached_property
    def node_ports(self) -> IntArray:
        """How many ports each node has: hosts, then switches."""
        return np.bincount(self.port_node)

    @cached_property
    def paused_ps(self) -> FloatArray:
        """The paused time per device (hosts, then switches): the mean over its ports."""
        ports = np.maximum(self.node_ports, 1)
        return np.bincount(self.port_node, weights=self.port_pause_ps) / ports

    @property
    def idle(self) -> bool:
        """True if no data packet was sent in the interval; what is unknown is no evidence."""
        nothing = self.data_packets == 0 and "data_packets" not in self.unknown
        if nothing or "host_tx_bytes" in self.unknown:
            return nothing
        return not bool(np.any(self.host_tx_bytes))


@dataclass(frozen=True, eq=False, kw_only=True)
class IntervalReport(JudgedFigures):
    """Everything a backend measured in one monitor interval.

    :data:`REPORT_FIELDS` says of every figure what it means and its unit.
    """

    index: int
    # round trips, one entry per (src, dst) pair that had a sample
    rtt_src: IntArray
    rtt_dst: IntArray
    # ports, one entry each
    port_rate_bps: FloatArray
    port_tx_bytes: IntArray
    port_tx_packets: IntArray
    port_marked_packets: IntArray
    port_marked_bytes: IntArray
    port_queue_bytes: IntArray
    port_max_queue_bytes: IntArray
    port_dropped_packets: IntArray
    port_pfc_sent: IntArray
    port_pfc_received: IntArray
    # totals of the interval
    acks: int
    cnps: int
    marks: int
    drops: int
    retransmitted_packets: int
    pauses: int
    resumes: int
    packet_hops: int
    rate_cuts: int
    rate_increases: int
    fsd: FlowSizeDistribution
    finished: FinishedFlows
    scheme_counters: Mapping[str, int] = field(default_factory=dict)
    """What the schemes of the NICs count beside cuts and increases, by name, over all schemes."""
    job_spans: JobSpans = field(default_factory=JobSpans)
    """What jobs got done in the interval."""

    def __post_init__(self) -> None:
        if self.unknown:
            check_unknown(self.unknown)

    def pause_ps_by_kind(self) -> tuple[float, float]:
        """Return the pause times of all host ports and of all switch ports, summed."""
        of_host = self.port_node < self.host_rate_bps.size
        return float(self.port_pause_ps[of_host].sum()), float(self.port_pause_ps[~of_host].sum())

    def pfc_received_by_kind(self) -> tuple[int, int]:
        """Return the PFC frames that took effect at hosts and at switches."""
        of_host = self.port_node < self.host_rate_bps.size
        received = self.port_pfc_received
        return int(received[of_host].sum()), int(received[~of_host].sum())


_ONE_LEVEL = tuple(
    (path, path.partition("_")[0], one) for path, one in REPORT_FIELDS.items() if "." not in path
)


def report_with(
    host_rate_bps: FloatArray, port_node: IntArray, port_rate_bps: FloatArray, **figures: Any
) -> IntervalReport:
    """Return a report of this network with these figures; every other one is zero.

    The columns of round trips have the length of ``rtt_src``. Raises TypeError for a field that no
    report has.
    """
    lengths = {"host": len(host_rate_bps), "port": len(port_node)}
    lengths["rtt"] = len(figures.get("rtt_src", ()))
    found: dict[str, Any] = {"fsd": FlowSizeDistribution(), "finished": FinishedFlows()}
    for path, kind, one in _ONE_LEVEL:
        if path not in figures:
            found[path] = one.zeros(lengths.get(kind, 0))
    found |= {"host_rate_bps": host_rate_bps, "port_node": port_node}
    return IntervalReport(**{**found, "port_rate_bps": port_rate_bps, **figures})


_ALWAYS_KNOWN = ("index", "start_ps", "end_ps", "host_rate_bps", "port_node", "port_rate_bps")
_KNOWN_WHOLE = ("rtt_", "finished.")


def check_unknown(names: Iterable[str]) -> frozenset[str]:
    """Return the names as a set; raise ConfigError for one that no report can lack.

    Time, rates and the ports' nodes are always known. The tables ``rtt_*`` and ``finished.*`` are
    known whole or not at all.
    """
    unknown = frozenset(names)
    for name in sorted(unknown):
        if name not in REPORT_FIELDS:
            raise UnknownNameError("report field in 'unknown'", name, REPORT_FIELDS)
        if name in _ALWAYS_KNOWN:
            raise ConfigError(f"report field {name!r} cannot be unknown")
        table = next((t for t in _KNOWN_WHOLE if name.startswith(t)), None)
        missing = [n for n in REPORT_FIELDS if table and n.startswith(table) and n not in unknown]
        if missing:
            raise ConfigError(
                f"report field {name!r} is unknown but {missing[0]!r} is not; this table is known "
                "whole or not at all"
            )
    return unknown
