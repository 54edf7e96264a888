"""Between Python values and the messages of ``ns3gym.proto``; strict on what comes in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from dcqcn_gym.envs.backends.base import DeviceSetting
from dcqcn_gym.envs.backends.ns3_bridge import ns3gym_pb2 as pb
from dcqcn_gym.envs.backends.ns3_bridge.errors import ProtocolError
from dcqcn_gym.envs.backends.ns3_bridge.schema import REPORT_FIELDS
from dcqcn_gym.interval import FinishedFlows, FlowSizeDistribution, IntervalReport
from dcqcn_gym.knobs import KNOBS, Setting

__all__ = [
    "box_space",
    "decode",
    "decode_box",
    "decode_report",
    "decode_setting",
    "encode_box",
    "encode_report",
    "encode_setting",
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
    return AnyMessage(
        type_url=_URL + message.DESCRIPTOR.name, value=message.SerializeToString(deterministic=True)
    )


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


def encode_report(report: IntervalReport, state: pb.EnvStateMsg) -> None:
    """Write every field of a report into ``state`` as raw numbers."""
    parts, lengths = [], []
    for path, kind, _ in _FIELDS:
        value: Any = report
        for name in path:
            value = getattr(value, name)
        part = np.asarray(value, dtype=_WIRE[kind]).tobytes()
        parts.append(part)
        lengths.append(len(part) // 8)
    state.report_lengths.extend(lengths)
    state.report_data = b"".join(parts)


def decode_report(state: pb.EnvStateMsg) -> IntervalReport:
    """Read a report; every field must be there, of its size, and finite."""
    lengths = list(state.report_lengths)
    if len(lengths) != len(_FIELDS) or 8 * sum(lengths) != len(state.report_data):
        raise ProtocolError(
            f"the interval report has {len(lengths)} fields, {sum(lengths)} numbers and "
            f"{len(state.report_data)} bytes; expected {len(_FIELDS)} fields and 8 bytes a number"
        )
    values: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {"fsd": {}, "finished": {}}
    data, at = bytearray(state.report_data), 0  # arrays are views of it
    for (path, kind, ndim), length in zip(_FIELDS, lengths, strict=True):
        if ndim == 0 and length != 1:
            raise ProtocolError(f"report field {path[-1]!r} has {length} values; expected 1")
        array = np.frombuffer(data, dtype=_WIRE[kind], count=length, offset=at)
        at += 8 * length
        if kind == "<f8" and not np.all(np.isfinite(array)):
            raise ProtocolError(f"report field {path[-1]!r} holds a value that is not finite")
        target = inner[path[0]] if len(path) == 2 else values
        target[path[-1]] = array if ndim else _SCALARS[kind](array[0])
    return IntervalReport(
        **values,
        fsd=FlowSizeDistribution(**inner["fsd"]),
        finished=FinishedFlows(**inner["finished"]),
    )


_FIELDS = [(tuple(name.split(".")), kind, ndim) for name, (kind, ndim) in REPORT_FIELDS.items()]
_WIRE = {"<i8": np.dtype("<i8"), "<f8": np.dtype("<f8"), "bool": np.dtype("<i8")}
_SCALARS: dict[str, Callable[[Any], Any]] = {"<i8": int, "<f8": float, "bool": bool}
