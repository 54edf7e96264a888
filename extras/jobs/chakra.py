"""Chakra execution traces: a directory with ``NAME.RANK.et`` for each rank, groups in a JSON file.

Several files of a rank are ``NAME.RANK.PART.et``, read in the order of PART. The k-th collective
of a group on one rank is the k-th on the others, as NCCL takes them; sends and receives match by
sender, receiver and tag in order. The size of a collective is the group's whole buffer. A rank
computes one thing at a time, in the order of starts and numbers, but for what runs on its CPU.
A send starts when its own dependencies are done, whatever its receiver does; what waits for the
receive waits for the message and for the receive's own dependencies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.gzip_files import open_bytes
from dcqcn_gym.envs.scenario.jobs.model import (
    MOST_BYTES,
    MOST_OPS,
    MOST_PS,
    MOST_RANKS,
    ROOFLINE_BYTES,
    ROOFLINE_FLOPS,
    Job,
)
from dcqcn_gym.extras.jobs.chakra_format import Node, chunks, messages, value_of
from dcqcn_gym.extras.jobs.chakra_match import matched

_METADATA, _LOAD, _STORE, _COMPUTE, _SEND, _RECEIVE, _COLLECTIVE = range(1, 8)
_TYPES = {_LOAD: "memory load", _STORE: "memory store"}
KINDS = (
    "all-reduce", "reduce", "all-gather", "gather", "scatter", "broadcast", "all-to-all",
    "reduce-scatter", "reduce-scatter", "barrier",
)  # fmt: skip
"""Collectives by ``comm_type``."""
_KNOWN = frozenset(
    ("is_cpu_op", "comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "pg_name",
     "num_ops", "tensor_size", "root_rank")
)  # fmt: skip
_NAME = re.compile(r"(?P<name>.*?)\.(?P<rank>\d{1,6})(\.(?P<part>\d{1,6}))?\.et(\.gz)?")
_ROOTED = ("broadcast", "reduce", "gather", "scatter")
_MOST_EDGES = 20_000_000


@dataclass(frozen=True)
class ChakraOptions:
    """What to make of traces that are not whole."""

    drop_missing: bool = False
    """Leave out dependencies on nodes that are not there, instead of refusing."""
    repeat: int = 0
    """Ranks that the one trace of rank 0 stands for; 0: there is a trace for each."""


@dataclass
class _Trace:
    """What is known while the files are read."""

    groups: Mapping[str, tuple[int, ...]]
    ranks: int
    notes: Counter[str] = field(default_factory=Counter)
    nodes: int = 0
    edges: int = 0


def read_chakra(folder: Path, reading: ChakraOptions | None = None) -> Job:
    """Return the job of a directory of traces.

    Raises :class:`ConfigError` with the file, what was found and expected.
    """
    reading = reading or ChakraOptions()
    files = _files(folder)
    notes: Counter[str] = Counter()
    groups = _groups(folder, notes)
    many = max(reading.repeat, len(files))
    _check_ranks(folder, files, groups, reading)
    for name, members in groups.items():
        if max(members) >= many:
            raise ConfigError(f"{folder}: group {quote(name)} has rank {max(members)}; expected "
                              f"ranks 0 to {many - 1}")  # fmt: skip
    trace = _Trace(groups, many, notes)
    ranks = []
    for rank in range(many):
        found: dict[int, Node] = {}
        for path in files[0 if reading.repeat else rank]:
            _read(path, rank, trace, found)
        ranks.append(found)
    if not groups:
        _infer_groups(ranks, trace)
    if reading.drop_missing:
        _drop_missing(ranks, trace)
    if reading.repeat:
        trace.notes[f"ranks that repeat the trace of rank 0, of {many}"] = many - 1
    try:
        job = _assembled(ranks)
    except ConfigError as error:
        raise ConfigError(f"{folder}: {error}") from None
    job.notes.update(trace.notes)
    return job


def _check_ranks(
    folder: Path,
    files: Mapping[int, object],
    groups: Mapping[str, tuple[int, ...]],
    reading: ChakraOptions,
) -> None:
    """Raise ConfigError unless there is a trace for each rank, or rank 0's for all."""
    if reading.repeat:
        if list(files) != [0]:
            raise ConfigError(f"{folder}: has traces of {len(files)} ranks; only that of rank 0 "
                              "alone can be repeated")  # fmt: skip
        return
    most = max([*files, *(max(members) for members in groups.values())])
    if most >= MOST_RANKS:
        raise ConfigError(f"{folder}: has rank {most}; expected at most {MOST_RANKS} ranks")
    lack = [rank for rank in range(most + 1) if rank not in files]
    if lack:
        named = ", ".join(map(str, lack[:5])) + (", ..." if len(lack) > 5 else "")
        raise ConfigError(
            f"{folder}: has traces of {len(files)} of {most + 1} ranks; those of ranks {named} "
            "lack: expected a file NAME.RANK.et for each rank from 0 on (with rank 0's alone, "
            "--repeat N takes it for all N, if its collectives are of all)"
        )


def _infer_groups(ranks: list[dict[int, Node]], trace: _Trace) -> None:
    """Give groups that no JSON file describes the ranks that name them as members."""
    members: dict[str, set[int]] = {}
    for rank, nodes in enumerate(ranks):
        for node in nodes.values():
            if node.kind in KINDS and node.key[0]:
                members.setdefault(node.key[0], set()).add(rank)
    if not members:
        return
    trace.notes["process groups that no JSON file describes: their members are the ranks that "
                "name them"] = len(members)  # fmt: skip
    for nodes in ranks:
        for id_, node in nodes.items():
            if node.kind in KINDS and node.key[0]:
                nodes[id_] = node._replace(key=(node.key[0], tuple(sorted(members[node.key[0]]))))


def _drop_missing(ranks: list[dict[int, Node]], trace: _Trace) -> None:
    for nodes in ranks:
        for id_, node in nodes.items():
            there = tuple(dep for dep in node.deps if dep in nodes)
            if len(there) < len(node.deps):
                trace.notes["dependencies on nodes that are not there, left out"] += len(
                    node.deps
                ) - len(there)
                nodes[id_] = node._replace(deps=there)


def _assembled(ranks: Sequence[Mapping[int, Node]]) -> Job:
    chained = matched(ranks, chain=True)
    if chained is None:
        chained = matched(ranks, chain=False)
        if chained is None:
            raise ConfigError("its nodes wait for each other in a circle; expected no cycle")
        chained.notes["trace in which ranks compute several things at once, to avoid a circle"] = 1
    return chained


def _files(folder: Path) -> dict[int, list[Path]]:
    try:
        paths = sorted(p for p in folder.iterdir() if p.name.endswith((".et", ".et.gz")))
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be read ({error.strerror})") from None
    found: dict[int, list[tuple[int, Path]]] = {}
    traces = set()
    for path in paths:
        match = _NAME.fullmatch(path.name)
        if match is None or not path.is_file():
            raise ConfigError(f"{path}: expected a file such as NAME.0.et, 0 being the rank")
        traces.add(match["name"])
        found.setdefault(int(match["rank"]), []).append((int(match["part"] or 0), path))
    if len(traces) > 1:
        names = ", ".join(sorted(traces)[:3])
        raise ConfigError(f"{folder}: holds traces of several names ({names}); expected one")
    if not found:
        raise ConfigError(f"{folder}: holds no Chakra trace; expected files NAME.RANK.et")
    return {rank: [path for _, path in sorted(parts)] for rank, parts in found.items()}


_READ = (".et", ".et.gz", ".json")


def _groups(folder: Path, notes: Counter[str]) -> dict[str, tuple[int, ...]]:
    """Return name -> ranks of the process groups in the JSON files of a folder.

    A file in which nothing is a list of ranks (astra-sim's system and memory) is left out.
    """
    found: dict[str, tuple[int, ...]] = {}
    others = {p.name for p in folder.iterdir() if not p.name.endswith(_READ)}
    if others:
        notes[f"files that are no traces, such as {min(others)}, left out"] += len(others)
    for path in sorted(folder.glob("*.json")):
        try:
            data = parse_json(read_file(path, 2**26))
        except ValueError as error:
            raise ConfigError(f"{path}: cannot be read as JSON ({error})") from None
        rows = data.items() if isinstance(data, dict) else ()
        if not any(_is_ranks(members) for _, members in rows):
            notes[f"JSON files without process groups, such as {path.name}, left out"] += 1
            continue
        for name, members in rows:
            if not _is_ranks(members):
                raise ConfigError(
                    f"{path}: group {quote(name)} is {quote(members)}; expected a list of "
                    "different ranks, from 0 on"
                )
            found[name] = tuple(members)
    return found


def _is_ranks(members: Any) -> bool:
    return (
        isinstance(members, list)
        and bool(members)
        and all(type(m) is int and m >= 0 for m in members)
        and len(set(members)) == len(members)
    )


def _read(path: Path, rank: int, trace: _Trace, found: dict[int, Node]) -> None:
    """Read the nodes of one file."""
    made = messages()
    with open_bytes(path) as file:
        for number, data in enumerate(chunks(file, path)):
            message = made["Metadata" if number == 0 else "Node"]()
            try:
                message.ParseFromString(data)
            except Exception:  # its DecodeError has no public class of its own in every version
                raise ConfigError(
                    f"{path}: message {number} cannot be read; expected a Chakra trace"
                ) from None
            size = message.ByteSize()
            message.DiscardUnknownFields()
            if message.ByteSize() < size:
                trace.notes["messages with fields that Chakra 0.0.4 does not have"] += 1
            if number == 0:
                _check_version(message, path, trace)
                continue
            node = _node(message, rank, trace, path)
            if node.id in found:
                raise ConfigError(f"{path}: node {node.id} is there twice")
            found[node.id] = node
            trace.nodes += 1
            trace.edges += len(node.deps)
            if trace.nodes > MOST_OPS or trace.edges > _MOST_EDGES:
                raise ConfigError(
                    f"{path}: more than {MOST_OPS} nodes or {_MOST_EDGES} dependencies up to here; "
                    "expected fewer ranks or nodes"
                )


def _check_version(message: Any, path: Path, trace: _Trace) -> None:
    stated = [message.version, *(str(value_of(a)) for a in message.attr if a.name == "schema")]
    version = next((v for v in stated if v), "")
    if not re.search(r"(^|\.)0\.0\.[1-4]$", version):
        trace.notes[f"file of version {version or 'unknown'}, read as 0.0.4"] += 1


def _node(message: Any, rank: int, trace: _Trace, path: Path) -> Node:
    attributes = {a.name: value_of(a) for a in message.attr}
    for name in attributes.keys() - _KNOWN:
        trace.notes[f"attributes {quote(name)[1:-1]}, which change nothing here"] += 1
    where = f"{path}: node {message.id}"
    kind, amount, key = _meaning(message, attributes, rank, trace, where)
    cpu = bool(attributes.get("is_cpu_op"))
    deps = tuple(dict.fromkeys([*message.data_deps, *message.ctrl_deps]))
    chained = kind == "compute" and amount > 0 and not cpu
    return Node(message.id, kind, amount, key, deps, chained, message.start_time_micros,
                message.name[:80], _root(kind, attributes, key, trace, where))  # fmt: skip


def _root(
    kind: str, attributes: Mapping[str, Any], key: tuple[Any, ...], trace: _Trace, where: str
) -> int:
    """Return the root of a collective: a rank, or its place in a group that has no such rank."""
    if "root_rank" not in attributes:
        return -1
    if kind not in _ROOTED:
        trace.notes["roots of operations that have none, left out"] += 1
        return -1
    root = _number(attributes, "root_rank", MOST_RANKS, where)
    members = key[1]
    if root in members:
        return root
    if root < len(members):
        return int(members[root])
    raise ConfigError(f"{where}: root_rank {root}; expected a rank of its group {quote(key[0])}")


def _meaning(
    message: Any, attributes: Mapping[str, Any], rank: int, trace: _Trace, where: str
) -> tuple[str, int, tuple[Any, ...]]:
    """Return kind, amount and key of a node."""
    if message.type in (_SEND, _RECEIVE):
        own = "comm_src" if message.type == _SEND else "comm_dst"
        ends = {name: rank if name == own else None for name in ("comm_src", "comm_dst")}
        ends.update({n: _number(attributes, n, MOST_RANKS, where) for n in ends if n in attributes})
        other = next(n for n in ends if n != own)
        if ends[own] != rank or not (ends[other] or 0) < trace.ranks or ends[other] in (None, rank):
            raise ConfigError(
                f"{where}: from {ends['comm_src']} to {ends['comm_dst']} on rank {rank}; expected "
                f"its rank and another below {trace.ranks}"
            )
        tag = _number(attributes, "comm_tag", 2**63, where, 0)
        size = _number(attributes, "comm_size", MOST_BYTES, where)
        what = "send" if message.type == _SEND else "receive"
        return what, size, (ends["comm_src"], ends["comm_dst"], tag)
    if message.type == _COLLECTIVE:
        number = _number(attributes, "comm_type", 2**31, where)
        if number >= len(KINDS):
            raise ConfigError(f"{where}: comm_type {number}; expected 0 to {len(KINDS) - 1}")
        none = 0 if KINDS[number] == "barrier" else None
        size = _number(attributes, "comm_size", MOST_BYTES, where, none)
        return KINDS[number], size, _group(attributes, rank, trace, where)
    if message.type in (_METADATA, _LOAD, _STORE, _COMPUTE):
        return "compute", _time(message, attributes, trace, where), ()
    trace.notes[f"nodes of unknown type {message.type}, which take no time"] += 1
    return "compute", 0, ()


def _group(
    attributes: Mapping[str, Any], rank: int, trace: _Trace, where: str
) -> tuple[str, tuple[int, ...]]:
    name = attributes.get("pg_name", "")
    if name in ("", None):
        return "", tuple(range(trace.ranks))
    if isinstance(name, str) and not trace.groups:  # its members follow from who names it
        return name, tuple(range(trace.ranks))
    if not isinstance(name, str) or name not in trace.groups:
        raise ConfigError(f"{where}: process group {quote(name)} is in no JSON file of the folder")
    if rank not in trace.groups[name]:
        raise ConfigError(f"{where}: rank {rank} is not in its process group {quote(name)}")
    return name, trace.groups[name]


def _time(message: Any, attributes: Mapping[str, Any], trace: _Trace, where: str) -> int:
    """Return the picoseconds of a node: its duration, else a roofline, else none."""
    if message.duration_micros:
        if message.duration_micros > MOST_PS // 10**6:
            raise ConfigError(f"{where}: lasts {message.duration_micros} us; expected at most "
                              f"{MOST_PS // 10**6}")  # fmt: skip
        return int(message.duration_micros) * 10**6
    if message.type == _COMPUTE and "num_ops" in attributes:
        ops = _number(attributes, "num_ops", 2**63, where)
        moved = _number(attributes, "tensor_size", 2**63, where, 0)
        trace.notes["computations without a duration, timed by a roofline"] += 1
        return min(round(max(ops / ROOFLINE_FLOPS, moved / ROOFLINE_BYTES) * 1e12), MOST_PS)
    if message.type in _TYPES:
        trace.notes[f"{_TYPES[message.type]}s without a duration, which take no time"] += 1
    elif message.type == _COMPUTE and not attributes.get("is_cpu_op"):
        trace.notes["computations without a duration, which take no time"] += 1
    return 0


def _number(
    attributes: Mapping[str, Any], name: str, most: int, where: str, missing: int | None = None
) -> int:
    value = attributes.get(name, missing)
    if not isinstance(value, int | float) or not 0 <= value <= most:
        raise ConfigError(f"{where}: {name} is {quote(value)}; expected a number, 0 to {most}")
    return int(value)
