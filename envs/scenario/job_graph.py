"""Graphs of transfers, computation and joins: what a training job does, node by node.

A node starts when all its predecessors are done (when that is known where:
docs/reference/model.md).
Endpoints are the ranks of the job, 0, 1, ...; a scenario puts each on a host.
"""

from __future__ import annotations

import os
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import read_file

Ints: TypeAlias = NDArray[np.int64]


class NodeKind(IntEnum):
    """What a node is; the numbers stand in files."""

    TRANSFER = 0  # bytes from src to dst over the fabric
    LOCAL = 1  # bytes from src to dst inside a server
    DELAY = 2  # computation at src
    JOIN = 3  # takes no time
    REPEAT = 4  # the end of a counted loop: a join that starts its span anew


MAX_NODES = 2**30
MAX_EDGES = 2**32 - 1
MAX_ENDPOINTS = 65_535
MAX_NUMBER = 65_535
"""Of a connection or a label."""
MAX_VALUE = 2**55 - 1
"""Of bytes, picoseconds and repetitions."""

_MAGIC = b"DCQCNJOB"
_VERSION = 1
_HEAD = struct.Struct("<8s6Q")
_COLUMNS = (
    ("kind", "u1"),
    ("src", "<u2"),
    ("dst", "<u2"),
    ("connection", "<u2"),
    ("label", "<u2"),
    ("value", "<i8"),
)


@dataclass(frozen=True, eq=False)
class JobGraph:
    """A graph in columns, one number per node; every edge leads to a node of a higher number.

    Columns of a file are as narrow as in its bytes: cast before arithmetic.
    ``value`` is the bytes of a transfer, the picoseconds of a delay, the repetitions of a loop;
    ``dst`` of all but transfers is ``src``. The successors of node i are
    ``successors[first[i]:first[i + 1]]``. ``loops`` has a row (first node, last node) for each
    counted loop: the nodes between start anew when the last one, a REPEAT, fires.
    ``labels`` are names, by number.
    """

    kind: Ints
    src: Ints
    dst: Ints
    connection: Ints
    label: Ints
    value: Ints
    first: Ints
    successors: Ints
    loops: Ints
    labels: tuple[str, ...]
    endpoints: int

    def __post_init__(self) -> None:
        for name in ("kind", "src", "dst", "connection", "label", "value", "first", "loops"):
            getattr(self, name).setflags(write=False)
        self.successors.setflags(write=False)
        _check(self)

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def sizes(self) -> Ints:
        """The bytes of transfers, fabric and local; 0 of other nodes."""
        return np.where(self.kind <= NodeKind.LOCAL, self.value, 0)

    @property
    def delay_ps(self) -> Ints:
        """The time of delays in picoseconds; 0 of other nodes."""
        return np.where(self.kind == NodeKind.DELAY, self.value, 0)

    @cached_property
    def executions(self) -> Ints:
        """How often each node runs in one round of the graph: the product of its loops."""
        times = np.ones(len(self), dtype=np.int64)
        for begin, end in self.loops:
            times[begin : end + 1] *= self.value[end]
        return times

    def to_bytes(self) -> bytes:
        """Return the graph as a file holds it; ``from_file`` and the engines read it."""
        names = "\n".join(self.labels).encode()
        sizes = (len(self), len(self.successors), len(self.loops), self.endpoints, len(names))
        parts = [_HEAD.pack(_MAGIC, _VERSION, *sizes)]
        parts += [getattr(self, name).astype(dtype).tobytes() for name, dtype in _COLUMNS]
        parts += [a.astype("<u4").tobytes() for a in (self.first, self.successors, self.loops)]
        return b"".join([*parts, names])

    @classmethod
    def from_bytes(cls, data: bytes) -> JobGraph:
        """Read what :meth:`to_bytes` returned; raise as :meth:`from_file`."""
        return cls(**_parsed(data))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobGraph) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def to_file(self, path: Path) -> None:
        """Write the graph whole or not at all."""
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_bytes(self.to_bytes())
        draft.replace(path)

    @classmethod
    def from_file(cls, path: Path) -> JobGraph:
        """Read a graph; raise :class:`ConfigError` for a file that is cut, broken or cyclic."""
        data = read_file(path)
        try:
            return cls.from_bytes(data)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None


class JobGraphBuilder:
    """Builds a graph node by node; ids are 0, 1, ... and ``after`` names nodes that exist.

    Every mistake raises :class:`ConfigError` and leaves the builder as it was.
    """

    def __init__(self, endpoints: int, most: int = MAX_NODES) -> None:
        if not 1 <= endpoints <= MAX_ENDPOINTS:
            raise ConfigError(f"{endpoints} endpoints; expected 1 to {MAX_ENDPOINTS}")
        self.endpoints = endpoints
        self._most = most
        self._columns = tuple(array(np.dtype(dtype).char) for _, dtype in _COLUMNS)
        self._before = array("I")  # the predecessors of all nodes, and how many each has
        self._counts = array("I")
        self._labels: dict[str, int] = {"": 0}
        self._loops: list[tuple[int, int]] = []
        self._open: list[int] = []  # first nodes of the loops that are open
        self._loose: list[set[int]] = []  # of each open loop: nodes that nothing follows yet
        self._hidden: list[tuple[int, int]] = []  # spans of closed loops, which only end shows

    def __len__(self) -> int:
        return len(self._counts)

    def label(self, name: str) -> int:
        """Return the number of a label; 0 is the label without a name, which nothing reports."""
        if "\n" in name or len(self._labels) > MAX_NUMBER:
            raise ConfigError(f"label {name[:80]!r}; expected one line, at most {MAX_NUMBER} names")
        return self._labels.setdefault(name, len(self._labels))

    def transfer(
        self, src: int, dst: int, size: int, after: Iterable[int] = (), *,
        connection: int = 0, label: int = 0,
    ) -> int:  # fmt: skip
        """Add a transfer of ``size`` bytes over the fabric; return its id.

        ``connection`` is which of the connections between the two carries it.
        """
        return self._moved(NodeKind.TRANSFER, src, dst, size, (after, connection, label))

    def local(
        self, src: int, dst: int, size: int, after: Iterable[int] = (), *, label: int = 0
    ) -> int:
        """Add a transfer of ``size`` bytes inside a server (NVLink); return its id."""
        return self._moved(NodeKind.LOCAL, src, dst, size, (after, 0, label))

    def delay(self, endpoint: int, ps: int, after: Iterable[int] = (), *, label: int = 0) -> int:
        """Add a computation of ``ps`` picoseconds, 0 or more, at an endpoint; return its id."""
        return self._add((NodeKind.DELAY, endpoint, endpoint, 0, label, ps), after)

    def join(self, after: Iterable[int], endpoint: int | None = None, *, label: int = 0) -> int:
        """Add a node that takes no time; return its id.

        Its endpoint is the one where the last of ``after`` ends, unless ``endpoint`` says another.
        """
        after = tuple(after)
        if endpoint is None:
            endpoint = self._columns[2][after[-1]] if after and 0 <= after[-1] < len(self) else 0
        return self._add((NodeKind.JOIN, endpoint, endpoint, 0, label, 0), after)

    @contextmanager
    def repeat(
        self, count: int, after: Iterable[int] = (), endpoint: int | None = None, label: int = 0
    ) -> Iterator[Loop]:
        """Repeat the nodes that are added within ``with``, ``count`` times, without unrolling.

        They may follow each other, ``loop.begin`` (as those with no ``after`` do) and nothing
        outside. A repetition starts when the one before is done. Later nodes follow ``loop.end``.
        """
        if not 1 <= count <= MAX_VALUE:
            raise ConfigError(f"repeat({count}); expected 1 to {MAX_VALUE} repetitions")
        loop = Loop(self.join(after, endpoint))
        self._open.append(loop.begin)
        self._loose.append({loop.begin})
        yield loop
        home = self._columns[1][loop.begin]
        last = sorted(self._loose[-1])
        loop.end = self._add((NodeKind.REPEAT, home, home, 0, label, count), last)
        self._open.pop()
        self._loose.pop()
        if self._loose:
            self._loose[-1].discard(loop.begin)
            self._loose[-1].add(loop.end)
        while self._hidden and self._hidden[-1][0] > loop.begin:
            self._hidden.pop()
        self._hidden.append((loop.begin, loop.end))
        self._loops.append((loop.begin, loop.end))

    def build(self) -> JobGraph:
        """Return the graph; raise :class:`ConfigError` if it is empty or a loop is open."""
        if self._open:
            raise ConfigError("a repeat is still open; build() comes after its 'with' block")
        nodes = np.arange(len(self), dtype=np.uint32)
        before = np.array(self._before)
        successors: Any = np.repeat(nodes, self._counts)[np.argsort(before, kind="stable")]
        first = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(np.bincount(before, minlength=len(self)), out=first[1:])
        columns = zip(_COLUMNS, self._columns, strict=True)
        return JobGraph(
            **{name: np.array(column) for (name, _), column in columns},
            first=first,
            successors=successors,
            loops=np.array(sorted(self._loops), dtype=np.int64).reshape(-1, 2),
            labels=tuple(self._labels),
            endpoints=self.endpoints,
        )

    def _moved(
        self, kind: NodeKind, src: int, dst: int, size: int, rest: tuple[Iterable[int], int, int]
    ) -> int:
        after, connection, label = rest
        if src == dst:
            raise ConfigError(f"a transfer from endpoint {src} to itself; expected two endpoints")
        if size < 1:
            raise ConfigError(f"a transfer of {size} bytes; expected at least 1 (else a join)")
        return self._add((kind, src, dst, connection, label, size), after)

    def _add(self, row: tuple[int, int, int, int, int, int], after: Iterable[int]) -> int:
        number = len(self)
        _, src, dst, connection, label, value = row
        for end in (src, dst):
            if not 0 <= end < self.endpoints:
                raise ConfigError(f"endpoint {end}; expected 0 to {self.endpoints - 1}")
        if not 0 <= connection <= MAX_NUMBER or not 0 <= label < len(self._labels):
            raise ConfigError(
                f"connection {connection}, label {label}; expected a connection of at most "
                f"{MAX_NUMBER} and a label from label()"
            )
        if not 0 <= value <= MAX_VALUE:
            raise ConfigError(f"{value} bytes or picoseconds; expected 0 to {MAX_VALUE}")
        before = tuple(dict.fromkeys(after))
        if self._open and not before:
            before = (self._open[-1],)
        for i in before:
            if not 0 <= i < number:
                raise ConfigError(
                    f"node {number} comes after node {i}, which does not exist yet; expected one "
                    "that was added before (so there is no cycle)"
                )
            if self._open and i < self._open[-1]:
                raise ConfigError(f"node {number} of a repeat comes after node {i} outside of it")
            span = bisect_right(self._hidden, (i, MAX_NODES)) - 1
            if span >= 0 and i < self._hidden[span][1]:
                raise ConfigError(
                    f"node {number} comes after node {i} of a repeat; expected after its end, "
                    f"node {self._hidden[span][1]}"
                )
        if number >= self._most:
            raise ConfigError(f"a graph of more than {self._most} nodes")
        for column, cell in zip(self._columns, row, strict=True):
            column.append(cell)
        self._before.extend(before)
        self._counts.append(len(before))
        if self._open:
            self._loose[-1].difference_update(before)
            self._loose[-1].add(number)
        return number


@dataclass
class Loop:
    """The first and, once its ``with`` block is over, the last node of a repeat."""

    begin: int
    end: int = -1


def _parsed(data: bytes) -> dict[str, Any]:
    if len(data) < _HEAD.size or data[:8] != _MAGIC:
        raise ConfigError("it is no job graph; expected a file that JobGraph.to_file wrote")
    _, version, nodes, edges, loops, endpoints, names = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise ConfigError(f"it is a job graph of version {version}; expected {_VERSION}")
    need = _HEAD.size + nodes * 17 + (nodes + 1 + edges + 2 * loops) * 4 + names
    if need != len(data):
        raise ConfigError(f"it has {len(data)} bytes; expected {need}: it is cut or broken")
    columns: dict[str, Any] = {}
    at = _HEAD.size
    plan = [(name, dtype, nodes) for name, dtype in _COLUMNS]
    plan += [("first", "<u4", nodes + 1), ("successors", "<u4", edges), ("loops", "<u4", 2 * loops)]
    for name, dtype, count in plan:
        columns[name] = np.frombuffer(data, dtype=dtype, count=count, offset=at)
        at += columns[name].nbytes
    columns["loops"] = columns["loops"].astype(np.int64).reshape(-1, 2)
    try:
        columns["labels"] = tuple(data[at:].decode().split("\n"))
    except UnicodeDecodeError:
        raise ConfigError("the names of its labels are not UTF-8: it is broken") from None
    return {**columns, "endpoints": endpoints}


def _check(g: JobGraph) -> None:
    """Raise :class:`ConfigError` for what no engine could carry out."""
    nodes = len(g)
    if not 1 <= nodes <= MAX_NODES or len(g.successors) > MAX_EDGES:
        raise ConfigError(
            f"{nodes} nodes and {len(g.successors)} edges; expected 1 to {MAX_NODES} and at most "
            f"{MAX_EDGES}"
        )
    if not 1 <= g.endpoints <= MAX_ENDPOINTS or not 1 <= len(g.labels) <= MAX_NUMBER + 1:
        raise ConfigError(f"{g.endpoints} endpoints and {len(g.labels)} labels; both have 16 bits")
    _refuse(g, (g.kind < 0) | (g.kind > NodeKind.REPEAT), "is of a kind that does not exist")
    ends = np.maximum(g.src, g.dst)
    _refuse(g, ends >= g.endpoints, f"names an endpoint above {g.endpoints - 1}")
    _refuse(g, g.label >= len(g.labels), "has a label without a name")
    moves = g.kind <= NodeKind.LOCAL
    _refuse(g, moves == (g.src == g.dst), "is a transfer to itself, or no transfer and moves")
    smallest = np.where(moves | (g.kind == NodeKind.REPEAT), 1, 0)
    _refuse(
        g, (g.value < smallest) | (g.value > MAX_VALUE), "has bytes, time or count out of range"
    )
    if g.first[0] != 0 or g.first[-1] != len(g.successors) or np.any(g.first[1:] < g.first[:-1]):
        raise ConfigError("its edges do not add up: it is broken")
    _check_edges(g)


def _check_edges(g: JobGraph) -> None:
    nodes = len(g)
    before = np.repeat(np.arange(nodes, dtype=np.uint32), np.diff(g.first))
    wrong = (g.successors <= before) | (g.successors >= nodes)
    if np.any(wrong):
        at = int(np.argmax(wrong))
        raise ConfigError(
            f"node {before[at]} leads to node {g.successors[at]}; expected one of a higher number "
            f"below {nodes}: the graph is cyclic or broken"
        )
    inner, outer = _scopes(g)
    if np.any(inner[before] != outer[g.successors]):
        raise ConfigError("an edge leads into a loop or out of it: the graph is broken")
    heads = np.bincount(g.successors, minlength=nodes)
    loose = ((inner >= 0) & (np.diff(g.first) == 0)) | ((outer >= 0) & (heads == 0))
    _refuse(g, loose, "of a loop is not between its ends")


def _scopes(g: JobGraph) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the loop (-1: none) to which a node's outgoing and its incoming edges belong."""
    if np.any(np.diff(g.loops[:, 0]) <= 0):
        raise ConfigError("its loops are out of order: the graph is broken")
    inner = np.full(len(g), -1, dtype=np.int32)
    outer = inner.copy()
    for k, (begin, end) in enumerate(g.loops):  # by first node: inner loops come later
        if not 0 <= begin < end < len(g) or g.kind[begin] != NodeKind.JOIN:
            raise ConfigError(f"loop {k} has no first or last node: the graph is broken")
        if g.kind[end] != NodeKind.REPEAT or inner[begin] != inner[end]:
            raise ConfigError(f"loop {k} is not within the one around it: the graph is broken")
        inner[begin:end] = k
        outer[begin + 1 : end + 1] = k
    if len(g.loops) != np.count_nonzero(g.kind == NodeKind.REPEAT):
        raise ConfigError("a repeat has no loop: the graph is broken")
    return inner, outer


def _refuse(g: JobGraph, wrong: NDArray[np.bool_], what: str) -> None:
    if np.any(wrong):
        raise ConfigError(f"node {int(np.argmax(wrong))} {what}")
