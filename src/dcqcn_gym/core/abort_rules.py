"""Rules on what intervals show: when a tuning run on a fleet ends, or a trial is taken back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dcqcn_gym.core.errors import BackendError
from dcqcn_gym.core.sums import mean

if TYPE_CHECKING:
    from dcqcn_gym.core.interval import IntervalReport

NIC_ERRORS = "nic_errors"
"""Counter of a fleet's reports: packets out of sequence, sequence errors, timeouts of ACKs, resent
packets, as NICs count them."""

REFERENCE = 10
"""Intervals with data whose mean packet rate goodput is compared with."""


@dataclass(frozen=True)
class Seen:
    """What the rules look at in one interval."""

    paused: float
    """Mean share of the interval that devices spent paused, 0..1."""
    drops: int
    """Packets dropped, over all switch ports."""
    errors: int
    """Errors that NICs counted; in simulation, packets sent again."""
    packets_per_s: float
    """Data packets that hosts sent, those sent again left out where that is known."""
    utility: float

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> Seen:
        """Return what an interval's line of the log shows."""
        seconds = (line["end_ps"] - line["start_ps"]) * 1e-12
        return cls(
            1.0 - line["terms"][2], line["drops"], line.get("scheme", {}).get(NIC_ERRORS, 0),
            line["data_packets"] / seconds, line["utility"],
        )  # fmt: skip

    @classmethod
    def of_report(cls, report: IntervalReport, o_pfc: float, utility: float) -> Seen:
        """Return what a report shows, with the pause term and the utility of its interval."""
        resent = int(report.retransmitted_packets)  # 0 where unknown
        errors = resent + report.scheme_counters.get(NIC_ERRORS, 0)
        rate = (int(report.data_packets) - resent) / report.duration_s
        return cls(1.0 - o_pfc, int(report.drops), errors, rate, utility)


@dataclass
class AbortRules:
    """Limits that hold if they are not None; one is broken after ``patience`` intervals in a row.

    A figure that the backend does not know is 0 and breaks no rule.
    """

    max_paused: float | None = None
    """Mean share of an interval that devices spend paused, 0..1 (a pause storm)."""
    max_drops: int | None = None
    """Packets dropped in an interval, over all switch ports."""
    min_utility: float | None = None
    """Utility of an interval, 0..1."""
    patience: int = 3
    max_errors: int | None = None
    """Errors in an interval: :data:`NIC_ERRORS`, and packets sent again."""
    min_goodput: float | None = None
    """Packets a second, as a share of those of the first :data:`REFERENCE` intervals."""
    _broken: dict[str, int] = field(default_factory=dict, repr=False)
    _rates: list[float] = field(default_factory=list, repr=False)

    def broken(self, seen: Seen) -> str:
        """Count an interval with data; return which limit is broken, in words, or ""."""
        said = ""
        for name, value, limit, sign in self._figures(seen):
            beyond = limit is not None and sign * value > sign * limit
            self._broken[name] = self._broken.get(name, 0) + 1 if beyond else 0
            if self._broken[name] >= self.patience and not said:
                said = (
                    f"{name} {value:.4g} is beyond the limit {limit:g} for {self.patience} "
                    "intervals"
                )
        return said

    def _figures(self, seen: Seen) -> list[tuple[str, float, float | None, int]]:
        """Return name, value, limit and the sign of what is worse."""
        if len(self._rates) < REFERENCE:
            self._rates.append(seen.packets_per_s)
        usual = mean(self._rates)
        return [
            ("paused share", seen.paused, self.max_paused, 1),
            ("drops", seen.drops, self.max_drops, 1),
            ("errors", seen.errors, self.max_errors, 1),
            ("goodput", seen.packets_per_s / usual if usual > 0 else 1.0, self.min_goodput, -1),
            ("utility", seen.utility, self.min_utility, -1),
        ]

    def forget(self) -> None:
        """Begin to count anew: another setting is in force, or nothing was sent."""
        self._broken.clear()

    def look(self, line: Mapping[str, Any]) -> None:
        """Judge an interval by its line of the log; raise BackendError if the run is to end.

        An idle interval breaks no rule, and what is unknown neither.
        """
        if line["idle"]:
            self.forget()
            return
        said = self.broken(Seen.of_line(line))
        if said:
            raise BackendError(f"the run was ended at interval {line['i']}: {said}")
