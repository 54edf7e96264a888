"""A job as a graph of transfers: every operation by an algorithm, between ranks in servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.job_graph import JobGraph, JobGraphBuilder
from dcqcn_gym.envs.scenario.jobs.collectives import Done, add_collective
from dcqcn_gym.envs.scenario.jobs.links import Algorithms, Links
from dcqcn_gym.envs.scenario.jobs.model import BARRIER, COMPUTE, MESSAGE, Job, Op

MOST_TIMES = 2_000
"""Operations of one name that have a label each."""
MOST_NODES = 20_000_000
"""Of a graph made here: 40 bytes each while it is built."""


def graph_of(job: Job, how: Algorithms, server: int = 1) -> JobGraph:
    """Return the graph of an iteration; ``server`` neighbouring ranks share a server.

    A label is an operation: its kind, its name, and which of this name it is at its first rank;
    operations that other ranks do at the same place share it. Raises :class:`ConfigError` for an
    algorithm that does not fit a group, or a graph too large.
    """
    builder = JobGraphBuilder(job.ranks)
    links = Links(builder, how, server)
    times: Counter[tuple[str, str, int]] = Counter()
    done: list[Done] = []
    for op in job.ops:
        times[op.kind, op.name, op.ranks[0]] += 1
        which = times[op.kind, op.name, op.ranks[0]]
        links.label = _label(builder, op, which)
        done.append(_add(links, op, _waits(job, op, done)))
        if len(builder) > MOST_NODES:
            raise ConfigError(
                f"a graph of more than {MOST_NODES} nodes; expected fewer ranks, layers, "
                "micro-batches or chunks"
            )
    return builder.build()


def _label(builder: JobGraphBuilder, op: Op, which: int) -> int:
    """Return the label of an operation; operations beyond all that there are have one a kind."""
    if which > MOST_TIMES:
        return builder.label(op.kind)
    name = " ".join(op.name.split())  # a label is one line
    return builder.label(f"{op.kind} {name} {which}")


def _waits(job: Job, op: Op, done: list[Done]) -> tuple[int, ...]:
    """Return the nodes that an operation waits for: of those before, at the ranks of both."""
    if len(op.ranks) == 1:
        rank = op.ranks[0]
        return tuple(dict.fromkeys(done[b][rank] for b in op.after))
    found: dict[int, None] = {}
    for b in op.after:
        for rank in job.ops[b].ranks if len(job.ops[b].ranks) < len(op.ranks) else op.ranks:
            node = done[b].get(rank)
            if node is not None and rank in op.ranks:
                found[node] = None
    return tuple(found)


def _add(links: Links, op: Op, after: Iterable[int]) -> Done:
    after, first = tuple(after), op.ranks[0]
    if op.kind == COMPUTE:
        if not op.amount:
            return dict.fromkeys(op.ranks, links.join(after, first))
        node = links.builder.delay(first, op.amount, after, label=links.label)
        return dict.fromkeys(op.ranks, node)
    if op.kind == MESSAGE:
        src, dst = op.ranks
        return dict.fromkeys(op.ranks, links.send(src, dst, op.amount, after))
    start = links.join(after, first)
    if op.kind == BARRIER:
        return dict.fromkeys(op.ranks, start)
    return add_collective(links, op.kind, op.ranks, op.amount, start)
