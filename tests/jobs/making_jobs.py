"""Files of jobs made by hand: Chakra's wire format byte by byte, SimAI's columns."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# of AttributeProto: type -> (field, how it is written)
TYPES = {
    "double": 3, "float": 5, "int32": 7, "int64": 9, "uint32": 11, "uint64": 13, "sint32": 15,
    "sint64": 17, "fixed32": 19, "fixed64": 21, "sfixed32": 23, "sfixed64": 25, "bool": 27,
    "string": 29, "bytes": 31,
}  # fmt: skip
_FIXED = {
    "double": "<d", "float": "<f", "fixed32": "<I", "fixed64": "<Q", "sfixed32": "<i",
    "sfixed64": "<q",
}  # fmt: skip

METADATA, LOAD, STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(1, 8)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, wire: int, body: bytes) -> bytes:
    return varint(number << 3 | wire) + body


def chunk(number: int, body: bytes) -> bytes:
    return field(number, 2, varint(len(body)) + body)


def _scalar(kind: str, value: Any) -> tuple[int, bytes]:
    if kind in _FIXED:
        packed = struct.pack(_FIXED[kind], value)
        return (5 if len(packed) == 4 else 1), packed
    if kind in ("string", "bytes"):
        body = value.encode() if isinstance(value, str) else value
        return 2, varint(len(body)) + body
    if kind.startswith("sint"):
        return 0, varint(value << 1 ^ value >> 63)
    return 0, varint(int(value))


def attribute(name: str, kind: str, value: Any, *, packed: bool = True) -> bytes:
    """An AttributeProto; a list becomes the list of its type, packed or value by value."""
    number = TYPES[kind]
    if not isinstance(value, list):
        wire, body = _scalar(kind, value)
        return chunk(1, name.encode()) + field(number, wire, body)
    scalars = [_scalar(kind, one) for one in value]
    if packed and kind not in ("string", "bytes"):
        inner = chunk(1, b"".join(body for _, body in scalars))
    else:
        inner = b"".join(field(1, wire, body) for wire, body in scalars)
    return chunk(1, name.encode()) + chunk(number + 1, inner)


def node(
    id_: int, kind: int, deps: Sequence[int] = (), *attributes: bytes, name: str = "n", us: int = 0,
    start: int = 0, ctrl: Sequence[int] = (), packed: bool = True, more: bytes = b"",
) -> bytes:  # fmt: skip
    """A Node; ``more`` are fields that nobody has heard of."""
    out = field(1, 0, varint(id_)) + chunk(2, name.encode()) + field(3, 0, varint(kind))
    for number, many in ((4, ctrl), (5, deps)):
        if packed and many:
            out += chunk(number, b"".join(map(varint, many)))
        else:
            out += b"".join(field(number, 0, varint(d)) for d in many)
    if start:
        out += field(6, 0, varint(start))
    if us:
        out += field(7, 0, varint(us))
    out += chunk(8, chunk(1, b"[1]") + chunk(2, b"[2]") + chunk(3, b"float"))
    return out + b"".join(chunk(10, a) for a in attributes) + more


def trace(*nodes: bytes, version: str = "0.0.4", schema: str = "") -> bytes:
    head = chunk(1, version.encode()) if version else b""
    if schema:
        head += chunk(2, attribute("schema", "string", schema))
    return b"".join(varint(len(m)) + m for m in (head, *nodes))


def collective(
    id_: int,
    kind: int,
    size: int,
    deps: Sequence[int] = (),
    group: str = "",
    integers: str = "int64",
) -> bytes:
    attributes = [attribute("comm_type", integers, kind), attribute("comm_size", integers, size)]
    if group:
        attributes.append(attribute("pg_name", "string", group))
    return node(id_, COLLECTIVE, deps, attribute("is_cpu_op", "bool", False), *attributes)


def message(
    id_: int, kind: int, src: int, dst: int, size: int, deps: Sequence[int] = (), tag: int = 0
) -> bytes:
    words = {"comm_src": src, "comm_dst": dst, "comm_tag": tag}
    attributes = [attribute(n, "int32", v) for n, v in words.items()]
    return node(id_, kind, deps, *attributes, attribute("comm_size", "uint64", size))


def write_traces(folder: Path, traces: Sequence[bytes], groups: Any = None) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, data in enumerate(traces):
        (folder / f"job.{rank}.et").write_bytes(data)
    if groups is not None:
        (folder / "groups.json").write_text(json.dumps(groups))
    return folder


def simai(rows: Sequence[Sequence[object]], header: str, tab: str = "\t", end: str = "\n") -> str:
    return end.join([header, str(len(rows)), *(tab.join(map(str, row)) for row in rows)]) + end


def header(policy: str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD", **values: object) -> str:
    known = {
        "model_parallel_NPU_group": 2, "ep": 1, "pp": 1, "vpp": 1, "ga": 1, "all_gpus": 8,
        "checkpoints": 0, "checkpoint_initiates": 0, **values,
    }  # fmt: skip
    return " ".join([policy, *(f"{k}: {v}" for k, v in known.items() if v is not None)])


def row(
    name: str, forward: tuple[object, ...] = (1, "NONE", 0),
    gradient: tuple[object, ...] = (1, "NONE", 0), weight: tuple[object, ...] = (1, "NONE", 0),
    update: int = 0,
) -> list[object]:  # fmt: skip
    return [name, -1, *forward, *gradient, *weight, update]
