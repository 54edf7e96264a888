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


def _truth(value: Any) -> bool:
    return isinstance(value, bool)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _table(value: Any) -> bool:
    return isinstance(value, dict)


def _or_null(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_number, value))


def _counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_count, value.values()))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _setting(value: Any) -> bool:
    """One setting, or one per group of devices with one for "cluster"."""
    if not isinstance(value, dict):
        return False
    if "cluster" in value:
        return all(isinstance(v, dict) and all(map(_number, v.values())) for v in value.values())
    return all(map(_number, value.values()))


def _column(value: Any, least: int = 0) -> bool:
    """Whole numbers; numpy looks at them, because the flows are most of a log."""
    if not isinstance(value, list):
        return False
    try:
        column = np.asarray(value or [least])
    except (ValueError, OverflowError):  # of unequal depth, or beyond 64 bits
        return False
    return column.dtype.kind == "i" and column.ndim == 1 and bool(column.min() >= least)


def _flows(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if not all(_column(column, _LEAST.get(name, 0)) for name, column in value.items()):
        return False
    return len({len(column) for column in value.values()}) <= 1 and (
        not value or _LEAST.keys() <= value.keys()
    )


_LEAST = {"bytes": 0, "fct_ps": 1, "ideal_fct_ps": 1}
"""What slowdowns are made from, and the smallest value that means anything."""


def _records(value: Any, checks: Mapping[str, Check], may_have: str) -> bool:
    """A list of tables with these columns, and a count that only some of them have."""
    return isinstance(value, list) and all(
        isinstance(one, dict)
        and all(name in one and check(one[name]) for name, check in checks.items())
        and _count(one.get(may_have, 0))
        for one in value
    )


_ROUND: Mapping[str, Check] = {
    "workload": _count, "collective": _text, "ranks": lambda v: _count(v) and v >= 1,
    "bytes": _count, "time_ps": _count, "pause_ps": _count,
}  # fmt: skip


def _rounds(value: Any) -> bool:
    return _records(value, _ROUND, may_have="start_ps")


_DONE: Mapping[str, Check] = {
    "workload": _count, "application": _text, "operations": lambda v: _count(v) and v >= 1,
    "start_ps": _count, "first_ps": _count, "last_ps": _count,
}  # fmt: skip


def _applications(value: Any) -> bool:
    return _records(value, _DONE, may_have="reads")


_PART: Mapping[str, Check] = {
    "workload": _count, "iterations": lambda v: _count(v) and v >= 1, "time_ps": _count,
    "computing_ps": lambda v: _column(v) and len(v) >= 1, "waiting_ps": _column,
    "late_ps": _column, "exposed_ps": _counts,
    "collectives": lambda v: isinstance(v, list) and all(map(_collective, v)),
}  # fmt: skip


def _collective(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 5
        and _text(value[0])
        and all(map(_count, value[1:]))
        and min(value[1], value[3]) >= 1
    )


def _timeline(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and _texts(value.get("kinds"))
        and isinstance(value.get("ranks"), list)
        and all(isinstance(r, list) and len(r) == 3 and _count(r[0]) for r in value["ranks"])
        and all(_text(lane) and lane for r in value["ranks"] for lane in r[1:])
    )


def _jobs(value: Any) -> bool:
    return _records(value, _PART, may_have="start_ps") and all(
        len({len(one[key]) for key in ("computing_ps", "waiting_ps", "late_ps")}) == 1
        and ("timeline" not in one or _timeline(one["timeline"]))
        for one in value
    )


def _unfinished(value: Any) -> bool:
    least = {"bytes": 0, "start_ps": 0, "ideal_fct_ps": 1}
    return (
        isinstance(value, dict)
        and all(name in value and _column(value[name], low) for name, low in least.items())
        and len({len(value[name]) for name in least}) == 1
    )


def _running(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(r, dict) and _count(r.get("workload")) and _count(r.get("start_ps"))
        for r in value
    )


_OF_KIND: Mapping[str, Check] = {
    "int": _count, "float": lambda v: v is None or _number(v), "bool": _truth,
    "FloatArray": _numbers,
}  # fmt: skip


def _distribution(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _OF_KIND[field.kind](value[name])
        for name, field in fields_shown("log", "fsd").items()
        if name in value
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

    Keys that are not there are not missed here: older versions wrote fewer.
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
