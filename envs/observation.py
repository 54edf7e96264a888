"""The observation: one frozen vector of fixed, documented scales. docs/environment.md explains it.

No running statistics: the same report gives the same vector in training, evaluation and on
another machine. Every entry lies in its bounds by construction. Counts and ratios with a large
range go through :func:`log2p1`, a piecewise-linear log2 that needs no libm, so the bytes are the
same on every machine. A change of this file's layout bumps :data:`OBSERVATION_VERSION` and the
environment ids. The slots ``setting/KNOB`` are the ``observed`` rows of the scheme's knob table, so
every scheme has a layout of its own, named by :func:`layout_name`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.interval import FSD_BINS, FlowSizeDistribution, IntervalReport, Observation
from dcqcn_gym.core.knobs import DCQCN, KnobTable, Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.sums import total
from dcqcn_gym.core.utility import IDLE_TERMS, Terms, is_idle, terms

OBSERVATION_VERSION = 1

COUNT_BITS = 20.0
"""Counts are shown as log2(1 + n) / 20: full scale is about a million."""
QUEUE_BITS = 16.0
"""Queues are shown as log2(1 + KB) / 16: full scale is 65 MB."""
KL_UNIT, KL_BITS = 0.001, 14.0
"""KL divergence is shown as log2(1 + KL / 0.001) / 14: full scale is 16 nats."""
RTT_BITS = 10.0
"""RTT inflation is shown as log2(mean / base) / 10: full scale is 1024 times the base RTT."""


class Slot(NamedTuple):
    """One entry of the observation: ``group/name``, its bounds and its meaning."""

    name: str
    low: float
    high: float
    meaning: str


def _fsd_slots() -> list[Slot]:
    states = (("elephant", "elephants"), ("potential", "potential elephants"), ("mice", "mice"))
    edges = ["below 2 KiB", *(f"{2 << i} to {4 << i} KiB" for i in range(FSD_BINS - 2))]
    edges.append("32 MiB and above")
    return [
        *(Slot(f"fsd/{n}_share", 0, 1, f"{text} / active flows") for n, text in states),
        *(Slot(f"fsd/{n}_count", 0, 1, f"log2(1 + {text}) / 20") for n, text in states),
        Slot("fsd/weighted_elephant_share", 0, 1, "elephant share, potential ones by weight"),
        Slot("fsd/mu", 0.5, 1, "share of the dominant flow type"),
        Slot("fsd/kl", 0, 1, "log2(1 + KL / 0.001) / 14; KL in nats from the last busy interval"),
        Slot("fsd/triggered", 0, 1, "1: KL exceeded the scenario's theta"),
        Slot("fsd/known", 0, 1, "0: the monitor gives no distribution"),
        *(
            Slot(f"bins/{i:02d}", 0, 1, f"share of active flows with {e} sent so far")
            for i, e in enumerate(edges)
        ),
    ]


_NETWORK_SLOTS = (
    Slot("throughput/o_tp", 0, 1, "utility term O_TP"),
    Slot("throughput/load", 0, 1, "data sent by all hosts / capacity of all host links"),
    Slot("throughput/active", 0, 1, "share of host links that carried data"),
    Slot("throughput/goodput", 0, 1, "payload delivered / capacity of all host links"),
    Slot("rtt/o_rtt", 0, 1, "utility term O_RTT"),
    Slot("rtt/inflation", 0, 1, "log2(mean RTT / base RTT) / 10 over all samples"),
    Slot("rtt/pairs", 0, 1, "log2(1 + host pairs with a sample) / 20"),
    Slot("pfc/o_pfc", 0, 1, "utility term O_PFC"),
    Slot("pfc/paused_devices", 0, 1, "share of devices with a port that was paused"),
    Slot("pfc/worst_port", 0, 1, "largest paused share of the interval over all ports"),
    Slot("pfc/pauses", 0, 1, "log2(1 + PAUSE frames) / 20"),
    Slot("ecn/mark_share", 0, 1, "ECN marks / data packets sent by hosts, at most 1"),
    Slot("ecn/marks", 0, 1, "log2(1 + ECN marks) / 20"),
    Slot("ecn/cnps", 0, 1, "log2(1 + CNPs) / 20"),
    Slot("queue/max", 0, 1, "log2(1 + KB) / 16 of the longest queue of the interval"),
    Slot("queue/mean", 0, 1, "log2(1 + KB) / 16 of the mean queue over ports at its end"),
    Slot("queue/drops", 0, 1, "log2(1 + dropped packets) / 20"),
    Slot("flows/active", 0, 1, "log2(1 + flows that exist at the end) / 20"),
    Slot("flows/finished", 0, 1, "log2(1 + flows finished in the interval) / 20"),
    Slot("flows/idle", 0, 1, "1: nothing was sent and nobody waits to send"),
)


@lru_cache(maxsize=16)
def layout(table: KnobTable = DCQCN) -> tuple[Slot, ...]:
    """Return (name, low, high, meaning) of every entry, in order; frozen per version and table."""
    shown = (Slot(f"setting/{n}", -1, 1, f"{n}, place in its tuned range") for n in table.observed)
    return (*_fsd_slots(), *_NETWORK_SLOTS, *shown)


OBSERVATION_SIZE = len(layout())
"""Length of the observation of DCQCN."""


def layout_name(space: KnobSpace) -> str:
    """Return ``"VERSION/SCHEME/DIGEST"``: what an observation and an action of ``space`` mean.

    The digest names the rows that the observation shows or the action moves. A policy holds only
    for the layout that it was trained for; a knob that is neither shown nor moved changes nothing.
    """
    table = space.table
    if space.ranges:  # an action means other values
        table = replace(table, rows=tuple(space.row(row.name) for row in table.rows))
    return f"{OBSERVATION_VERSION}/{table.scheme}/{table.digest((*table.observed, *space.knobs))}"


@lru_cache(maxsize=16)
def bounds(table: KnobTable = DCQCN) -> tuple[Observation, Observation]:
    """Return the lowest and highest value of every entry as float32 vectors, read-only."""
    pairs = [(slot.low, slot.high) for slot in layout(table)]
    low, high = np.ascontiguousarray(np.array(pairs, dtype=np.float32).T)
    low.flags.writeable = high.flags.writeable = False
    return low, high


def as_groups(vector: npt.NDArray[np.floating], table: KnobTable = DCQCN) -> dict[str, Observation]:
    """Split a vector into its groups (``"fsd"``, ``"bins"``, ..., ``"setting"``), in order."""
    slices = group_slices(table)
    return {group: np.asarray(vector[a:b], dtype=np.float32) for group, (a, b) in slices.items()}


@lru_cache(maxsize=16)
def group_slices(table: KnobTable = DCQCN) -> Mapping[str, tuple[int, int]]:
    """Return the (start, stop) of every group of the layout."""
    slices: dict[str, tuple[int, int]] = {}
    for i, slot in enumerate(layout(table)):
        group = slot.name.split("/")[0]
        slices[group] = (slices.get(group, (i, i))[0], i + 1)
    return slices


def log2p1(x: float) -> float:
    """Return log2(1 + x) for x >= 0, linear between powers of two: exact on every machine."""
    mantissa, exponent = math.frexp(1.0 + x if x > 0 else 1.0)
    return exponent - 1.0 + (2.0 * mantissa - 1.0)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _fsd(fsd: FlowSizeDistribution) -> list[float]:
    counts = (fsd.elephants, fsd.potential, fsd.mice) if fsd.known else (0.0, 0.0, 0.0)
    flows, binned = total(counts), float(_sum(fsd.bins)) if fsd.known else 0.0
    return [
        *[_ratio(n, flows) for n in counts],
        *[log2p1(n) / COUNT_BITS for n in counts],
        fsd.elephant_share,
        fsd.mu,
        log2p1(fsd.kl / KL_UNIT) / KL_BITS,
        float(fsd.triggered),
        float(fsd.known),
        *[_ratio(n, binned) for n in fsd.bins.tolist()],
    ]


_sum, _most = np.add.reduce, np.maximum.reduce
"""What the methods of arrays call, in half the time: every step of a training comes here."""


def _network(report: IntervalReport, value: Terms) -> list[float]:
    sent, paused, span_ps = report.host_tx_bytes, report.paused_ps, report.duration_ps
    capacity = float(_sum(report.host_rate_bps)) * report.duration_s / 8.0
    samples_base = float(_sum(report.rtt_count * report.rtt_base_ps))
    queue_kb = report.port_queue_bytes / 1e3
    return [
        value.tp,
        _ratio(float(_sum(sent)), capacity),
        _ratio(int(np.count_nonzero(sent)), len(sent)),
        _ratio(report.delivered_bytes, capacity),
        value.rtt,
        log2p1(_ratio(float(_sum(report.rtt_sum_ps)), samples_base) - 1.0) / RTT_BITS,
        log2p1(len(report.rtt_count)) / COUNT_BITS,
        value.pfc,
        _ratio(int(np.count_nonzero(paused)), len(paused)),
        _ratio(float(_most(report.port_pause_ps, initial=0.0)), span_ps),
        log2p1(report.pauses) / COUNT_BITS,
        _ratio(report.marks, report.data_packets),
        log2p1(report.marks) / COUNT_BITS,
        log2p1(report.cnps) / COUNT_BITS,
        log2p1(float(_most(report.port_max_queue_bytes, initial=0)) / 1e3) / QUEUE_BITS,
        log2p1(float(_sum(queue_kb) / len(queue_kb)) if len(queue_kb) else 0.0) / QUEUE_BITS,
        log2p1(report.drops) / COUNT_BITS,
        log2p1(report.active_flows + report.unlimited_flows) / COUNT_BITS,
        log2p1(len(report.finished.src)) / COUNT_BITS,
        float(is_idle(report)),
    ]


@lru_cache(maxsize=16)
def _shown_space(line_rate_bps: float, table: KnobTable) -> KnobSpace:
    return KnobSpace(table.observed, line_rate_bps, table)


@lru_cache(maxsize=256)
def _setting(setting: Setting, line_rate_bps: float) -> tuple[float, ...]:
    return tuple(_shown_space(line_rate_bps, setting.table).encode(setting).tolist())


def _vector(entries: Sequence[float], table: KnobTable) -> Observation:
    low, high = bounds(table)
    vector = np.array(entries, dtype=np.float32)
    np.maximum(vector, low, out=vector)
    return np.minimum(vector, high, out=vector)


def observe(
    report: IntervalReport,
    setting: Setting,
    space: KnobSpace,
    *,
    value: Terms | None = None,
) -> Observation:
    """Return the float32 observation of one interval under ``setting``.

    ``space`` gives line rate and knob table only: the layout always shows every ``observed`` knob,
    whichever of them an agent may turn, and a setting of another table raises ConfigError.
    ``value`` are the report's terms by the scenario's rules (None: by the usual ones).
    """
    space.table.require(setting, "an observation")
    network = _network(report, terms(report) if value is None else value)
    shown = _setting(setting, space.line_rate_bps)
    return _vector((*_fsd(report.fsd), *network, *shown), space.table)


def idle_observation(setting: Setting, space: KnobSpace) -> Observation:
    """Return the observation of a network that has not moved a packet yet."""
    space.table.require(setting, "an observation")
    network = [0.0] * len(_NETWORK_SLOTS)
    names = [s.name for s in _NETWORK_SLOTS]
    for name, entry in (
        ("throughput/o_tp", IDLE_TERMS.tp),
        ("rtt/o_rtt", IDLE_TERMS.rtt),
        ("pfc/o_pfc", IDLE_TERMS.pfc),
        ("flows/idle", 1.0),
    ):
        network[names.index(name)] = entry
    return _vector(
        (*_fsd(FlowSizeDistribution()), *network, *_setting(setting, space.line_rate_bps)),
        space.table,
    )
