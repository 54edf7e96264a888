"""The replay backend: returns recorded interval reports, whatever the setting is.

For tuners and tools that are to see real measurements without the network that made them.
:class:`RecordingBackend` wraps any backend and keeps its reports, :func:`write_reports` stores
them as JSON Lines, ``backend="replay:FILE"`` plays the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dcqcn_gym.core.errors import BackendError, StateError
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import IntervalReport, LiveFlows
from dcqcn_gym.envs.backends.base import SIMULATED, Backend, Opens, live_flows_of
from dcqcn_gym.envs.backends.report_dict import read_reports

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario


class ReplayBackend(Opens[int]):
    """A :class:`~dcqcn_gym.envs.backends.base.Backend` that plays reports in their order."""

    argument = "FILE"
    offers = SIMULATED

    @classmethod
    def from_argument(cls, text: str) -> ReplayBackend:
        """Return one that plays the reports of a file (:func:`write_reports`)."""
        return cls(read_reports(text))

    def __init__(self, reports: Sequence[IntervalReport], left: LiveFlows | None = None) -> None:
        """Play ``reports``; ``left`` are the flows that were unfinished at their end, if known."""
        self._reports = tuple(reports)
        self._left = left
        self._applied = False

    @property
    def unknown(self) -> frozenset[str]:
        """What any of the reports does not know."""
        return frozenset().union(*(report.unknown for report in self._reports))

    @property
    def done(self) -> bool:
        """True once the last report was played; False while closed."""
        return self._open is not None and self._open >= len(self._reports)

    def open(self, scenario: Scenario, seed: int) -> None:
        """Go to the first report; scenario and seed are those of the recording anyway."""
        self._check_closed()
        self._open, self._applied = 0, False

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
        self._open = at + 1
        return report

    def live_flows(self) -> LiveFlows | None:
        """Return the flows that were unfinished, at the end of the recording and if it has them."""
        return self._left if self._opened("live_flows") == len(self._reports) else None

    def close(self) -> None:
        """Stop playing; allowed in every state."""
        self._open = None


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

    def live_flows(self) -> LiveFlows | None:
        """Return what ``inner`` knows of the flows that have not finished."""
        return live_flows_of(self.inner)

    def close(self) -> None:
        """Close ``inner``; the reports stay."""
        self.inner.close()
