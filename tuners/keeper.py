"""Keeper: holds the rule's setting, watches for harm, and goes back to the default where it hurts.

It looks only at what hardware can show (:mod:`dcqcn_gym.tuners.congestion_signals`). An alarm puts
the default in force at once; what the rule showed before is the other side of the first comparison,
and where that is not clear the two take turns for whole blocks, whole rounds of a closed loop. What
a duel says holds until the traffic shifts. On a fabric where an incast of all hosts overflows a
buffer before any knob can act, the default is looked at first. Every decision is a sentence.
docs/measured/keeper.md; ours.
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
from dcqcn_gym.tuners.base import Outcome, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.congestion_signals import (
    Signs,
    Watch,
    geometric,
    mean_known,
    round_intervals,
    signs_of,
)
from dcqcn_gym.tuners.rule import advise

Side = Literal["rule", "default"]
Phase = Literal["hold", "duel"]

REMEMBERED = 30
"""Intervals of the rule's that are remembered."""
BEFORE = 8
"""Intervals before an alarm, at least, that are compared with the default's first block; as many
are looked at where the default comes first."""
SHORT_QUEUE_US = 64.0
"""A queue that no message minds: shorter ones count as that long."""
STUCK_DELAY = 1.5
"""A round trip over its base above which equal figures are a sensor that stands still."""
ARM_INTERVALS = 1500
"""Intervals that an arm of an online search needs to show an S of 0.10; docs/measured/keeper.md."""


class _KeeperSettings(TunerSettings):
    pause: float = Field(default=0.005, ge=0, le=1, description="share of time paused: alarm above")
    pause_sum: float = Field(default=0.02, gt=0, description="CUSUM of pauses that is an alarm")
    delay: float = Field(default=3.0, ge=1, description="round trip over its base: alarm above")
    delay_sum: float = Field(default=6.0, gt=0, description="CUSUM of ln(delay) that is an alarm")
    queue_us: float = Field(default=256.0, gt=0, description="queue at a receiver: alarm above")
    block: int = Field(default=3, ge=2, description="intervals of a block; the first is not judged")
    wins: int = Field(default=2, ge=1, description="pairs of blocks that decide a duel")
    clear: float = Field(default=3.0, ge=1, description="limits that decide a duel in one pair")
    worse_pause: float = Field(
        default=0.005, ge=0, description="pause above the default's, half a limit: hurts"
    )
    worse_delay: float = Field(default=1.5, ge=1, description="delay over the default's: hurts")
    overflow: float = Field(
        default=1.0, gt=0,
        description="round trips' bytes of all senders over the buffer: looks first above",
    )  # fmt: skip
    many: int = Field(default=32, ge=1, description="hosts that meet at a port: looks first above")
    shift: float = Field(default=2.0, gt=1, description="factor in talking pairs that is a shift")
    calm: int = Field(default=8, ge=1, description="intervals that a shift has to last")
    stuck: int = Field(default=8, ge=2, description="equal intervals: a sensor is not believed")


@dataclass(frozen=True)
class _Pair:
    """A pair of blocks: what the rule showed, how much more of it than the default."""

    rule: Signs
    pause: float
    """Points of pause that the rule has more."""
    delay: float
    """The rule's over the default's."""
    queue: float
    peak: float
    busy: float

    def harm(self, limits: _KeeperSettings) -> float:
        """Return how many limits' worth of harm the pair shows; above 1 the rule has lost it."""
        found = [self.pause / limits.worse_pause if limits.worse_pause else math.inf]
        ratios = (self.delay, self.queue, self.peak)
        found += [math.log(r) / math.log(limits.worse_delay) for r in ratios if r > 0]
        return max([one for one in found if math.isfinite(one)], default=0.0)

    @property
    def said(self) -> str:
        """What it shows, in words."""
        more = f"{100 * self.pause:+.1f} points" if math.isfinite(self.pause) else "unknown points"
        found = [f"{more} of pauses"]
        said = (
            (self.delay, "the round trip"), (self.queue, "that to an incast"),
            (self.peak, "the longest queue"),
        )  # fmt: skip
        found += [f"{ratio:.2f} times {what}" for ratio, what in said if math.isfinite(ratio)]
        return " and ".join(found)


def _summed(signs: Sequence[Signs]) -> Signs:
    return Signs(
        mean_known([s.pause for s in signs]), geometric([s.delay for s in signs]),
        geometric([s.queue for s in signs]),
        geometric([max(s.peak_us, SHORT_QUEUE_US) for s in signs if math.isfinite(s.peak_us)]),
        mean_known([s.busy for s in signs]), mean_known([s.sent for s in signs]),
    )  # fmt: skip


def _compared(rule: Sequence[Signs], default: Sequence[Signs]) -> _Pair:
    ours, theirs = _summed(rule), _summed(default)
    return _Pair(
        ours, ours.pause - theirs.pause, ours.delay / theirs.delay, ours.queue / theirs.queue,
        ours.peak_us / theirs.peak_us, mean_known([ours.busy, theirs.busy]),
    )  # fmt: skip


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
        self._step = self._block = self._duels = self._defeats = self._calm = self._unpaused = 0
        self._talking, self._paused = math.nan, False
        self._last, self._equal = (math.nan, math.nan), 0
        self._intervals = 0
        self._said: list[str] = []
        careful = self._crowding()
        self._first = bool(careful)
        self._begun(careful, advice.untried)

    def _new_watch(self) -> None:
        facts, options = self.context.fabric, self._options
        trips = options.delay_sum
        self._watch = Watch(
            {"pause": options.pause, "delay": options.delay, "peak_us": options.queue_us,
             "queue": 1.0 + options.queue_us / (facts.base_rtt_us if facts else 40.0)},
            {"pause": options.pause_sum, "delay": trips, "queue": trips, "peak_us": trips},
        )  # fmt: skip
        self._alarm = ""

    def _crowding(self) -> str:
        """Return why so many hosts can meet that the default is looked at first; "" if they cannot.

        They send more in a round trip than a switch can hold, or are more than a floor can serve.
        """
        facts = self.context.fabric
        if facts is None or self._sides["rule"] == self._sides["default"]:
            return ""
        sent = facts.meeting_hosts * facts.line_rate_gbps * 125.0 * facts.base_rtt_us
        overflow = sent / max(facts.shared_bytes, 1)
        if overflow > self._options.overflow:
            return (
                f"{overflow:.1f} times a switch's buffer arrives in a round trip if all hosts meet"
            )
        many = facts.meeting_hosts > self._options.many
        return f"{facts.meeting_hosts} hosts can meet at a port" if many else ""

    def _begun(self, careful: str, untried: tuple[str, ...]) -> None:
        arm, all_ = ARM_INTERVALS, self.context.intervals
        sums = f"a search would need about {arm} intervals an arm and the run has {all_}"
        if careful:
            self._begin(f"{careful}: the default is looked at first")
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
        if self._blind(signs):
            return
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

    def _blind(self, signs: Signs) -> bool:
        """Hold the default while sensors are not believed; return whether they are not.

        They are not where pauses and round trips have been unknown for some intervals while bytes
        arrive, or where one shows trouble that is equal to the last digit.
        """
        unknown = not math.isfinite(signs.pause) and not math.isfinite(signs.delay)
        stuck = 0 < signs.pause == self._last[0] or STUCK_DELAY < signs.delay == self._last[1]
        self._last = (signs.pause, signs.delay)
        before = self._equal
        self._equal = before + 1 if stuck or (unknown and signs.sent) else 0
        most = self._options.stuck
        if self._equal == most:
            self._settle("default", math.nan, paused=False)
            what = "pauses and round trips are unknown" if unknown else "a sensor stands still"
            self._decide(f"{what} for {most} intervals: the default is held until they are back")
        elif before >= most and not self._equal and self._sides["rule"] != self._sides["default"]:
            self._new_watch()
            self._recent.clear()
            self._begin("the sensors are back; default and rule's setting take turns")
        return self._equal >= most

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
        if self._step or self._first:  # else it still has the other side's queues
            self._seen[side].append(signs)
        self._step += 1
        if self._step <= (BEFORE if self._first else self._block) and not self._clear(side):
            return
        self._step = 0
        del self._order[0]
        if side == "default" and self._first and self._crowded():
            return
        if not self._order:
            self._judge(_compared(self._seen["rule"], self._seen["default"]))

    def _clear(self, side: Side) -> bool:
        """Return whether the rule's block need not be played to its end: it hurts beyond doubt."""
        seen = self._seen
        if side == "default" or self._remembered or not (seen["rule"] and seen["default"]):
            return False
        return _compared(seen["rule"], seen["default"]).harm(self._options) > self._options.clear

    def _crowded(self) -> bool:
        """Hold the default if it is in trouble itself before the rule was ever in force."""
        self._first, shown = False, self._seen["default"]
        paused = mean_known([s.pause for s in shown])
        peak_us = max([s.peak_us for s in shown if math.isfinite(s.peak_us)], default=0.0)
        if not (paused > self._options.pause or peak_us > self._options.queue_us):
            return False
        self._defeats += 1
        self._settle("default", mean_known([s.busy for s in shown]), paused=True)
        self._decide(
            f"devices are paused for {100 * paused:.1f} % of the time and a port's queue is "
            f"{peak_us:.0f} us long under the default itself: an incast of many meets here, and a "
            "quicker recovery brings it more often; it is held"
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
        self._defeats = self._defeats + 1 if hurts else 0
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
        calm = self._options.calm * 2 ** max(self._defeats - 1, 0)  # ever rarer where it loses
        self._calm = self._calm + 1 if ratio > limit or ratio < 1 / limit else 0
        quiet = (
            self._paused
            and signs.pause < self._options.pause / 5
            and not signs.peak_us > self._options.queue_us
        )
        self._unpaused = self._unpaused + 1 if quiet else 0
        if self._calm >= calm:
            now, then = signs.busy, self._talking
            return f"the traffic has shifted: {now:.0f} pairs of hosts talk, {then:.0f} did"
        if self._unpaused >= 2 * calm:
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
    if sign == "queue":
        return (
            f"alarm: round trips to the busiest receiver are {signs.queue:.1f} times the idle ones"
        )
    return f"alarm: a port's queue was {signs.peak_us:.0f} us long"
