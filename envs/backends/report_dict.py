"""Interval reports as dictionaries and as JSON Lines files; what is read is checked.

The keys are the fields of :class:`~dcqcn_gym.core.interval.IntervalReport`; ``fsd`` and
``finished`` hold dictionaries of their own. Everything is there, of its type, finite, and of the
length of its table; what a backend cannot know is named in ``unknown`` and left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_KINDS = {
    "IntArray": ("i", "an array of whole numbers"),
    "FloatArray": ("iuf", "an array of finite numbers"),
    "int": ("i", "a whole number"),
    "float": ("iuf", "a finite number"),
    "bool": ("b", "true or false"),
}
"""Kind of a field -> numpy's kinds of what it takes, and what is expected, in words."""


def report_from_dict(values: Mapping[str, Any]) -> IntervalReport:
    """Build a report; raise ConfigError naming the first field that is not as it must be.

    Refused: unknown, missing and mistyped fields, numbers that are not finite, arrays that are
    not one-dimensional, columns of one table that differ in length.
    """
    flat = _flattened(values)
    unknown = check_unknown(_names(flat.pop("unknown", ())))
    more = {
        "scheme_counters": _counters(flat.pop("scheme_counters", {})),
        "unlimited_flows": _count("unlimited_flows", flat.pop("unlimited_flows", 0)),
        "job_spans": _spans(flat.pop("job_spans", ())),
    }
    tree: dict[str, dict[str, Any]] = {"": more, "fsd": {}, "finished": {}}
    for path, value in _read(flat, unknown).items():
        part, _, name = path.rpartition(".")
        tree[part][name] = value
    return IntervalReport(
        **tree[""],
        fsd=FlowSizeDistribution(**tree["fsd"]),
        finished=FinishedFlows(**tree["finished"]),
        unknown=unknown,
    )


def fsd_from_dict(values: Mapping[str, Any]) -> FlowSizeDistribution:
    """Build a flow-size distribution; raise ConfigError as :func:`report_from_dict` does."""
    read = _read(_flattened({"fsd": values}), part="fsd.")
    return FlowSizeDistribution(**{path.removeprefix("fsd."): v for path, v in read.items()})


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


def _counters(value: Any) -> dict[str, int]:
    """Return the schemes' own counters, or raise."""
    named = isinstance(value, Mapping) and all(isinstance(name, str) and name for name in value)
    try:
        return {name: _count(name, n) for name, n in (value if named else {"": value}).items()}
    except ConfigError:
        raise ConfigError(
            "report field 'scheme_counters': expected an object of names and whole numbers at or "
            f"above 0; got {_shown(value)}"
        ) from None


def _count(path: str, value: object) -> int:
    found: int = _value(path, "int", value)
    if found < 0:
        raise ConfigError(
            f"report field {path!r}: expected a whole number at or above 0; got {found}"
        )
    return found


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


def _read(
    flat: Mapping[str, Any], unknown: frozenset[str] = frozenset(), part: str = ""
) -> dict[str, Any]:
    """Return the checked fields of a report, or of a part of it; unknown ones hold zeros."""
    fields = {path: field for path, field in REPORT_FIELDS.items() if path.startswith(part)}
    for path in flat:
        if path not in fields:
            raise ConfigError(f"unknown report field {quote(path)}{did_you_mean(path, fields)}")
    for path, field in fields.items():
        if path not in flat and path not in unknown:
            raise ConfigError(
                f"report field {path!r} is missing; expected {_KINDS[field.kind][1]} (a figure "
                "that the backend cannot know is named in 'unknown')"
            )
    read = {path: _value(path, fields[path].kind, value) for path, value in flat.items()}
    lengths: dict[str, tuple[str, int]] = {"fsd.bins": ("fsd.bins", FSD_BINS)}
    for path, value in read.items():
        table = _table(path)
        first, length = lengths.setdefault(table, (path, len(value))) if table else (path, 0)
        if table and len(value) != length:
            raise ConfigError(
                f"report field {path!r} has {len(value)} entries; expected {length}, as {first!r} "
                "has: columns of one table have one length"
            )
    for path in unknown:
        if np.any(read.get(path, 0)):
            raise ConfigError(f"report field {path!r} is named in 'unknown' but holds a figure")
        read[path] = fields[path].zeros(lengths.get(_table(path), ("", 0))[1])
    return read


def _table(path: str) -> str:
    """Return the table whose column a field is, "" for none; that of ``fsd.bins`` is its own."""
    return next((table for table in (*_TABLES, "fsd.bins") if path.startswith(table)), "")


def _value(path: str, kind: str, value: Any) -> Any:
    """Return a value or an array of a field's kind, or raise."""
    kinds, words = _KINDS[kind]
    array = kind.endswith("Array")
    try:
        found = np.asarray(value) if isinstance(value, list | tuple | np.ndarray) is array else None
    except (ValueError, OverflowError):  # ragged
        found = None
    if (
        found is None
        or found.ndim != array
        or (found.dtype.kind not in kinds and (found.size or not array))
        or not np.isfinite(found).all()
    ):
        raise ConfigError(f"report field {path!r}: expected {words}; got {_shown(value)}")
    if not array:
        return found.item() if kind != "float" else float(found)
    return found.astype(np.int64 if kind == "IntArray" else np.float64, copy=False)


def _shown(value: object) -> str:
    text = f"{type(value).__name__} {quote(value)}"
    return text if len(text) <= 80 else text[:77] + "..."
