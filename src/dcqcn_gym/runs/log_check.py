"""What a log that was read must look like, so that nothing that reads it meets a surprise.

A log is written by this program, but may come from a stranger, a failing disk or an editor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import RunError, quote
from dcqcn_gym.core.interval import fields_shown
from dcqcn_gym.core.sums import mean

Check = Callable[[Any], bool]


def _number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return _whole(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _count(value: Any) -> bool:
    return _whole(value) and value >= 0


def _positive(value: Any) -> bool:
    return _count(value) and value >= 1


def _truth(value: Any) -> bool:
    return isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _table(value: Any) -> bool:
    return isinstance(value, dict)


def _or_null(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _table_of(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _record(has: Mapping[str, Check], may_have: Mapping[str, Check]) -> Check:
    """Return the check of a table with these keys, and keys that only some have."""
    return lambda value: (
        isinstance(value, dict)
        and all(name in value and check(value[name]) for name, check in has.items())
        and all(check(value[name]) for name, check in may_have.items() if name in value)
    )


def _setting(value: Any) -> bool:
    """One setting, or one per group of devices with one for "cluster"."""
    grouped = isinstance(value, dict) and "cluster" in value
    return (_table_of(_table_of(_number)) if grouped else _table_of(_number))(value)


def _column(value: Any, least: int = 0) -> bool:
    """Whole numbers; numpy looks at them, because the flows are most of a log."""
    if not isinstance(value, list):
        return False
    try:
        column = np.asarray(value or [least])
    except (ValueError, OverflowError):  # of unequal depth, or beyond 64 bits
        return False
    return column.dtype.kind == "i" and column.ndim == 1 and bool(column.min() >= least)


def _columns(least: Mapping[str, int]) -> Check:
    """Return the check of columns of one length: at least these, with their smallest values."""
    return lambda value: (
        isinstance(value, dict)
        and least.keys() <= value.keys()
        and all(_column(column, least.get(name, 0)) for name, column in value.items())
        and len({len(column) for column in value.values()}) <= 1
    )


def _flows(value: Any) -> bool:
    # what slowdowns are made from; the smallest values that mean anything
    return value == {} or _columns({"bytes": 0, "fct_ps": 1, "ideal_fct_ps": 1})(value)


def _collective(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 5
        and _text(value[0])
        and all(map(_count, value[1:]))
        and min(value[1], value[3]) >= 1
    )


def _lane(value: Any) -> bool:
    """A rank of a timeline: its number, then two texts with a letter for each piece of time."""
    return (
        isinstance(value, list)
        and len(value) == 3
        and _count(value[0])
        and all(_text(lane) and lane for lane in value[1:])
    )


_numbers, _texts, _counts = _list_of(_number), _list_of(_text), _table_of(_count)
_rounds = _list_of(_record(
    {"workload": _count, "collective": _text, "ranks": _positive, "bytes": _count,
     "time_ps": _count, "pause_ps": _count},
    {"start_ps": _count},
))  # fmt: skip
_applications = _list_of(_record(
    {"workload": _count, "application": _text, "operations": _positive, "start_ps": _count,
     "first_ps": _count, "last_ps": _count},
    {"reads": _count},
))  # fmt: skip
_parts = _list_of(_record(
    {"workload": _count, "iterations": _positive, "time_ps": _count,
     "computing_ps": lambda v: _column(v) and len(v) >= 1, "waiting_ps": _column,
     "late_ps": _column, "exposed_ps": _counts, "collectives": _list_of(_collective)},
    {"start_ps": _count, "timeline": _record({"kinds": _texts, "ranks": _list_of(_lane)}, {})},
))  # fmt: skip
_unfinished = _columns({"bytes": 0, "start_ps": 0, "ideal_fct_ps": 1})
_running = _list_of(_record({"workload": _count, "start_ps": _count}, {}))
_OF_KIND: Mapping[str, Check] = {
    "int": _count, "float": _or_null(_number), "bool": _truth, "FloatArray": _numbers,
}  # fmt: skip
_distribution = _record(
    {}, {name: _OF_KIND[of.kind] for name, of in fields_shown("log", "fsd").items()}
)


def _jobs(value: Any) -> bool:
    return _parts(value) and all(
        len({len(one[key]) for key in ("computing_ps", "waiting_ps", "late_ps")}) == 1
        for one in value
    )


_EXPECTED: Mapping[Check, str] = {
    _number: "a number", _whole: "a whole number", _count: "a count", _truth: "true or false",
    _text: "a text", _table: "a table", _numbers: "a list of numbers",
    _texts: "a list of texts", _counts: "a table of counts",
    _setting: "a table of knobs with numbers", _flows: "whole numbers in columns of one length",
    _rounds: "a list of rounds", _jobs: "a list of iterations' parts",
    _applications: "a list of what applications got done",
    _distribution: "a table of numbers",
}  # fmt: skip

_HEADER: Mapping[str, Check] = {
    "tuner": _text, "tuner_args": _table, "seed": _count, "intervals": _count, "backend": _text,
}  # fmt: skip

_INTERVAL: Mapping[str, Check] = {
    "start_ps": _count, "end_ps": _count, "setting": _setting, "utility": _number,
    "terms": _numbers, "idle": _truth, "throughput_bps": _number, "device_pause_ps": _number,
    "worst_pause_ps": _number,
    "rtt_mean_ps": _or_null(_number), "fsd": _distribution, "flows": _flows,
    "rounds": _rounds, "jobs": _jobs, "applications": _applications, "unknown": _texts,
    "wire": _table, "scheme": _counts, "unlimited_flows": _count,
    **dict.fromkeys(fields_shown("log"), _count),
}  # fmt: skip

_END: Mapping[str, Check] = {
    "recommended": _setting, "intervals": _count, "mean_utility": _or_null(_number),
    "best_utility": _or_null(_number), "unfinished": _or_null(_unfinished),
    "running_rounds": _or_null(_running),
}  # fmt: skip


def check_line(path: Path, number: int, line: Mapping[str, Any]) -> None:
    """Raise :class:`RunError` that names line and key if a value is not of its kind.

    Keys that are not there are not missed here: :func:`need_keys` and what reads a log does that.
    """
    checks = _HEADER if number == 1 else _END if "end" in line else _INTERVAL
    for key, value, check in _checked(line, checks):
        if not check(value):
            expected = f"; expected {_EXPECTED[check]}" if check in _EXPECTED else ""
            raise RunError(f"{path}: line {number}: {key} = {quote(value)} is damaged{expected}")
    start, end = line.get("start_ps"), line.get("end_ps")
    if start is not None and end is not None and not start < end:
        raise RunError(f"{path}: line {number}: the interval ends before it begins")


def _checked(
    line: Mapping[str, Any], checks: Mapping[str, Check]
) -> Iterator[tuple[str, Any, Check]]:
    if checks is _END:
        yield "end", line["end"], _table
        line = line["end"]
    for key, check in checks.items():
        if key in line:
            yield key, line[key], check


def check_whole(
    path: Path, lines: Sequence[Mapping[str, Any]], end: Mapping[str, Any] | None
) -> None:
    """Raise :class:`RunError` if the last line cannot be the end of these intervals."""
    if end is None:
        return
    for key in ("recommended", "intervals", "mean_utility"):
        if key not in end:
            raise RunError(f"{path}: the last line is damaged: its key {key!r} is missing")
    if end["intervals"] != len(lines) or not lines:
        raise RunError(
            f"{path}: the last line ends {end['intervals']} intervals, but the log holds "
            f"{len(lines)}; lines were taken out, or it was put together"
        )
    told = end["mean_utility"]
    known = [float(line.get("utility", math.nan)) for line in lines if line.get("idle") is False]
    if told is not None and known and abs(told - mean(known)) > 1e-9:
        raise RunError(
            f"{path}: the last line has mean_utility {quote(told)}, its intervals "
            f"{mean(known):.6g}; it was changed, or it was put together"
        )


def need_keys(path: Path, intervals: Sequence[Mapping[str, Any]]) -> None:
    """Raise :class:`RunError` if an interval lacks what a page cannot do without.

    Every interval's setting has the knobs of the first one's; of groups the cluster's counts.
    """
    first: set[str] = set()
    for i, line in enumerate(intervals):
        for key in ("start_ps", "end_ps", "setting", "utility"):
            if key not in line:
                raise RunError(f"{path}: line {i + 2}: the key {key!r} is missing")
        knobs = set(line["setting"].get("cluster", line["setting"]))
        first = first or knobs
        if knobs != first:
            odd = sorted(knobs ^ first)[0]
            raise RunError(f"{path}: line {i + 2}: the setting differs from line 2's in its knobs: "
                           f"{quote(odd)} is in one of them alone")  # fmt: skip
