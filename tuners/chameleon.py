"""CHAMELEON (SIGCOMM'23 poster) section 2.2: greedy, one parameter at a time.

Per round the parameter p moves by ``v += s`` or ``v -= s`` and ``s *= 0.95``. With
``gain = (m_i - m_{i-1}) / m_{i-1}``: a gain of beta or more keeps the direction, a loss reverses
it, and after several rounds of smaller gains the next parameter follows; it ends when all are
traversed or the demand is met. The demand is the option ``demand``, a value of the metric from
which on the setting stays; by default there is none. The metric m is the utility here, which
holds the throughput, RTT and PFC of the poster.

Ours, because the poster gives no number: beta 0.01, patience 3 (rounds of small gain per
parameter, not necessarily in a row), the first step is one step of the knob table, the first
direction the throughput-friendly one, the order that of the knob table; integers move by at least
1; at the end of its range a parameter turns round; an ECN threshold takes the other one along, or
turns round there if that is not searched. The poster uploads every 100 ms: ``chameleon`` acts on
every proposal's outcome, ``chameleon-100`` on the mean of 100.

With ``trigger = "kl"`` it begins with the first data, and a changed distribution starts the
traversal again from the setting in force.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from pydantic import Field

from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import bounded_threshold
from dcqcn_gym.tuners.base import Outcome, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.steps import moved, whole_step


class ChameleonSettings(TunerSettings):
    """Options of CHAMELEON; ``step_factor`` is the poster's, the others are ours."""

    beta: float = Field(default=0.01, ge=0, description="gain that keeps a parameter going")
    patience: int = Field(
        default=3, ge=1, description="rounds of a gain below beta until the next parameter"
    )
    step_factor: float = Field(
        default=0.95, gt=0, le=1, description="factor of the step from round to round"
    )
    average: int = Field(default=1, ge=1, description="outcomes that one round lasts")
    demand: float | None = Field(
        default=None, gt=0, le=1, description="utility at which the search is over"
    )


class _SlowSettings(ChameleonSettings):
    average: int = Field(default=100, ge=1, description="outcomes that one round lasts")


class ChameleonTuner(Tuner):
    """Greedy search over one parameter after the other."""

    name = "chameleon"
    summary = "CHAMELEON's greedy search, one parameter at a time (SIGCOMM'23 poster)"
    Settings: ClassVar[type[TunerSettings]] = ChameleonSettings

    def start(self, context: TunerContext) -> None:
        """Begin with the first parameter at the setting in force."""
        super().start(context)
        self._options = cast(ChameleonSettings, self.settings)
        self._rounds = 0
        self._begun = context.trigger == "always"
        self._traverse(context.base)

    def _traverse(self, setting: Setting) -> None:
        """Start with the first parameter."""
        self._setting = setting
        self._previous: float | None = None
        self._sum, self._count = 0.0, 0
        self._parameter = -1
        self._met = False
        self._next_parameter()

    def _next_parameter(self) -> None:
        self._parameter += 1
        self._small = 0
        if not self.finished:
            space = self.context.space
            row = space.table[space.knobs[self._parameter]]
            self._step = row.step_at(space.line_rate_bps)
            self._direction: int = row.direction

    @property
    def finished(self) -> bool:
        """True once every parameter was traversed, or the demand was met."""
        return self._met or self._parameter >= self.context.space.n

    def ask(self) -> Setting | None:
        """Return the setting of this round; None while no trigger has come."""
        return self._setting if self._begun else None

    def tell(self, outcome: Outcome) -> None:
        """Gather a round's outcomes; at its end judge the last move and make the next."""
        if not isinstance(outcome.setting, Setting):
            raise TypeError("chameleon proposes one setting for every device")
        if self.context.trigger == "kl" and self._begun and outcome.triggered:
            self._traverse(outcome.setting)
        self._begun = True
        self._sum += outcome.utility
        self._count += 1
        if self._count < self._options.average or self.finished:
            return
        metric = self._sum / self._count
        self._sum, self._count = 0.0, 0
        self._rounds += 1
        if self._previous is not None:
            self._judge(metric - self._previous, self._previous)
        self._previous = metric
        demand = self._options.demand
        self._met |= demand is not None and metric >= demand
        if not self.finished:
            self._move()

    def _judge(self, difference: float, previous: float) -> None:
        """Keep the direction, reverse it, or go to the next parameter."""
        if difference < 0:
            self._direction = -self._direction
        elif difference < self._options.beta * previous:
            self._small += 1
            if self._small == self._options.patience:
                self._next_parameter()

    def _move(self) -> None:
        """Make the next candidate, then shrink the step."""
        candidate = self._moved()
        if candidate == self._setting:  # the end of the range
            self._direction = -self._direction
            candidate = self._moved()
        self._setting = candidate
        self._step *= self._options.step_factor

    def _moved(self) -> Setting:
        space = self.context.space
        name = space.knobs[self._parameter]
        row = space.row(name)
        by = self._direction * whole_step(row, self._step)
        values = {name: moved(row, self._setting, by, space.line_rate_bps)}
        if {"kmin", "kmax"} <= set(space.knobs):
            values |= self._both(values)
        return self._setting.replace(bounded_threshold(values, self._setting))

    def _both(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return both thresholds: one that passes the other takes it along, within its range."""
        current, space = self._setting, self.context.space
        if "kmin" in values:
            return {"kmin": values["kmin"], "kmax": max(current["kmax"], values["kmin"])}
        if "kmax" not in values:
            return {}
        row = space.row("kmin")
        lowest = min(row.tuned_at(space.line_rate_bps)[0], current["kmin"])
        kmax = max(values["kmax"], lowest)
        return {"kmax": kmax, "kmin": min(current["kmin"], kmax)}

    @property
    def tuning(self) -> bool:
        """True from the first data until the search is over."""
        return self._begun and not self.finished

    def recommend(self) -> Setting:
        """Return where the greedy search stands."""
        return self._setting

    def _where(self, knobs: tuple[str, ...]) -> str:
        if self._met:
            return "demand met"
        return "all traversed" if self.finished else knobs[self._parameter]

    def state(self) -> dict[str, Any]:
        """Return where the traversal stands."""
        knobs = self.context.space.knobs
        return {
            "parameter": self._where(knobs),
            "direction": self._direction,
            "step": self._step,
            "round": self._rounds,
        }


class SlowChameleonTuner(ChameleonTuner):
    """The same search at the poster's pace: one move per 100 outcomes (100 ms at 1 ms)."""

    name = "chameleon-100"
    summary = "CHAMELEON at the poster's pace: one move per 100 intervals"
    Settings: ClassVar[type[TunerSettings]] = _SlowSettings
