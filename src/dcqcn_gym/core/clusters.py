"""Clusters: parts of one network that have controllers of their own, and what each sees of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.agents import Agent
from dcqcn_gym.core.interval import (
    FSD_BINS,
    FinishedFlows,
    FlowSizeDistribution,
    IntArray,
    IntervalReport,
)

ELEPHANT_BYTES = 1_000_000
"""tau of PARALEON (ICNP'24): what makes an elephant."""

_FIRST_BIN_ENDS = 11
_PORTS = tuple(n for n in IntervalReport.__dataclass_fields__ if n.startswith("port_"))
_PAIRS = tuple(n for n in IntervalReport.__dataclass_fields__ if n.startswith("rtt_"))


@dataclass(frozen=True)
class Cluster:
    """The hosts and the switches (nodes) of one part."""

    hosts: IntArray
    switches: IntArray

    @classmethod
    def of(cls, agent: Agent, port_node: Sequence[int]) -> Cluster:
        """Return the part of a network that an agent sets; a switch of one port is in it."""
        nodes = {port_node[port] for port in agent.ports} if agent.switches else set()
        return cls(np.array(agent.hosts, np.int64), np.array(sorted(nodes), np.int64))


def sizes_of(finished: FinishedFlows, before: FlowSizeDistribution) -> FlowSizeDistribution:
    """Return the distribution of the flows that hosts of a part finished in an interval.

    Their NICs know it without any monitor; what is under way is not in it. ``before`` is returned
    where none finished.
    """
    if not len(finished.bytes):
        return before
    elephants = float(np.count_nonzero(finished.bytes >= ELEPHANT_BYTES))
    mice = float(len(finished.bytes)) - elephants
    _, exponents = np.frexp(finished.bytes.astype(np.float64))
    places = np.clip(exponents - _FIRST_BIN_ENDS, 0, FSD_BINS - 1)
    bins = np.bincount(places, minlength=FSD_BINS).astype(np.float64)
    return FlowSizeDistribution(
        elephants=elephants, mice=mice, weighted_elephants=elephants, weighted_mice=mice, bins=bins
    )


def part_of(report: IntervalReport, part: Cluster, before: FlowSizeDistribution) -> IntervalReport:
    """Return the report of an interval as the controller of a part sees it.

    Hosts, the ports of its hosts and switches, and the round trips and finished flows that its
    hosts began; nodes are numbered anew, hosts first. ``fsd`` is :func:`sizes_of`. Totals of the
    network stay what they are, but for ``data_packets``, those that its hosts sent.
    """
    nodes = np.concatenate([report.port_node, part.hosts, part.switches])
    place = np.full(int(nodes.max(initial=-1)) + 1, -1, dtype=np.int64)
    place[part.hosts] = np.arange(len(part.hosts))
    place[part.switches] = len(part.hosts) + np.arange(len(part.switches))
    ports = place[report.port_node] >= 0
    own = np.isin(report.port_node, part.hosts)
    pairs = np.isin(report.rtt_src, part.hosts)
    finished = _rows(report.finished, np.isin(report.finished.src, part.hosts))
    chosen = {name: getattr(report, name)[ports] for name in _PORTS}
    chosen |= {name: getattr(report, name)[pairs] for name in _PAIRS}
    chosen["port_node"] = place[chosen["port_node"]]
    return replace(
        report,
        **chosen,
        host_tx_bytes=report.host_tx_bytes[part.hosts],
        host_rate_bps=report.host_rate_bps[part.hosts],
        data_packets=int(report.port_tx_packets[own].sum()),
        finished=finished,
        fsd=sizes_of(finished, before),
    )


def _rows(flows: FinishedFlows, chosen: npt.NDArray[np.bool_]) -> FinishedFlows:
    columns = FinishedFlows.__dataclass_fields__
    return FinishedFlows(**{name: getattr(flows, name)[chosen] for name in columns})
