"""Prior: looks at the default for eight intervals, picks one setting, holds it and watches.

What it expects of each candidate is what that one was worth, and how it harmed, where fabric and
traffic looked alike (:mod:`dcqcn_gym.tuners.alike`). Nothing is tried but what is picked. Watch and
duel are Keeper's, with two changes: what the default showed itself is no alarm, and a pause or a
delay counts by the bytes that were sent for it, since a closed loop whose rounds are quicker sends
more in an interval. Every decision is a sentence. docs/measured/race.md; ours.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, cast

from pydantic import Field

from dcqcn_gym.core.fabric_facts import FabricFacts
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.optional_knobs import keeping_optional
from dcqcn_gym.extras.search.alike import SEEN, alike, of_facts, of_interval, of_intervals
from dcqcn_gym.tuners.base import Outcome, TunerContext, TunerSettings
from dcqcn_gym.tuners.congestion_signals import Signs, mean_known, signs_of
from dcqcn_gym.tuners.keeper import KeeperSettings, KeeperTuner
from dcqcn_gym.tuners.rule import RuleFile, advise, rule_file

LOOK = 8
"""Intervals of the default that are looked at before anything is picked."""


def candidates(facts: FabricFacts, default: Setting) -> dict[str, Setting]:
    """Return the choice: the rule, anywhere; with the default's timer; half a floor alone."""
    rule, half = (advise(facts, default, _anywhere(part)).setting for part in (1.0, 0.5))
    return {
        "rule": rule,
        "slow": rule.replace(rp_time_reset=default["rp_time_reset"]),
        "careful": default.replace(rp_min_rate=half["rp_min_rate"]),
    }


def _anywhere(part: float) -> RuleFile:
    file = rule_file()
    terms = file.terms.model_copy(update={"floor_share": file.terms.floor_share * part})
    every = dict.fromkeys(("line_rate_gbps", "hosts", "base_rtt_us", "oversubscription"), (0, 1e9))
    territory = file.territory.model_copy(update=every)
    return file.model_copy(update={"terms": terms, "territory": territory})


class _PriorSettings(KeeperSettings):
    price: float = Field(default=0.15, ge=0, description="S that a limit of harm is worth")
    watch: bool = Field(default=True, description="go back to the default where it hurts")
    file: str = Field(
        default="", description="measurements and trees, as tools/keeper/prior.py has"
    )


class PriorTuner(KeeperTuner):
    """See the module."""

    name = "prior"
    summary = "looks at the default, picks what was best where traffic was alike, and watches it"
    Settings: ClassVar[type[TunerSettings]] = _PriorSettings
    held: ClassVar[str] = "what was picked"

    def start(self, context: TunerContext) -> None:
        """Begin with the default."""
        super().start(context)
        self._said.clear()
        self._first = False
        facts, default = context.fabric, self._sides["default"]
        usable = facts and facts.scheme == "dcqcn" and facts.reaction_point == "nic" and facts.pfc
        self._candidates = {
            name: keeping_optional(setting, context.base)
            for name, setting in (candidates(facts, default) if facts and usable else {}).items()
        }
        self._look("nothing is known of the traffic" if usable else "no setting was measured here")

    def _look(self, why: str) -> None:
        self._phase, self._holds, self._order = "hold", "default", []
        self._sides["rule"] = self._sides["default"]
        self._looked: list[list[float]] = []
        self._shown: list[Signs] = []
        self._rates: list[float] = []
        self._sent = 0.0
        looks = f"the default is looked at for {LOOK} intervals" if self._candidates else "it stays"
        self._looking = bool(self._candidates)
        self._decide(f"{why}: {looks}")

    def tell(self, outcome: Outcome) -> None:
        """Look, or watch."""
        if not self._looking:
            super().tell(outcome)
            return
        self._intervals += outcome.intervals
        report = outcome.report
        self._looked.append(of_interval(report))
        self._shown.append(signs_of(report))
        self._rates.append(_sent(report))
        self._unknown = [name for name in SEEN if name in report.unknown]
        if len(self._looked) >= LOOK:
            self._pick()

    def _pick(self) -> None:
        """Put in force what is expected to be worth most less the price of its harm."""
        self._looking = False
        self._sent = mean_known(self._rates)
        facts = self.context.fabric
        assert facts is not None
        model = alike(cast(_PriorSettings, self.settings).file)
        if self._unknown:
            self._stay(f"{self._unknown[0]} is unknown")
            return
        of_fabric = of_facts(facts)
        weights = model.weights(of_fabric + of_intervals(self._looked))
        gains, harms = weights @ model.gains, weights @ model.harms
        worth = gains - cast(_PriorSettings, self.settings).price * harms
        best = int(worth.argmax())
        said = "; ".join(
            f"{name} {gain:+.2f}, harm {harm:.1f} limits"
            for name, gain, harm in zip(self._candidates, gains, harms, strict=True)
        )
        said = f"expected where it looked alike: {said}"
        if not model.reaches(of_fabric) or worth[best] <= 0:
            self._stay(said if model.reaches(of_fabric) else "no fabric like this was measured")
            return
        name = list(self._candidates)[best]
        self._sides["rule"], self._holds = self._candidates[name], "rule"
        self._settle("rule", mean_known([s.busy for s in self._shown]), paused=False)
        self._new_watch()
        self._duels = 0
        self._watch.vindicated("", self._shown)
        self._decide(f"{said}: {name!r} is held")

    def _stay(self, why: str) -> None:
        self._settle("default", mean_known([s.busy for s in self._shown]), paused=False)
        self._decide(f"{why}: the default is held")

    def _begin(self, why: str) -> None:
        """Fight a duel over what is held; where the default is held, look again."""
        if self._holds == "default":
            self._look(why)
        elif cast(_PriorSettings, self.settings).watch:
            super()._begin(why)

    def signs(self, report: IntervalReport) -> Signs:
        """Return the signs by the bytes that the default sent: a pause counts by what it bought."""
        signs = super().signs(report)
        more = _sent(report) / self._sent if self._sent > 0 else 1.0
        if not more > 1:
            return signs
        return replace(
            signs, pause=signs.pause / more, delay=1 + (signs.delay - 1) / more,
            queue=1 + (signs.queue - 1) / more, peak_us=signs.peak_us / more,
        )  # fmt: skip


def _sent(report: IntervalReport) -> float:
    """Return bytes a picosecond: every host's card counts them."""
    return float(report.host_tx_bytes.sum()) / report.duration_ps
