"""Policy search without torch: a linear policy on the observation, improved while it runs.

The policy is ``action = clip(b + W x)``: x is the observation of the last proposal, b begins at
the setting in force and W at zero. A candidate policy acts for ``episode`` proposals; its return
is the mean utility. ``ars`` is augmented random search (Mania, Guy and Recht 2018, V1-t: the best
of +-delta directions, step divided by the deviation of the returns, no running normalisation, as
the observation's scales are fixed). ``cmaes-policy`` is separable CMA-ES on (b, W). The numbers of
directions, step sizes and episode lengths are ours, chosen for budgets of a few hundred intervals.
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
from pydantic import Field

from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.tuners.base import Outcome, Tuner, TunerContext, TunerSettings

Weights: TypeAlias = npt.NDArray[np.float64]
"""Shape (knobs, 1 + observation size): the bias b, then W."""


class PolicySearchSettings(TunerSettings):
    """What every such search can be told."""

    episode: int = Field(default=2, ge=1, description="proposals that one candidate makes")


S = TypeVar("S", bound=PolicySearchSettings)


class PolicySearchTuner(Tuner, Generic[S]):
    """Runs one candidate policy after the other; a subclass says which and learns from returns."""

    def start(self, context: TunerContext) -> None:
        """Begin with the policy that keeps the setting in force."""
        super().start(context)
        self._options = cast(S, self.settings)
        self._random = context.generator()
        self._x = np.asarray(context.observation, dtype=np.float64)
        self._weights: Weights = np.zeros((context.space.n, 1 + self._x.size))
        self._weights[:, 0] = context.space.encode(context.base)
        self._returns: list[float] = []
        self._episode_sum, self._episode_count = 0.0, 0
        self._updates = 0
        self._begin()

    def _begin(self) -> None:
        """Prepare the first candidates."""
        raise NotImplementedError

    def _candidate(self) -> Weights:
        """Return the policy that acts now."""
        raise NotImplementedError

    def _learn(self, value: float) -> None:
        """Take the return of the candidate and go to the next."""
        raise NotImplementedError

    def _act(self, weights: Weights) -> Setting:
        # summed by numpy, not by BLAS, whose order of additions depends on the processor
        unit = weights[:, 0] + (weights[:, 1:] * self._x).sum(axis=1)
        return self.context.space.setting(np.clip(unit, -1.0, 1.0), self.context.base)

    def ask(self) -> Setting:
        """Return the candidate policy's action on the last observation."""
        return self._act(self._candidate())

    def tell(self, outcome: Outcome) -> None:
        """Add to the candidate's return; learn at the end of its episode."""
        if self._x.size:
            self._x = np.asarray(outcome.observation, dtype=np.float64)
        self._episode_sum += outcome.utility
        self._episode_count += 1
        if self._episode_count == self._options.episode:
            self._learn(self._episode_sum / self._options.episode)
            self._episode_sum, self._episode_count = 0.0, 0

    def recommend(self) -> Setting:
        """Return the action of the policy learnt so far on the last observation."""
        return self._act(self._weights)

    def state(self) -> dict[str, Any]:
        """Return how far the policy has come."""
        return {
            "updates": self._updates,
            "weights_norm": float(np.linalg.norm(self._weights[:, 1:])),
        }


class _ArsSettings(PolicySearchSettings):
    directions: int = Field(default=4, ge=1, description="random directions per update")
    best: int = Field(default=2, ge=1, description="directions used by an update")
    step: float = Field(default=0.1, gt=0, description="step size alpha")
    noise: float = Field(default=0.1, gt=0, description="size nu of the perturbations")


class ArsTuner(PolicySearchTuner[_ArsSettings]):
    """Augmented random search: ``W += alpha / (b sigma_R) * sum (r+ - r-) delta``."""

    name = "ars"
    summary = "augmented random search for a linear policy on the observation"
    Settings: ClassVar[type[TunerSettings]] = _ArsSettings

    def _begin(self) -> None:
        self._returns = []
        shape = (self._options.directions, *self._weights.shape)
        self._deltas = self._random.standard_normal(shape)

    def _candidate(self) -> Weights:
        k, negative = divmod(len(self._returns), 2)
        size = -self._options.noise if negative else self._options.noise
        weights: Weights = self._weights + size * self._deltas[k]
        return weights

    def _learn(self, value: float) -> None:
        self._returns.append(value)
        if len(self._returns) == 2 * self._options.directions:
            self._update()
            self._begin()

    def _update(self) -> None:
        returns = np.array(self._returns).reshape(-1, 2)
        best = min(self._options.best, len(returns))
        order = np.argsort(-returns.max(axis=1), kind="stable")[:best]
        deviation = float(returns[order].std())
        if deviation > 0:
            gains = returns[order, 0] - returns[order, 1]
            ascent = (gains[:, None, None] * self._deltas[order]).sum(axis=0)
            self._weights = self._weights + self._options.step / (best * deviation) * ascent
        self._updates += 1
