"""Where the time of a job's iteration goes: computation, exposed communication, waiting.

All of it follows from the engine's spans, each a label of the job's graph at a host. A rank
computes where a span of computation is open. Otherwise it communicates where one of a collective
or message is open: that time is exposed, and several kinds at once share it alike. The rest it
waits: for slower ranks, for the stage before, for its turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.interval import JobSpans
from dcqcn_gym.core.sums import count

Ints = npt.NDArray[np.int64]
Part = Mapping[str, Any]
"""One iteration, or several added by :func:`added`, in whole picoseconds, for logs.

``workload``, ``iterations``, ``time_ps``; of every rank ``computing_ps``, ``waiting_ps`` and
``late_ps``, how much later than the first rank of each of its collectives it was done;
``exposed_ps``: kind -> of all ranks together; ``collectives``: rows of kind, ranks, bytes (0: not
known), how many, and their time from the first start to the last end.
"""

COMPUTING, COMPUTE = "computation", "compute"
"""The kind, and the first word of its labels; the second says how many ranks compute alike."""
OTHER = "transfers"
"""The kind of communication whose label does not begin with a known one."""
LANES, BINS = 16, 240
"""Of a timeline: ranks, evenly spread, and pieces of the iteration."""
_QUIET = "."


@dataclass(frozen=True, eq=False)
class Operations:
    """The labels of a job's graph; ``moves``, ``src``, ``dst`` and ``label`` have a row per node.

    ``moves`` marks the nodes that move bytes, ``known`` are kinds of moving. A name
    ``KIND BYTES ...`` says what is moved, as graphs of files and plans do, and ``compute RANKS
    ...`` how many neighbouring ranks do the same. ``hosts`` are those of the endpoints.
    """

    moves: npt.NDArray[np.bool_]
    src: Ints
    dst: Ints
    label: Ints
    names: tuple[str, ...]
    known: tuple[str, ...]
    hosts: tuple[int, ...]

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """What spans can be, :data:`COMPUTING` first; ``kind_of`` has places in it."""
        return tuple(dict.fromkeys((COMPUTING, *self._words)))

    @cached_property
    def kind_of(self) -> Ints:
        """The kind of each label."""
        return np.array([self.kinds.index(word) for word in self._words], dtype=np.int64)

    @cached_property
    def _words(self) -> list[str]:
        moving = set(self.label[self.moves].tolist())
        first = (name.split(" ", 1)[0] for name in self.names)
        return [
            COMPUTING if i not in moving else word if word in self.known else OTHER
            for i, word in enumerate(first)
        ]

    @cached_property
    def sizes(self) -> Ints:
        """The bytes of each label's operation, or the ranks of a computation; 0: not said."""
        words = ((*name.split(" ", 2), "", "")[:2] for name in self.names)
        known = {COMPUTE, *self.known}
        return np.array(
            [int(size[:18]) if kind in known and size.isdecimal() else 0 for kind, size in words],
            dtype=np.int64,
        )

    @cached_property
    def rank_of(self) -> Ints:
        """The endpoint on each host, -1: none."""
        ranks = np.full(max(self.hosts) + 1, -1, dtype=np.int64)
        ranks[list(self.hosts)] = np.arange(len(self.hosts))
        return ranks

    @cached_property
    def _groups(self) -> tuple[Ints, Ints]:
        """Return (label and endpoint in one number, the group that the endpoint is in there).

        Endpoints between which a label moves bytes are in one group.
        """
        named, n = self.label > 0, len(self.hosts)
        labels = self.label[named].astype(np.int64)
        pairs = np.unique((labels * n + self.src[named]) * n + self.dst[named])
        label = pairs // n**2 * n
        members, ends = np.unique(
            np.concatenate([label + pairs // n % n, label + pairs % n]), return_inverse=True
        )
        one, other = ends.reshape(2, -1)
        root = np.arange(len(members))
        while True:
            before = root.copy()
            least = np.minimum(root[one], root[other])
            np.minimum.at(root, one, least)
            np.minimum.at(root, other, least)
            root = root[root]
            if np.array_equal(root, before):
                return members, root

    def group_of(self, label: Ints, rank: Ints) -> Ints:
        """Return the group in which each (label of communication, endpoint) is."""
        members, root = self._groups
        return root[np.searchsorted(members, label * len(self.hosts) + rank)]

    def part(self, workload: int, spans: JobSpans, begin: int, end: int) -> Part:
        """Return an iteration's part with its timeline; its spans may have come in any order."""
        length = end - begin
        if length <= 0:
            nothing = [0] * len(self.hosts)
            return {
                "workload": workload, "iterations": 1, "time_ps": 0, "computing_ps": nothing,
                "waiting_ps": nothing, "exposed_ps": {}, "late_ps": nothing, "collectives": [],
            }  # fmt: skip
        rank, label = self.rank_of[spans.host], spans.label
        alike = np.where(self.kind_of[label] == 0, self.sizes[label], 1)
        alike = np.clip(alike, 1, len(self.hosts) - rank)
        spread = np.arange(count(alike.tolist())) - np.repeat(np.cumsum(alike) - alike, alike)
        columns = label, spans.begin_ps - begin, spans.end_ps - begin
        one = _Iteration(
            self, length, np.repeat(rank, alike) + spread, *(np.repeat(c, alike) for c in columns)
        )
        return {
            "workload": workload, "iterations": 1, "start_ps": begin, "time_ps": length,
            **one.busy(), **one.collectives(), "timeline": one.timeline(),
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Iteration:
    """The spans of one iteration, by rank, from its start on."""

    of: Operations
    length: int
    rank: Ints
    label: Ints
    begin: Ints
    end: Ints

    @property
    def kind(self) -> Ints:
        return self.of.kind_of[self.label]

    def pieces(self, ranks: int, more: Ints | None = None) -> tuple[Ints, Ints, Ints]:
        """Return where each piece begins, its length, and how many spans of each kind are open.

        Piece by piece and rank by rank: rank r begins at r times the length.
        """
        at = self.rank * self.length
        edges = [at + self.begin, at + self.end, np.arange(ranks + 1) * self.length]
        edge = np.unique(np.concatenate([*edges, *([] if more is None else [more])]))
        change = np.zeros((len(self.of.kinds), len(edge)), dtype=np.int64)
        np.add.at(change, (self.kind, np.searchsorted(edge, edges[0])), 1)
        np.add.at(change, (self.kind, np.searchsorted(edge, edges[1])), -1)
        return edge[:-1], np.diff(edge), np.cumsum(change, axis=1)[:, :-1]

    def busy(self) -> dict[str, Any]:
        """Return computation and waiting of every rank, and what is exposed of each kind."""
        ranks = len(self.of.hosts)
        start, length, spans = self.pieces(ranks)
        rank, computes = start // self.length, spans[0] > 0
        talks = (spans[1:] > 0) & ~computes
        kinds = np.maximum(talks.sum(axis=0), 1)
        each = np.where(talks, length // kinds, 0)
        first = np.argmax(talks, axis=0)
        each[first, np.arange(len(length))] += np.where(talks.any(axis=0), length % kinds, 0)
        quiet = ~computes & ~talks.any(axis=0)
        return {
            "computing_ps": _by(rank, np.where(computes, length, 0), ranks),
            "waiting_ps": _by(rank, np.where(quiet, length, 0), ranks),
            "exposed_ps": {
                kind: int(ps)
                for kind, ps in zip(self.of.kinds[1:], each.sum(axis=1), strict=True) if ps
            },
        }  # fmt: skip

    def collectives(self) -> dict[str, Any]:
        """Return how long collectives took, and how late every rank was in its own."""
        ranks, talks = len(self.of.hosts), self.kind > 0
        rank, label, begin, end = (
            column[talks] for column in (self.rank, self.label, self.begin, self.end)
        )
        group = self.of.group_of(label, rank)
        times = _times(label * ranks + rank)
        which, where = np.unique(group * (times.max(initial=0) + 1) + times, return_inverse=True)
        where, n = where.reshape(-1), len(which)
        first = np.full(n, np.iinfo(np.int64).max)
        soonest, last = first.copy(), np.zeros(n, dtype=np.int64)
        np.minimum.at(first, where, begin)
        np.minimum.at(soonest, where, end)
        np.maximum.at(last, where, end)
        name = np.zeros(n, dtype=np.int64)
        name[where] = label
        many = np.bincount(where, minlength=n)
        keys = np.stack([self.of.kind_of[name], many, self.of.sizes[name]])
        rows, at = np.unique(keys, axis=1, return_inverse=True)
        at, times = at.reshape(-1), np.bincount(at.reshape(-1), minlength=rows.shape[1])
        took = _by(at, last - first, rows.shape[1])
        return {
            "late_ps": _by(rank, end - soonest[where], ranks),
            "collectives": [
                [self.of.kinds[kind], of, size, int(times[i]), took[i]]
                for i, (kind, of, size) in enumerate(rows.T.tolist())
            ],
        }

    def timeline(self) -> dict[str, Any]:
        """Return what some ranks did, a letter for each piece of time: a place in ``kinds``."""
        chosen = np.unique(np.linspace(0, len(self.of.hosts) - 1, LANES).astype(np.int64))
        lane = np.searchsorted(chosen, self.rank)
        ours = (lane < len(chosen)) & (chosen[np.minimum(lane, len(chosen) - 1)] == self.rank)
        columns = (lane[ours], self.label[ours], self.begin[ours], self.end[ours])
        one = _Iteration(self.of, self.length, *columns)
        n = len(chosen)
        bins = (np.arange(n)[:, None] * self.length + self.length * np.arange(BINS) // BINS).ravel()
        start, length, spans = one.pieces(n, bins)
        at = np.searchsorted(bins, start, side="right") - 1
        open_ps = np.stack([np.bincount(at, np.where(s > 0, length, 0), n * BINS) for s in spans])
        none = np.bincount(at, np.where((spans[1:] > 0).any(axis=0), 0, length), n * BINS)
        full = np.bincount(at, length, n * BINS)
        talk = np.argmax(np.concatenate([none[None], open_ps[1:]]), axis=0)
        letters = np.array([_QUIET, *(chr(ord("a") + i) for i in range(len(self.of.kinds)))])
        rows = letters[np.where(talk > 0, talk + 1, 0)].reshape(n, BINS)
        computing = letters[np.where(2 * open_ps[0] > full, 1, 0)].reshape(n, BINS)
        return {
            "kinds": list(self.of.kinds),
            "ranks": [
                [int(rank), "".join(computing[i]), "".join(rows[i])]
                for i, rank in enumerate(chosen)
            ],
        }


def added(every: Sequence[Part]) -> Part:
    """Return the iterations of one job, at least one, as one part, without a timeline."""
    times: dict[tuple[str, int, int], list[int]] = {}
    exposed: dict[str, int] = {}
    for part in every:
        for kind, of, size, many, ps in part["collectives"]:
            row = times.setdefault((kind, of, size), [0, 0])
            row[:] = row[0] + many, row[1] + ps
        for kind, ps in part["exposed_ps"].items():
            exposed[kind] = exposed.get(kind, 0) + ps
    each = {
        key: np.sum([part[key] for part in every], axis=0).tolist()
        for key in ("computing_ps", "waiting_ps", "late_ps")
    }
    return {
        "workload": every[0]["workload"],
        **{key: count(part[key] for part in every) for key in ("iterations", "time_ps")},
        **each,
        "exposed_ps": exposed,
        "collectives": [[*key, *row] for key, row in sorted(times.items())],
    }


def _by(place: Ints, values: Ints, places: int) -> list[int]:
    found = np.zeros(places, dtype=np.int64)
    np.add.at(found, place, values)
    return found.tolist()


def _times(keys: Ints) -> Ints:
    """Return for each key how many equal ones come before it."""
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    first = np.searchsorted(sorted_keys, sorted_keys)
    found = np.zeros(len(keys), dtype=np.int64)
    found[order] = np.arange(len(keys)) - first
    return found
