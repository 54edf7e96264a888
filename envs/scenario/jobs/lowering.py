"""A job as a graph of transfers: every operation by an algorithm, between ranks in servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.job_graph import JobGraph, JobGraphBuilder
from dcqcn_gym.envs.scenario.jobs.collectives import Done, add_collective
from dcqcn_gym.envs.scenario.jobs.links import Algorithms, Links
from dcqcn_gym.envs.scenario.jobs.model import BARRIER, COMPUTE, MESSAGE, Job, Op

MOST_NAMED, MOST_LABELS = 50_000, 65_000
"""Labels with the names of their operations, and in all: a graph has 65,535."""
MOST_NODES = 5_000_000
"""Of a graph made here: 120 bytes each while it is built."""


def graph_of(job: Job, how: Algorithms, server: int = 1) -> JobGraph:
    """Return the graph of an iteration; ``server`` neighbouring ranks share a server.

    A label is an operation: its kind, the bytes that it moves (of a computation how many
    neighbouring ranks do it), its name, and the how many-th it is; other ranks' operations share
    it. Raises :class:`ConfigError` for an algorithm that does not fit a group, too large a graph.
    """
    builder = JobGraphBuilder(job.ranks, MOST_NODES)
    links = Links(builder, how, server)
    _check_size(job, how, server)
    times: Counter[tuple[str, int]] = Counter()
    done: list[Done] = []
    have = 0
    for op in job.ops:
        links.label = _label(builder, op, times, have)
        have = max(have, links.label)
        done.append(_add(links, op, _waits(job, op, done)))
    return builder.build()


def _check_size(job: Job, how: Algorithms, server: int) -> None:
    """Raise for too large a graph before it is made, from one operation of each shape."""
    links = Links(JobGraphBuilder(job.ranks, MOST_NODES), how, server)
    first = links.builder.join((), 0)
    shapes: dict[Shape, list[Op]] = {}
    for op in job.ops:
        shapes.setdefault(_shape(op, links), []).append(op)
    whole = 0
    for alike in shapes.values():  # all have as many nodes
        before = len(links.builder)
        _add(links, alike[0], (first,))
        whole += len(alike) * (len(links.builder) - before)
        if whole > MOST_NODES:
            raise ConfigError(
                f"a graph of about {whole} nodes or more; expected at most {MOST_NODES}: fewer "
                "ranks, layers, micro-batches or chunks"
            )


Shape = tuple[str, int, int, int]


def _shape(op: Op, links: Links) -> Shape:
    """Return kind, amount, ranks and servers."""
    amount = 0 if op.kind == COMPUTE else op.amount
    return op.kind, amount, len(op.ranks), len(set(map(links.server_of, op.ranks)))


def _label(builder: JobGraphBuilder, op: Op, times: Counter[tuple[str, int]], have: int) -> int:
    """Return the label of an operation, of ``have`` or a new one: none that its ranks had before.

    Once there are many, names are left out, then labels: those operations are not reported.
    """
    if have >= MOST_LABELS:
        return 0
    name = " ".join(op.name.split()) if have < MOST_NAMED else ""  # a label is one line
    amount = len(op.ranks) if op.kind == COMPUTE else op.amount
    what = f"{op.kind} {amount} {name}".rstrip()
    which = 1 + max(times[what, rank] for rank in op.ranks)
    for rank in op.ranks:
        times[what, rank] = which
    return builder.label(f"{what} {which}")


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
