"""Convert Python values to messages of ``ns3gym.proto`` and back; incoming ones are checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from dcqcn_gym.core.groups import DeviceSetting, by_group, check_group_names
from dcqcn_gym.core.interval import LiveFlows
from dcqcn_gym.core.knobs import DCQCN, KnobTable, Setting
from dcqcn_gym.core.sums import count
from dcqcn_gym.extras.ns3.bridge import ns3gym_pb2 as pb
from dcqcn_gym.extras.ns3.bridge.errors import ProtocolError

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


def encode_setting(setting: DeviceSetting, table: KnobTable = DCQCN) -> list[pb.GroupSetting]:
    """Write a setting group by group, in full precision."""
    groups = dict(by_group(setting))
    check_group_names(groups)  # the other end knows which devices there are
    for name, value in groups.items():
        table.require(value, f"group {name!r}")
    return [pb.GroupSetting(group=g, values=s.numbers) for g, s in groups.items()]


def decode_setting(groups: Iterable[pb.GroupSetting], table: KnobTable = DCQCN) -> DeviceSetting:
    """Read what :func:`encode_setting` wrote."""
    found = {}
    for group in groups:
        if len(group.values) != len(table.rows):
            raise ProtocolError(
                f"group {group.group!r} has {len(group.values)} values; expected {len(table.rows)}"
            )
        found[group.group] = Setting(tuple(group.values), table)
    return found["cluster"] if list(found) == ["cluster"] else found


def encode(message: Message) -> bytes:
    """Return the one byte string of a message."""
    return message.SerializeToString(deterministic=True)


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
    if len(sample.ports) != count(sizes) or rest:
        raise ProtocolError(
            f"a sample of {n_ports} ports has {len(sample.ports)} and {len(sample.flows)} bytes; "
            f"expected {count(sizes)}, and {8 * len(_FLOW_COLUMNS)} a flow"
        )
    ports, at = {}, 0
    for (name, kind), size in zip(_PORT_COLUMNS.items(), sizes, strict=True):
        ports[name] = np.frombuffer(sample.ports, kind, n_ports, at)
        at += size
    table = np.frombuffer(sample.flows, "<i8").reshape(len(_FLOW_COLUMNS), n_flows)
    return ports, dict(zip(_FLOW_COLUMNS, table, strict=True))


def encode_live(live: LiveFlows) -> bytes:
    """Write the flows that have not finished."""
    return b"".join(np.asarray(getattr(live, n), "<i8").tobytes() for n in _LIVE_COLUMNS)


def decode_live(data: bytes) -> LiveFlows:
    """Read what :func:`encode_live` wrote."""
    n_flows, rest = divmod(len(data), 8 * len(_LIVE_COLUMNS))
    if rest:
        raise ProtocolError(
            f"the unfinished flows have {len(data)} bytes; expected {8 * len(_LIVE_COLUMNS)} a flow"
        )
    table = np.frombuffer(data, "<i8").reshape(len(_LIVE_COLUMNS), n_flows)
    return LiveFlows(**dict(zip(_LIVE_COLUMNS, table, strict=True)))


_PORT_COLUMNS = {"queue_bytes": "<i8", "tx_bytes": "<i8", "pause_ps": "<f8", "paused": "?"}
_LIVE_COLUMNS = tuple(column.name for column in fields(LiveFlows))
_FLOW_COLUMNS = (
    "src", "dst", "ordinal", "workload", "rate_bps", "queue_pair", "sent_bytes",
)  # fmt: skip
