"""Interval reports as dictionaries and as JSON Lines files; what is read is checked.

The keys are the fields of :class:`~dcqcn_gym.core.interval.IntervalReport`; ``fsd`` and
``finished`` hold dictionaries of their own. Everything is there, of its type, finite, and of the
length of its table; what a backend cannot know is named in ``unknown`` and left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dcqcn_gym.core.errors import ConfigError, did_you_mean, quote
from dcqcn_gym.core.interval import (
    FSD_BINS,
    REPORT_FIELDS,
    FinishedFlows,
    FlowSizeDistribution,
    IntArray,
    IntervalReport,
    JobSpans,
    check_unknown,
)

T = TypeVar("T")

_PARTS = ("fsd", "finished")
_TABLES = ("host_", "rtt_", "port_", "finished.")
"""Fields whose names begin so are columns of one table: they have one length."""


def report_from_dict(values: Mapping[str, Any]) -> IntervalReport:
    """Build a report; raise ConfigError naming the first field that is not as it must be.

    Refused: unknown, missing and mistyped fields, numbers that are not finite, arrays that are
    not one-dimensional, columns of one table that differ in length.
    """
    flat = _flattened(values)
    unknown = check_unknown(_names(flat.pop("unknown", ())))
    counters = _counters(flat.pop("scheme_counters", {}))
    unlimited = _whole(flat.pop("unlimited_flows", 0))
    if unlimited is None or unlimited < 0:
        raise ConfigError("report field 'unlimited_flows': expected a whole number at or above 0")
    spans = _spans(flat.pop("job_spans", ()))
    _check_names(flat, unknown)
    read = {path: _value(path, REPORT_FIELDS[path].kind, value) for path, value in flat.items()}
    lengths = _lengths(read)
    for path in unknown:
        if path in read and np.any(read[path]):
            raise ConfigError(f"report field {path!r} is named in 'unknown' but holds a figure")
        read[path] = _nothing(path, lengths)
    found = _report(read, unknown, counters)
    return replace(found, unlimited_flows=unlimited, job_spans=spans)


def fsd_from_dict(values: Mapping[str, Any]) -> FlowSizeDistribution:
    """Build a flow-size distribution; raise ConfigError as :func:`report_from_dict` does."""
    flat = _flattened({"fsd": values})
    read = {}
    for path, field in REPORT_FIELDS.items():
        if path.startswith("fsd."):
            if path not in flat:
                expected = _EXPECTED[field.kind]
                raise ConfigError(f"report field {path!r} is missing; expected {expected}")
            read[path.removeprefix("fsd.")] = _value(path, field.kind, flat.pop(path))
    if flat:
        path = next(iter(flat))
        raise ConfigError(f"unknown report field {quote(path)}{did_you_mean(path, REPORT_FIELDS)}")
    _lengths({f"fsd.{name}": value for name, value in read.items()})
    return FlowSizeDistribution(**read)


def report_to_dict(report: IntervalReport) -> dict[str, Any]:
    """Return a report as JSON values; the inverse of :func:`report_from_dict`."""
    plain: dict[str, Any] = {"fsd": {}, "finished": {}}
    for path, field in REPORT_FIELDS.items():
        if path in report.unknown:
            continue
        part, _, name = path.rpartition(".")
        (plain[part] if part else plain)[name] = field.of(report)
    if report.scheme_counters:
        plain["scheme_counters"] = dict(report.scheme_counters)
    if report.unlimited_flows:
        plain["unlimited_flows"] = int(report.unlimited_flows)
    if len(report.job_spans):
        plain["job_spans"] = report.job_spans.rows()
    return {**plain, "unknown": sorted(report.unknown)} if report.unknown else plain


@dataclass
class ReportReader:
    """Reads the reports of one engine in this process, whose arrays and numbers have their types.

    The first report is checked as :func:`report_from_dict` does; those after it must have the same
    fields, and nothing else is looked at again. Ports stay where they are.
    """

    _keys: tuple[tuple[str, ...], ...] | None = None
    _node_ports: IntArray | None = None

    def read(self, values: Mapping[str, Any]) -> IntervalReport:
        """Return the report; raise ConfigError as :func:`report_from_dict` does."""
        fsd, finished = values.get("fsd"), values.get("finished")
        if not isinstance(fsd, Mapping) or not isinstance(finished, Mapping):
            return report_from_dict(values)  # which says what is wrong
        keys = (tuple(values), tuple(fsd), tuple(finished))
        if keys != self._keys or "job_spans" in values:
            report = report_from_dict(values)
            self._keys, self._node_ports = keys, report.node_ports
            return report
        own = {
            "unknown": frozenset[str](),
            "unlimited_flows": 0,
            "scheme_counters": {},
            "job_spans": JobSpans(),
            "node_ports": self._node_ports,
            **values,
            "fsd": _made(FlowSizeDistribution, fsd),
            "finished": _made(FinishedFlows, finished),
        }
        return _made(IntervalReport, own)


def _made(kind: type[T], values: Mapping[str, Any]) -> T:
    """Return the frozen dataclass with all of its fields, in a fifth of its constructor's time."""
    made = object.__new__(kind)
    vars(made).update(values)
    return made


def write_reports(path: str | Path, reports: Sequence[IntervalReport]) -> None:
    """Write one JSON line per report."""
    lines = (json.dumps(report_to_dict(r)) + "\n" for r in reports)
    Path(path).write_text("".join(lines), encoding="utf-8")


def read_reports(path: str | Path) -> list[IntervalReport]:
    """Read what :func:`write_reports` wrote; raise ConfigError with file and line."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as recorded reports ({error})") from None
    reports = []
    for number, line in enumerate(lines, 1):
        try:
            reports.append(report_from_dict(json.loads(line)))
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path} line {number}: not a recorded report ({error})") from None
    return reports


def _flattened(values: object) -> dict[str, Any]:
    """Return {path: value}; the fields of a part are ``"fsd.kl"``."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"a report is an object with fields; got {type(values).__name__}")
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if key in _PARTS:
            if not isinstance(value, Mapping):
                raise ConfigError(
                    f"report field {key!r}: expected an object with fields; got {_shown(value)}"
                )
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            flat[str(key)] = value
    return flat


def _names(value: object) -> frozenset[str]:
    items = list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
    names = frozenset(item for item in items if isinstance(item, str))
    if len(names) < len(items):
        raise ConfigError(
            f"report field 'unknown': expected names of fields, each once; got {_shown(value)}"
        )
    return names


def _counters(value: object) -> dict[str, int]:
    """Return the schemes' own counters, or raise."""
    counters = dict(value) if isinstance(value, Mapping) else {"": value}
    counts = {name: _whole(n) for name, n in counters.items() if isinstance(name, str) and name}
    if len(counts) < len(counters) or any(n is None or n < 0 for n in counts.values()):
        raise ConfigError(
            "report field 'scheme_counters': expected an object of names and whole numbers at or "
            f"above 0; got {_shown(value)}"
        )
    return {name: n for name, n in counts.items() if n is not None}


def _spans(value: object) -> JobSpans:
    """Return what jobs got done, or raise."""
    if isinstance(value, JobSpans):  # of a report in this process
        return value
    try:
        return JobSpans.of_rows(value)  # type: ignore[arg-type]
    except (ValueError, TypeError, OverflowError):
        raise ConfigError(
            "report field 'job_spans': expected rows of workload, label, host, begin and end; got "
            f"{_shown(value)}"
        ) from None


def _check_names(flat: Mapping[str, Any], unknown: frozenset[str]) -> None:
    for path in flat:
        if path not in REPORT_FIELDS:
            raise ConfigError(
                f"unknown report field {quote(path)}{did_you_mean(path, REPORT_FIELDS)}"
            )
    for path, field in REPORT_FIELDS.items():
        if path not in flat and path not in unknown:
            raise ConfigError(
                f"report field {path!r} is missing; expected {_EXPECTED[field.kind]} (a figure "
                "that the backend cannot know is named in 'unknown')"
            )


_EXPECTED = {
    "IntArray": "an array of whole numbers",
    "FloatArray": "an array of finite numbers",
    "int": "a whole number",
    "float": "a finite number",
    "bool": "true or false",
}


_WORD = 2**63


def _value(path: str, kind: str, value: Any) -> Any:
    if kind.endswith("Array"):
        found = _array(kind, value)
    elif kind == "bool":
        found = bool(value) if isinstance(value, bool | np.bool_) else None
    elif isinstance(value, bool | np.bool_):
        found = None
    else:
        found = _whole(value) if kind == "int" else _finite(value)
    if found is None:
        raise ConfigError(f"report field {path!r}: expected {_EXPECTED[kind]}; got {_shown(value)}")
    return found


def _whole(value: object) -> int | None:
    if not isinstance(value, int | np.integer):
        return None
    return int(value) if abs(int(value)) < _WORD else None


def _finite(value: object) -> float | None:
    if not isinstance(value, int | float | np.integer | np.floating):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _array(kind: str, value: Any) -> Any:
    """Return the array, or None if it is none, or not of numbers of this kind."""
    if not isinstance(value, list | tuple | np.ndarray):
        return None
    try:
        found = np.asarray(value)
    except (ValueError, OverflowError):  # ragged
        return None
    if found.ndim != 1:
        return None
    if kind == "IntArray":
        whole = found.dtype.kind == "i" or not found.size
        return found.astype(np.int64, copy=False) if whole else None
    if found.dtype.kind not in "iuf" and found.size:
        return None
    numbers = found.astype(np.float64, copy=False)
    return numbers if np.isfinite(numbers).all() else None


def _lengths(read: Mapping[str, Any]) -> dict[str, int]:
    """Return {table: length}; raise if two columns of a table differ."""
    lengths: dict[str, int] = {}
    for path, value in read.items():
        table = next((t for t in _TABLES if path.startswith(t)), None)
        if table is not None and lengths.setdefault(table, len(value)) != len(value):
            first = next(p for p in read if p.startswith(table))
            raise ConfigError(
                f"report field {path!r} has {len(value)} entries and {first!r} has "
                f"{lengths[table]}; columns of one table have one length"
            )
    if "fsd.bins" in read and len(read["fsd.bins"]) != FSD_BINS:
        raise ConfigError(
            f"report field 'fsd.bins' has {len(read['fsd.bins'])} entries; expected {FSD_BINS}"
        )
    return lengths


def _nothing(path: str, lengths: Mapping[str, int]) -> Any:
    """Return what an unknown field holds: zeros of its type."""
    table = next((t for t in _TABLES if path.startswith(t)), None)
    length = FSD_BINS if path == "fsd.bins" else lengths.get(table or "", 0)
    return REPORT_FIELDS[path].zeros(length)


def _report(
    read: Mapping[str, Any], unknown: frozenset[str], counters: Mapping[str, int]
) -> IntervalReport:
    return IntervalReport(
        **{path: value for path, value in read.items() if "." not in path},
        fsd=FlowSizeDistribution(
            **{f.name: read[f"fsd.{f.name}"] for f in fields(FlowSizeDistribution)}
        ),
        finished=FinishedFlows(
            **{f.name: read[f"finished.{f.name}"] for f in fields(FinishedFlows)}
        ),
        unknown=unknown,
        scheme_counters=counters,
    )


def _shown(value: object) -> str:
    text = f"{type(value).__name__} {quote(value)}"
    return text if len(text) <= 80 else text[:77] + "..."
