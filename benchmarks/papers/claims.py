"""What a paper claims, as data, and the rule that says whether it came out.

A claim names a figure of the results (:data:`Finding`) and a rule. One claim has one verdict:

- **reproduced**: the sign is right, the paired 95 % interval over the seeds is clear of 0, and the
  effect is at least half of the claimed one; a bound, which is not halved, is held by the whole
  interval. Where the paper gives no number the sign alone is judged, and the pages say so.
- **direction**: the sign is right and clear, the effect smaller; a bound is missed, but the value
  lies within what the rule calls near; or the other side is a rival that we rebuilt.
- **another reading**: it does not come out as it was judged, and comes out in a series that differs
  by a value which the paper leaves open; the pages name both.
- **not conclusive**: the interval holds both answers; more seeds would decide.
- **not reproduced**: otherwise. If the claim has a cause whose own rule other series meet, it says
  so.
- **no test**: what was run cannot decide it, and why.

A claim about several places (loads, rivals, seeds) has a cell for each, and the verdict of the
worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.core.statistics import Estimate, estimate, paired_change


class Outcome(Enum):
    """What became of a claim, from best to worst; the last says nothing of the paper."""

    REPRODUCED = "reproduced"
    DIRECTION = "direction"
    READING = "another reading"
    OPEN = "not conclusive"
    NOT = "not reproduced"
    NO_TEST = "no test"


# --- findings: one value per seed, or a change per pair of seeds


@dataclass(frozen=True)
class Level:
    """A measure of one row at one place."""

    measure: str
    row: str
    x: float | str

    def of(self, results: FigureResults) -> Estimate:
        """Return mean and interval over the seeds."""
        return estimate(results.values(self.measure, self.row, self.x))


@dataclass(frozen=True)
class Growth:
    """The relative change of a measure from row ``against`` to ``row``, pair by pair of seeds.

    ``x_against`` is the place of ``against`` where it is not ``x``.
    """

    measure: str
    row: str
    against: str
    x: float | str
    x_against: float | str | None = None

    def of(self, results: FigureResults) -> Estimate:
        """Return the geometric mean of the ratios minus 1, with its interval."""
        other = self.x if self.x_against is None else self.x_against
        values = results.values(self.measure, self.row, self.x)
        return paired_change(
            values, results.values(self.measure, self.against, other), relative=True
        )


@dataclass(frozen=True)
class Derived:
    """One number per seed that a function makes of all results, such as a threshold along x."""

    of_seed: Callable[[FigureResults, int], float]

    def of(self, results: FigureResults) -> Estimate:
        """Return mean and interval over the seeds."""
        return estimate([self.of_seed(results, seed) for seed in results.seeds])


Finding: TypeAlias = Level | Growth | Derived


# --- rules


@dataclass(frozen=True)
class Effect:
    """An effect of this size is claimed, such as -0.3 of a :class:`Growth`; half of it counts."""

    claimed: float

    def verdict(self, low: float, mean: float, high: float) -> Outcome:
        """Judge an interval and its mean."""
        if self.claimed < 0:
            return Effect(-self.claimed).verdict(-high, -mean, -low)
        half = self.claimed / 2
        if low > 0:
            return Outcome.REPRODUCED if mean >= half else Outcome.DIRECTION
        return Outcome.OPEN if high >= half else Outcome.NOT


@dataclass(frozen=True)
class Sign:
    """Only that something grows (1) or falls (-1) is claimed, not by how much."""

    claimed: int

    def verdict(self, low: float, mean: float, high: float) -> Outcome:
        """Judge an interval and its mean."""
        if self.claimed < 0:
            return Sign(-self.claimed).verdict(-high, -mean, -low)
        return Outcome.REPRODUCED if low > 0 else Outcome.OPEN if high > 0 else Outcome.NOT


@dataclass(frozen=True)
class Between:
    """A value from ``low`` to ``high`` is claimed; ``near``: what still counts as direction."""

    low: float
    high: float
    near: tuple[float, float] | None = None

    def verdict(self, low: float, mean: float, high: float) -> Outcome:
        """Judge an interval and its mean."""
        if low >= self.low and high <= self.high:
            return Outcome.REPRODUCED
        if low <= self.high and high >= self.low:
            return Outcome.OPEN
        if self.near is not None and self.near[0] <= mean <= self.near[1]:
            return Outcome.DIRECTION
        return Outcome.NOT


def AtMost(bound: float, near: float | None = None) -> Between:  # noqa: N802
    """Return the rule that a value is at most this; ``near``: at most that is direction."""
    return Between(-math.inf, bound, None if near is None else (-math.inf, near))


def AtLeast(bound: float, near: float | None = None) -> Between:  # noqa: N802
    """Return the rule that a value is at least this; ``near``: at least that is direction."""
    return Between(bound, math.inf, None if near is None else (near, math.inf))


@dataclass(frozen=True)
class SecondHand:
    """Another rule where the other side is second-hand or rebuilt: at best it is direction."""

    rule: Effect | Sign | Between

    def verdict(self, low: float, mean: float, high: float) -> Outcome:
        """Judge an interval and its mean."""
        found = self.rule.verdict(low, mean, high)
        return Outcome.DIRECTION if found is Outcome.REPRODUCED else found


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
class Reading:
    """A series that differs by a value which the paper leaves open: ``text`` names both.

    ``finding``: one, or one for each cell of the claim; ``rule``: the claim's own if None. ``at``:
    the one size that has its series, if not all have; had it come out at a smaller one than is
    judged, that one would have it too.
    """

    text: str
    finding: Finding | Mapping[str, Finding]
    rule: Rule | None = None
    at: str = ""


@dataclass(frozen=True)
class Claim:
    """What the paper says (``text``), where (``place``), and how it is judged.

    ``finding``: one, or one for each cell of the claim by its name. ``scale``, ``unit`` and
    ``form`` write it: 100 and " %" for a change. ``no_test``: why what was run cannot decide it.
    ``weak``: why it is no test if it does not come out, such as a rival weaker than the paper's.
    """

    text: str
    place: str
    finding: Finding | Mapping[str, Finding]
    rule: Rule
    scale: float = 1.0
    unit: str = ""
    form: str = ".3g"
    cause: Cause | None = None
    readings: Sequence[Reading] = ()
    no_test: str = ""
    weak: str = ""

    @property
    def cells(self) -> Mapping[str, Finding]:
        """The findings by name; one without a name where the claim is about one place."""
        return _cells(self.finding)


def _cells(finding: Finding | Mapping[str, Finding]) -> Mapping[str, Finding]:
    return finding if isinstance(finding, Mapping) else {"": finding}


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with what was found in its worst cell.

    ``cause`` is given if its experiment shows it, and is the reading under which the claim comes
    out, or why there is no test, where that is the verdict. ``tried``: the readings under which it
    does not come out either.
    """

    claim: Claim
    found: Estimate
    verdict: Outcome
    cause: str | None = None
    cell: str = ""
    tried: Sequence[str] = ()

    @property
    def by_sign(self) -> bool:
        """Whether it is reproduced by its sign alone, since the paper gives no number."""
        return self.verdict is Outcome.REPRODUCED and isinstance(self.claim.rule, Sign)


def judge(claims: Sequence[Claim], results: FigureResults) -> list[JudgedClaim]:
    """Return the verdict of every claim."""
    return [_judged(claim, results) for claim in claims]


def _judged(claim: Claim, results: FigureResults) -> JudgedClaim:
    found, verdict, cell = _worst_cell(claim.cells, claim.rule, results)
    if claim.no_test:
        return JudgedClaim(claim, found, Outcome.NO_TEST, claim.no_test, cell)
    if verdict is Outcome.NOT:
        for reading in [one for one in claim.readings if one.at in ("", results.size)]:
            there = _worst_cell(_cells(reading.finding), reading.rule or claim.rule, results)[1]
            if there in (Outcome.REPRODUCED, Outcome.DIRECTION):
                return JudgedClaim(claim, found, Outcome.READING, reading.text, cell)
    if claim.weak and verdict in (Outcome.OPEN, Outcome.NOT):
        return JudgedClaim(claim, found, Outcome.NO_TEST, claim.weak, cell)
    cause = None
    if claim.cause is not None and verdict in (Outcome.NOT, Outcome.DIRECTION):
        shown = _verdict(claim.cause.rule, claim.cause.finding.of(results))
        cause = claim.cause.text if shown is Outcome.REPRODUCED else None
    tried = [_said(one) for one in claim.readings] if verdict is Outcome.NOT else []
    return JudgedClaim(claim, found, verdict, cause, cell, tried)


def _said(reading: Reading) -> str:
    return f"{reading.text}, at size {reading.at}" if reading.at else reading.text


def _worst_cell(
    cells: Mapping[str, Finding], rule: Rule, results: FigureResults
) -> tuple[Estimate, Outcome, str]:
    """Return what was found in the cell with the worst verdict, the verdict and the cell's name."""
    order = list(Outcome)
    found = [(one.of(results), name) for name, one in cells.items()]
    judged = [(there, _verdict(rule, there), name) for there, name in found]
    return max(judged, key=lambda one: order.index(one[1]))


def _verdict(rule: Rule, found: Estimate) -> Outcome:
    """Judge an estimate: one seed alone decides nothing, seeds that change nothing decide all."""
    if math.isnan(found.mean):
        return Outcome.NOT
    if found.low is None or found.high is None:
        if not found.constant:
            return Outcome.OPEN
        return rule.verdict(found.mean, found.mean, found.mean)
    return rule.verdict(found.low, found.mean, found.high)
