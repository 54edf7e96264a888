"""What a job has: collectives by kind and size, bytes, computation, its longest chain."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.job_graph import JobGraph, NodeKind
from dcqcn_gym.envs.scenario.jobs.model import COMPUTE, Job


@dataclass(frozen=True)
class JobFigures:
    """Of one iteration."""

    ranks: int
    operations: list[tuple[str, int, int, int]]
    """(kind, ranks, bytes, how many), most bytes first."""
    compute_ps: tuple[int, int]
    """The least and the most that a rank computes."""
    critical_ps: int
    """Of the longest chain: its computation alone, all data arriving at once."""
    fabric_bytes: int
    server_bytes: int
    """Of transfers inside servers."""
    nodes: int
    """Of the graph, one iteration."""


def figures_of(job: Job, graph: JobGraph) -> JobFigures:
    """Return the figures of a job and of the graph that was made of one iteration of it."""
    kinds: Counter[tuple[str, int, int]] = Counter()
    busy = [0] * job.ranks
    for op in job.ops:
        ps = op.amount if op.kind == COMPUTE else 0
        if op.kind != COMPUTE:
            kinds[op.kind, len(op.ranks), op.amount] += 1
        for rank in op.ranks if ps else ():
            busy[rank] += ps
    table = [(*key, many) for key, many in kinds.items()]
    return JobFigures(
        job.ranks,
        sorted(table, key=lambda row: (-row[1] * row[2] * row[3], row)),
        (min(busy), max(busy)),
        chain_ps(job),
        _bytes(graph, NodeKind.TRANSFER),
        _bytes(graph, NodeKind.LOCAL),
        len(graph),
    )


def chain_ps(job: Job) -> int:
    """Return the computation of the longest chain of operations, all data arriving at once."""
    ends: list[int] = []
    for op in job.ops:
        ps = op.amount if op.kind == COMPUTE else 0
        ends.append(max((ends[b] for b in op.after), default=0) + ps)
    return max(ends, default=0)


def _bytes(graph: JobGraph, kind: NodeKind) -> int:
    return count(graph.sizes[graph.kind == kind].tolist())
