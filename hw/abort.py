"""When a tuning run on a fleet ends early: rules on what the intervals show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dcqcn_gym.core.errors import BackendError

__all__ = ["AbortRules"]


@dataclass
class AbortRules:
    """Limits that hold if they are not None; broken in ``patience`` intervals in a row, it ends."""

    max_paused: float | None = None
    """Mean share of an interval that devices spend paused, 0..1."""
    max_drops: int | None = None
    """Packets dropped in an interval, over all switch ports."""
    min_utility: float | None = None
    """Utility of an interval, 0..1."""
    patience: int = 3
    _broken: dict[str, int] = field(default_factory=dict, repr=False)

    def look(self, line: Mapping[str, Any]) -> None:
        """Judge an interval by its line of the log; raise BackendError if the run is to end.

        An idle interval breaks no rule, and what is unknown neither.
        """
        if line["idle"]:
            self._broken.clear()
            return
        paused = 1.0 - line["terms"][2]
        found = {
            "paused share": (paused, self.max_paused, 1),
            "drops": (line["drops"], self.max_drops, 1),
            "utility": (line["utility"], self.min_utility, -1),
        }
        for name, (value, limit, sign) in found.items():
            broken = limit is not None and sign * value > sign * limit
            self._broken[name] = self._broken.get(name, 0) + 1 if broken else 0
            if self._broken[name] >= self.patience:
                raise BackendError(
                    f"the run was ended at interval {line['i']}: {name} {value:.4g} is beyond the "
                    f"limit {limit:g} for {self.patience} intervals"
                )
