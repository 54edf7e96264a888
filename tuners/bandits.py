"""Bandits: each arm is one setting of a library, the reward is the utility of an interval.

``ucb1`` is UCB1 of Auer, Cesa-Bianchi and Fischer (2002). ``thompson`` is Thompson sampling with a
normal posterior of known noise. ``dr-ucb`` is Algorithm 1 of Dolce-RC with its published gamma,
epsilon and xi; there an arm is a pair of rate factors chosen per CNP on the NIC, here it is a
setting of the network chosen per interval. The library is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from pydantic import Field

from dcqcn_gym.core.config import read_toml
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.knobs import DCQCN, Setting, default_setting, expert_setting
from dcqcn_gym.core.optional_knobs import keeping_optional
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.sums import total
from dcqcn_gym.tuners.base import Outcome, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.pretrained import FOLDER, pretrained_setting
from dcqcn_gym.tuners.steps import moved

# By default (ours): NVIDIA's default, the experts' setting, the two pretrained ones, and four on a
# ladder from delay-friendly to throughput-friendly: the default with every tuned knob moved by 4 or
# 8 table steps in its friendly direction. A TOML file of `[NAME]` tables with knobs in NVIDIA's
# units, each a change of the setting in force, replaces it.
PRETRAINED = ("pretrained-alltoall", "pretrained-fbhadoop")
"""Arms that exist for DCQCN alone."""


LADDER: Mapping[str, int] = {
    "delay-8": -8,
    "delay-4": -4,
    "throughput-4": 4,
    "throughput-8": 8,
}
"""Table steps of each rung; positive is throughput-friendly."""


def default_library(space: KnobSpace, base: Setting | None = None) -> dict[str, Setting]:
    """Return the built-in arms for a knob space, by name, in a fixed order.

    Optional knobs, of which they say nothing, are those of ``base``; the ladder moves from there.
    """
    rate, table = space.line_rate_bps, space.table
    start = default_setting(rate, table)
    base = start if base is None else base
    arms = {"default": start, "expert": expert_setting(rate, table)}
    for name in PRETRAINED if table.scheme.partition("+")[0] == DCQCN.scheme else ():
        arms[name] = pretrained_setting(FOLDER / f"{name}.toml", rate, table)
    arms = {name: keeping_optional(arm, base) for name, arm in arms.items()}
    start = arms["default"]
    for name, steps in LADDER.items():
        arms[name] = _rung(start, steps, space)
    return arms


def _rung(start: Setting, steps: int, space: KnobSpace) -> Setting:
    values: dict[str, float] = {}
    for name in space.knobs:
        row = space.row(name)
        by = steps * row.direction * row.step_at(space.line_rate_bps)
        values[name] = moved(row, start, by, space.line_rate_bps)
    return space.moved(values, start)


def load_library(path: str, context: TunerContext) -> dict[str, Setting]:
    """Return the arms of a TOML file; raise ConfigError naming the file and the arm."""
    arms: dict[str, Setting] = {}
    for name, knobs in read_toml(Path(path)).items():
        if not isinstance(knobs, dict):
            raise ConfigError(f"{path}: expected tables of knobs such as [{name}], got a value")
        values: dict[str, float] = {}
        for knob, value in knobs.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(f"{path}: [{name}] {knob} = {quote(value)}: expected a number")
            values[knob] = value
        setting = context.base.replace(values)
        arms[name] = setting.check(context.space.line_rate_bps, f"{path}: [{name}]")
    if len(arms) < 2:
        raise ConfigError(f"{path}: a library needs at least two settings, got {len(arms)}")
    return arms


class _BanditSettings(TunerSettings):
    library: str = Field(
        default="", description="TOML file of settings to choose among; default: the built-in ones"
    )


class _BanditTuner(Tuner):
    """Chooses an arm, measures it, recommends the one with the best mean."""

    Settings: ClassVar[type[TunerSettings]] = _BanditSettings

    def start(self, context: TunerContext) -> None:
        """Load the library; nothing was measured yet."""
        super().start(context)
        path = cast(_BanditSettings, self.settings).library
        space, base = context.space, context.base
        arms = load_library(path, context) if path else default_library(space, base)
        self._names, self._arms = list(arms), list(arms.values())
        self._pulls = [0.0] * len(self._arms)
        self._sums = [0.0] * len(self._arms)
        self._arm = 0

    def _choose(self) -> int:
        raise NotImplementedError

    def _learn(self, arm: int, reward: float) -> None:
        self._pulls[arm] += 1.0
        self._sums[arm] += reward

    def _means(self) -> list[float]:
        return [s / n if n > 0 else -math.inf for s, n in zip(self._sums, self._pulls, strict=True)]

    def ask(self) -> Setting:
        """Return the setting of the chosen arm."""
        self._arm = self._choose()
        return self._arms[self._arm]

    def tell(self, outcome: Outcome) -> None:
        """Credit the arm with the utility."""
        self._learn(self._arm, outcome.utility)

    def recommend(self) -> Setting:
        """Return the setting with the best mean; the one in force if nothing was measured."""
        if not any(self._pulls):
            return self.context.base
        return self._arms[int(np.argmax(self._means()))]

    def state(self) -> dict[str, Any]:
        """Return the arm in force and how often each was pulled."""
        pulls = dict(zip(self._names, self._pulls, strict=True))
        return {"arm": self._names[self._arm], "pulls": {k: round(v, 3) for k, v in pulls.items()}}


class _Ucb1Settings(_BanditSettings):
    exploration: float = Field(
        default=math.sqrt(2.0), ge=0, description="factor c of c * sqrt(ln t / n)"
    )


class Ucb1Tuner(_BanditTuner):
    """Every arm once, then the largest mean + c * sqrt(ln t / n)."""

    name = "ucb1"
    summary = "UCB1 over a library of settings"
    Settings: ClassVar[type[TunerSettings]] = _Ucb1Settings

    def _choose(self) -> int:
        if 0.0 in self._pulls:
            return self._pulls.index(0.0)
        c = cast(_Ucb1Settings, self.settings).exploration
        log_t = math.log(total(self._pulls))
        pairs = zip(self._means(), self._pulls, strict=True)
        return int(np.argmax([mean + c * math.sqrt(log_t / n) for mean, n in pairs]))


class _ThompsonSettings(_BanditSettings):
    noise: float = Field(default=0.05, gt=0, description="standard deviation of one utility")
    prior: float = Field(default=0.5, gt=0, description="standard deviation of an arm before data")


class ThompsonTuner(_BanditTuner):
    """Draws each arm's mean from its posterior and pulls the largest.

    Prior N(0.5, prior^2), observations N(mean, noise^2): precision 1/prior^2 + n/noise^2.
    """

    name = "thompson"
    summary = "Thompson sampling over a library of settings"
    Settings: ClassVar[type[TunerSettings]] = _ThompsonSettings

    def start(self, context: TunerContext) -> None:
        """Take the tuner's own random stream."""
        super().start(context)
        self._random = context.generator()

    def _posterior(self) -> tuple[list[float], list[float]]:
        """Return mean and standard deviation of every arm's utility."""
        options = cast(_ThompsonSettings, self.settings)
        own, each = options.prior**-2, options.noise**-2
        precision = [own + each * n for n in self._pulls]
        sums = zip(self._sums, precision, strict=True)
        return [(0.5 * own + each * s) / p for s, p in sums], [p**-0.5 for p in precision]

    def _choose(self) -> int:
        means, deviations = self._posterior()
        return int(np.argmax(self._random.normal(means, deviations)))


class _DrUcbSettings(_BanditSettings):
    gamma: float = Field(default=0.9998, gt=0, lt=1, description="discount factor")
    epsilon: float = Field(default=0.015, gt=0, lt=1, description="share of forced exploration")
    xi: float = Field(default=0.5001, gt=0.5, description="constant of the exploration bonus")


class DrUcb:
    """Discounted and Random Exploratory UCB (Dolce-RC, Algorithm 1) over ``arms`` arms.

    Iteration t first takes ``r = t mod floor(K / epsilon)``: if ``r < K`` arm r is forced, else
    the arm with the largest discounted mean + sqrt(xi * log(sum n) / n) is taken. Ties go to the
    lowest arm.
    """

    def __init__(self, arms: int, gamma: float, epsilon: float, xi: float) -> None:
        self.arms, self.gamma, self.xi = arms, gamma, xi
        self.period = math.floor(arms / epsilon)
        self.t = 0
        self.counts = [0.0] * arms
        self.rewards = [0.0] * arms

    def choose(self) -> int:
        """Return the arm of iteration t (lines 3-8)."""
        r = self.t % self.period
        if r < self.arms:
            return r
        log_total = math.log(total(self.counts))
        return int(np.argmax([self._bound(i, log_total) for i in range(self.arms)]))

    def learn(self, arm: int, reward: float) -> None:
        """Take the reward of iteration t and go to the next (lines 9-10)."""
        self.counts = [self.gamma * n for n in self.counts]
        self.rewards = [self.gamma * x for x in self.rewards]
        self.counts[arm] += 1.0
        self.rewards[arm] += reward
        self.t += 1

    def _bound(self, i: int, log_total: float) -> float:
        n = self.counts[i]
        return self.rewards[i] / n + math.sqrt(self.xi * log_total / n)


class DrUcbTuner(_BanditTuner):
    """DR-UCB as published, on a library of settings."""

    name = "dr-ucb"
    summary = "Dolce-RC's discounted UCB with forced exploration, over a library of settings"
    Settings: ClassVar[type[TunerSettings]] = _DrUcbSettings

    def start(self, context: TunerContext) -> None:
        """Begin at iteration 0."""
        super().start(context)
        options = cast(_DrUcbSettings, self.settings)
        self._rule = DrUcb(len(self._arms), options.gamma, options.epsilon, options.xi)

    def _choose(self) -> int:
        return self._rule.choose()

    def _learn(self, arm: int, reward: float) -> None:
        self._rule.learn(arm, reward)
        self._pulls, self._sums = self._rule.counts, self._rule.rewards
