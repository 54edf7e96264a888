"""What a paper claims, as data, and the rule that says whether it came out.

A claim names a figure of the results (:data:`Finding`) and a rule. The verdicts:

- **reproduced**: the sign is right, the paired 95 % interval over the seeds is clear of 0, and the
  effect is at least half of the claimed one; a bound is held by the whole interval.
- **direction only**: the sign is right and clear, the effect smaller; a bound is missed, but the
  value lies within what the rule calls near.
- **not reproduced**: otherwise. If the claim has a cause whose own rule other rows meet, it says
  so.
- **not conclusive**: the interval holds both answers; more seeds would decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from dcqcn_gym.core.statistics import Estimate, estimate, paired_change

if TYPE_CHECKING:
    from dcqcn_gym.benchmarks.papers.results import Results


class Verdict(Enum):
    """What became of a claim, from best to worst."""

    REPRODUCED = "reproduced"
    DIRECTION = "direction only"
    OPEN = "not conclusive"
    NOT = "not reproduced"


# --- findings: one value per seed, or a change per pair of seeds


@dataclass(frozen=True)
class Level:
    """A measure of one row at one place."""

    measure: str
    row: str
    x: float | str

    def of(self, results: Results) -> Estimate:
        """Return mean and interval over the seeds."""
        return estimate(results.values(self.measure, self.row, self.x))


@dataclass(frozen=True)
class Change:
    """The relative change of a measure from row ``against`` to ``row``, pair by pair of seeds.

    ``x_against`` is the place of ``against`` where it is not ``x``.
    """

    measure: str
    row: str
    against: str
    x: float | str
    x_against: float | str | None = None

    def of(self, results: Results) -> Estimate:
        """Return the geometric mean of the ratios minus 1, with its interval."""
        other = self.x if self.x_against is None else self.x_against
        values = results.values(self.measure, self.row, self.x)
        return paired_change(
            values, results.values(self.measure, self.against, other), relative=True
        )


@dataclass(frozen=True)
class Derived:
    """One number per seed that a function makes of all results, such as a threshold along x."""

    of_seed: Callable[[Results, int], float]

    def of(self, results: Results) -> Estimate:
        """Return mean and interval over the seeds."""
        return estimate([self.of_seed(results, seed) for seed in results.seeds])


Finding: TypeAlias = Level | Change | Derived


# --- rules


@dataclass(frozen=True)
class Effect:
    """An effect of this size is claimed, such as -0.3 of a :class:`Change`; half of it counts."""

    claimed: float

    def verdict(self, low: float, mean: float, high: float) -> Verdict:
        """Judge an interval and its mean."""
        if self.claimed < 0:
            return Effect(-self.claimed).verdict(-high, -mean, -low)
        half = self.claimed / 2
        if low > 0:
            return Verdict.REPRODUCED if mean >= half else Verdict.DIRECTION
        return Verdict.OPEN if high >= half else Verdict.NOT


@dataclass(frozen=True)
class Sign:
    """Only that something grows (1) or falls (-1) is claimed, not by how much."""

    claimed: int

    def verdict(self, low: float, mean: float, high: float) -> Verdict:
        """Judge an interval and its mean."""
        if self.claimed < 0:
            return Sign(-self.claimed).verdict(-high, -mean, -low)
        return Verdict.REPRODUCED if low > 0 else Verdict.OPEN if high > 0 else Verdict.NOT


@dataclass(frozen=True)
class Between:
    """A value from ``low`` to ``high`` is claimed; ``near``: what still counts as direction."""

    low: float
    high: float
    near: tuple[float, float] | None = None

    def verdict(self, low: float, mean: float, high: float) -> Verdict:
        """Judge an interval and its mean."""
        if low >= self.low and high <= self.high:
            return Verdict.REPRODUCED
        if low <= self.high and high >= self.low:
            return Verdict.OPEN
        if self.near is not None and self.near[0] <= mean <= self.near[1]:
            return Verdict.DIRECTION
        return Verdict.NOT


def AtMost(bound: float, near: float | None = None) -> Between:  # noqa: N802
    """Return the rule that a value is at most this; ``near``: at most that is direction."""
    return Between(-math.inf, bound, None if near is None else (-math.inf, near))


def AtLeast(bound: float, near: float | None = None) -> Between:  # noqa: N802
    """Return the rule that a value is at least this; ``near``: at least that is direction."""
    return Between(bound, math.inf, None if near is None else (near, math.inf))


@dataclass(frozen=True)
class SecondHand:
    """Another rule where the other side is second-hand: direction is the best verdict."""

    rule: Sign | Between

    def verdict(self, low: float, mean: float, high: float) -> Verdict:
        """Judge an interval and its mean."""
        found = self.rule.verdict(low, mean, high)
        return Verdict.DIRECTION if found is Verdict.REPRODUCED else found


def Direction(claimed: int) -> SecondHand:  # noqa: N802
    """Return the rule that something grows (1) or falls (-1) against what is second-hand."""
    return SecondHand(Sign(claimed))


Rule: TypeAlias = Effect | Sign | Between | SecondHand


@dataclass(frozen=True)
class Cause:
    """Why a claim does not come out, and the finding that shows it: its rule has to be met."""

    text: str
    finding: Finding
    rule: Rule


@dataclass(frozen=True)
class Claim:
    """What the paper says (``text``), where (``place``), and how it is judged.

    ``scale``, ``unit`` and ``form`` write the finding: 100 and " %" for a change.
    """

    text: str
    place: str
    finding: Finding
    rule: Rule
    scale: float = 1.0
    unit: str = ""
    form: str = ".3g"
    cause: Cause | None = None


@dataclass(frozen=True)
class Judged:
    """A claim with what was found; ``cause`` is given if its experiment shows it."""

    claim: Claim
    found: Estimate
    verdict: Verdict
    cause: str | None = None


def judge(claims: Sequence[Claim], results: Results) -> list[Judged]:
    """Return the verdict of every claim."""
    judged = []
    for claim in claims:
        found = claim.finding.of(results)
        verdict = _verdict(claim.rule, found)
        cause = None
        if claim.cause is not None and verdict in (Verdict.NOT, Verdict.DIRECTION):
            shown = _verdict(claim.cause.rule, claim.cause.finding.of(results))
            cause = claim.cause.text if shown is Verdict.REPRODUCED else None
        judged.append(Judged(claim, found, verdict, cause))
    return judged


def _verdict(rule: Rule, found: Estimate) -> Verdict:
    """Judge an estimate: one seed alone decides nothing, seeds that change nothing decide all."""
    if math.isnan(found.mean):
        return Verdict.NOT
    if found.low is None or found.high is None:
        if not found.constant:
            return Verdict.OPEN
        return rule.verdict(found.mean, found.mean, found.mean)
    return rule.verdict(found.low, found.mean, found.high)
