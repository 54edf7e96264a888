"""The nodes of all ranks of a Chakra trace as one job: collectives and messages are matched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.jobs.model import BARRIER, COMPUTE, MESSAGE, Job
from dcqcn_gym.extras.jobs.chakra_format import Node

Place = tuple[int, int]
"""Rank and id of a node."""


def matched(ranks: Sequence[Mapping[int, Node]], *, chain: bool) -> Job | None:
    """Return the job; None if its operations wait for each other in a circle.

    With ``chain`` a rank computes one thing at a time.
    """
    order = [_order(nodes, rank) for rank, nodes in enumerate(ranks)]
    members = _operations(ranks, order)
    of = {place: i for i, places in enumerate(members) for place in places}
    before: list[set[int]] = [set() for _ in members]
    _split_messages(ranks, members, of, before)
    for rank, ids in enumerate(order):
        last = None
        for id_ in ids:
            node, own = ranks[rank][id_], of[rank, id_]
            before[own].update(of[rank, d] for d in node.deps)
            if chain and node.chained:
                before[own].update(() if last is None else (last,))
                last = own
    return _sorted_job(ranks, members, before)


def _split_messages(
    ranks: Sequence[Mapping[int, Node]],
    members: list[list[Place]],
    of: dict[Place, int],
    before: list[set[int]],
) -> None:
    """Make an operation of its own of each receive that waits for something beside its message.

    Else a message would wait for its receiver, and two ranks that send before they receive would
    wait for each other.
    """
    for i in range(len(members)):
        rank, id_ = members[i][0]
        if ranks[rank][id_].kind != "send":
            continue
        receive = members[i][1]
        if ranks[receive[0]][receive[1]].deps:
            members[i] = members[i][:1]
            of[receive] = len(members)
            members.append([receive])
            before.append({i})


def _order(nodes: Mapping[int, Node], rank: int) -> list[int]:
    """Return ids such that each comes after what it waits for; else by start, then by id."""
    after: dict[int, list[int]] = defaultdict(list)
    waits = {}
    for id_, node in nodes.items():
        waits[id_] = len(node.deps)
        for dep in node.deps:
            if dep not in nodes:
                raise ConfigError(f"node {id_} of rank {rank} waits for node {dep}, which is not "
                                  "there; --drop-missing leaves out such waits")  # fmt: skip
            after[dep].append(id_)
    ready = [(nodes[i].start, i) for i, count in waits.items() if not count]
    heapify(ready)
    found = []
    while ready:
        _, id_ = heappop(ready)
        found.append(id_)
        for next_ in after.pop(id_, ()):
            waits[next_] -= 1
            if not waits[next_]:
                heappush(ready, (nodes[next_].start, next_))
    if len(found) < len(nodes):
        stuck = min(i for i, count in waits.items() if count)
        raise ConfigError(
            f"node {stuck} of rank {rank} waits in a circle for itself; expected no cycle"
        )
    return found


def _operations(
    ranks: Sequence[Mapping[int, Node]], order: Sequence[Sequence[int]]
) -> list[list[Place]]:
    """Return the nodes of each operation: one of a computation, one a rank of a collective."""
    alone: list[list[Place]] = []
    calls: dict[Any, dict[int, list[Place]]] = defaultdict(lambda: defaultdict(list))
    for rank, ids in enumerate(order):
        for id_ in ids:
            node = ranks[rank][id_]
            if node.kind == COMPUTE:
                alone.append([(rank, id_)])
            elif node.kind in ("send", "receive"):
                calls["message", node.key][node.kind == "receive"].append((rank, id_))
            else:
                calls["group", node.key][rank].append((rank, id_))
    for (what, key), sides in calls.items():
        wanted: Iterable[int] = (False, True) if what == "message" else key[1]
        counts = {side: len(sides.get(side, ())) for side in wanted}
        if len(set(counts.values())) > 1:
            raise ConfigError(_unequal(what, key, counts))
        for places in zip(*(sides[side] for side in wanted), strict=True):
            _check_alike(ranks, what, places)
            alone.append(list(places))
    return alone


def _unequal(what: str, key: tuple[int, ...], counts: Mapping[int, int]) -> str:
    if what == "message":
        return (
            f"{counts[0]} sends and {counts[1]} receives from rank {key[0]} to {key[1]} with tag "
            f"{key[2]}; expected as many of both"
        )
    few, many = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    return (
        f"rank {many} has {counts[many]} collectives of a group of {len(counts)} ranks and rank "
        f"{few} has {counts[few]}; expected as many on each"
    )


def _check_alike(ranks: Sequence[Mapping[int, Node]], what: str, places: Sequence[Place]) -> None:
    """Raise ConfigError if the nodes of one operation differ in kind or size."""
    rank, id_ = places[0]
    first = ranks[rank][id_]
    for other, number in places[1:]:
        node = ranks[other][number]
        alike = node.kind == first.kind and node.root == first.root
        if node.amount != first.amount or (what != "message" and not alike):
            raise ConfigError(
                f"node {id_} of rank {rank} ({first.kind}, {first.amount} bytes) meets node "
                f"{number} of rank {other} ({node.kind}, {node.amount} bytes); expected the same"
            )


def _sorted_job(
    ranks: Sequence[Mapping[int, Node]], members: Sequence[Sequence[Place]],
    before: Sequence[set[int]],
) -> Job | None:  # fmt: skip
    after: dict[int, list[int]] = defaultdict(list)
    for i, many in enumerate(before):
        for b in many:
            after[b].append(i)
    waits = [len(many) for many in before]
    ready = [i for i, count in enumerate(waits) if not count]
    number: dict[int, int] = {}
    job = Job(len(ranks))
    while ready:
        i = heappop(ready)
        rank, id_ = members[i][0]
        number[i] = _added(job, ranks[rank][id_], rank, sorted(number[b] for b in before[i]))
        for next_ in after.pop(i, ()):
            waits[next_] -= 1
            if not waits[next_]:
                heappush(ready, next_)
    return job if len(number) == len(members) else None


def _added(job: Job, node: Node, rank: int, after: list[int]) -> int:
    """Append the operation of a node; return its number."""
    if node.kind == "receive":  # of a message that has an operation of its own
        return job.add(COMPUTE, (rank,), 0, after, node.name)
    if node.kind == "send":
        if any(len(job.ops[b].ranks) > 1 for b in after):  # as far as they are done at the sender
            after = [job.add(COMPUTE, (rank,), 0, after)]
        return job.add(MESSAGE, node.key[:2], node.amount, after, node.name)
    if node.kind == BARRIER:
        job.notes["barriers, which wait and send nothing"] += 1
    group = node.key[1] if node.key else (rank,)
    if node.root >= 0:
        group = (node.root, *(member for member in group if member != node.root))
    return job.add(node.kind, group, node.amount, after, node.name)
