"""Collective operations as transfers: each function adds one to a graph.

``start`` is the node after which the ranks begin; every function returns by rank the node after
which that rank has all that it gets. Sizes are S of nccl-tests, as in ``model.Op``. Shares of a
buffer are rounded up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.jobs.links import Links

Done = dict[int, int]
"""Rank -> node after which it has finished."""


def _share(size: int, parts: int) -> int:
    return -(-size // parts)


def ring_orders(links: Links, ranks: Sequence[int], channels: int) -> list[list[int]]:
    """Return the order of the ranks in each channel's ring.

    Within a server the order begins with another GPU in each channel, backward in every other
    server, so that a channel leaves a server on the rail on which it enters the next.
    """
    orders = []
    for c in range(channels):
        order: list[int] = []
        for i, local in enumerate(links.by_server(ranks)):
            at = c % len(local)
            turned = local[at:] + local[:at]
            order += turned if i % 2 == 0 else turned[::-1]
        orders.append(order)
    return orders


def ring(links: Links, ranks: Sequence[int], size: int, start: int, rounds: int) -> Done:
    """Send shares of size / ranks around a ring: ``rounds`` = 2 for all-reduce, else 1.

    A share goes n - 1 steps a round, each as soon as the one before has arrived (Patarasuk and
    Yuan, 2009). Reduce-scatter and all-gather are one round.
    """
    n, channels = len(ranks), links.how.channels
    arrived: dict[int, list[int]] = {rank: [] for rank in ranks}
    for channel, order in enumerate(ring_orders(links, ranks, channels)):
        for part in links.parts(_share(size, n * channels)):
            here = [start] * n
            for _ in range(rounds * (n - 1)):
                sent = [
                    links.send(order[i], order[(i + 1) % n], part, (here[i],), channel)
                    for i in range(n)
                ]
                here = [sent[i - 1] for i in range(n)]
            for i, node in enumerate(here):
                arrived[order[i]].append(node)
    return {rank: links.join(nodes, rank) for rank, nodes in arrived.items()}


def parent_of(place: int, n: int) -> int | None:
    """Return the parent in a binary tree of n places, 0 the root: NCCL's first tree."""
    if place == 0:
        return None
    bit = place & -place
    up = (place ^ bit) | (bit << 1)
    return up if up < n else place ^ bit


def trees(n: int) -> tuple[list[int | None], list[int | None]]:
    """Return the parents of each place in both trees: a leaf of one is inside the other.

    Sanders, Speck and Träff (2009); the second tree mirrors the first, or is shifted by one where
    n is odd.
    """
    first = [parent_of(i, n) for i in range(n)]
    second: list[int | None] = [None] * n
    for i, up in enumerate(first):
        if n % 2 == 0:
            second[n - 1 - i] = None if up is None else n - 1 - up
        else:
            second[(i + 1) % n] = None if up is None else (up + 1) % n
    return first, second


def tree_all_reduce(links: Links, ranks: Sequence[int], size: int, start: int) -> Done:
    """Reduce up and broadcast down two binary trees, half of the channels each (at least one)."""
    n, channels = len(ranks), max(2, links.how.channels)
    arrived: dict[int, list[int]] = {rank: [] for rank in ranks}
    both = trees(n)
    for channel in range(channels):
        parents = both[channel % 2]
        children = [[c for c in range(n) if parents[c] == p] for p in range(n)]
        order = _downward(children, parents.index(None))
        for part in links.parts(_share(size, channels)):
            below: list[list[int]] = [[] for _ in range(n)]
            for i in reversed(order):
                up = parents[i]
                if up is not None:
                    below[up].append(
                        links.send(ranks[i], ranks[up], part, below[i] or (start,), channel)
                    )
            root = order[0]
            has = {root: links.join(below[root], ranks[root])}
            for i in order:
                for child in children[i]:
                    has[child] = links.send(ranks[i], ranks[child], part, (has[i],), channel)
            for i, node in has.items():
                arrived[ranks[i]].append(node)
    return {rank: links.join(nodes, rank) for rank, nodes in arrived.items()}


def _downward(children: Sequence[Sequence[int]], root: int) -> list[int]:
    order = [root]
    for place in order:
        order += children[place]
    return order


def halving_doubling(links: Links, ranks: Sequence[int], size: int, start: int) -> Done:
    """Exchange halves, quarters, ... and back with partners ever nearer (Thakur et al., 2005).

    Raises :class:`ConfigError` unless the number of ranks is a power of two.
    """
    n = len(ranks)
    if n & (n - 1):
        raise ConfigError(
            f'all_reduce = "halving-doubling" with {n} ranks; expected a power of two'
        )
    here = [start] * n
    down = [n >> (i + 1) for i in range(n.bit_length() - 1)]
    for distance in [*down, *reversed(down)]:
        part = _share(size * distance, n)
        sent = [links.send(ranks[i], ranks[i ^ distance], part, (here[i],)) for i in range(n)]
        here = [sent[i ^ distance] for i in range(n)]
    return dict(zip(ranks, here, strict=True))


def all_to_all(links: Links, ranks: Sequence[int], size: int, start: int) -> Done:
    """Send size / ranks from everyone to everyone at once, in the order of distance."""
    n, part = len(ranks), _share(size, len(ranks))
    arrived: dict[int, list[int]] = {rank: [] for rank in ranks}
    for step in range(1, n):
        for i, src in enumerate(ranks):
            dst = ranks[(i + step) % n]
            arrived[dst].append(links.send(src, dst, part, (start,)))
    return {rank: links.join(nodes, rank) for rank, nodes in arrived.items()}


def pxn_all_to_all(links: Links, ranks: Sequence[int], size: int, start: int) -> Done:
    """Send what a server has for a GPU of another one together, from its GPU on the same rail.

    NCCL's PXN. Raises :class:`ConfigError` unless every server has as many of the ranks.
    """
    servers = _even(links, ranks, 'all_to_all = "pxn"')
    part, width = _share(size, len(ranks)), len(servers[0])
    arrived: dict[int, list[int]] = {rank: [] for rank in ranks}
    for step in range(len(servers)):
        for i, local in enumerate(servers):
            for rail, dst in enumerate(servers[(i + step) % len(servers)]):
                if step == 0:
                    arrived[dst] += [links.send(s, dst, part, (start,)) for s in local if s != dst]
                    continue
                own = local[rail]
                brought = [links.send(s, own, part, (start,)) for s in local if s != own]
                after = (links.join(brought or (start,), own),)
                arrived[dst].append(links.send(own, dst, part * width, after))
    return {rank: links.join(nodes or (start,), rank) for rank, nodes in arrived.items()}


def inside(links: Links, ranks: Sequence[int], size: int, starts: Done, rounds: int) -> Done:
    """Run a ring within one server as one transfer of all its bytes from each GPU to the next."""
    n = len(ranks)
    share = _share(size * rounds * (n - 1), n)
    begin = links.join([starts[r] for r in ranks], ranks[0])
    sent = [links.send(ranks[i - 1], ranks[i], share, (begin,)) for i in range(n)]
    return {rank: links.join(sent, rank) for rank in ranks}


def hierarchical(
    links: Links, ranks: Sequence[int], size: int, start: int, kind: str = "all-reduce"
) -> Done:
    """Reduce-scatter inside servers, the collective between them on each rail, all-gather inside.

    An all-gather leaves out the first part, a reduce-scatter the last. Raises :class:`ConfigError`
    unless every server has as many of the ranks.
    """
    servers = _even(links, ranks, "a hierarchical collective")
    width = len(servers[0])
    done: Done = dict.fromkeys(ranks, start)
    if kind != "all-gather":
        for local in servers:
            done |= inside(links, local, size, done, 1)
    for rail in range(width):
        peers = [local[rail] for local in servers]
        begin = links.join([done[p] for p in peers], peers[0])
        done |= ring(links, peers, _share(size, width), begin, 2 if kind == "all-reduce" else 1)
    if kind != "reduce-scatter":
        for local in servers:
            done |= inside(links, local, size, done, 1)
    return done


def _even(links: Links, ranks: Sequence[int], what: str) -> list[list[int]]:
    servers = links.by_server(ranks)
    if len({len(local) for local in servers}) > 1:
        raise ConfigError(f"{what} of ranks {ranks[0]} to {ranks[-1]}: servers have from "
                          f"{min(map(len, servers))} to {max(map(len, servers))} of them; expected "
                          "as many in each")  # fmt: skip
    return servers


def chain(links: Links, ranks: Sequence[int], size: int, start: int) -> Done:
    """Send a buffer from rank to rank in chunks: broadcast, and reduce the other way round."""
    arrived: dict[int, list[int]] = {rank: [] for rank in ranks}
    for part in links.parts(size):
        here = start
        for src, dst in pairwise(ranks):
            here = links.send(src, dst, part, (here,))
            arrived[dst].append(here)
    arrived[ranks[0]].append(start)
    return {rank: links.join(nodes, rank) for rank, nodes in arrived.items()}


def _rooted(links: Links, ranks: Sequence[int], size: int, start: int, *, inward: bool) -> Done:
    root, part = ranks[0], _share(size, len(ranks))
    sent = {
        r: links.send(r, root, part, (start,)) if inward else links.send(root, r, part, (start,))
        for r in ranks[1:]
    }
    end = links.join(sent.values(), root)
    return dict.fromkeys(ranks, end) if inward else {root: start, **sent}


def add_collective(links: Links, kind: str, ranks: Sequence[int], size: int, start: int) -> Done:
    """Add a collective by the algorithm that ``links.how`` says for its kind."""
    if len(ranks) == 1 or size == 0:
        return dict.fromkeys(ranks, start)
    if kind in _ROUNDS:
        return _rounds(links, kind, ranks, size, start)
    return _OTHERS[kind](links, ranks, size, start)


_ROUNDS = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}


def _rounds(links: Links, kind: str, ranks: Sequence[int], size: int, start: int) -> Done:
    servers, how = links.by_server(ranks), links.how.all_reduce
    if len(servers) == 1:
        return inside(links, ranks, size, dict.fromkeys(ranks, start), _ROUNDS[kind])
    even = len({len(local) for local in servers}) == 1
    if how == "hierarchical" or (how == "auto" and even and len(servers[0]) > 1):
        return hierarchical(links, ranks, size, start, kind)
    if kind == "all-reduce" and how == "tree":
        return tree_all_reduce(links, ranks, size, start)
    if kind == "all-reduce" and how == "halving-doubling":
        return halving_doubling(links, ranks, size, start)
    return ring(links, ranks, size, start, _ROUNDS[kind])


def _to_all(links: Links, ranks: Sequence[int], size: int, start: int) -> Done:
    several = len(links.by_server(ranks)) > 1
    which = pxn_all_to_all if links.how.all_to_all == "pxn" and several else all_to_all
    return which(links, ranks, size, start)


def _reduce(links: Links, ranks: Sequence[int], size: int, start: int) -> Done:
    done = chain(links, [*reversed(ranks[1:]), ranks[0]], size, start)
    return dict.fromkeys(ranks, done[ranks[0]])


_OTHERS: dict[str, Callable[[Links, Sequence[int], int, int], Done]] = {
    "all-to-all": _to_all,
    "broadcast": chain,
    "reduce": _reduce,
    "gather": lambda *a: _rooted(*a, inward=True),
    "scatter": lambda *a: _rooted(*a, inward=False),
}
