"""Black-box optimisers of Optuna as tuners, and CMA-ES on the weights of a policy.

One study per run, in memory: the event log is the only store, and a resumed run asks a fresh
sampler and tells it the recorded values, which repeats the search bit by bit. The search space is
the action box [-1, 1] per knob; the first trial is the setting in force. Optuna (and cmaes, scipy)
is the extra ``[optuna]``; the Gaussian process needs torch and is the extra ``[gp]``.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import Field

from dcqcn_gym.core.errors import MissingExtraError
from dcqcn_gym.core.group_space import GroupSpace
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext, TunerSettings
from dcqcn_gym.tuners.policy_search import PolicySearchSettings, PolicySearchTuner, Weights

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial


def _missing(extra: str, *modules: str) -> str:
    """Return the extra if one of these modules is not there, else nothing."""
    try:
        found = all(importlib.util.find_spec(module) for module in modules)
    except ImportError:  # the parent of a module within a package
        found = False
    return "" if found else extra


class OptunaTuner(Tuner[Proposal]):
    """Base: a subclass makes the sampler and says which packages it needs."""

    modules: ClassVar[tuple[str, ...]] = ("optuna",)
    extra: ClassVar[str] = "optuna"
    objectives: ClassVar[int] = 1

    def start(self, context: TunerContext) -> None:
        """Open the study; raise MissingExtraError if a package is missing."""
        super().start(context)
        if extra := self.missing_extra():
            raise MissingExtraError(f"tuner {self.name!r}", extra)
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._space = GroupSpace(context.space, self._groups(context), context.devices)
        self._distributions = {
            name: optuna.distributions.FloatDistribution(-1.0, 1.0) for name in self._space.names
        }
        seed = int(context.generator().integers(2**31))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ExperimentalWarning of the samplers' options
            sampler = self._sampler(seed)
        self._study = optuna.create_study(
            sampler=sampler, directions=["maximize"] * self.objectives
        )
        self._study.enqueue_trial(self._first)
        self._trial: Trial | None = None

    @classmethod
    def missing_extra(cls) -> str:
        """Return its extra unless every package that it needs is there."""
        return _missing(cls.extra, *cls.modules)

    @property
    def _first(self) -> dict[str, float]:
        """The setting in force as a trial's parameters."""
        unit = self._space.encode(self.context.base).tolist()
        return dict(zip(self._space.names, unit, strict=True))

    def _groups(self, context: TunerContext) -> tuple[str, ...]:
        """Return the groups that have settings of their own; none: one setting for all devices."""
        return ()

    def _sampler(self, seed: int) -> BaseSampler:
        raise NotImplementedError

    def _values(self, outcome: Outcome) -> Sequence[float]:
        return (outcome.utility,)

    def ask(self) -> Proposal:
        """Return the next trial's setting."""
        if self._trial is None:
            self._trial = self._study.ask(cast("dict[str, Any]", self._distributions))
        unit = [float(self._trial.params[name]) for name in self._space.names]
        return self._space.setting(unit, self.context.base)

    def tell(self, outcome: Outcome) -> None:
        """Give the trial its value."""
        super().tell(outcome)
        assert self._trial is not None  # the loop asked before
        self._study.tell(self._trial, list(self._values(outcome)))
        self._trial = None


class _TpeSettings(TunerSettings):
    startup: int = Field(default=10, ge=1, description="random trials before the model is used")


class TpeTuner(OptunaTuner):
    """Tree-structured Parzen estimator (Optuna's default settings)."""

    name = "tpe"
    summary = "tree-structured Parzen estimator (Optuna)"
    Settings: ClassVar[type[TunerSettings]] = _TpeSettings

    def _sampler(self, seed: int) -> BaseSampler:
        from optuna.samplers import TPESampler

        startup = cast(_TpeSettings, self.settings).startup
        return TPESampler(seed=seed, n_startup_trials=startup)


class _CmaesSettings(TunerSettings):
    sigma: float = Field(
        default=0.4, gt=0, le=2, description="first step size; the box has width 2"
    )


class CmaesTuner(OptunaTuner):
    """CMA-ES around the setting in force."""

    name = "cmaes"
    summary = "CMA-ES, begun at the setting in force (Optuna)"
    modules = ("optuna", "cmaes")
    Settings: ClassVar[type[TunerSettings]] = _CmaesSettings

    def _sampler(self, seed: int) -> BaseSampler:
        from optuna.samplers import CmaEsSampler

        sigma = cast(_CmaesSettings, self.settings).sigma
        return CmaEsSampler(
            seed=seed, x0=self._first, sigma0=sigma, warn_independent_sampling=False
        )


class CmaesTiersTuner(CmaesTuner):
    """CMA-ES over the NIC knobs and a marking curve per tier, or per group of the scenario."""

    name = "cmaes-tiers"
    summary = "CMA-ES with a marking curve per tier, or per group of the scenario (Optuna)"

    def _groups(self, context: TunerContext) -> tuple[str, ...]:
        return context.groups_apart()


class _Nsga2Settings(TunerSettings):
    population: int = Field(default=20, ge=2, description="settings per generation")


class Nsga2Tuner(OptunaTuner):
    """NSGA-II on the three terms of the utility; recommends the best utility among them."""

    name = "nsga2"
    summary = "NSGA-II on throughput, RTT and pause terms at once (Optuna)"
    objectives = 3
    Settings: ClassVar[type[TunerSettings]] = _Nsga2Settings

    def _sampler(self, seed: int) -> BaseSampler:
        from optuna.samplers import NSGAIISampler

        population = cast(_Nsga2Settings, self.settings).population
        return NSGAIISampler(seed=seed, population_size=population)

    def _values(self, outcome: Outcome) -> Sequence[float]:
        return outcome.terms.tp, outcome.terms.rtt, outcome.terms.pfc


class QmcTuner(OptunaTuner):
    """Scrambled Sobol points: a space-filling search without a model."""

    name = "qmc"
    summary = "scrambled Sobol sequence (Optuna)"
    modules = ("optuna", "scipy")

    def _sampler(self, seed: int) -> BaseSampler:
        from optuna.samplers import QMCSampler

        return QMCSampler(seed=seed, scramble=True, warn_independent_sampling=False)


class GpTuner(OptunaTuner):
    """Bayesian optimisation with a Gaussian process; about 0.3 s per proposal."""

    name = "gp"
    summary = "Bayesian optimisation with a Gaussian process (Optuna, needs torch)"
    modules = ("optuna", "scipy", "torch")
    extra = "gp"
    Settings: ClassVar[type[TunerSettings]] = _TpeSettings

    def _sampler(self, seed: int) -> BaseSampler:
        from optuna.samplers import GPSampler

        startup = cast(_TpeSettings, self.settings).startup
        return GPSampler(seed=seed, n_startup_trials=startup, warn_independent_sampling=False)


class _CmaesPolicySettings(PolicySearchSettings):
    population: int = Field(default=10, ge=3, description="candidates per generation")
    sigma: float = Field(default=0.1, gt=0, description="first step size")


class CmaesPolicyTuner(PolicySearchTuner[_CmaesPolicySettings]):
    """Separable CMA-ES over the weights of the linear policy."""

    name = "cmaes-policy"
    summary = "separable CMA-ES for a linear policy on the observation"
    Settings: ClassVar[type[TunerSettings]] = _CmaesPolicySettings

    @classmethod
    def missing_extra(cls) -> str:
        """Return its extra unless the package cmaes is there."""
        return _missing("optuna", "cmaes")

    def _begin(self) -> None:
        if extra := self.missing_extra():
            raise MissingExtraError(f"tuner {self.name!r}", extra)
        from cmaes import SepCMA  # type: ignore[import-untyped, unused-ignore]

        self._search = SepCMA(
            mean=self._weights.ravel().copy(),
            sigma=self._options.sigma,
            seed=int(self._random.integers(2**31)),
            population_size=self._options.population,
        )
        self._asked = self._search.ask()
        self._results: list[tuple[Weights, float]] = []

    def _candidate(self) -> Weights:
        weights: Weights = self._asked.reshape(self._weights.shape)
        return weights

    def _learn(self, value: float) -> None:
        self._results.append((self._asked, -value))  # cmaes minimises
        if len(self._results) == self._options.population:
            self._search.tell(self._results)
            self._results = []
            self._weights = self._search.mean.reshape(self._weights.shape).copy()
            self._updates += 1
        self._asked = self._search.ask()
