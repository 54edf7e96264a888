"""Encode an interval report as two blocks of raw numbers: fast for reports of half a megabyte.

First all whole numbers, then all real ones; in each block the arrays come first, in the order of
the schema, and the single numbers after them. A fixed handful of calls moves it all, because after
an interval of ns-3 neither program nor data are in the processor's caches any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.errors import quote
from dcqcn_gym.core.interval import FinishedFlows, FlowSizeDistribution, IntervalReport, JobSpans
from dcqcn_gym.core.sums import count
from dcqcn_gym.extras.ns3.bridge import ns3gym_pb2 as pb
from dcqcn_gym.extras.ns3.bridge.codec import encode
from dcqcn_gym.extras.ns3.bridge.errors import ProtocolError
from dcqcn_gym.extras.ns3.bridge.schema import REPORT_FIELDS


def _names(kinds: Iterable[str], ndim: int) -> list[str]:
    return [name for name, kind in REPORT_FIELDS.items() if kind[0] in kinds and kind[1] == ndim]


_INT_ARRAYS, _INTS = _names(("<i8",), 1), _names(("<i8", "bool"), 0)
_FLOAT_ARRAYS, _FLOATS = _names(("<f8",), 1), _names(("<f8",), 0)
_ARRAYS = [*_INT_ARRAYS, *_FLOAT_ARRAYS]
_BOOLS = _names(("bool",), 0)
_TAKE = [attrgetter(*names) for names in (_INT_ARRAYS, _INTS, _FLOAT_ARRAYS, _FLOATS)]
_FSD = [n for n in REPORT_FIELDS if n.startswith("fsd.")]
_FINISHED = [n for n in REPORT_FIELDS if n.startswith("finished.")]
_OWN = [n for n in REPORT_FIELDS if "." not in n]
_FAMILIES = [
    [i for i, name in enumerate(_ARRAYS) if name.startswith(prefix)]
    for prefix in ("host_", "rtt_", "port_", "finished.")
]
"""Arrays that are columns of one table, by their places in ``report_lengths``."""


def encode_state(state: pb.EnvStateMsg, report: IntervalReport | None = None) -> bytes:
    """Return the bytes of ``state`` with every field of ``report`` as raw numbers.

    They go behind the rest of the message as they are, for fields of a protobuf message may follow
    each other in any order.
    """
    if report is None:
        return encode(state)
    int_arrays, ints, float_arrays, floats = (take(report) for take in _TAKE)
    state.report_lengths.extend(map(len, int_arrays + float_arrays))
    n_ints = count(map(len, int_arrays)) + len(ints)
    n_floats = count(map(len, float_arrays)) + len(floats)
    size = 8 * (n_ints + n_floats)
    buffer = bytearray(size)
    into = np.frombuffer(buffer, "<i8", n_ints)
    np.concatenate([*int_arrays, np.array(ints, np.int64)], out=into)
    into_floats = np.frombuffer(buffer, "<f8", n_floats, 8 * n_ints)
    np.concatenate([*float_arrays, np.array(floats)], out=into_floats)
    return b"".join((encode(state), _DATA_TAG, _varint(size), buffer))


def decode_report(state: pb.EnvStateMsg) -> IntervalReport:
    """Read a report; every field must be there, of its size, and finite."""
    lengths = list(state.report_lengths)
    split = len(_INT_ARRAYS)
    n_ints = count(lengths[:split]) + len(_INTS)
    n_floats = count(lengths[split:]) + len(_FLOATS)
    size = 8 * (n_ints + n_floats)
    data = bytearray(state.report_data)
    if len(lengths) != len(_ARRAYS) or size != len(data):
        raise ProtocolError(
            f"the interval report has {len(lengths)} arrays of {count(lengths)} numbers in all and "
            f"{len(data)} bytes; expected {len(_ARRAYS)} arrays, {len(_INTS) + len(_FLOATS)} more "
            "numbers, and 8 bytes a number"
        )
    _check_tables(lengths)
    ints = np.frombuffer(data, "<i8", n_ints)  # views of the data
    floats = np.frombuffer(data, "<f8", n_floats, 8 * n_ints)
    values = dict(zip(_INT_ARRAYS, _pieces(ints, lengths[:split]), strict=True))
    values |= zip(_FLOAT_ARRAYS, _pieces(floats, lengths[split:]), strict=True)
    values |= zip(_INTS, ints[n_ints - len(_INTS) :].tolist(), strict=True)
    values |= zip(_FLOATS, floats[n_floats - len(_FLOATS) :].tolist(), strict=True)
    if not np.isfinite(floats).all():
        wrong = next(n for n in (*_FLOAT_ARRAYS, *_FLOATS) if not np.isfinite(values[n]).all())
        raise ProtocolError(f"report field {wrong!r} holds a value that is not finite")
    for name in _BOOLS:
        values[name] = bool(values[name])
    beside = _beside(state.info)
    return IntervalReport(
        **{name: values[name] for name in _OWN},
        fsd=FlowSizeDistribution(**{n[len("fsd.") :]: values[n] for n in _FSD}),
        finished=FinishedFlows(**{n[len("finished.") :]: values[n] for n in _FINISHED}),
        **beside,
    )


_UNLIMITED, _SPANS = "unlimited_flows", "job_spans"


def encode_counts(report: IntervalReport) -> str:
    """Return what not every report has, as JSON for ``info``; "" if there is nothing."""
    unlimited = {_UNLIMITED: int(report.unlimited_flows)} if report.unlimited_flows else {}
    spans = {_SPANS: report.job_spans.rows()} if len(report.job_spans) else {}
    counts = {**report.scheme_counters, **unlimited, **spans}
    return json.dumps(counts) if counts else ""


def _beside(text: str) -> dict[str, Any]:
    """Read what stands in ``info`` where there is some: counters of schemes, spans of jobs."""
    try:
        values = json.loads(text) if text else {}
        spans = JobSpans.of_rows(values.pop(_SPANS, ()))
        counters = {str(name): int(n) for name, n in values.items()}
        unlimited = counters.pop(_UNLIMITED, 0)
        return {"scheme_counters": counters, _UNLIMITED: unlimited, _SPANS: spans}
    except (ValueError, TypeError, AttributeError):
        raise ProtocolError(f"info {quote(text)}: expected counters of schemes as JSON") from None


def _pieces(block: npt.NDArray[Any], lengths: Sequence[int]) -> list[Any]:
    return [block[a:b] for a, b in pairwise(accumulate(lengths, initial=0))]


def _check_tables(lengths: Sequence[int]) -> None:
    """Raise if the columns of a table differ in length."""
    for family in _FAMILIES:
        if len({lengths[i] for i in family}) != 1:
            named = ", ".join(f"{_ARRAYS[i]} {lengths[i]}" for i in family)
            raise ProtocolError(f"columns of one table differ in length: {named}")


def _varint(number: int) -> bytes:
    """Return a number as protobuf writes it: seven bits a byte, the low ones first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_DATA_TAG = _varint(pb.EnvStateMsg.REPORT_DATA_FIELD_NUMBER << 3 | 2)  # 2: so many bytes follow
