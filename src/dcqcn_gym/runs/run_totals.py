"""What the main path adds up: the intervals of one proposal, and the whole run."""

from __future__ import annotations

from dcqcn_gym.core.interval import LiveFlows
from dcqcn_gym.core.measured import Interval, mean_terms
from dcqcn_gym.core.sums import mean
from dcqcn_gym.core.utility import Terms
from dcqcn_gym.runs.log import Line
from dcqcn_gym.runs.log_line import setting_json
from dcqcn_gym.tuners.base import Outcome, Proposal

_COLUMNS = ("bytes", "start_ps", "ideal_fct_ps")


class ProposalWindow:
    """Gathers the intervals of one proposal: ``cadence`` of them, at least one with data."""

    def __init__(self, cadence: int) -> None:
        self._cadence = cadence
        self.ready = True

    def open(self) -> None:
        """Begin with a new proposal."""
        self._seen = 0
        self._utilities: list[float] = []
        self._terms: list[Terms] = []
        self._triggered = False
        self.ready = False

    def add(self, interval: Interval) -> Outcome | None:
        """Add an interval; return the outcome once the proposal has had its time."""
        self._seen += 1
        if not interval.idle:
            self._utilities.append(interval.utility)
            self._terms.append(interval.terms)
            self._triggered |= interval.report.fsd.triggered
            self._last = interval
        if self._seen < self._cadence or not self._utilities:  # idle ones say nothing of a setting
            return None
        self.ready = True
        return Outcome(
            setting=self._last.setting,
            utility=mean(self._utilities),
            terms=mean_terms(self._terms),
            observation=self._last.observation,
            report=self._last.report,
            intervals=len(self._utilities),
            triggered=self._triggered,
        )


class RunSummary:
    """Figures of the whole run for its last line."""

    def __init__(self) -> None:
        self.intervals = 0
        self._utilities: dict[int, float] = {}

    def add(self, interval: Interval) -> None:
        """Count one interval."""
        if not interval.idle:
            self._utilities[self.intervals] = interval.utility
        self.intervals += 1

    def end(self, recommended: Proposal) -> Line:
        """Return what the last line holds."""
        scored = self._utilities
        best = max(scored, key=scored.__getitem__, default=None)
        return {
            "recommended": setting_json(recommended),
            "intervals": self.intervals,
            "mean_utility": mean(scored.values()) if scored else None,
            "best_utility": None if best is None else scored[best],
            "best_interval": best,
        }


def left_over_line(left: tuple[LiveFlows, dict[int, int]] | None) -> Line:
    """Return the part of the last line that says what was not finished; null if unknown.

    ``unfinished`` are the flows (sizes, starts and ideal completion times), ``running_rounds`` the
    starts of rounds of collectives: with them, statistics count both at their age.
    """
    if left is None:
        return {"unfinished": None, "running_rounds": None}
    flows, rounds = left
    return {
        "unfinished": {name: getattr(flows, name).tolist() for name in _COLUMNS},
        "running_rounds": [{"workload": w, "start_ps": start} for w, start in rounds.items()],
    }
