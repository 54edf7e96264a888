"""The replay backend: plays recorded interval reports back; settings change nothing.

For tuners and tools that are to see real measurements without the network that made them.
:class:`RecordingBackend` wraps any backend and keeps its reports, :func:`write_reports` stores
them as JSON Lines, ``backend="replay:FILE"`` plays the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from dcqcn_gym.core.errors import BackendError, ConfigError, StateError
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import FinishedFlows, FlowSizeDistribution, IntervalReport
from dcqcn_gym.envs.backends.base import SIMULATED, Backend

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario

__all__ = [
    "RecordingBackend",
    "ReplayBackend",
    "read_reports",
    "report_from_dict",
    "report_to_dict",
    "write_reports",
]

T = TypeVar("T")

_FLOATS = frozenset({"host_rate_bps", "port_rate_bps", "port_pause_ps", "bins"})


def _array(name: str, value: Any) -> Any:
    if isinstance(value, (np.ndarray, list)):
        return np.asarray(value, dtype=np.float64 if name in _FLOATS else np.int64)
    return value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


def _build(kind: type[T], values: Mapping[str, Any], **parts: Any) -> T:
    plain = {
        n: _array(n, values[n]) for n in _names(cast(Any, kind)) if n in values and n not in parts
    }
    return kind(**plain, **parts)


def report_from_dict(values: Mapping[str, Any]) -> IntervalReport:
    """Build a report from a mapping whose keys are the fields of the dataclasses."""
    return _build(
        IntervalReport,
        values,
        fsd=_build(FlowSizeDistribution, values["fsd"]),
        finished=_build(FinishedFlows, values["finished"]),
    )


def report_to_dict(report: IntervalReport) -> dict[str, Any]:
    """Return a report as JSON values; the inverse of :func:`report_from_dict`."""
    return _plain(report)


def _plain(value: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name in (f.name for f in fields(value)):
        item = getattr(value, name)
        if isinstance(item, np.ndarray):
            plain[name] = item.tolist()
        elif isinstance(item, (FlowSizeDistribution, FinishedFlows)):
            plain[name] = _plain(item)
        else:
            plain[name] = item
    return plain


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
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{path} line {number}: not a recorded report ({error})") from None
    return reports


class ReplayBackend:
    """A :class:`~dcqcn_gym.envs.backends.base.Backend` that plays reports in their order."""

    argument = "FILE"
    offers = SIMULATED
    unknown: frozenset[str] = frozenset()

    @classmethod
    def from_argument(cls, text: str) -> ReplayBackend:
        """Return one that plays the reports of a file (:func:`write_reports`)."""
        return cls(read_reports(text))

    def __init__(self, reports: Sequence[IntervalReport]) -> None:
        self._reports = tuple(reports)
        self._next: int | None = None
        self._applied = False

    @property
    def done(self) -> bool:
        """True once the last report was played; False while closed."""
        return self._next is not None and self._next >= len(self._reports)

    def open(self, scenario: Scenario, seed: int) -> None:
        """Go to the first report; scenario and seed are those of the recording anyway."""
        if self._next is not None:
            raise StateError("open() on an open backend; call close() first")
        self._next, self._applied = 0, False

    def apply(self, setting: DeviceSetting) -> None:
        """Accept a setting; what was recorded does not change."""
        self._opened("apply")
        self._applied = True

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        """Return the next report; raise BackendError at the end or for another duration."""
        at = self._opened("advance")
        if not self._applied:
            raise StateError("advance() without a setting; call apply() first")
        if at >= len(self._reports):
            raise BackendError(f"the recording ends after {len(self._reports)} intervals")
        report = self._reports[at]
        if duration_ps not in (None, report.duration_ps):
            raise BackendError(
                f"interval {at} of the recording lasts {report.duration_ps} ps, "
                f"not {duration_ps} ps; use the scenario it was recorded with"
            )
        self._next = at + 1
        return report

    def close(self) -> None:
        """Stop playing; allowed in every state."""
        self._next = None

    def _opened(self, call: str) -> int:
        if self._next is None:
            raise StateError(f"{call}() on a closed backend; call open() first")
        return self._next


class RecordingBackend:
    """A backend that passes everything on to ``inner`` and keeps the reports since ``open``."""

    def __init__(self, inner: Backend) -> None:
        self.inner = inner
        self.reports: list[IntervalReport] = []

    @property
    def offers(self) -> frozenset[str]:
        """What ``inner`` offers."""
        return self.inner.offers

    @property
    def unknown(self) -> frozenset[str]:
        """What ``inner`` cannot know."""
        return self.inner.unknown

    @property
    def done(self) -> bool:
        """What ``inner`` says."""
        return self.inner.done

    def open(self, scenario: Scenario, seed: int) -> None:
        """Open ``inner`` and forget earlier reports."""
        self.inner.open(scenario, seed)
        self.reports = []

    def apply(self, setting: DeviceSetting) -> None:
        """Apply to ``inner``."""
        self.inner.apply(setting)

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        """Advance ``inner`` and keep its report."""
        report = self.inner.advance(duration_ps)
        self.reports.append(report)
        return report

    def close(self) -> None:
        """Close ``inner``; the reports stay."""
        self.inner.close()
