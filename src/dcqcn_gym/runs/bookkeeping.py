"""What the main path adds up: the intervals of one proposal, and the whole run."""

from __future__ import annotations

from typing import Any

from dcqcn_gym.core.utility import Terms
from dcqcn_gym.runs.log import Line, setting_json
from dcqcn_gym.tuners.base import Outcome, Proposal

__all__ = ["Summary", "Window"]


class Window:
    """Gathers the intervals of one proposal: ``cadence`` of them, at least one with data."""

    def __init__(self, cadence: int) -> None:
        self._cadence = cadence
        self.ready = True

    def open(self, setting: Proposal) -> None:
        """Begin with a new proposal."""
        self._setting = setting
        self._seen = 0
        self._busy: list[tuple[float, Terms, bool]] = []
        self.ready = False

    def add(self, reward: float, observation: Any, info: Any) -> Outcome | None:
        """Add an interval; return the outcome once the proposal has had its time."""
        self._seen += 1
        if not info["idle"]:
            self._busy.append((reward, info["terms"], info["report"].fsd.triggered))
            self._last = observation, info["report"]
        if self._seen < self._cadence or not self._busy:
            return None
        self.ready = True
        n = len(self._busy)
        terms = [t for _, t, _ in self._busy]
        return Outcome(
            setting=self._setting,
            utility=sum(u for u, _, _ in self._busy) / n,
            terms=Terms(*(sum(getattr(t, x) for t in terms) / n for x in ("tp", "rtt", "pfc"))),
            observation=self._last[0],
            report=self._last[1],
            intervals=n,
            triggered=any(k for _, _, k in self._busy),
        )


class Summary:
    """Figures of the whole run for its last line."""

    def __init__(self) -> None:
        self.intervals = 0
        self._utilities: dict[int, float] = {}

    def add(self, line: Line) -> None:
        """Count one interval."""
        self.intervals += 1
        if not line["idle"]:
            self._utilities[line["i"]] = line["utility"]

    def end(self, recommended: Proposal) -> Line:
        """Return what the last line holds."""
        scored = self._utilities
        best = max(scored, key=scored.__getitem__, default=None)
        return {
            "recommended": setting_json(recommended),
            "intervals": self.intervals,
            "mean_utility": sum(scored.values()) / len(scored) if scored else None,
            "best_utility": None if best is None else scored[best],
            "best_interval": best,
        }
