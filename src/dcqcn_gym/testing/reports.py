"""Interval reports made by hand, for tests of everything that reads reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dcqcn_gym.core.interval import FinishedFlows, FlowSizeDistribution, IntervalReport

__all__ = ["blank_report"]


def blank_report(n_hosts: int = 4, rate_bps: float = 100e9, **changes: Any) -> IntervalReport:
    """Return a 1 ms interval of a silent single switch, with these fields changed.

    Ports 0..n-1 are the hosts' uplinks, n..2n-1 the switch's ports. Lists become arrays.
    """
    ports = 2 * n_hosts
    hosts = list(range(n_hosts))

    def zeros() -> Any:
        return np.zeros(ports, dtype=np.int64)

    def none() -> Any:
        return np.zeros(0, dtype=np.int64)

    report = IntervalReport(
        index=0,
        start_ps=0,
        end_ps=1_000_000_000,
        host_tx_bytes=np.zeros(n_hosts, dtype=np.int64),
        host_rate_bps=np.full(n_hosts, rate_bps),
        rtt_src=none(),
        rtt_dst=none(),
        rtt_count=none(),
        rtt_sum_ps=none(),
        rtt_base_ps=none(),
        port_node=np.array([*hosts, *([n_hosts] * n_hosts)]),
        port_rate_bps=np.full(ports, rate_bps),
        port_pause_ps=np.zeros(ports),
        port_tx_bytes=zeros(),
        port_tx_packets=zeros(),
        port_marked_packets=zeros(),
        port_marked_bytes=zeros(),
        port_queue_bytes=zeros(),
        port_max_queue_bytes=zeros(),
        port_dropped_packets=zeros(),
        port_pfc_sent=zeros(),
        port_pfc_received=zeros(),
        delivered_bytes=0,
        data_packets=0,
        acks=0,
        cnps=0,
        marks=0,
        drops=0,
        retransmitted_packets=0,
        pauses=0,
        resumes=0,
        rate_cuts=0,
        rate_increases=0,
        packet_hops=0,
        active_flows=0,
        fsd=FlowSizeDistribution(),
        finished=FinishedFlows(),
    )
    arrays = {
        name: np.asarray(value, dtype=getattr(report, name).dtype)
        for name, value in changes.items()
        if isinstance(getattr(report, name), np.ndarray)
    }
    return replace(report, **{**changes, **arrays})
