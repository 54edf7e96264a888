"""Between Python values and the messages of ``ns3gym.proto``; strict on what comes in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def encode_report(report: IntervalReport) -> list[pb.Array]:
    """Write every field of a report as raw numbers."""
    arrays = []
    for name, (dtype, _) in REPORT_FIELDS.items():
        value: Any = report
        for part in name.split("."):
            value = getattr(value, part)
        array = np.asarray(value).astype(dtype)
        arrays.append(pb.Array(name=name, dtype=dtype, shape=array.shape, data=array.tobytes()))
    return arrays


def decode_report(arrays: Iterable[pb.Array]) -> IntervalReport:
    """Read a report; every field must be there once, of its type, and finite."""
    values: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {"fsd": {}, "finished": {}}
    seen = []
    for array in arrays:
        outer, _, leaf = array.name.partition(".")
        (inner[outer] if leaf and outer in inner else values)[leaf or outer] = _value(array)
        seen.append(array.name)
    if seen != list(REPORT_FIELDS):
        wrong = next((n for n in REPORT_FIELDS if n not in seen), "an extra or repeated field")
        raise ProtocolError(f"the interval report does not hold its fields; first wrong: {wrong}")
    return IntervalReport(
        **values,
        fsd=FlowSizeDistribution(**inner["fsd"]),
        finished=FinishedFlows(**inner["finished"]),
    )


def _value(array: pb.Array) -> Any:
    """Return the array, or the plain Python number if it has no dimension."""
    expected = REPORT_FIELDS.get(array.name)
    if expected is None or expected != (array.dtype, len(array.shape)):
        raise ProtocolError(
            f"report field {array.name!r} has type {array.dtype!r} and {len(array.shape)} "
            f"dimensions; expected {expected}"
        )
    dtype = np.dtype(array.dtype)
    count = int(np.prod(array.shape, dtype=np.int64))
    if len(array.data) != count * dtype.itemsize:
        raise ProtocolError(
            f"report field {array.name!r} has {len(array.data)} bytes; "
            f"expected {count * dtype.itemsize}"
        )
    values = np.frombuffer(array.data, dtype=dtype).reshape(tuple(array.shape)).copy()
    if dtype.kind == "f" and not np.all(np.isfinite(values)):
        raise ProtocolError(f"report field {array.name!r} holds a value that is not finite")
    return values if values.ndim else values.item()
