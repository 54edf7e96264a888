"""PARALEON (ICNP'24) section III-C: simulated annealing guided by the flow-size distribution.

Algorithm 1, line by line. What the paper leaves open and we chose: ranges are those of the authors'
later code (``ranges``), steps those of their first prototype (the knob table); the first candidate
is the setting in force; mutation starts from the *current* solution (``mutate_from="best"`` is the
other reading of line 15's ``P``); a value is clipped to its tuned range and an integer moves by at
least 1; without a distribution mu is 0.5. With ``trigger = "kl"`` the first interval with data
starts the annealing, and a changed distribution starts it again from the setting in force,
forgetting utilities of other traffic. After the last temperature the best setting is applied and
stays.

With utilities in 0..1 and temperatures of 90 to 10, a setting that is worse by 0.1 is accepted
with probability 0.99 and more: as published, the search is close to a guided random walk that
remembers its best. ``paraleon-rescaled`` divides both temperatures by 900 (0.1 to 0.011).

With ``weights = "dominant"`` the search judges by weights of eq. 1 that follow the dominant type of
the distribution that came with an interval: .5/.2/.3 while elephants dominate, .2/.5/.3 while mice
do, as the authors' code switches between the paper's two. The environment's utility stays.

The ablations of the paper's figure 12 switch its two optimisations off, alone and together
(``paraleon-unguided``, ``paraleon-unrelaxed``, ``naive-sa``). The paper gives no numbers for them:
unguided means a fair coin for the direction and a uniform draw over the range that is left on that
side (on the scale of the action space); the temperature that is not relaxed goes from 90 to 1 by
0.95, 88 levels, 1760 intervals. Both are ours.

Algorithm 1 (line 14) takes mu from the *number* of active flows of each type. Mice are most of the
flows whenever arrivals run, so the search always leans towards delay, however many bytes elephants
have to send. ``paraleon-bytes`` (ours) takes the share of bytes: every active flow counts with what
it has sent so far, in the distribution's bins of one doubling each, and as an elephant by
min(1, bytes / tau).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from pydantic import Field, create_model, model_validator

from dcqcn_gym.core.group_space import GroupSpace
from dcqcn_gym.core.groups import DeviceSetting, cluster_setting
from dcqcn_gym.core.interval import FSD_BINS, FlowSizeDistribution
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.utility import UtilityWeights, utility
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.paraleon_ranges import later_space
from dcqcn_gym.tuners.steps import moved, whole_step


# Shared by PARALEON and its ablations; what to try next is theirs.
class AnnealingSettings(TunerSettings):
    """The schedule; the defaults are those of PARALEON (ICNP'24) section IV."""

    initial_temperature: float = Field(
        default=90.0, gt=0, description="temperature of the first level"
    )
    final_temperature: float = Field(
        default=10.0, gt=0, description="stop at or below this temperature"
    )
    cooling: float = Field(
        default=0.85, gt=0, lt=1, description="factor from one level to the next"
    )
    iterations: int = Field(default=20, ge=1, description="settings tried per level")
    temperature_scale: float = Field(
        default=1.0, gt=0, description="both temperatures are multiplied by this"
    )

    @model_validator(mode="after")
    def _falls(self) -> AnnealingSettings:
        if self.final_temperature >= self.initial_temperature:
            raise ValueError(
                f"final_temperature {self.final_temperature:g} must be below "
                f"initial_temperature {self.initial_temperature:g}"
            )
        return self


class Annealer:
    """Algorithm 1 of PARALEON without lines 14-22: levels of temperature, accept, keep the best.

    A utility lies in 0..1; before the first one, ``current_utility`` and ``best_utility`` are -1,
    so the first setting measured is always accepted and is the first best (as in the authors'
    code). ``draw`` gives uniform numbers in [0, 1) and is called only for a setting that is not
    better, as the ``or`` of line 6 is read.
    """

    def __init__(self, settings: AnnealingSettings, draw: Callable[[], float]) -> None:
        self._settings = settings
        self._draw = draw
        self.restart()

    def restart(self) -> None:
        """Go back to the first temperature and forget every utility."""
        self.temperature = self._settings.initial_temperature * self._settings.temperature_scale
        self.iteration = 0
        self.current_utility = -1.0
        self.current: DeviceSetting | None = None
        self.best_utility = -1.0
        self.best: DeviceSetting | None = None

    @property
    def finished(self) -> bool:
        """True once the temperature has reached the final one (line 2)."""
        final = self._settings.final_temperature * self._settings.temperature_scale
        return self.temperature <= final

    def judge(self, setting: DeviceSetting, utility: float) -> bool:
        """Take one measured setting (lines 5-13), cool (lines 3 and 24); True if accepted."""
        accepted = utility > self.current_utility or self._leap(utility)
        if accepted:
            self.current_utility = utility
            self.current = setting
        if self.current_utility > self.best_utility:
            self.best_utility = self.current_utility
            self.best = self.current
        self.iteration += 1
        if self.iteration == self._settings.iterations:
            self.iteration = 0
            self.temperature *= self._settings.cooling
        return accepted

    def _leap(self, utility: float) -> bool:
        return math.exp((utility - self.current_utility) / self.temperature) > self._draw()


WEIGHTS: Mapping[bool, UtilityWeights] = {
    True: UtilityWeights(tp=0.5, rtt=0.2, pfc=0.3),
    False: UtilityWeights(tp=0.2, rtt=0.5, pfc=0.3),
}
"""By whether elephants dominate: the paper's weights for training and for FB_Hadoop."""


class ParaleonSettings(AnnealingSettings):
    """Options of PARALEON; the defaults are the paper's."""

    eta: float = Field(
        default=0.8, ge=0, le=1, description="largest probability of the dominant direction"
    )
    mutate_from: Literal["current", "best"] = Field(
        default="current", description="solution from which the next candidate is made"
    )
    guided: bool = Field(
        default=True, description="off: any value on either side, whatever the traffic is"
    )
    ranges: Literal["later", "prototype"] = Field(
        default="later", description="within which knobs move: of the authors' later or first code"
    )
    weights: Literal["task", "dominant"] = Field(
        default="task", description="of the utility it judges by: or of the dominant type of flows"
    )


class ParaleonTuner(Tuner[Proposal]):
    """Guided simulated annealing exactly as published (PARALEON, ICNP'24, Algorithm 1).

    It does not need the flow-size distribution: without one mu is 0.5 and no direction is favoured,
    the paper's row "No FSD" (section IV-C).
    """

    name = "paraleon"
    summary = "PARALEON's guided annealing as published (ICNP'24, Algorithm 1)"
    Settings: ClassVar[type[TunerSettings]] = ParaleonSettings

    def start(self, context: TunerContext) -> None:
        """Begin at the first temperature with the setting in force (line 1)."""
        self._options = cast(ParaleonSettings, self.settings)
        if self._options.ranges == "later":
            context = replace(context, space=later_space(context.space))
        super().start(context)
        self._space = GroupSpace(context.space, self._groups(context), context.devices)
        self._random = context.generator()
        self._annealer = Annealer(self._options, self._random.random)
        self._started = False
        self._restarts = 0
        self._mu = 0.5
        self._next: Proposal | None = None if context.trigger == "kl" else context.base

    def _groups(self, context: TunerContext) -> tuple[str, ...]:
        """Return the groups that have settings of their own; none: one setting for all devices."""
        return ()

    def ask(self) -> Proposal | None:
        """Return the candidate to dispatch (line 22); None while no trigger has come."""
        return self._next

    def tell(self, outcome: Outcome) -> None:
        """Judge the measured candidate and make the next one (lines 4-24)."""
        if self.context.trigger == "kl" and self._started and outcome.triggered:
            self._annealer.restart()
            self._restarts += 1
        self._started = True
        if self._annealer.finished:
            return
        self._annealer.judge(outcome.setting, self._worth(outcome))
        if self._annealer.finished:
            self._next = self.recommend()
        else:
            self._next = self._mutate(outcome.report.fsd)

    def _worth(self, outcome: Outcome) -> float:
        """Return the utility of an outcome by the weights of the option ``weights``."""
        if self._options.weights == "task":
            return outcome.utility
        return utility(outcome.terms, WEIGHTS[outcome.report.fsd.elephants_dominate])

    @property
    def tuning(self) -> bool:
        """True while the annealing runs; a trigger starts it again."""
        return not self._annealer.finished

    def recommend(self) -> Proposal:
        """Return P, the best solution since the last start of the annealing."""
        return self._annealer.best or self.context.base

    def state(self) -> dict[str, Any]:
        """Return where the schedule stands."""
        return {
            "temperature": self._annealer.temperature,
            "iteration": self._annealer.iteration,
            "current_utility": self._annealer.current_utility,
            "best_utility": self._annealer.best_utility,
            "mu": self._mu,
            "restarts": self._restarts,
            "finished": self._annealer.finished,
        }

    def _mutate(self, fsd: FlowSizeDistribution) -> DeviceSetting:
        """Return a new candidate (Algorithm 1, lines 14-21), group by group."""
        best = self._options.mutate_from == "best"
        origin = self._annealer.best if best else self._annealer.current
        assert origin is not None  # something was measured before
        if not self._options.guided:
            return self._leap(origin)
        self._mu = fsd.mu if fsd.known else 0.5
        space = self._space
        stepped = {g: self._step(space.of(origin, g), own, fsd) for g, own in space.parts}
        return space.joined(stepped, self.context.base)

    def _step(self, origin: Setting, space: KnobSpace, fsd: FlowSizeDistribution) -> Setting:
        """Move every knob by one step; two draws per knob, step first."""
        guided = min(self._mu, self._options.eta)
        rate = space.line_rate_bps
        values: dict[str, float] = {}
        for name in space.knobs:
            row = space.row(name)
            step = whole_step(row, row.step_at(rate) * self._random.uniform(0.5, 1.0))
            dominant = self._random.random() < guided
            towards_throughput = dominant == fsd.elephants_dominate
            sign = row.direction if towards_throughput else -row.direction
            values[name] = moved(row, origin, sign * step, rate)
        return space.moved(values, origin)

    def _leap(self, origin: DeviceSetting) -> DeviceSetting:
        """Return a candidate of naive annealing; two draws per knob, distance first."""
        unit = self._space.encode(origin)
        for i in range(self._space.n):
            distance, up = self._random.random(), self._random.random() < 0.5
            unit[i] += distance * (1.0 - unit[i] if up else -1.0 - unit[i])
        base = cluster_setting(origin)
        return self._space.setting(np.clip(unit, -1.0, 1.0), base)


class ParaleonTiersTuner(ParaleonTuner):
    """PARALEON's annealing with marking curves of their own for every tier (ours).

    A candidate moves the knobs of all groups together and is judged by the one utility; every
    group's knobs take their own random steps. The groups are the scenario's ``groups``, or the
    tiers; NICs, and what no group holds, share the cluster's.
    """

    name = "paraleon-tiers"
    summary = "PARALEON with a marking curve per tier, or per group of the scenario"

    def _groups(self, context: TunerContext) -> tuple[str, ...]:
        return context.groups_apart()


_FIRST_BIN, _BINS = 2.0**10.5, np.arange(FSD_BINS)
MIDDLES = _FIRST_BIN * 2.0**_BINS
"""Bytes that a flow of each bin counts for: the geometric middle of the bin's doubling."""
TAU_BYTES = 1e6
"""From how many bytes on a flow is an elephant (tau of the paper's Fig. 4)."""
SHARES = np.minimum(MIDDLES / TAU_BYTES, 1.0)
"""By how much a flow of each bin counts as an elephant: the rule for potential elephants."""


def by_bytes(fsd: FlowSizeDistribution) -> FlowSizeDistribution:
    """Return the distribution with its weights in bytes sent so far instead of flows."""
    sent = np.asarray(fsd.bins, dtype=np.float64) * MIDDLES
    return replace(
        fsd,
        weighted_elephants=float((sent * SHARES).sum()),
        weighted_mice=float((sent * (1.0 - SHARES)).sum()),
    )


class ParaleonBytesTuner(ParaleonTuner):
    """Algorithm 1 whose dominant type is that of most bytes, not of most flows."""

    name = "paraleon-bytes"
    summary = "PARALEON guided by the bytes of elephants and mice instead of their number"

    def _mutate(self, fsd: FlowSizeDistribution) -> DeviceSetting:
        return super()._mutate(by_bytes(fsd))


def _variant(name: str, summary: str, **defaults: float | str) -> type[ParaleonTuner]:
    """Return the tuner under another name, with other defaults of its options."""
    fields: dict[str, Any] = {
        option: (Annotated[field.annotation, field], defaults[option])
        for option, field in ParaleonSettings.model_fields.items()
        if option in defaults
    }
    settings = create_model("_Settings", __base__=ParaleonSettings, __module__=__name__, **fields)

    class Variant(ParaleonTuner):
        Settings: ClassVar[type[TunerSettings]] = settings

    Variant.name, Variant.summary = name, summary
    return Variant


_SLOW = {"final_temperature": 1.0, "cooling": 0.95}

ParaleonPrototypeTuner = _variant(
    "paraleon-prototype",
    "PARALEON within the wide ranges of its authors' first prototype",
    ranges="prototype",
)
ParaleonRescaledTuner = _variant(
    "paraleon-rescaled",
    "PARALEON with temperatures that suit a utility in 0..1 (0.1 to 0.011)",
    temperature_scale=1 / 900,  # so that worse settings are refused
)
ParaleonUnguidedTuner = _variant(
    "paraleon-unguided",
    "PARALEON without guided randomness (ablation of figure 12)",
    guided=False,
)
ParaleonUnrelaxedTuner = _variant(
    "paraleon-unrelaxed",
    "PARALEON with slow cooling, 90 to 1 by 0.95 (ablation of figure 12)",
    **_SLOW,
)
NaiveAnnealingTuner = _variant(
    "naive-sa",
    "simulated annealing without PARALEON's two optimisations",
    guided=False,
    **_SLOW,
)
