"""The verdict: gains over the baseline, costs, and whether to deploy a setting.

Everything is judged on held-out traffic, seed by seed against the baseline's run on the same.
The words follow from rules alone; docs/verdict.md publishes rules and limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from dcqcn_gym.core.guardrails import Guardrails
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.score import (
    CLASSES,
    ClassFigures,
    Flows,
    class_figures,
    class_score,
    geometric_ratio,
    round_score,
    score,
)
from dcqcn_gym.core.statistics import Estimate, estimate, paired_change
from dcqcn_gym.core.sums import count

State = Literal["up", "open", "clear", "few"]
"""up: harm beyond the limit is shown; open: it is not ruled out; clear: it is; few: no evidence."""

LIMITS = {"class": 0.25, "unfinished": 0.005, "goodput": 0.03, "pause": 0.01}
"""What a setting may cost: class slowdowns (relative), unfinished flows and pause (points of 1),
goodput (relative). Limits are judgement; they change only with a line in the changelog."""

WORST_PAUSE = "pause (worst device)"

NOTHING_FINISHED = "no flow finished in these runs, so nothing can be said"

ONE_TRACE = "the traffic is the same on every seed: one trace, no interval"

FEWEST_FLOWS = 30
"""A class with fewer flows than this, on any seed, carries no flag."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One setting on one held-out seed: what counts for the verdict, over the same window."""

    flows: Flows
    goodput_bps: float
    """Payload delivered per second."""
    rtt_s: float
    """Mean round-trip time; NaN without samples."""
    pause_share: float
    """Share of time that the mean device was paused, in 0..1."""
    utility: float
    rounds_ps: Sequence[float] = ()
    """Times of the rounds of collectives, the running one at its age."""
    drawn: bool = True
    """False if its traffic is the same on every seed."""
    marks: int = 0
    """Marks, CNPs, pause frames and drops together: what congestion left behind."""
    worst_pause: float = math.nan
    """Share of time that the worst device of each interval was paused; NaN where unknown."""
    slack: float = math.nan
    """Share of a job's iterations in which its busiest rank does not compute; NaN without a job.

    No setting can shorten them by more.
    """

    @property
    def contended(self) -> bool:
        """Whether anything queued: a mark, CNP, pause or drop, or flows 5 % above ideal."""
        slow = self.flows.slowdown
        waited = bool(slow.size) and float(np.mean(slow)) > 1.05
        return self.marks > 0 or self.pause_share > 0 or waited

    @cached_property
    def classes(self) -> Sequence[ClassFigures]:
        """Slowdowns by class of size."""
        return class_figures(self.flows)

    @property
    def unfinished_share(self) -> float:
        """Share of flows that were not finished, in 0..1; NaN without flows."""
        return self.flows.unfinished_share


@dataclass(frozen=True)
class Summary:
    """What score, changes and flags look at of a :class:`Measured`, without its flows.

    ``rounds_ps`` holds the mean of its rounds alone.
    """

    classes: Sequence[ClassFigures]
    unfinished_share: float
    goodput_bps: float
    rtt_s: float
    pause_share: float
    utility: float
    rounds_ps: Sequence[float]
    worst_pause: float = math.nan


RunFigures: TypeAlias = Measured | Summary


def summary(of: Measured) -> Summary:
    """Return a run without its flows; it gives the same score, changes and flags."""
    return Summary(
        classes=of.classes,
        unfinished_share=of.unfinished_share,
        goodput_bps=of.goodput_bps,
        rtt_s=of.rtt_s,
        pause_share=of.pause_share,
        utility=of.utility,
        rounds_ps=[_mean_round(of)] if of.rounds_ps else [],
        worst_pause=of.worst_pause,
    )


def pooled(runs: Sequence[Measured]) -> Measured:
    """Return several runs as one seed's: their flows and rounds together, other figures' means."""

    def mean(of: Callable[[Measured], float]) -> float:
        known = [x for x in map(of, runs) if math.isfinite(x)]
        return float(np.mean(known)) if known else math.nan

    return Measured(
        Flows(
            bytes=np.concatenate([m.flows.bytes for m in runs]),
            slowdown=np.concatenate([m.flows.slowdown for m in runs]),
            finished=np.concatenate([m.flows.finished for m in runs]),
            time_ps=_times([m.flows for m in runs]),
        ),
        goodput_bps=mean(lambda m: m.goodput_bps),
        rtt_s=mean(lambda m: m.rtt_s),
        pause_share=mean(lambda m: m.pause_share),
        utility=mean(lambda m: m.utility),
        rounds_ps=[time for m in runs for time in m.rounds_ps],
        drawn=all(m.drawn for m in runs),
        marks=count(m.marks for m in runs),
        worst_pause=mean(lambda m: m.worst_pause),
        slack=mean(lambda m: m.slack),
    )


def _times(runs: Sequence[Flows]) -> FloatArray | None:
    known = [flows.time_ps for flows in runs if flows.time_ps is not None]
    return np.concatenate(known) if known and len(known) == len(runs) else None


@dataclass(frozen=True)
class Change:
    """One figure under two settings: means over the seeds, and the paired change.

    ``relative`` changes are ratios minus 1. ``lower_is_better`` says which way is worse.
    """

    key: str
    ours: float
    reference: float
    change: Estimate
    relative: bool
    lower_is_better: bool

    @property
    def harm(self) -> Estimate:
        """The change turned so that above 0 is worse."""
        e = self.change
        if self.lower_is_better:
            return e
        low, high = (None if x is None else -x for x in (e.high, e.low))
        return Estimate(-e.mean, low, high, e.n, e.constant)

    @property
    def worse(self) -> bool:
        """True if the interval, or the only value there is, is on the bad side."""
        return _beyond(self.harm, 0.0)

    @property
    def better(self) -> bool:
        """True if the interval, or the only value there is, is on the good side."""
        e = self.harm
        return e.n > 0 and (e.mean if e.high is None else e.high) < 0


@dataclass(frozen=True)
class Flag:
    """One safety limit, and whether the setting crosses it."""

    key: str
    name: str
    state: State
    limit: float
    cost: Change


@dataclass(frozen=True)
class Verdict:
    """``word`` is the rule that applied, ``text`` what a person reads, ``deploy`` the advice."""

    word: str
    text: str
    deploy: Literal["yes", "no", "unknown"]
    score: Estimate
    flags: tuple[Flag, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def harms(self) -> bool:
        """True if a limit is crossed."""
        return any(flag.state == "up" for flag in self.flags)


def scores(
    ours: Sequence[RunFigures],
    default: Sequence[RunFigures],
    weights: Sequence[float] = (1.0,) * len(CLASSES),
) -> Estimate:
    """Return S over the seeds (:mod:`dcqcn_gym.core.score`); ``n`` is 0 where nothing can be said.

    A seed that has open and closed loops counts the mean of both. ``weights`` are those of
    :func:`~dcqcn_gym.core.score.class_score`.
    """
    return estimate(scores_by_seed(ours, default, weights))


def scores_by_seed(
    ours: Sequence[RunFigures],
    default: Sequence[RunFigures],
    weights: Sequence[float] = (1.0,) * len(CLASSES),
) -> list[float]:
    """Return S of each seed; NaN where nothing can be said."""
    values = [
        score([class_score(a.classes, b.classes, weights), round_score(a.rounds_ps, b.rounds_ps)])
        for a, b in zip(ours, default, strict=True)
    ]
    return [math.nan if v is None else v for v in values]


def changes(
    ours: Sequence[RunFigures], reference: Sequence[RunFigures], *, drawn: bool = True
) -> list[Change]:
    """Return every figure of the verdict's table, in its order.

    ``drawn``: seeds differ in their traffic; without it there are no intervals.
    """
    rows = [
        _change("goodput", ours, reference, lambda m: m.goodput_bps, relative=True, lower=False),
        _change("rtt", ours, reference, lambda m: m.rtt_s, relative=True),
        _change("pause", ours, reference, lambda m: m.pause_share),
        _change("unfinished", ours, reference, lambda m: m.unfinished_share),
    ]
    if all(math.isfinite(m.worst_pause) for m in (*ours, *reference)):
        rows.insert(3, _change("worst_pause", ours, reference, lambda m: m.worst_pause))
    for i, flow_class in enumerate(CLASSES):
        for what in ("mean", "p99"):
            rows.append(
                _change(
                    f"{what} {flow_class.key}", ours, reference,
                    lambda m, i=i, what=what: float(getattr(m.classes[i], what)),  # type: ignore[misc]
                    relative=True,
                )
            )  # fmt: skip
    if any(m.rounds_ps for m in ours):
        rows.append(_change("round", ours, reference, _mean_round, relative=True))
    rows.append(_change("utility", ours, reference, lambda m: m.utility, lower=False))
    if drawn:
        return rows
    return [replace(row, change=row.change.of_one_trace()) for row in rows]


def flags(
    ours: Sequence[RunFigures],
    default: Sequence[RunFigures],
    rows: Sequence[Change] | None = None,
    limits: Mapping[str, float] = LIMITS,
    floor: float = 0.0,
) -> tuple[Flag, ...]:
    """Return every safety flag by :func:`changes`; classes with too few flows are ``few``.

    A slowdown up to ``floor`` under the candidate is no harm, whatever it was before.
    """
    table = {row.key: row for row in (changes(ours, default) if rows is None else rows)}
    found = []
    for i, flow_class in enumerate(CLASSES):
        fewest = min((m.classes[i].count for m in (*ours, *default)), default=0)
        for what, words in (("mean", "mean slowdown"), ("p99", "99th percentile of slowdown")):
            row = table[f"{what} {flow_class.key}"]
            name = f"{words} of {flow_class.name}"
            enough = fewest >= FEWEST_FLOWS
            found.append(_flag(row, name, limits["class"], enough=enough, floor=floor))
    for key, name in (("unfinished", "unfinished flows"), ("goodput", "goodput"),
                      ("pause", "pause"), ("worst_pause", WORST_PAUSE)):  # fmt: skip
        if key in table and key in limits:  # logs may not tell the worst device's
            found.append(_flag(table[key], name, limits[key]))
    return tuple(found)


def verdict(
    ours: Sequence[Measured], default: Sequence[Measured], rails: Guardrails | None = None
) -> Verdict:
    """Judge a setting by its held-out runs, paired with those of the baseline on the same seeds.

    The first rule that applies gives the word: ``no evidence``, ``one trace``, ``starves``,
    ``trades``, ``worse``, ``better``, ``nothing gained``.
    """
    drawn = all(m.drawn for m in (*ours, *default))
    rails = rails or Guardrails()
    s = scores(ours, default, rails.weights)
    s = s if drawn else s.of_one_trace()
    if s.n == 0 or not any(m.flows.finished.any() for m in (*ours, *default)):
        return Verdict("no evidence", NOTHING_FINISHED, "unknown", estimate([]))
    rows = changes(ours, default, drawn=drawn)
    raised = flags(ours, default, rows, rails.limits, rails.slowdown_floor)
    up = [flag for flag in raised if flag.state == "up"]
    table = {row.key: row for row in rows}
    notes = tuple(_open_note(flag) for flag in raised if flag.state == "open")
    word, text = _words(s, up, table)
    if not s.known and not (s.constant and s.mean == 0):
        what = ONE_TRACE if s.constant else "one seed, no interval: it may be chance"
        return Verdict("one trace", f"{text} ({what})", "unknown", s, raised, notes)
    deploy: Literal["yes", "no"] = "yes" if word == "better" else "no"
    return Verdict(word, text, deploy, s, raised, notes)


def _words(s: Estimate, up: Sequence[Flag], table: dict[str, Change]) -> tuple[str, str]:
    """Return the word and the sentence of the first rule that applies."""
    classes = {c.key: c.name for c in CLASSES}
    worse = _unique(classes[f.key.split()[1]] for f in up if " " in f.key)
    better = _unique(
        name
        for key, name in classes.items()
        if name not in worse and (table[f"mean {key}"].better or table[f"p99 {key}"].better)
    )
    keys = {flag.key for flag in up}
    if "goodput" in keys:
        lost = -table["goodput"].change.mean * 100
        gains = [t for k, t in (("rtt", "shorter queues"), ("pause", "fewer pauses"))
                 if table[k].better]  # fmt: skip
        if gains:
            return "trades", f"trades {lost:.0f} % throughput for {' and '.join(gains)}"
        return "worse", f"worse: loses {lost:.0f} % throughput"
    if worse and better:
        return "starves", f"better for {in_words(better)}, worse for {in_words(worse)}"
    if up:
        return "worse", f"worse: {in_words([flag.name for flag in up])} beyond the limit"
    low, high = (s.mean if x is None else x for x in (s.low, s.high))
    percent = abs(1 - geometric_ratio(s.mean)) * 100
    if low > 0:
        return "better", f"better: slowdowns are {percent:.0f} % lower"
    if high < 0:
        return "worse", f"worse: slowdowns are {percent:.0f} % higher"
    return "nothing gained", "no measurable gain"


def _change(
    key: str,
    ours: Sequence[RunFigures],
    reference: Sequence[RunFigures],
    of: Callable[[RunFigures], float],
    *,
    relative: bool = False,
    lower: bool = True,
) -> Change:
    x, y = (np.array([of(m) for m in rows]) for rows in (ours, reference))
    known = np.isfinite(x) & np.isfinite(y) & ((x > 0) & (y > 0) if relative else True)
    return Change(
        key,
        ours=float(np.mean(x[known])) if known.any() else math.nan,
        reference=float(np.mean(y[known])) if known.any() else math.nan,
        change=paired_change(x[known], y[known], relative=relative),
        relative=relative,
        lower_is_better=lower,
    )


def _flag(row: Change, name: str, limit: float, *, enough: bool = True, floor: float = 0.0) -> Flag:
    if not enough or row.change.n == 0:
        state: State = "few"
    elif row.ours <= floor:
        state = "clear"
    elif _beyond(row.harm, limit):
        state = "up"
    else:
        high = row.harm.mean if row.harm.high is None else row.harm.high
        state = "open" if high > limit else "clear"
    return Flag(row.key, name, state, limit, row)


def _beyond(harm: Estimate, limit: float) -> bool:
    """True if the near bound of the interval is beyond; without one, the value itself counts."""
    return harm.n > 0 and (harm.mean if harm.low is None else harm.low) > limit


def _open_note(flag: Flag) -> str:
    high = flag.cost.harm.high
    reach = flag.cost.harm.mean if high is None else high
    unit = "%" if flag.cost.relative else "points"
    return (
        f"{flag.name}: up to {reach * 100:.1f} {unit} worse is not ruled out "
        f"(limit {flag.limit * 100:g})"
    )


def _mean_round(m: RunFigures) -> float:
    return float(np.mean(m.rounds_ps)) if m.rounds_ps else math.nan


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def in_words(names: Sequence[str]) -> str:
    """Return an enumeration: commas, and "and" before the last."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
