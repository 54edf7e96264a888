"""Between Python values and the messages of ``ns3gym.proto``; strict on what comes in."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from dcqcn_gym.envs.backends.base import DeviceSetting
from dcqcn_gym.envs.backends.ns3_bridge import ns3gym_pb2 as pb
from dcqcn_gym.envs.backends.ns3_bridge.errors import ProtocolError
from dcqcn_gym.envs.backends.ns3_bridge.report_memory import ReportMemory
from dcqcn_gym.envs.backends.ns3_bridge.schema import REPORT_FIELDS
from dcqcn_gym.interval import FinishedFlows, FlowSizeDistribution, IntervalReport
from dcqcn_gym.knobs import KNOBS, Setting

__all__ = [
    "box_space",
    "decode",
    "decode_box",
    "decode_report",
    "decode_sample",
    "decode_setting",
    "encode",
    "encode_box",
    "encode_sample",
    "encode_setting",
    "encode_state",
]

_Type = TypeVar("_Type", bound=Message)
_URL = "type.googleapis.com/ns3opengym."


def decode(kind: type[_Type], data: bytes) -> _Type:
    """Parse a message; raise :class:`ProtocolError` if the bytes are none."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise ProtocolError(
            f"expected the message {kind.DESCRIPTOR.name}, got {len(data)} bytes that are not "
            f"one ({error})"
        ) from None
    return message


def _pack(message: Message) -> AnyMessage:
    return AnyMessage(type_url=_URL + message.DESCRIPTOR.name, value=encode(message))


def _unpack(kind: type[_Type], packed: AnyMessage) -> _Type:
    """Take a message out of an Any; a wrong name is an error here, unlike in ns3-gym."""
    if packed.type_url != _URL + kind.DESCRIPTOR.name:
        raise ProtocolError(f"expected {_URL + kind.DESCRIPTOR.name!r}, got {packed.type_url!r}")
    return decode(kind, packed.value)


def box_space(
    name: str,
    lows: npt.NDArray[Any],
    highs: npt.NDArray[Any],
    names: Sequence[str] = (),
) -> pb.SpaceDescription:
    """Describe a flat float32 box: one bound for ns3-gym, the bounds per dimension for us."""
    box = pb.BoxSpace(
        low=float(np.min(lows)),
        high=float(np.max(highs)),
        dtype=pb.FLOAT,
        shape=[len(lows)],
        lows=lows.tolist(),
        highs=highs.tolist(),
        names=list(names),
    )
    return pb.SpaceDescription(type=pb.Box, space=_pack(box), name=name)


def encode_box(values: npt.NDArray[np.float32]) -> pb.DataContainer:
    """Put a flat float array into a container."""
    box = pb.BoxDataContainer(dtype=pb.FLOAT, shape=[len(values)], floatData=values.tolist())
    return pb.DataContainer(type=pb.Box, data=_pack(box))


def decode_box(container: pb.DataContainer, size: int) -> npt.NDArray[np.float64]:
    """Read a flat box of ``size`` finite numbers, whatever their type on the wire."""
    if container.type != pb.Box:
        raise ProtocolError(
            f"expected a box of {size} numbers, got container type {container.type}"
        )
    box = _unpack(pb.BoxDataContainer, container.data)
    data: Iterable[float]
    if box.dtype == pb.FLOAT:
        data = box.floatData
    elif box.dtype == pb.DOUBLE:
        data = box.doubleData
    else:
        data = box.intData if box.dtype == pb.INT else box.uintData
    values = np.array(list(data), dtype=np.float64)
    if values.shape != (size,):
        raise ProtocolError(f"expected a box of {size} numbers, got {len(values)}")
    if not np.all(np.isfinite(values)):
        raise ProtocolError(
            f"number {int(np.argmin(np.isfinite(values)))} of the box is not finite"
        )
    return values


def encode_setting(setting: DeviceSetting) -> list[pb.GroupSetting]:
    """Write a setting group by group, in SI units and full precision."""
    groups = {"cluster": setting} if isinstance(setting, Setting) else setting
    return [pb.GroupSetting(group=g, values=s.values_si) for g, s in groups.items()]


def decode_setting(groups: Iterable[pb.GroupSetting]) -> DeviceSetting:
    """Read what :func:`encode_setting` wrote."""
    found = {}
    for group in groups:
        if len(group.values) != len(KNOBS):
            raise ProtocolError(
                f"group {group.group!r} has {len(group.values)} values; expected {len(KNOBS)}"
            )
        found[group.group] = Setting(tuple(group.values))
    return found["cluster"] if list(found) == ["cluster"] else found


def encode(message: Message) -> bytes:
    """Return the one byte string of a message."""
    return message.SerializeToString(deterministic=True)


def encode_state(
    state: pb.EnvStateMsg, report: IntervalReport | None = None, memory: ReportMemory | None = None
) -> bytes:
    """Return the bytes of ``state`` with every field of ``report`` as raw numbers.

    The numbers go into ``memory`` if there is one. Else they go behind the rest of the message as
    they are, for fields of a protobuf message may follow each other in any order.
    """
    if report is None:
        return encode(state)
    values = [getattr(getattr(report, p) if p else report, name) for p, name, _, _ in _FIELDS]
    lengths = [value.size if f[3] else 1 for f, value in zip(_FIELDS, values, strict=True)]
    state.report_lengths.extend(lengths)
    size = 8 * sum(lengths)
    buffer = bytearray(size) if memory is None else memory.room(size)
    arrays = {kind: np.frombuffer(buffer, dtype) for kind, dtype in _WIRE.items()}
    at = 0
    for (_, _, kind, ndim), value, length in zip(_FIELDS, values, lengths, strict=True):
        if ndim:
            arrays[kind][at : at + length] = value
        else:
            _PACK[kind](buffer, 8 * at, value)
        at += length
    if memory is None:
        return b"".join((encode(state), _DATA_TAG, _varint(size), buffer))
    state.report_shared = True
    return encode(state)


def decode_report(state: pb.EnvStateMsg, memory: ReportMemory | None = None) -> IntervalReport:
    """Read a report; every field must be there, of its size, and finite."""
    lengths = list(state.report_lengths)
    data: bytearray | memoryview
    if state.report_shared and memory is not None:
        data = memory.read(8 * sum(lengths))
    else:
        data = bytearray(state.report_data)
    if len(lengths) != len(_FIELDS) or 8 * sum(lengths) != len(data):
        raise ProtocolError(
            f"the interval report has {len(lengths)} fields, {sum(lengths)} numbers and "
            f"{len(data)} bytes; expected {len(_FIELDS)} fields and 8 bytes a number"
        )
    arrays = {kind: np.frombuffer(data, dtype) for kind, dtype in _WIRE.items()}  # views of it
    values: dict[str, dict[str, Any]] = {"": {}, "fsd": {}, "finished": {}}
    at = 0
    for (parent, name, kind, ndim), length in zip(_FIELDS, lengths, strict=True):
        value: Any
        if ndim:
            value = arrays[kind][at : at + length]
            finite = kind != "<f8" or bool(np.isfinite(value).all())
        elif length == 1:
            value = _UNPACK[kind](data, 8 * at)[0]
            finite = math.isfinite(value)
        else:
            raise ProtocolError(f"report field {name!r} has {length} values; expected 1")
        if not finite:
            raise ProtocolError(f"report field {name!r} holds a value that is not finite")
        values[parent][name] = bool(value) if kind == "bool" else value
        at += length
    return IntervalReport(
        **values[""],
        fsd=FlowSizeDistribution(**values["fsd"]),
        finished=FinishedFlows(**values["finished"]),
    )


def encode_sample(now_ps: int, ports: Mapping[str, Any], flows: Mapping[str, Any]) -> pb.Sample:
    """Write what a watch saw at one instant."""
    return pb.Sample(
        now_ps=now_ps,
        ports=b"".join(np.asarray(ports[n], k).tobytes() for n, k in _PORT_COLUMNS.items()),
        flows=b"".join(np.asarray(flows[n], "<i8").tobytes() for n in _FLOW_COLUMNS),
    )


def decode_sample(sample: pb.Sample, n_ports: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what :func:`encode_sample` wrote, of so many ports: figures of ports and of flows."""
    sizes = [n_ports * np.dtype(kind).itemsize for kind in _PORT_COLUMNS.values()]
    n_flows, rest = divmod(len(sample.flows), 8 * len(_FLOW_COLUMNS))
    if len(sample.ports) != sum(sizes) or rest:
        raise ProtocolError(
            f"a sample of {n_ports} ports has {len(sample.ports)} and {len(sample.flows)} bytes; "
            f"expected {sum(sizes)}, and {8 * len(_FLOW_COLUMNS)} a flow"
        )
    ports, at = {}, 0
    for (name, kind), size in zip(_PORT_COLUMNS.items(), sizes, strict=True):
        ports[name] = np.frombuffer(sample.ports, kind, n_ports, at)
        at += size
    table = np.frombuffer(sample.flows, "<i8").reshape(len(_FLOW_COLUMNS), n_flows)
    return ports, dict(zip(_FLOW_COLUMNS, table, strict=True))


def _varint(number: int) -> bytes:
    """Return a number as protobuf writes it: seven bits a byte, the low ones first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_FIELDS = [(*name.rpartition(".")[::2], kind, ndim) for name, (kind, ndim) in REPORT_FIELDS.items()]
"""Of every report field: the part of the report that holds it, name, type, dimensions."""
_WIRE = {"<i8": np.dtype("<i8"), "<f8": np.dtype("<f8")}
_INT, _FLOAT = struct.Struct("<q"), struct.Struct("<d")
_PACK = {"<i8": _INT.pack_into, "<f8": _FLOAT.pack_into, "bool": _INT.pack_into}
_UNPACK = {"<i8": _INT.unpack_from, "<f8": _FLOAT.unpack_from, "bool": _INT.unpack_from}
_PORT_COLUMNS = {"queue_bytes": "<i8", "tx_bytes": "<i8", "pause_ps": "<f8", "paused": "?"}
_FLOW_COLUMNS = ("src", "dst", "ordinal", "workload", "rate_bps")
_DATA_TAG = _varint(pb.EnvStateMsg.REPORT_DATA_FIELD_NUMBER << 3 | 2)  # 2: so many bytes follow
