"""The messages of Chakra execution traces (MLCommons, package ``ChakraProtoMsg``), from numbers.

Built at run time from field numbers: no generated code.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from dcqcn_gym.core.errors import ConfigError, MissingExtraError

MOST_MESSAGE = 16 * 2**20
"""Bytes of one message; a node has some hundred."""

VALUES = {
    "double": 3, "float": 5, "int32": 7, "int64": 9, "uint32": 11, "uint64": 13, "sint32": 15,
    "sint64": 17, "fixed32": 19, "fixed64": 21, "sfixed32": 23, "sfixed64": 25, "bool": 27,
    "string": 29, "bytes": 31,
}  # fmt: skip
"""Type of an attribute -> its field; the list of that type is the next one."""


class Node(NamedTuple):
    """A node of one rank: ``key`` is (name, ranks) of its group, or (sender, receiver, tag)."""

    id: int
    kind: str
    amount: int
    key: tuple[Any, ...]
    deps: tuple[int, ...]
    chained: bool
    start: int
    name: str
    root: int = -1
    """The rank that a rooted collective begins or ends at; -1: the group's first."""


_NODE = (
    (1, "id", "uint64", False), (2, "name", "string", False), (3, "type", "int32", False),
    (4, "ctrl_deps", "uint64", True), (5, "data_deps", "uint64", True),
    (6, "start_time_micros", "uint64", False), (7, "duration_micros", "uint64", False),
    (8, "inputs", ".P.IOInfo", False), (9, "outputs", ".P.IOInfo", False),
    (10, "attr", ".P.Attribute", True),
)  # fmt: skip


@lru_cache(1)
def messages() -> dict[str, Any]:
    """Return the message classes Metadata, Node and Attribute."""
    try:
        pb = importlib.import_module("google.protobuf.descriptor_pb2")
        pool = importlib.import_module("google.protobuf.descriptor_pool").DescriptorPool()
        factory = importlib.import_module("google.protobuf.message_factory")
    except ImportError:
        raise MissingExtraError("a Chakra trace", "jobs") from None
    file = pb.FileDescriptorProto(name="chakra.proto", package="P", syntax="proto3")
    _message(file, "IOInfo", [(i + 1, n, "string", False) for i, n in enumerate(_IO)])
    fields = [(1, "name", "string", False), (2, "doc_string", "string", False)]
    for kind, number in VALUES.items():
        _message(file, f"{kind}_list", [(1, "values", kind, True)])
        fields.append((number, f"{kind}_val", kind, False))
        fields.append((number + 1, f"{kind}_more", f".P.{kind}_list", False))
    _message(file, "Attribute", fields, one_of=True)
    _message(file, "Node", list(_NODE))
    _message(file, "Metadata", [(1, "version", "string", False), (2, "attr", ".P.Attribute", True)])
    pool.Add(file)
    names = ("Metadata", "Node", "Attribute")
    return {n: factory.GetMessageClass(pool.FindMessageTypeByName(f"P.{n}")) for n in names}


_IO = ("values", "shapes", "types")


def _message(
    file: Any, name: str, fields: list[tuple[int, str, str, bool]], *, one_of: bool = False
) -> None:
    made = file.message_type.add(name=name)
    if one_of:
        made.oneof_decl.add(name="value")
    for number, field, kind, repeated in fields:
        found = made.field.add(name=field, number=number, label=3 if repeated else 1)
        if kind.startswith("."):
            found.type, found.type_name = 11, kind
        else:
            found.type = getattr(type(found), f"TYPE_{kind.upper()}")
        if one_of and number > 2:
            found.oneof_index = 0


def value_of(attribute: Any) -> Any:
    """Return what an attribute holds: a number, a text, bytes, a list of them; None: nothing."""
    name = attribute.WhichOneof("value")
    if name is None:
        return None
    held = getattr(attribute, name)
    return list(held.values) if name.endswith("_more") else held


def chunks(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield the messages of a stream in which each has its length, a varint, before it."""
    while first := file.read(1):
        size, shift, byte = first[0] & 0x7F, 7, first[0]
        while byte & 0x80:
            more = file.read(1)
            if not more or shift > 28:
                raise ConfigError(f"{path}: at byte {file.tell()}: the length of a message is "
                                  "cut or too long; expected a Chakra trace")  # fmt: skip
            byte = more[0]
            size |= (byte & 0x7F) << shift
            shift += 7
        if size > MOST_MESSAGE:
            raise ConfigError(
                f"{path}: at byte {file.tell()}: a message of {size} bytes; expected at most "
                f"{MOST_MESSAGE}: it is no Chakra trace, or broken"
            )
        data = file.read(size)
        if len(data) < size:
            raise ConfigError(f"{path}: it ends within a message: it is cut")
        yield data
