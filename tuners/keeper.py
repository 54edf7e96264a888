"""Keeper: holds the rule's setting, watches for harm, and goes back to the default where it hurts.

It looks only at what hardware can show: pauses, and round trips by pair of hosts, as probes give
them; never at sizes of flows. An alarm starts a duel in which default and rule take turns for whole
blocks, the default first, so that harm ends at once; two pairs of blocks decide it, or one that is
clear. What the duel says holds until the traffic shifts: until twice or half as many pairs of hosts
talk. Every decision is a sentence. docs/keeper.md; ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.core.optional_knobs import keeping_optional
from dcqcn_gym.core.sums import mean
from dcqcn_gym.tuners.advice import advise
from dcqcn_gym.tuners.base import Outcome, Tuner, TunerContext, TunerSettings

Side = Literal["rule", "default"]
Phase = Literal["hold", "duel"]


@dataclass(frozen=True)
class Signs:
    """What one interval showed; NaN where a backend cannot know it or nothing was sent."""

    pause: float
    """Share of the interval that the mean device was paused."""
    delay: float
    """Mean round trip over the base one, of the mean pair of hosts beside the busiest receiver."""
    busy: float
    """Pairs of hosts with round trips in the interval: how many talk to each other."""


def signs_of(report: IntervalReport) -> Signs:
    """Return the signs of a report."""
    unknown, nan = report.unknown, math.nan
    pause = nan
    if "port_pause_ps" not in unknown and report.duration_ps > 0:
        pause = float(report.paused_ps.mean()) / report.duration_ps
    sampled = report.rtt_count > 0
    delay = nan
    if "rtt_sum_ps" not in unknown and sampled.any():
        to = report.rtt_dst[sampled]
        beside = to != np.bincount(to).argmax()  # an incast's own queue is no bystander's
        if beside.any():
            trips = report.rtt_sum_ps[sampled] / report.rtt_count[sampled]
            delay = float((trips / report.rtt_base_ps[sampled])[beside].mean())
    return Signs(pause, delay, float(sampled.sum()))


@dataclass(frozen=True)
class _Pair:
    """A pair of blocks: the rule's pause and delay, what it has more of, how many pairs talked."""

    pause: float
    delay: float
    more: float
    ratio: float
    busy: float


def _compared(rule: Sequence[Signs], default: Sequence[Signs]) -> _Pair:
    pauses = [_mean([s.pause for s in side]) for side in (rule, default)]
    delays = [math.exp(_mean([math.log(s.delay) for s in side])) for side in (rule, default)]
    busy = _mean([s.busy for s in (*rule, *default)])
    return _Pair(pauses[0], delays[0], pauses[0] - pauses[1], delays[0] / delays[1], busy)


class _KeeperSettings(TunerSettings):
    pause: float = Field(default=0.005, ge=0, le=1, description="share of time paused: alarm above")
    pause_sum: float = Field(default=0.02, gt=0, description="CUSUM of pauses that is an alarm")
    delay: float = Field(default=3.0, ge=1, description="round trip over its base: alarm above")
    delay_sum: float = Field(default=6.0, gt=0, description="CUSUM of ln(delay) that is an alarm")
    block: int = Field(default=3, ge=2, description="intervals of a block; the first is not judged")
    wins: int = Field(default=2, ge=1, description="pairs of blocks that decide a duel")
    clear: float = Field(default=3.0, ge=1, description="limits that decide a duel in one pair")
    worse_pause: float = Field(default=0.01, ge=0, description="pause above the default's: hurts")
    worse_delay: float = Field(default=1.5, ge=1, description="delay over the default's: hurts")
    shift: float = Field(default=2.0, gt=1, description="factor in talking pairs that is a shift")
    calm: int = Field(default=8, ge=1, description="intervals that a shift has to last")


class _Watch:
    """Sums of what lies above a level, which forget as soon as it lies below: CUSUM."""

    def __init__(self, options: _KeeperSettings) -> None:
        self._limits = {"pause": options.pause_sum, "delay": options.delay_sum}
        self.levels = {"pause": options.pause, "delay": options.delay}
        self.forget()

    def vindicated(self, alarm: str, pause: float, delay: float) -> None:
        """Let what was a false alarm need twice as much, and everything half more than it is."""
        if alarm:
            self.levels[alarm] *= 2.0
        for name, value in (("pause", pause), ("delay", delay)):
            if math.isfinite(value):
                self.levels[name] = max(self.levels[name], 1.5 * value)

    def forget(self) -> None:
        """Begin the sums anew."""
        self._sums = dict.fromkeys(self._limits, 0.0)

    def add(self, signs: Signs) -> str:
        """Return which sign is an alarm now, "" for none."""
        above = {
            "pause": signs.pause - self.levels["pause"],
            "delay": math.log(signs.delay / self.levels["delay"]) if signs.delay > 0 else math.nan,
        }
        for name, more in above.items():
            if math.isfinite(more):
                most = self._limits[name] / 2  # so that no single interval is an alarm
                self._sums[name] = max(0.0, self._sums[name] + min(more, most))
        return next((name for name, total in self._sums.items() if total > self._limits[name]), "")


class KeeperTuner(Tuner[Setting]):
    """See the module."""

    name = "keeper"
    summary = "holds the rule's setting, watches for harm, goes back to the default where it hurts"
    Settings: ClassVar[type[TunerSettings]] = _KeeperSettings

    def start(self, context: TunerContext) -> None:
        """Ask the rule; nothing is measured for that."""
        super().start(context)
        self._options = cast(_KeeperSettings, self.settings)
        default = default_setting(context.space.line_rate_bps, context.space.table)
        advice = advise(context.fabric, default)
        self._sides: dict[Side, Setting] = {
            "rule": keeping_optional(advice.setting, context.base),
            "default": keeping_optional(default, context.base),
        }
        self._holds: Side = "rule"
        self._phase: Phase = "hold"
        self._in_force: Setting | None = None
        self._watch, self._alarm = _Watch(self._options), ""
        self._seen: dict[Side, list[Signs]] = {}
        self._order: list[Side] = []
        self._lost: list[_Pair] = []
        self._won: list[_Pair] = []
        self._step = self._duels = self._calm = 0
        self._talking = math.nan
        self._intervals = 0
        self._said: list[str] = []
        self._decide(_begun(advice.untried))

    def ask(self) -> Setting | None:
        """Return the setting of the side whose turn it is; None if it is in force."""
        side = self._order[0] if self._phase == "duel" else self._holds
        if self._sides[side] == self._in_force:
            return None
        self._in_force = self._sides[side]
        return self._in_force

    def tell(self, outcome: Outcome) -> None:
        """Watch, or count a step of the duel."""
        signs = signs_of(outcome.report)
        self._intervals += outcome.intervals
        if self._phase == "duel":
            self._fight(signs)
        elif self._holds == "rule":
            self._alarm = self._watch.add(signs)
            if self._alarm and self._sides["rule"] != self._sides["default"]:
                self._begin(_alarm(self._alarm, signs))
        elif self._shifted(signs):
            self._watch, self._alarm = _Watch(self._options), ""
            self._begin(
                f"the traffic has shifted: {signs.busy:.0f} pairs of hosts talk, "
                f"{self._talking:.0f} did"
            )

    def _begin(self, why: str) -> None:
        """Start a duel: the default first, so that what hurts ends at once."""
        self._phase = "duel"
        self._lost, self._won = [], []
        self._pair()
        self._decide(f"{why}; the default is in force and fights a duel with the rule's setting")

    def _pair(self) -> None:
        self._step, self._order = 0, ["default", "rule"]
        self._seen = {"default": [], "rule": []}

    def _fight(self, signs: Signs) -> None:
        """Count an interval; judge after each pair of blocks, which end a duel as it is clear."""
        side = self._order[0]
        if self._step:  # the first interval of a block still has the other side's queues
            self._seen[side].append(signs)
        self._step += 1
        if self._step < self._options.block:
            return
        self._step = 0
        del self._order[0]
        if self._order:
            return
        found = _compared(self._seen["rule"], self._seen["default"])
        harm = self._harm(found)
        (self._lost if harm > 1 else self._won).append(found)
        over = max(len(self._lost), len(self._won)) == self._options.wins
        if over or harm > self._options.clear:
            self._judge(self._lost if harm > 1 else self._won)
        else:
            self._pair()

    def _harm(self, found: _Pair) -> float:
        """Return how many limits' worth of harm a pair shows; above 1 the rule has lost it."""
        limits = self._options
        pause = found.more / limits.worse_pause if limits.worse_pause else math.inf
        delay = math.log(found.ratio) / math.log(limits.worse_delay)
        return max([one for one in (pause, delay) if math.isfinite(one)], default=0.0)

    def _judge(self, pairs: Sequence[_Pair]) -> None:
        """Hold the side that has won ``pairs``."""
        hurts = pairs is self._lost
        self._phase, self._holds = "hold", "default" if hurts else "rule"
        self._duels += 1
        self._calm = 0
        self._talking = _mean([pair.busy for pair in (*self._lost, *self._won)])
        self._watch.forget()
        if not hurts:  # what was fought for is no alarm again until it is worse
            pause, delay = (_mean([getattr(p, name) for p in pairs]) for name in ("pause", "delay"))
            self._watch.vindicated(self._alarm, pause, delay)
        more, ratio = (_mean([getattr(p, name) for p in pairs]) for name in ("more", "ratio"))
        self._decide(
            f"the rule's setting {'hurts' if hurts else 'does not hurt'}: "
            f"{_points(more)} of pauses and {_times(ratio)} the round trip of the default; "
            f"{'the default' if hurts else 'it'} is held"
        )

    def _shifted(self, signs: Signs) -> bool:
        """Return whether another number of pairs talks, for some intervals in a row."""
        far = math.isfinite(self._talking) and self._talking > 0 and signs.busy > 0
        ratio = signs.busy / self._talking if far else 1.0
        limit = self._options.shift
        self._calm = self._calm + 1 if ratio > limit or ratio < 1 / limit else 0
        return self._calm >= self._options.calm

    def _decide(self, why: str) -> None:
        self._said.append(f"after {self._intervals} intervals: {why}")

    def recommend(self) -> Setting:
        """Return the side in force; during a duel, the default if it leads."""
        leads = self._phase == "duel" and len(self._lost) > len(self._won)
        return self._sides["default" if leads else self._holds]

    def state(self) -> dict[str, Any]:
        """Return what is in force and why."""
        return {
            "phase": self._phase,
            "holds": self._holds,
            "duels": self._duels,
            "why": self._said[-1],
        }

    @property
    def decisions(self) -> Sequence[str]:
        """A sentence for each decision so far."""
        return self._said


def _begun(untried: tuple[str, ...]) -> str:
    if untried:
        return f"the rule is careful: {'; '.join(untried)}"
    return "the rule's setting is held: the fabric is of the kind that it was tried on"


def _alarm(sign: str, signs: Signs) -> str:
    if sign == "pause":
        return f"alarm: devices are paused for {100 * signs.pause:.1f} % of the time"
    return f"alarm: round trips are {signs.delay:.1f} times the idle ones"


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return mean(known) if known else math.nan


def _points(more: float) -> str:
    return f"{100 * more:+.1f} points" if math.isfinite(more) else "an unknown amount"


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if math.isfinite(ratio) else "an unknown multiple of"
