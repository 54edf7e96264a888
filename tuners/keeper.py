"""Keeper: holds the rule's setting, watches for harm, and goes back to the default where it hurts.

It looks only at what hardware can show (:mod:`dcqcn_gym.tuners.signs`). An alarm puts the default
in force at once; what the rule showed before is the other side of the first comparison, and where
that is not clear the two take turns for whole blocks, whole rounds of a closed loop. What a duel
says holds until the traffic shifts. On a fabric where an incast of all hosts overflows a buffer
before any knob can act, the default is looked at first. Every decision is a sentence.
docs/keeper.md; ours.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

from pydantic import Field

from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.core.optional_knobs import keeping_optional
from dcqcn_gym.tuners.advice import advise
from dcqcn_gym.tuners.base import Outcome, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.signs import Signs, geometric, mean_known, round_intervals, signs_of

Side = Literal["rule", "default"]
Phase = Literal["hold", "duel"]

REMEMBERED = 30
"""Intervals of the rule's that are remembered."""
BEFORE = 8
"""Intervals before an alarm, at least, that are compared with the default's first block."""
ARM_INTERVALS = 1500
"""Intervals that an arm of an online search needs to show an S of 0.10; docs/keeper.md."""


class _KeeperSettings(TunerSettings):
    pause: float = Field(default=0.005, ge=0, le=1, description="share of time paused: alarm above")
    pause_sum: float = Field(default=0.02, gt=0, description="CUSUM of pauses that is an alarm")
    delay: float = Field(default=3.0, ge=1, description="round trip over its base: alarm above")
    delay_sum: float = Field(default=6.0, gt=0, description="CUSUM of ln(delay) that is an alarm")
    queue_us: float = Field(default=256.0, gt=0, description="queue at a receiver: alarm above")
    block: int = Field(default=3, ge=2, description="intervals of a block; the first is not judged")
    wins: int = Field(default=2, ge=1, description="pairs of blocks that decide a duel")
    clear: float = Field(default=3.0, ge=1, description="limits that decide a duel in one pair")
    worse_pause: float = Field(default=0.01, ge=0, description="pause above the default's: hurts")
    worse_delay: float = Field(default=1.5, ge=1, description="delay over the default's: hurts")
    overflow: float = Field(
        default=1.0, gt=0,
        description="round trips' bytes of all senders over the buffer: looks first above",
    )  # fmt: skip
    shift: float = Field(default=2.0, gt=1, description="factor in talking pairs that is a shift")
    calm: int = Field(default=8, ge=1, description="intervals that a shift has to last")


@dataclass(frozen=True)
class _Pair:
    """A pair of blocks: what the rule showed, how much more of it than the default."""

    rule: Signs
    pause: float
    """Points of pause that the rule has more."""
    delay: float
    """The rule's over the default's."""
    queue: float
    busy: float

    def harm(self, limits: _KeeperSettings) -> float:
        """Return how many limits' worth of harm the pair shows; above 1 the rule has lost it."""
        found = [self.pause / limits.worse_pause if limits.worse_pause else math.inf]
        found += [math.log(r) / math.log(limits.worse_delay) for r in (self.delay, self.queue)
                  if r > 0]  # fmt: skip
        return max([one for one in found if math.isfinite(one)], default=0.0)

    @property
    def said(self) -> str:
        """What it shows, in words."""
        more = f"{100 * self.pause:+.1f} points" if math.isfinite(self.pause) else "unknown points"
        found = [f"{more} of pauses"]
        for ratio, where in ((self.delay, "the round trip"), (self.queue, "that to an incast")):
            if math.isfinite(ratio):
                found.append(f"{ratio:.2f} times {where}")
        return " and ".join(found)


def _summed(signs: Sequence[Signs]) -> Signs:
    return Signs(
        mean_known([s.pause for s in signs]), geometric([s.delay for s in signs]),
        geometric([s.queue for s in signs]), mean_known([s.busy for s in signs]),
        mean_known([s.sent for s in signs]),
    )  # fmt: skip


def _compared(rule: Sequence[Signs], default: Sequence[Signs]) -> _Pair:
    ours, theirs = _summed(rule), _summed(default)
    return _Pair(
        ours, ours.pause - theirs.pause, ours.delay / theirs.delay, ours.queue / theirs.queue,
        mean_known([ours.busy, theirs.busy]),
    )  # fmt: skip


class _Watch:
    """Sums of what lies above a level, which forget as soon as it lies below: CUSUM."""

    def __init__(self, options: _KeeperSettings, base_rtt_us: float) -> None:
        trips = options.delay_sum
        self._limits = {"pause": options.pause_sum, "delay": trips, "queue": trips}
        queue = 1.0 + options.queue_us / base_rtt_us
        self.levels = {"pause": options.pause, "delay": options.delay, "queue": queue}
        self.forget()

    def vindicated(self, alarm: str, shown: Sequence[Signs]) -> None:
        """Let what was a false alarm need twice as much, and everything half more than it is."""
        if alarm:
            self.levels[alarm] *= 2.0
        for name, value in ((n, float(getattr(s, n))) for s in shown for n in self.levels):
            if math.isfinite(value):
                self.levels[name] = max(self.levels[name], 1.5 * value)

    def forget(self) -> None:
        """Begin the sums anew."""
        self._sums = dict.fromkeys(self._limits, 0.0)

    def add(self, signs: Signs) -> str:
        """Return which sign is an alarm now, "" for none."""
        for name, level in self.levels.items():
            value = float(getattr(signs, name))
            if not math.isfinite(value) or (name != "pause" and value <= 0):
                continue
            more = value - level if name == "pause" else math.log(value / level)
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
        self._new_watch()
        self._recent: deque[Signs] = deque(maxlen=REMEMBERED)
        self._seen: dict[Side, list[Signs]] = {}
        self._order: list[Side] = []
        self._lost: list[_Pair] = []
        self._won: list[_Pair] = []
        self._step = self._block = self._duels = self._calm = self._unpaused = 0
        self._talking, self._paused = math.nan, False
        self._intervals = 0
        self._said: list[str] = []
        self._first = self._overflow() > self._options.overflow
        self._begun(advice.untried)

    def _new_watch(self) -> None:
        facts = self.context.fabric
        self._watch = _Watch(self._options, facts.base_rtt_us if facts else 40.0)
        self._alarm = ""

    def _overflow(self) -> float:
        """Return what all hosts that meet send in a round trip, over what a switch can hold."""
        facts = self.context.fabric
        if facts is None or self._sides["rule"] == self._sides["default"]:
            return 0.0
        sent = facts.meeting_hosts * facts.line_rate_gbps * 125.0 * facts.base_rtt_us
        return sent / max(facts.shared_bytes, 1)

    def _begun(self, untried: tuple[str, ...]) -> None:
        arm, all_ = ARM_INTERVALS, self.context.intervals
        sums = f"a search would need about {arm} intervals an arm and the run has {all_}"
        if self._first:
            why = f"{self._overflow():.1f} times a switch's buffer arrives in a round trip if all "
            self._begin(why + "hosts meet: the default is looked at first")
        elif untried:
            self._decide(f"the rule is careful: {'; '.join(untried)}; {sums}")
        else:
            why = "the rule's setting is held: the fabric is of the kind that it was tried on"
            self._decide(f"{why}; {sums}")

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
            self._recent.append(signs)
            self._alarm = self._watch.add(signs)
            if self._alarm and self._sides["rule"] != self._sides["default"]:
                self._begin(f"{_alarm(self._alarm, signs)}; the default is in force")
        else:
            shifted = self._shifted(signs)
            if shifted:
                self._new_watch()
                self._recent.clear()
                self._begin(f"{shifted}; default and rule's setting take turns")

    def _begin(self, why: str) -> None:
        """Start a duel: the default first, so that what hurts ends at once."""
        self._phase = "duel"
        self._lost, self._won = [], []
        period = round_intervals([s.sent for s in self._recent])
        self._block = period * math.ceil((self._options.block - 1) / period)  # whole rounds
        # many of them, as an alarm chooses the worst; none where the rule has been acquitted before
        many = self._block * math.ceil(BEFORE / self._block)
        before = [] if self._duels else list(self._recent)[-many:]
        self._pair(("default",) if before else ("default", "rule"), before)
        self._decide(why)

    def _pair(self, order: Sequence[Side], rule: Sequence[Signs] = ()) -> None:
        self._step, self._order = 0, list(order)
        self._seen = {"default": [], "rule": list(rule)}
        self._remembered = bool(rule)

    def _fight(self, signs: Signs) -> None:
        """Count an interval; judge after each pair of blocks, which end a duel as it is clear."""
        side = self._order[0]
        if self._step:  # the first interval of a block still has the other side's queues
            self._seen[side].append(signs)
        self._step += 1
        if self._step <= self._block:
            return
        self._step = 0
        del self._order[0]
        if side == "default" and self._first and self._paused_already():
            return
        if not self._order:
            self._judge(_compared(self._seen["rule"], self._seen["default"]))

    def _paused_already(self) -> bool:
        """Hold the default if it is paused itself before the rule was ever in force."""
        self._first = False
        paused = mean_known([s.pause for s in self._seen["default"]])
        if not paused > self._options.pause:
            return False
        self._settle("default", mean_known([s.busy for s in self._seen["default"]]), paused=True)
        self._decide(
            f"devices are paused for {100 * paused:.1f} % of the time under the default itself: an "
            "incast of many meets here, and a quicker recovery brings it more often; it is held"
        )
        return True

    def _judge(self, found: _Pair) -> None:
        """End the duel if it is decided; else another pair of blocks.

        What the rule showed before an alarm is the worst there was: if even that is within the
        limits, the rule has won at once; between them and a clear harm it proves nothing.
        """
        harm = found.harm(self._options)
        clear, remembered = harm > self._options.clear, self._remembered
        side = self._lost if harm > 1 else self._won
        if not remembered or clear or harm <= 1:
            side.append(found)
        over = max(len(self._lost), len(self._won)) >= self._options.wins
        if over or clear or (remembered and harm <= 1):
            self._end(side)
        else:
            self._pair(("rule", "default") if remembered else ("default", "rule"))

    def _end(self, pairs: Sequence[_Pair]) -> None:
        """Hold the side that has won ``pairs``."""
        hurts, last = pairs is self._lost, pairs[-1]
        paused = hurts and last.pause > self._options.worse_pause
        busy = mean_known([pair.busy for pair in (*self._lost, *self._won)])
        self._settle("default" if hurts else "rule", busy, paused=paused)
        if not hurts:  # what was fought for is no alarm again until it is worse
            shown = [last.rule, *list(self._recent)[-1:]]
            self._watch.vindicated(self._alarm, shown)
        self._decide(
            f"the rule's setting {'hurts' if hurts else 'does not hurt'}: {last.said} of the "
            f"default; {'the default' if hurts else 'it'} is held"
        )

    def _settle(self, side: Side, busy: float, *, paused: bool) -> None:
        self._phase, self._holds = "hold", side
        self._duels += 1
        self._calm = self._unpaused = 0
        self._talking, self._paused = busy, paused
        self._watch.forget()

    def _shifted(self, signs: Signs) -> str:
        """Return how the traffic has shifted for some intervals in a row, "" if it has not."""
        far = math.isfinite(self._talking) and self._talking > 0 and signs.busy > 0
        ratio = signs.busy / self._talking if far else 1.0
        limit = self._options.shift
        self._calm = self._calm + 1 if ratio > limit or ratio < 1 / limit else 0
        quiet = self._paused and signs.pause < self._options.pause / 5
        self._unpaused = self._unpaused + 1 if quiet else 0
        if self._calm >= self._options.calm:
            now, then = signs.busy, self._talking
            return f"the traffic has shifted: {now:.0f} pairs of hosts talk, {then:.0f} did"
        if self._unpaused >= 2 * self._options.calm:
            return f"nothing was paused for {self._unpaused} intervals"
        return ""

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


def _alarm(sign: str, signs: Signs) -> str:
    if sign == "pause":
        return f"alarm: devices are paused for {100 * signs.pause:.1f} % of the time"
    if sign == "delay":
        return f"alarm: round trips are {signs.delay:.1f} times the idle ones"
    return f"alarm: round trips to the busiest receiver are {signs.queue:.1f} times the idle ones"
