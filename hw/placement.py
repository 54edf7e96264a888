"""Where a controller should run: the host from which all devices are the fewest hops away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dcqcn_gym.core.sums import count

__all__ = ["hops_to_all"]


def hops_to_all(
    n_nodes: int, links: Iterable[tuple[int, int]], hosts: Iterable[int]
) -> dict[int, int]:
    """Return host -> links to every other node, added up; nodes out of reach count nothing."""
    beside: list[list[int]] = [[] for _ in range(n_nodes)]
    for a, b in links:
        beside[a].append(b)
        beside[b].append(a)
    return {host: count(_distances(beside, host)) for host in hosts}


def _distances(beside: Sequence[Sequence[int]], start: int) -> list[int]:
    """Return the distance of every node that can be reached (breadth first)."""
    found = {start: 0}
    waiting = [start]
    for node in waiting:
        for other in beside[node]:
            if other not in found:
                found[other] = found[node] + 1
                waiting.append(other)
    return list(found.values())
