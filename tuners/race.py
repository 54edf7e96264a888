"""Race: tries settings of a portfolio in short paired blocks, and holds the one that leads.

The settings race against the default in the order of what each was worth before, so many at once.
A round has a block of the default and of each; the first interval of a block still has the other's
queues and is not judged. What pauses more, starves, or lets small messages wait longer than the
default in it is dropped at once, and the next takes its place. What is left is judged by
:func:`waiting`, beside the prior. The race ends as soon as its order is settled, or the rest of the
run cannot pay for another round; then the leader is held and watched. A shift of the traffic lets
all race again, an alarm the leader against the default alone. Every decision is a sentence.
docs/measured/race.md; ours.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

from pydantic import Field

from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.core.optional_knobs import keeping_optional
from dcqcn_gym.core.sums import mean
from dcqcn_gym.tuners.base import Outcome, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.congestion_signals import (
    Signs,
    Watch,
    geometric,
    mean_known,
    round_intervals,
    signs_of,
)
from dcqcn_gym.tuners.portfolio import portfolio
from dcqcn_gym.tuners.traffic_shift import TrafficShift

Phase = Literal["race", "hold"]
DEFAULT = "default"
REMEMBERED = 40
"""Intervals whose bytes are remembered, to find the rounds of a closed loop."""
SHORT_QUEUE_US = 64.0
"""A queue that no message minds: shorter ones count as that long."""
MOST = 1.0
"""What a single round can say for or against a candidate, in ln."""
LONGEST_BLOCK = 12
"""Intervals of the longest block, so that a race of slow rounds ends."""


class _RaceSettings(TunerSettings):
    block: int = Field(default=3, ge=1, description="judged intervals of a block")
    rounds: int = Field(default=2, ge=1, description="rounds at most")
    at_once: int = Field(default=1, ge=1, description="candidates that race at once")
    least: int = Field(default=2, ge=1, description="rounds before an order can be settled")
    prior: float = Field(default=3.0, ge=0, description="rounds that the prior counts as")
    margin: float = Field(default=0.0, ge=0, description="ln that the leader has to be ahead")
    behind: float = Field(default=0.15, gt=0, description="ln behind the leader: dropped")
    pause: float = Field(default=0.005, ge=0, description="pause above the default's: dropped")
    clear: float = Field(default=3.0, ge=1, description="times that: dropped within the block")
    small: float = Field(
        default=1.5, gt=1, description="queue over the default's where small messages wait: dropped"
    )
    starves: float = Field(default=0.4, ge=0, le=1, description="of the default's bytes: dropped")
    spend: float = Field(default=0.6, gt=0, le=1, description="share of the run that may be raced")
    alarm_pause: float = Field(default=0.005, ge=0, le=1, description="paused share: alarm above")
    alarm_delay: float = Field(default=3.0, ge=1, description="round trip over its base: alarm")
    alarm_queue_us: float = Field(default=256.0, gt=0, description="queue of small messages: alarm")
    shift: float = Field(default=2.0, gt=1, description="factor in talking pairs that is a shift")
    calm: int = Field(default=8, ge=1, description="intervals that a shift has to last")


def waiting(report: IntervalReport) -> float:
    """Return ln(flows under way) + ln(mean round trip over its base); less is better.

    A block's bytes are taken off: quicker rounds of a closed loop send more. NaN where either is
    not known: then only harm decides. docs/measured/race.md has what else was tried.
    """
    sampled = report.rtt_count > 0
    if {"rtt_sum_ps", "active_flows"} & report.unknown or not sampled.any():
        return math.nan
    trips = report.rtt_sum_ps[sampled] / report.rtt_count[sampled] / report.rtt_base_ps[sampled]
    return math.log(report.active_flows + 1) + math.log(float(trips.mean()))


def _small(signs: Sequence[Signs]) -> float:
    """Return how long small messages may wait, in us of the longest queue; NaN without them."""
    known = [max(s.peak_us, SHORT_QUEUE_US) for s in signs if math.isfinite(s.peak_us)]
    return geometric(known)


_SAID = {
    "pause": "alarm: devices are paused",
    "delay": "alarm: round trips beside the busiest receiver are long",
    "queue": "alarm: round trips of small messages to the busiest receiver are long",
    "peak_us": "alarm: a port's queue is long where small messages may wait",
}


@dataclass
class _Shown:
    """What a candidate showed: its signs, and by round the mean of :func:`waiting`."""

    signs: list[Signs] = field(default_factory=list)
    waits: dict[int, float] = field(default_factory=dict)


class RaceTuner(Tuner[Setting]):
    """See the module."""

    name = "race"
    summary = "races a portfolio of settings in short paired blocks, holds and watches the leader"
    Settings: ClassVar[type[TunerSettings]] = _RaceSettings

    def start(self, context: TunerContext) -> None:
        """Work the portfolio out; nothing is measured for that."""
        super().start(context)
        self._options = cast(_RaceSettings, self.settings)
        default = default_setting(context.space.line_rate_bps, context.space.table)
        self._settings: dict[str, Setting] = {}
        self._worth: dict[str, float] = {}
        for one in portfolio(context.fabric, default):
            setting = keeping_optional(one.setting, context.base)
            if one.raced and setting not in self._settings.values():
                self._settings[one.name] = setting
                self._worth[one.name] = one.worth
        self._holds = DEFAULT
        self._in_force: Setting | None = None
        self._sent: deque[float] = deque(maxlen=REMEMBERED)
        self._intervals = self._duels = 0
        self._alarm = ""
        self._said: list[str] = []
        self._new_watch()
        options = self._options
        self._shift = TrafficShift(
            options.shift, options.calm, options.alarm_pause, options.alarm_queue_us
        )
        order = ", ".join(sorted(self._settings, key=lambda name: -self._worth[name])[:-1])
        self._begin(list(self._settings), f"the default first; against it, in turn: {order or '-'}")

    def _new_watch(self) -> None:
        facts, options = self.context.fabric, self._options
        queue = 1.0 + options.alarm_queue_us / (facts.base_rtt_us if facts else 40.0)
        self._watch = Watch(
            {"pause": options.alarm_pause, "delay": options.alarm_delay, "queue": queue,
             "peak_us": options.alarm_queue_us},
            {"pause": 0.02, "delay": 6.0, "queue": 6.0, "peak_us": 6.0},
        )  # fmt: skip

    def ask(self) -> Setting | None:
        """Return the setting whose turn it is; None if it is in force."""
        wanted = self._settings[self._turn]
        if wanted == self._in_force:
            return None
        self._in_force = wanted
        return wanted

    @property
    def _turn(self) -> str:
        return self._order[0] if self._phase == "race" else self._holds

    def tell(self, outcome: Outcome) -> None:
        """Judge an interval of a block, or watch what is held."""
        signs = signs_of(outcome.report)
        self._intervals += outcome.intervals
        self._sent.append(signs.sent)
        if self._phase == "race":
            self._run(signs, waiting(outcome.report))
        elif len(self._settings) > 1:
            self._hold(signs)

    def _hold(self, signs: Signs) -> None:
        alarm = self._watch.add(signs) if self._holds != DEFAULT else ""
        shifted = self._shift.add(signs, self._duels)
        if shifted and self._pays(len(self._settings)):
            self._new_watch()
            self._begin(list(self._settings), f"{shifted}; the race begins again")
        elif alarm:
            self._alarm = alarm
            self._begin(
                [DEFAULT, self._holds], f"{_SAID[alarm]}; {self._holds} and the default race"
            )

    def _begin(self, racing: list[str], why: str) -> None:
        """Start a race of these; the default is always among them."""
        self._phase: Phase = "race"
        self._round = self._since = 0
        self._shown = {name: _Shown() for name in racing}
        order = sorted((n for n in racing if n != DEFAULT), key=lambda n: -self._worth[n])
        at_once = self._options.at_once
        self._racing, self._bench = [DEFAULT, *order[:at_once]], order[at_once:]
        self._decide(why)
        if len(racing) == 1:
            self._racing = racing
            self._settle(DEFAULT, "there is nothing else to try on such a fabric")
        else:
            self._next_round()

    def _next_round(self) -> None:
        """Turn the order around every other round, so that drifting traffic favours nobody."""
        order = sorted(self._racing, key=lambda name: name != DEFAULT)
        self._order = order if self._round % 2 == 0 else order[::-1]
        period = round_intervals(list(self._sent))
        whole = period * math.ceil(self._options.block / period)
        self._block = whole if whole <= LONGEST_BLOCK else self._options.block
        self._step, self._seen = 0, list[tuple[Signs, float]]()
        self._this_round: dict[str, list[tuple[Signs, float]]] = {}

    def _run(self, signs: Signs, wait: float) -> None:
        """Count an interval of a block."""
        name = self._order[0]
        if self._step:  # else it still has the other's queues
            self._seen.append((signs, wait))
        self._step += 1
        hurts = self._hurts(name) if self._step > 1 else ""
        if not hurts and self._step <= self._block:
            return
        self._this_round[name] = self._seen
        self._step, self._seen = 0, []
        del self._order[0]
        if hurts:
            self._drop(name, hurts)
        if not self._order:
            self._end_round()

    def _hurts(self, name: str) -> str:
        """Return why a candidate is dropped now; "" if it is not or nothing can be compared."""
        theirs = [*self._shown[DEFAULT].signs, *(s for s, _ in self._this_round.get(DEFAULT, ()))]
        ours = [*self._shown[name].signs, *(s for s, _ in self._seen)]
        if name == DEFAULT or not theirs or not ours:
            return ""
        over = self._step > self._block
        more = mean_known([s.pause for s in ours]) - mean_known([s.pause for s in theirs])
        if more > self._options.pause * (1.0 if over else self._options.clear):
            return f"{100 * more:+.1f} points of pauses"
        share = mean_known([s.sent for s in ours]) / max(mean_known([s.sent for s in theirs]), 1.0)
        if over and share < self._options.starves:
            return f"{100 * share:.0f} % of its bytes"
        waits = _small(ours) / _small(theirs)
        if over and waits > self._options.small:
            return f"small messages may wait {waits:.1f} times as long as behind that"
        return ""

    def _drop(self, name: str, why: str) -> None:
        self._racing.remove(name)
        self._decide(f"{name} is dropped: {why} of the default's")

    def _end_round(self) -> None:
        """Judge a round: drop what lies behind; end the race or begin another round."""
        self._round += 1
        for name, seen in self._this_round.items():
            self._shown[name].signs += [signs for signs, _ in seen]
            sent = mean_known([signs.sent for signs, _ in seen])
            wait = mean_known([wait for _, wait in seen])
            if sent > 0 and math.isfinite(wait):
                self._shown[name].waits[self._round] = wait - math.log(sent)
        for name in [n for n in self._racing if n != DEFAULT and self._hurts_by_default(n)]:
            self._drop(name, self._hurts_by_default(name))
        some = self._options.at_once
        if self._racing == [DEFAULT] and self._bench and self._pays(1 + some):
            self._racing, self._bench = [DEFAULT, *self._bench[:some]], self._bench[some:]
            self._since = self._round
            self._decide(f"{', '.join(self._racing[1:])} and the default race")
            self._next_round()
            return
        gains = {name: self._gain(name) for name in self._racing}
        leader = max(gains, key=lambda name: gains[name])
        least = gains[leader] - self._options.behind
        behind = [name for name in self._racing if name != DEFAULT and gains[name] < least]
        self._racing = [name for name in self._racing if name not in behind]
        if behind:
            self._decide(f"{', '.join(behind)} lie behind {leader} and are dropped")
        why = self._over(leader, gains)
        if why:
            chosen = leader if gains[leader] > self._options.margin else DEFAULT
            self._settle(chosen, f"{why}; {self._standings(chosen, gains)}")
        else:
            self._next_round()

    def _hurts_by_default(self, name: str) -> str:
        """Return the same once the round has the default's block too, which may be the last."""
        self._step, self._seen = self._block + 1, []
        self._this_round = {}
        return self._hurts(name)

    def _gain(self, name: str) -> float:
        """Return by how much less waits than under the default, mean of the rounds; 0 unknown."""
        found = [min(max(one, -MOST), MOST) for one in self._gaps(DEFAULT, name)]
        weight = self._options.prior
        return (math.fsum(found) + weight * self._worth[name]) / (len(found) + weight)

    def _gaps(self, one: str, other: str) -> list[float]:
        """Return by round how much more waits under one setting than under the other."""
        ours, theirs = self._shown[one].waits, self._shown[other].waits
        return [ours[k] - theirs[k] for k in ours if k in theirs]

    def _error(self, one: str, other: str) -> float:
        """Return the standard error of the difference of two; infinite with a single round."""
        found = self._gaps(one, other)
        if len(found) < 2:
            return math.inf
        centre = mean(found)
        return math.sqrt(
            math.fsum((x - centre) ** 2 for x in found) / (len(found) - 1) / len(found)
        )

    def _over(self, leader: str, gains: dict[str, float]) -> str:
        """Return why the race is over; "" if it is not."""
        others = [name for name in self._racing if name != leader]
        if others == [] or self._racing == [DEFAULT]:
            return "nothing else is left"
        if self._round - self._since >= self._options.least and all(
            gains[leader] - gains[name] > 2 * self._error(leader, name) for name in others
        ):
            return "the order is settled"
        if self._round - self._since >= self._options.rounds:
            return f"{self._round} rounds do not settle the order"
        return "" if self._pays(len(self._racing)) else "the rest of the run cannot pay for a round"

    def _pays(self, racing: int) -> bool:
        """Return whether a round of so many would end within the share of the run for races."""
        ends = self._intervals + racing * (1 + self._options.block)
        return ends <= self._options.spend * self.context.intervals

    def _standings(self, leader: str, gains: dict[str, float]) -> str:
        if leader == DEFAULT:
            return "the default waits least by flows under way, round trips and bytes"
        less, rounds = -100 * math.expm1(-gains[leader]), self._options.prior
        return (
            f"{leader} waits {less:.0f} % less than the default by flows under way, round trips "
            f"and bytes, the prior counted as {rounds:g} rounds"
        )

    def _settle(self, name: str, why: str) -> None:
        """Hold a setting."""
        self._phase, self._holds = "hold", name
        shown = self._shown[name].signs
        paused = mean_known([s.pause for s in self._shown[DEFAULT].signs]) > self._options.pause
        self._shift.settle(mean_known([s.busy for s in shown]), paused=paused and name == DEFAULT)
        self._duels += 1
        self._watch.forget()
        if shown:  # what was raced for is no alarm again until it is worse
            self._watch.vindicated(self._alarm if name != DEFAULT else "", shown)
        self._alarm = ""
        self._decide(f"{why}; {name} is held")

    def _decide(self, why: str) -> None:
        self._said.append(f"after {self._intervals} intervals: {why}")

    def recommend(self) -> Setting:
        """Return what is held; during a race, the leader so far."""
        if self._phase == "race" and self._round:
            return self._settings[max(self._racing, key=self._gain)]
        return self._settings[self._holds]

    def state(self) -> dict[str, Any]:
        """Return what is in force and why."""
        return {"phase": self._phase, "holds": self._turn, "round": self._round,
                "racing": list(self._racing), "why": self._said[-1]}  # fmt: skip

    @property
    def decisions(self) -> Sequence[str]:
        """A sentence for each decision so far."""
        return self._said
