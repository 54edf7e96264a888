"""The life cycle of a tuner: start, then ask and tell once per cadence, recommend at the end.

A search, a bandit and a trained policy are the same thing here: something that sees what the
last setting did (the utility, the observation, the whole report) and proposes the next one.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeAlias, cast

import numpy as np
from typing_extensions import TypeVar

from dcqcn_gym.core.capabilities import check_needs
from dcqcn_gym.core.config import StrictModel, validate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.fabric_facts import FabricFacts
from dcqcn_gym.core.group_space import tiers_of
from dcqcn_gym.core.groups import Devices, DeviceSetting
from dcqcn_gym.core.interval import IntervalReport, Observation
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.utility import Terms

Proposal: TypeAlias = DeviceSetting
"""What ``ask`` returns and ``recommend`` may return: one setting, or one per group of devices."""

P = TypeVar("P", bound=Proposal, default=Setting)

_RANDOM_STREAM = 0x74756E65  # keeps a tuner's draws apart from the traffic's with the same seed


@dataclass(frozen=True)
class TunerContext:
    """What a tuner knows before the first interval.

    ``base`` is the setting in force, ``space`` the knobs it may turn and their ranges,
    ``intervals`` the budget in monitor intervals, ``cadence`` how many of them one proposal
    lasts. ``trigger`` says when to tune: ``"always"``, or ``"kl"``: from the first interval with
    data, and anew whenever the flow-size distribution has changed. ``observation`` is what the
    network looked like at the end of the warm-up; ``observation_version`` and
    ``observation_layout`` say what its numbers mean (0 and "": unknown). ``groups`` are the groups
    of devices that the scenario has set apart, ``devices`` what the network has, so that a
    proposal's groups can be named (None: not known). ``fabric`` is what an operator knows of it
    before any traffic (None: not known).
    """

    space: KnobSpace
    base: Setting
    seed: int
    intervals: int
    cadence: int = 1
    trigger: Literal["always", "kl"] = "always"
    observation: Observation = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    observation_version: int = 0
    observation_layout: str = ""
    groups: tuple[str, ...] = ()
    devices: Devices | None = None
    fabric: FabricFacts | None = None

    def generator(self, stream: int = 0) -> np.random.Generator:
        """Return the tuner's own random stream; the same seed and number, the same draws."""
        entropy = np.random.SeedSequence([self.seed, _RANDOM_STREAM, stream])
        return np.random.Generator(np.random.PCG64(entropy))

    def groups_apart(self) -> tuple[str, ...]:
        """Return the groups of the scenario, or else the tiers of the network.

        Raises :class:`ConfigError` if nobody knows which devices there are.
        """
        if self.groups:
            return self.groups
        if self.devices is None:
            raise ConfigError(
                "this tuner sets groups apart itself and has to know the network's devices; it "
                "cannot be one of the copies of 'per-group'"
            )
        return tiers_of(self.devices)


@dataclass(frozen=True)
class Outcome:
    """What a setting did: means over the ``intervals`` it was in force with data.

    ``setting`` was in force (also if ``ask`` returned None). ``utility`` and ``terms`` are means,
    ``observation`` and ``report`` those of the last interval, ``triggered`` is True if the
    flow-size distribution changed in any of them.
    """

    setting: Proposal
    utility: float
    terms: Terms
    observation: Observation
    report: IntervalReport
    intervals: int = 1
    triggered: bool = False


class TunerSettings(StrictModel):
    """Base of a tuner's typed options; the field descriptions are the help of ``--tuner-arg``."""


class Tuner(ABC, Generic[P]):
    """Base class of every tuner: ``start``, then ``ask`` and ``tell`` in turn, then ``recommend``.

    ``ask`` may return None to keep the setting in force. An interval without data is not reported:
    the same proposal stays in force until something was sent. A tuner draws random numbers only
    from ``context.generator()`` and reads no clock, so that a run can be repeated and resumed.
    :mod:`dcqcn_gym.tuners.random_search` is the smallest one that searches: copy it. One that
    recommends a setting per group of devices is a ``Tuner[Proposal]``. ``holds`` names the settings
    that name tuners inside it, each with the setting that holds that one's arguments
    (:mod:`dcqcn_gym.tuners.composite`).
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    needs: ClassVar[frozenset[str]] = frozenset()
    Settings: ClassVar[type[TunerSettings]] = TunerSettings
    holds: ClassVar[Mapping[str, str]] = {}

    context: TunerContext

    def __init__(self, settings: TunerSettings | None = None) -> None:
        self.settings = self.Settings() if settings is None else settings
        self.best_utility = -1.0
        self.best_setting: P | None = None

    def start(self, context: TunerContext) -> None:
        """Begin a run. Extend it, calling ``super().start(context)`` first."""
        self.context = context
        self.best_utility = -1.0
        self.best_setting = None

    @abstractmethod
    def ask(self) -> Proposal | None:
        """Return the setting to put in force now, or None to keep the present one."""

    def tell(self, outcome: Outcome) -> None:
        """Learn what the last proposal did. The default remembers the best single outcome."""
        if outcome.utility > self.best_utility:
            self.best_utility = outcome.utility
            self.best_setting = cast(P, outcome.setting)  # it was asked, so it is one

    @classmethod
    def missing_extra(cls) -> str:
        """Return the extra that has to be installed before it can start; "" if none is missing."""
        return ""

    @property
    def tuning(self) -> bool:
        """False while the tuner needs no utilities, so that a deployment need not send them."""
        return True

    @property
    def decisions(self) -> Sequence[str]:
        """A sentence for each decision so far that a person should read; the log's end has them."""
        return ()

    def recommend(self) -> P:
        """Return what to deploy; allowed at any time after ``start``."""
        return cast(P, self.context.base) if self.best_setting is None else self.best_setting

    def state(self) -> dict[str, Any]:
        """Return figures worth showing and logging (JSON values), for example a temperature."""
        return {}


def check_class(found: type[Tuner], owner: str) -> None:
    """Raise ConfigError, which begins with ``owner``, if needs or Settings of a class are wrong."""
    check_needs(owner, "needs", found.needs)
    settings: object = found.Settings
    if not (isinstance(settings, type) and issubclass(settings, TunerSettings)):
        raise ConfigError(
            f"{owner}: its Settings are no {TunerSettings.__name__}; expected a class that extends "
            f"dcqcn_gym.tuners.{TunerSettings.__name__}"
        )


def parse_settings(
    name: str, tuner_class: type[Tuner], arguments: Mapping[str, object]
) -> TunerSettings:
    """Return the typed settings of a tuner from ``--tuner-arg`` values (text or JSON values).

    Raises ConfigError that names the argument, the value and what was expected.
    """
    check_class(tuner_class, f"tuner {name!r}")
    if arguments and not tuner_class.Settings.model_fields:
        raise ConfigError(f"tuner {name!r} takes no arguments; got {', '.join(arguments)}")
    return validate(arguments, tuner_class.Settings, source=f"tuner {name!r}")


def argument_text(value: object) -> str:
    """Return a setting of a tuner as ``--tuner-arg`` takes it: :func:`parse_value` reads it."""
    return value if isinstance(value, str) else json.dumps(value)


def parse_value(text: str) -> object:
    """Return the value of a ``--tuner-arg``: a JSON array or object is read as one."""
    if text[:1] in "[{":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
