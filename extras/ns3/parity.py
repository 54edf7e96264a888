"""The native engine and ns-3 on the same flows: flow by flow, interval by interval.

Both move packets and time on their own and share the model, so every difference is a mistake in
one of the two transports, or says where they order one picosecond differently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import FloatArray, IntArray, IntervalReport
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.statistics import statistic
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.utility import judge
from dcqcn_gym.envs.backends import Backend, make_backend
from dcqcn_gym.envs.scenario.job_graph import JobGraph, JobGraphBuilder
from dcqcn_gym.envs.scenario.scenario import Scenario

FCT_BOUND = 0.01
"""Largest allowed relative difference of the mean flow completion time."""
UTILITY_BOUND = 0.005
"""Largest allowed relative difference of the mean utility."""


@dataclass(frozen=True)
class Comparison:
    """How far two backends are apart on one scenario and seed; relative numbers unless named.

    ``identical``: every array of every interval report has the same bytes. ``fct_*`` are over the
    flows that finished in both: difference of the mean, and mean, 99th percentile and maximum of
    the difference per flow. Counts are (first backend, second backend).
    """

    scenario: str
    seed: int
    intervals: int
    flows: tuple[int, int]
    same_arrivals: bool
    identical: bool
    fct_of_mean: float
    fct_mean: float
    fct_p99: float
    fct_max: float
    utility_mean: float
    utility_max: float
    pauses: tuple[int, int]
    marks: tuple[int, int]
    packet_hops: tuple[int, int]

    @property
    def within_bounds(self) -> bool:
        """True if arrivals are the same and mean FCT and mean utility agree well enough."""
        near = self.fct_of_mean <= FCT_BOUND and self.utility_mean <= UTILITY_BOUND
        return self.same_arrivals and near

    def row(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)


def run(
    backend: str | Backend, scenario: Scenario, seed: int, intervals: int, setting: Setting
) -> list[IntervalReport]:
    """Return the reports of the first intervals from time 0, under one setting."""
    world = make_backend(backend) if isinstance(backend, str) else backend
    try:
        world.open(scenario, seed)
        world.apply(setting)
        return [world.advance() for _ in range(intervals)]
    finally:
        world.close()


def compare(
    scenario: Scenario, seed: int, ours: Sequence[IntervalReport], theirs: Sequence[IntervalReport]
) -> Comparison:
    """Compare the reports of two backends on the same scenario, seed and setting."""
    if len(ours) != len(theirs) or not ours:
        raise ConfigError(f"{len(ours)} and {len(theirs)} intervals cannot be compared")
    first, second = _flows(ours), _flows(theirs)
    common = sorted(first.keys() & second.keys())
    a, b = (np.array([flows[key] for key in common]) for flows in (first, second))
    fct = _relative(a[:, 2], b[:, 2]) if common else np.zeros(1)
    values, others = (_utilities(scenario, reports) for reports in (ours, theirs))
    return Comparison(
        scenario=scenario.name,
        seed=seed,
        intervals=len(ours),
        flows=(len(first), len(second)),
        same_arrivals=not common or bool(np.array_equal(a[:, :2], b[:, :2])),
        identical=list(ours) == list(theirs),
        fct_of_mean=float(_relative(a[:, 2].mean(), b[:, 2].mean())) if common else 0.0,
        fct_mean=float(fct.mean()),
        fct_p99=statistic(fct, 99),
        fct_max=float(fct.max()),
        utility_mean=float(_relative(values.mean(), others.mean())),
        utility_max=float(_relative(values, others).max()),
        pauses=_sums(ours, theirs, "pauses"),
        marks=_sums(ours, theirs, "marks"),
        packet_hops=_sums(ours, theirs, "packet_hops"),
    )


def _flows(reports: Sequence[IntervalReport]) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Return {(source, ordinal): (start, bytes, completion time)} of the finished flows."""
    found = {}
    for report in reports:
        f = report.finished
        columns: tuple[IntArray, ...] = (f.src, f.ordinal, f.start_ps, f.bytes, f.fct_ps)
        for src, ordinal, start, size, fct in zip(*(c.tolist() for c in columns), strict=True):
            found[src, ordinal] = (start, size, fct)
    return found


def _utilities(scenario: Scenario, reports: Sequence[IntervalReport]) -> FloatArray:
    return np.array([judge(report, scenario).utility for report in reports])


def _relative(ours: Any, theirs: Any) -> Any:
    return np.abs(np.asarray(theirs, float) - ours) / np.maximum(np.abs(ours), 1e-12)


def _sums(
    ours: Sequence[IntervalReport], theirs: Sequence[IntervalReport], name: str
) -> tuple[int, int]:
    return count(getattr(r, name) for r in ours), count(getattr(r, name) for r in theirs)


_STAR = {"kind": "single-switch", "hosts": 33}
_FABRIC = {"kind": "leaf-spine", "tors": 2, "hosts_per_tor": 8, "spines": 2, "host_gbps": 25,
           "uplink_gbps": 25}  # fmt: skip
_HADOOP = {"kind": "poisson", "cdf": "FB_Hadoop", "load_of": "host"}
_ALLTOALL = {"kind": "alltoall", "hosts": 8, "bytes": 1_000_000, "off_us": 500}


def _loops() -> JobGraph:
    """Return a graph of 8 endpoints: rings in a loop within a loop, computation between them."""
    builder = JobGraphBuilder(8)
    with builder.repeat(2):
        first = [builder.delay(r, 3_000_000 * r) for r in range(8)]
        with builder.repeat(3, first):
            for r in range(8):
                builder.transfer(r, (r + 1) % 8, 40_000, connection=r % 2)
    return builder.build()


def _incast(senders: int, size: int) -> dict[str, Any]:
    return {"kind": "incast", "bytes": size, "dst": 0, "hosts": list(range(1, senders + 1)),
            "rounds": 1}  # fmt: skip


_SERVERS = {"kind": "servers", "servers": 4, "gpus": 2, "attach": "tor", "servers_per_unit": 2,
            "spines": 1, "host_gbps": 25, "uplink_gbps": 25}  # fmt: skip
_SMALL = {"layers": 2, "hidden": 256, "ffn": 512, "heads": 4}
_PLAN = {"plan": {"model": _SMALL, "tp": 2, "pp": 2, "dp": 2, "batch": 8, "sequence": 256},
         "server": 2}  # fmt: skip

CASES: Mapping[str, dict[str, Any]] = {
    "idle": {"topology": _STAR, "workloads": [{"kind": "pairs", "pairs": [[0, 1, 1_000_000]]}]},
    "incast-2": {"topology": _STAR, "workloads": [_incast(2, 2_000_000)]},
    "incast-8": {"topology": _STAR, "workloads": [_incast(8, 500_000)]},
    "incast-32": {"topology": _STAR, "workloads": [_incast(32, 200_000)]},
    "permutation": {
        "topology": _FABRIC,
        "workloads": [{"kind": "permutation", "bytes": 500_000, "off_us": 100}],
    },
    "alltoall": {"topology": _FABRIC, "workloads": [_ALLTOALL]},
    "hadoop-light": {"topology": _FABRIC, "workloads": [{**_HADOOP, "load": 0.1}]},
    "hadoop-heavy": {"topology": _FABRIC, "workloads": [{**_HADOOP, "load": 0.3}]},
    "influx": {
        "topology": _FABRIC,
        "monitor": {"kind": "elastic"},
        "workloads": [_ALLTOALL, {**_HADOOP, "load": 0.3, "start_us": 2000, "stop_us": 4000}],
    },
    "mixed-rates": {
        "topology": {**_FABRIC, "host_gbps": 100, "uplink_gbps": 400, "uplink_delay_us": 2},
        "workloads": [{**_HADOOP, "load": 0.2}, _incast(12, 300_000)],
    },
    "pfc-storm": {
        "topology": _FABRIC,
        "switch": {"buffer_bytes": 1_000_000},
        "initial": "expert",
        "workloads": [{**_ALLTOALL, "hosts": 16, "bytes": 200_000, "off_us": 50}],
    },
    "lossy": {
        "topology": _FABRIC,
        "switch": {"pfc": False, "buffer_bytes": 300_000},
        "transport": {"rto_us": 200},
        "workloads": [_ALLTOALL],
    },
    "acks-as-data": {
        "topology": _FABRIC,
        "switch": {"ack_class": "data", "buffer_bytes": 1_000_000},
        "workloads": [{**_ALLTOALL, "hosts": 16, "bytes": 200_000, "off_us": 50}],
    },
    # host 0, paused, acknowledges messages of host 3 beyond the headroom
    "acks-over-headroom": {
        "topology": {"kind": "single-switch", "hosts": 24, "delay_us": 0.1},
        "switch": {"ack_class": "data", "buffer_bytes": 1_000_000},
        "workloads": [
            {"kind": "pairs", "pairs": [(0, 1, 1_000_000), (2, 1, 1_000_000)], "rounds": 1},
            {"kind": "pairs", "pairs": [(3, 0, 1000)] * 1000, "rounds": 1},
            {
                "kind": "incast",
                "bytes": 200_000,
                "dst": 3,
                "hosts": list(range(4, 24)),
                "rounds": 1,
            },
        ],
    },
    # every first flow from the first half to the second goes over one spine, its ACKs over another
    "ecmp-table": {
        "topology": _FABRIC,
        "switch": {
            "ecmp_table": [
                *((16, h, h + 8, 0, 8) for h in range(8)),
                *((17, h, h + 8, 0, 9, "acks") for h in range(8)),
            ]
        },
        "workloads": [
            {"kind": "pairs", "pairs": [(h, h + 8, 500_000) for h in range(8)]},
            {**_ALLTOALL, "start_us": 500, "hosts": 16, "bytes": 50_000},
        ],
    },
    # small blocks, two copies, more IOs than the NIC can keep up with
    "storage": {
        "topology": _FABRIC,
        "workloads": [
            {"kind": "storage", "pattern": "oltp", "depth": 8},
            {
                "kind": "storage",
                "pattern": "exchange-server",
                "depth": 2,
                "compute": [0, 8],
                "storage": [5, 9, 14],
                "copies": 1,
                "start_us": 500,
                "ios": 40,
            },
        ],
    },
    "parameter-server": {
        "topology": _FABRIC,
        "qp": "pair",
        "workloads": [
            {"kind": "parameter-server", "bytes": 300_000, "compute_us": 50, "workers": 7},
            {"kind": "parameter-server", "bytes": 50_000, "server": 9, "iterations": 9},
        ],
    },
    "odd-rates": {
        "topology": {
            "kind": "leaf-spine",
            "tors": 2,
            "hosts_per_tor": 8,
            "spines": 2,
            "host_ps_per_byte": 331,
            "uplink_ps_per_byte": 127,
        },
        "workloads": [{**_ALLTOALL, "hosts": 16, "bytes": 100_000}, _incast(12, 300_000)],
    },
    # flows without an end beside flows that start at random and end
    "streams": {
        "topology": {**_FABRIC, "links_per_spine": 2},
        "workloads": [
            {"kind": "streams", "flows": 40, "hosts": 6, "dsts": [15, 7], "within_us": 3000},
            {
                "kind": "streams",
                "flows": 30,
                "bytes": 90_000,
                "hosts": [8, 9],
                "dsts": [0],
                "within_us": 2000,
            },
        ],
    },
    # messages dealt to kept queue pairs of each pair of hosts, under a scheme that learns on each
    "connections": {
        "topology": _FABRIC,
        "scheme": "dolce-rc",
        "qp": "pair",
        "initial": "dolce-rc",
        "workloads": [
            {**_ALLTOALL, "bytes": 20_000, "messages": 12, "connections": 5},
            {**_HADOOP, "load": 0.1, "connections": 3},
        ],
    },
    # graphs: stages and tensors in servers of two, and nested loops; pieces, turns, admission
    "jobs": {
        "topology": _SERVERS,
        "servers": {"gpus": 2},
        "qp": "pair",
        "workloads": [
            {"kind": "job", "graph": _PLAN, "qps": 2, "split": True, "admission": 2, "off_us": 20},
            {"kind": "job", "graph": _loops(), "qps": 3, "admission": 1, "start_us": 300},
        ],
    },
    # a card's cost of messages, and losses that slow senders down
    "card": {
        "topology": _FABRIC,
        "nic": "connectx-5",
        "switch": {"pfc": False, "buffer_bytes": 300_000},
        "transport": {"rto_us": 400},
        "workloads": [{**_incast(8, 400_000), "messages": 3}, {**_HADOOP, "load": 0.2}],
    },
    # two lossless classes by weight beside TCP that loses packets, a curve and shares of their own
    "classes": {
        "topology": _FABRIC,
        "switch": {"lossless": [3, 4], "ack_class": "data-cnp-first", "buffer_bytes": 2_000_000},
        "classes": [
            {"priority": 1, "transport": "tcp", "alpha": 0.1, "weight": 2},
            {"priority": 3, "weight": 5, "dscp": 24},
            {"priority": 4, "weight": 1, "alpha": 0.05, "ecn": [5_000, 50_000, 0.5], "dscp": 32},
        ],
        "workloads": [
            {**_incast(8, 400_000), "priority": 1},
            {**_HADOOP, "load": 0.1},
            {**_ALLTOALL, "hosts": 16, "bytes": 100_000, "priority": 4},
        ],
    },
}
"""Small networks that cover what can differ; six intervals each are enough."""


def case(name: str) -> Scenario:
    """Return the scenario of one of :data:`CASES`."""
    return Scenario.model_validate({"name": name, "intervals": 6, **CASES[name]})
