"""What a scenario's network gives for a measured operation, in microseconds.

Collectives are job graphs by the core's algorithms, on persistent queue pairs, one after the other
as nccl-tests runs them. Ranks are the first hosts of the scenario, or the first ones of each of its
servers; perftest's pair are the first host and the first that is not in its server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dcqcn_gym.core.sums import mean
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.scenario.job import JobLoad
from dcqcn_gym.envs.scenario.job_graph import JobGraph, JobGraphBuilder
from dcqcn_gym.envs.scenario.jobs.collectives import add_collective
from dcqcn_gym.envs.scenario.jobs.links import Algorithms, Links
from dcqcn_gym.envs.scenario.rounds import Pairs
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.workload import BaseWorkload
from dcqcn_gym.extras.traffic.calibration.measured import ALONE, BANDWIDTH, LATENCY, Measurement

MOST_PACKETS = 1_000_000
"""Data packets of an operation; larger ones are left out: their bandwidth is the smaller ones'."""
_STREAM_BYTES, _STREAM_MESSAGES = 4_000_000, 512
"""Of a bandwidth test at least so many bytes, at most so many messages."""
_ROUNDS = 4
_INTERVAL_PS = 10**11
SEEDS = 8
"""Where packets are marked, times differ from seed to seed; the mean of so many counts."""


@dataclass
class Replay:
    """Runs measured operations on a scenario under values of the unknowns, each once."""

    scenario: Scenario
    known: dict[tuple[object, ...], tuple[float, bool]] = field(default_factory=dict)
    seed: int = 1

    def problem(self, row: Measurement) -> str | None:
        """Return why a measured operation cannot be run on the scenario; None if it can."""
        servers = self.scenario.servers
        if row.per_node > (servers.gpus if servers else 1):
            return (
                f"rows have {row.per_node} ranks on a node; expected a scenario whose [servers] "
                "has as many gpus"
            )
        if self._hosts(row) is None:
            return f"rows have {row.ranks} ranks, more than the scenario has hosts for"
        packets = self._packets(row)
        if packets > MOST_PACKETS:
            return f"rows are of operations of more than {MOST_PACKETS} packets"
        return None

    def us(self, row: Measurement, values: Mapping[str, float]) -> float:
        """Return the time of an operation; values are those of :data:`fitting.UNKNOWNS`."""
        return self._run(row, values)[0]

    def marked(self, row: Measurement, values: Mapping[str, float]) -> bool:
        """Return whether anything was marked in it, so that CNPs play a part."""
        return self._run(row, values)[1]

    def _run(self, row: Measurement, values: Mapping[str, float]) -> tuple[float, bool]:
        key = (*row.what, *sorted(values.items()))
        if key not in self.known:
            scenario = with_values(self.scenario, values)
            us, marked = self._simulated(row, scenario, self.seed)
            if marked:
                more = range(self.seed + 1, self.seed + SEEDS)
                us = mean([us, *(self._simulated(row, scenario, seed)[0] for seed in more)])
            self.known[key] = us, marked
        return self.known[key]

    def _hosts(self, row: Measurement) -> list[int] | None:
        servers = self.scenario.servers
        gpus = servers.gpus if servers else 1
        if row.kind in (BANDWIDTH, LATENCY, ALONE):
            hosts = [0, gpus]
        else:
            hosts = [r // row.per_node * gpus + r % row.per_node for r in range(row.ranks)]
        return hosts if max(hosts) < self.scenario.n_hosts else None

    def _packets(self, row: Measurement) -> int:
        payload = self.scenario.wire.payload_bytes
        if row.kind in (BANDWIDTH, LATENCY, ALONE):
            return -(-row.bytes // payload) * (_messages(row) if row.kind == BANDWIDTH else 1)
        parts = max(row.ranks, 1)  # what a rank sends, at most, of all-reduce by a ring
        return -(-2 * row.bytes // payload) * parts // row.per_node

    def _simulated(self, row: Measurement, scenario: Scenario, seed: int) -> tuple[float, bool]:
        hosts = self._hosts(row) or []
        if row.kind in (BANDWIDTH, ALONE):
            workload, each = _stream(row, hosts), 1.0
        else:
            graph, each = _graph(row)
            workload = JobLoad(graph=graph, hosts=tuple(hosts), rounds=_ROUNDS)
        ends, marked = _ends(scenario, workload, seed)
        skip = len(ends) // 4 if row.kind == BANDWIDTH else 0
        chosen = ends[skip:]
        return float(chosen[-1] - chosen[0]) / (len(chosen) - 1) / each * 1e-6, marked


def with_values(scenario: Scenario, values: Mapping[str, float]) -> Scenario:
    """Return the scenario with values of the unknowns that have a key in it."""
    update: dict[str, Any] = {}
    if "message_us" in values:
        update["transport"] = scenario.transport.model_copy(
            update={"message_us": float(values["message_us"])}
        )
    if "data_overhead_bytes" in values:
        whole = round(values["data_overhead_bytes"])
        update["wire"] = scenario.wire.model_copy(update={"data_overhead_bytes": whole})
    if "cnp_delay_us" in values:
        update["cnp"] = scenario.cnp.model_copy(update={"delay_us": float(values["cnp_delay_us"])})
    return scenario.model_copy(update=update)


def _messages(row: Measurement) -> int:
    return min(max(-(-_STREAM_BYTES // row.bytes), 12), _STREAM_MESSAGES)


def _stream(row: Measurement, hosts: Sequence[int]) -> BaseWorkload:
    """Return messages of a pair: at once for a bandwidth, else one waits for the other."""
    pair = (hosts[0], hosts[1], row.bytes)
    if row.kind == ALONE:
        return Pairs(pairs=(pair,), rounds=_ROUNDS)
    return Pairs(pairs=(pair,), messages=_messages(row), connections=min(row.qps, 64))


def _graph(row: Measurement) -> tuple[JobGraph, float]:
    """Return an operation as a graph, and how many measured times an iteration of it has."""
    builder = JobGraphBuilder(row.ranks)
    links = Links(builder, Algorithms(chunks=True), row.per_node)
    ranks = tuple(range(row.ranks))
    start = builder.join([], 0)
    if row.kind == LATENCY:
        there = links.send(0, 1, row.bytes, (start,))
        links.send(1, 0, row.bytes, (there,))
        return builder.build(), 2.0
    if row.kind == "send-receive":
        for rank in ranks:
            links.send(rank, (rank + 1) % row.ranks, row.bytes, (start,))
    else:
        add_collective(links, row.kind, ranks, row.bytes, start)
    return builder.build(), 1.0


def _ends(
    scenario: Scenario, workload: BaseWorkload, seed: int
) -> tuple[np.ndarray[Any, Any], bool]:
    """Run a workload alone; return when its flows or rounds end, and whether packets were marked.

    Times are picoseconds in order; of a job the ends of its iterations.
    """
    alone = scenario.model_copy(
        update={
            "workloads": (workload,), "qp": "pair", "warmup_us": 0.0, "calibration": None,
            "monitor_interval_us": _INTERVAL_PS * 1e-6,
        }
    )  # fmt: skip
    job, marked, ends = isinstance(workload, JobLoad), False, []
    with closing(make_backend("native")) as backend:
        backend.open(alone, seed)
        backend.apply(alone.initial_setting())
        while not backend.done:
            report = backend.advance(_INTERVAL_PS)
            marked = marked or report.marks > 0
            if job:
                rounds = report.job_spans.host == -1
                ends.append(report.job_spans.end_ps[rounds])
            else:
                ends.append(report.finished.start_ps + report.finished.fct_ps)
    return np.sort(np.concatenate(ends)), marked
