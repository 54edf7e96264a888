"""Any tuner behind limits, freeze windows, a canary and abort rules: safe to let near a network.

What the tuner proposes is brought within the limits, tried by a few devices first, then by all, and
*confirmed* only if nothing spoke against it; otherwise everything goes back to the setting that was
confirmed last. The tuner inside sees what a candidate did once it was in force everywhere; of one
that was rejected it gets the utility 0, so that it looks elsewhere. Ours.

The same wrapper serves in simulation and on a fleet; its cost: docs/measured/results.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, cast

from pydantic import Field

from dcqcn_gym.core.abort_rules import AbortRules, Seen
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.groups import Devices
from dcqcn_gym.core.sums import count, mean
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.canary import Canary, canary_of, lowest_change, spread
from dcqcn_gym.tuners.composite import tuner_inside
from dcqcn_gym.tuners.safe_settings import CanaryTable, Safety, bounded

_STREAM = 0x5AFE  # of the bootstrap, apart from the draws of the tuner inside

Phase = Literal["baseline", "ready", "kept", "canary", "everywhere", "hold"]
_PS_PER_MS = 1e9


class _SafeSettings(Safety):
    tuner: str = Field(default="paraleon", description="the tuner inside")
    arguments: dict[str, Any] = Field(default={}, description="its arguments: a JSON table")


class SafeTuner(Tuner[Proposal]):
    """See the module.

    Phases, one ``tell`` a step: *baseline* (nothing changes; how do the groups differ?), *ready*
    (the tuner inside is asked), *kept* (it wanted no change), *canary* (a few devices, stage by
    stage), *everywhere* (on probation), *hold* (after a candidate was dropped).
    """

    name = "safe"
    summary = "any tuner behind limits, freeze windows, a canary and abort rules"
    Settings: ClassVar[type[TunerSettings]] = _SafeSettings
    holds: ClassVar[Mapping[str, str]] = {"tuner": "arguments"}

    def __init__(self, settings: TunerSettings | None = None) -> None:
        super().__init__(settings)
        self._options = cast(_SafeSettings, self.settings)
        if self._options.tuner == self.name:
            raise ConfigError(f"tuner {self.name!r}: tuner = {quote(self.name)} has no end")
        self._inner = tuner_inside(self)
        vars(self)["needs"] = self._inner.needs  # it sees what the tuner inside has to see

    def start(self, context: TunerContext) -> None:
        """Start the tuner inside, choose the canary; ConfigError for an unknown knob or device."""
        super().start(context)
        options = self._options
        for name in options.limits:
            context.space.table[name]
        self._inner.start(context)
        abort = options.abort.model_dump(exclude={"cooldown"})
        self._rules = AbortRules(**abort)
        self._stages = _stages(options.canary, context.devices)
        keep = options.canary.baseline if options.canary is not None else 1
        self._before: list[deque[dict[str, float]]] = [deque(maxlen=keep) for _ in self._stages]
        self._during: list[dict[str, float]] = []
        self._random = context.generator(_STREAM)
        self._phase: Phase = "baseline" if self._stages else "ready"
        self._confirmed = self._candidate = self._in_force = cast(Proposal, context.base)
        self._scores: list[tuple[float, Proposal]] = []
        self._stage = self._left = 0
        self._now_ms, self._step_ms = 0.0, 0.0
        self._outcomes: list[Outcome] = []
        self._counts = {"confirmed": 0, "rejected": 0, "aborts": 0}
        self._why = ""

    def ask(self) -> Proposal | None:
        """Return what is to be in force in the coming interval, None to leave it."""
        if self._phase == "ready" and self._may_begin():
            self._begin(self._inner.ask())
        wanted = self._confirmed
        if self._phase == "canary":
            wanted = self._stages[self._stage].mixed(self._confirmed, self._candidate)
        elif self._phase == "everywhere":
            wanted = self._candidate
        if wanted == self._in_force:
            return None
        self._in_force = wanted
        self._rules.forget()
        return wanted

    def _begin(self, proposal: Proposal | None) -> None:
        """Begin what the tuner inside wants: a trial, or nothing."""
        self._outcomes = []
        self._candidate = self._confirmed
        if proposal is not None:
            space = self.context.space
            self._candidate = bounded(self._options, proposal, self._confirmed, space)
        self._phase, self._stage, self._during = "kept", 0, []
        if self._candidate != self._confirmed:
            self._phase = "canary" if self._stages else "everywhere"

    def _may_begin(self) -> bool:
        """Return whether a trial could end before the next freeze window begins."""
        canary = self._options.canary
        tells = self._options.watch
        if canary is not None:
            tells += canary.intervals * len(self._stages)
        end_ms = self._now_ms + tells * self._step_ms
        return not any(
            begin < end_ms + self._step_ms and self._now_ms < end
            for begin, end in self._options.freeze_ms
        )

    def tell(self, outcome: Outcome) -> None:
        """Judge the interval, take back what must not go on, or take the next step."""
        report = outcome.report
        self._step_ms = report.end_ps / _PS_PER_MS - self._now_ms if self._now_ms else (
            report.duration_ps / _PS_PER_MS * self.context.cadence
        )  # fmt: skip
        self._now_ms = report.end_ps / _PS_PER_MS
        if self._phase in ("kept", "canary", "everywhere"):
            self._outcomes.append(outcome)
        broken = self._rules.broken(Seen.of_report(report, outcome.terms.pfc, outcome.utility))
        if broken:
            self._abort(broken)
        elif self._phase in ("canary", "everywhere") and self._frozen():
            self._reject("a freeze window began")
        else:
            getattr(self, f"_after_{self._phase}")(outcome)

    def _frozen(self) -> bool:
        return any(b <= self._now_ms < e for b, e in self._options.freeze_ms)

    def _abort(self, broken: str) -> None:
        """Go back at once: from a trial to what is confirmed, from that to the first setting.

        While a limit stays broken nothing new is tried.
        """
        self._counts["aborts"] += self._phase != "hold"
        if self._phase in ("canary", "everywhere"):
            self._reject(broken)
        else:
            if self._phase == "kept":
                self._inner.tell(self._mean(self._confirmed))
            self._why = broken
            self._confirmed = self.context.base
        self._phase = "hold"
        self._left = max(self._left, self._options.abort.cooldown)
        self._rules.forget()

    def _reject(self, why: str) -> None:
        """Drop the candidate; the tuner inside learns that it was worth nothing."""
        self._counts["rejected"] += 1
        self._why = why
        self._inner.tell(replace(self._mean(self._candidate), utility=0.0))
        canary = self._options.canary
        # what the groups are compared with must not grow old
        self._phase, self._left = "hold", 0 if canary is None else canary.intervals

    def _after_baseline(self, outcome: Outcome) -> None:
        self._note(outcome)
        if len(self._before[0]) == self._before[0].maxlen:
            self._phase = "ready"

    def _after_ready(self, outcome: Outcome) -> None:
        """Wait: a freeze window is near."""
        self._note(outcome)

    def _after_hold(self, outcome: Outcome) -> None:
        self._note(outcome)
        self._left -= 1
        if self._left <= 0:
            self._phase = "ready"

    def _after_kept(self, outcome: Outcome) -> None:
        self._note(outcome)
        self._inner.tell(self._mean(self._confirmed))
        self._phase = "ready"

    def _after_canary(self, outcome: Outcome) -> None:
        """End a stage once it had its intervals: on to the next one, or back."""
        canary = cast(CanaryTable, self._options.canary)
        self._during.append(self._stages[self._stage].differences(outcome.report))
        if len(self._during) < canary.intervals:
            return
        up = self._flags_up(canary)
        if up:
            self._reject(f"the canary fares worse: {', '.join(up)}")
            return
        self._during = []
        self._stage += 1
        if self._stage == len(self._stages):
            self._phase, self._outcomes = "everywhere", []

    def _after_everywhere(self, outcome: Outcome) -> None:
        """Confirm the candidate once it was watched long enough."""
        if len(self._outcomes) < self._options.watch:
            return
        self._confirmed = self._candidate
        self._counts["confirmed"] += 1
        done = self._mean(self._candidate)
        self._scores.append((done.utility, self._candidate))
        self._inner.tell(done)
        self._note(outcome)
        self._phase = "ready"

    def _note(self, outcome: Outcome) -> None:
        """Remember how the groups differ while all devices have one setting."""
        for before, stage in zip(self._before, self._stages, strict=True):
            before.append(stage.differences(outcome.report))

    def _flags_up(self, canary: CanaryTable) -> list[str]:
        """Return the flags whose change is above what is borne, beyond doubt."""
        borne = {name: getattr(canary, name) for name in ("pause", "drops", "rtt", "goodput")}
        up = []
        for flag, limit in borne.items():
            lowest = lowest_change(
                [d[flag] for d in self._during], [d[flag] for d in self._before[self._stage]],
                block=canary.block, confidence=canary.confidence, random=self._random,
            )  # fmt: skip
            if lowest > limit:
                up.append(f"{flag} by {lowest:.3g} or more")
        return up

    def _mean(self, setting: Proposal) -> Outcome:
        """Return what is reported to the tuner inside of all intervals of its proposal."""
        outcomes = self._outcomes
        return replace(
            outcomes[-1],
            setting=setting,
            utility=mean([o.utility for o in outcomes]),
            intervals=count(o.intervals for o in outcomes),
            triggered=any(o.triggered for o in outcomes),
        )

    @property
    def tuning(self) -> bool:
        """True while the tuner inside is, and while a trial is judged."""
        return self._phase not in ("ready", "kept") or self._inner.tuning

    def recommend(self) -> Proposal:
        """Return what the tuner inside recommends if it was confirmed, else the best that was."""
        wanted: Proposal = self._inner.recommend()
        tried = [self.context.base, *(setting for _, setting in self._scores)]
        if any(wanted == setting for setting in tried):
            return wanted
        if not self._scores:
            return self.context.base
        return max(self._scores, key=lambda scored: scored[0])[1]

    def state(self) -> dict[str, Any]:
        """Return the phase, what became of candidates, why the last one fell, and the tuner's."""
        return {
            "phase": self._phase,
            "stage": self._stage,
            **self._counts,
            "why": self._why,
            "tuner": self._inner.state(),
        }


def _stages(canary: CanaryTable | None, devices: Devices | None) -> list[Canary]:
    """Return the canary of every stage; none without a table or on a network of one device."""
    if canary is None:
        return []
    if devices is None:
        raise ConfigError("a canary needs to know the network's devices; this run does not tell")
    if canary.groups:
        return [canary_of(names, devices) for names in canary.groups]
    switches = sorted(devices.tiers)
    names = [f"nic:{host}" for host in spread(canary.share, devices.n_hosts)]
    names += [f"switch:{switches[i]}" for i in spread(canary.share, len(switches))]
    return [canary_of(names, devices)] if names else []
