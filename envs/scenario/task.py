"""The task of a tuner: budget, weights of the utility, knobs to tune, initial setting."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from dcqcn_gym.core.config import ShortDumpModel
from dcqcn_gym.core.errors import ConfigError, UnknownNameError, quote
from dcqcn_gym.core.guardrails import Guardrails
from dcqcn_gym.core.knob_names import by_knob_name, knob_name
from dcqcn_gym.core.knobs import DCQCN, KnobTable, Setting, default_setting
from dcqcn_gym.core.optional_knobs import with_optional
from dcqcn_gym.core.presets import PRESETS
from dcqcn_gym.core.utility import UtilityWeights
from dcqcn_gym.envs.scenario.knob_selection import KnobChoice, checked_choices
from dcqcn_gym.envs.scenario.rates import us_to_ps
from dcqcn_gym.envs.scenario.scheme import SchemeModel


def _table(data: Mapping[str, Any]) -> KnobTable:
    """Return the knob table of the scheme beside a task, as far as it is read; else DCQCN's.

    Optional knobs that ``knobs`` names belong to it.
    """
    scheme = data.get("scheme")
    table = scheme.table if isinstance(scheme, SchemeModel) else DCQCN
    knobs = data.get("knobs")
    return with_optional(table, filter(_is_text, knobs if isinstance(knobs, _GROUPS) else ()))


_GROUPS = (dict, list, tuple)


def _is_text(name: object) -> bool:
    return isinstance(name, str)


def _tuned(data: Mapping[str, Any]) -> tuple[str, ...]:
    return _table(data).tuned


class Task(ShortDumpModel):
    """What a tuner is asked, apart from the network it is asked on.

    ``knobs`` are those an action sets (the others stay as they start), as a list or as changes of
    the usual ones: ``Scenario.turned`` and :attr:`ranges`. ``groups`` are the groups of
    devices that a tuner which sets groups apart turns beside ``"cluster"``
    (:data:`dcqcn_gym.core.groups.DeviceSetting`). Keys ending in ``_us`` are microseconds.
    """

    later: ClassVar[Collection[str]] = ("rtt_base", "guardrails")

    monitor_interval_us: float = Field(default=1000.0, ge=1, le=1e9)
    intervals: int = Field(default=280, ge=1, description="budget in monitor intervals")
    warmup_us: float = Field(default=5000.0, ge=0, le=1e9)
    cadence: int = Field(default=1, ge=1, description="intervals per decision of a tuner")
    trigger: Literal["always", "kl"] = "always"
    active_share: float = Field(default=0.05, ge=0, le=1)
    pfc_over: Literal["all", "paused"] = "all"
    rtt_base: Literal["two-way", "one-way"] = "two-way"
    knobs: tuple[str, ...] | dict[str, KnobChoice] = Field(default_factory=_tuned)
    groups: tuple[str, ...] = ()
    initial: Annotated[str, Field(json_schema_extra={"enum": [*PRESETS]})] | dict[str, float] = (
        "default"
    )
    weights: UtilityWeights = UtilityWeights(tp=0.2, rtt=0.5, pfc=0.3)
    guardrails: Guardrails = Guardrails()

    @field_validator("knobs", mode="before")
    @classmethod
    def _check_knobs(cls, value: Any, info: ValidationInfo) -> Any:
        table = _table({**info.data, "knobs": value})
        if isinstance(value, dict):
            return checked_choices(value, table)
        if not isinstance(value, list | tuple) or not all(isinstance(n, str) for n in value):
            raise ConfigError(f"{quote(value)}; expected a list of knobs, or a table [knobs]")
        names = tuple(table[knob_name(name, table.knobs)].name for name in value)
        if not names or len(set(names)) != len(names):
            raise ConfigError(f"{quote(list(value))}; expected at least one knob, none repeated")
        return names

    @field_validator("groups")
    @classmethod
    def _check_groups(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value) or "cluster" in value:
            raise ConfigError(
                f"{quote(list(value))}; expected groups beside 'cluster', none repeated"
            )
        return value

    @field_validator("initial", mode="before")
    @classmethod
    def _check_initial(cls, value: Any, info: ValidationInfo) -> Any:
        table = _table(info.data)
        if isinstance(value, str) and value not in PRESETS:
            raise UnknownNameError("preset", value, PRESETS)
        if not isinstance(value, str | dict):
            raise ConfigError(f"{quote(value)}; expected a preset or a table of knobs")
        if isinstance(value, dict):
            value = by_knob_name(value, table.knobs)
        for name, number in value.items() if isinstance(value, dict) else ():
            row = table[name]
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ConfigError(f"{name} = {quote(number)}; expected a number ({row.unit})")
            if isinstance(number, int) and number.bit_length() > 63:
                raise ConfigError(f"{name} is {quote(number)}; expected a number ({row.unit})")
            if row.integer and math.isfinite(number) and number != int(number):
                raise ConfigError(f"{name} = {number:g}; expected a whole number ({row.unit})")
        return value

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The ranges (NVIDIA's units) that replace the tuned ones of the knob table."""
        choices = self.knobs if isinstance(self.knobs, dict) else {}
        return {name: choice for name, choice in choices.items() if isinstance(choice, tuple)}

    @property
    def monitor_interval_ps(self) -> int:
        """Length of a monitor interval in picoseconds."""
        return us_to_ps(self.monitor_interval_us)

    @property
    def warmup_ps(self) -> int:
        """Simulated time before the first step, in picoseconds."""
        return us_to_ps(self.warmup_us)

    def setting_at(self, line_rate_bps: float, table: KnobTable = DCQCN) -> Setting:
        """Return the setting in force at time 0: a preset, or the default with some knobs changed.

        Knobs in the file are in NVIDIA's units; a value out of range raises ConfigError.
        """
        if isinstance(self.initial, str):
            return PRESETS[self.initial](line_rate_bps, table)
        setting = default_setting(line_rate_bps, table).replace(dict(self.initial))
        return setting.check(line_rate_bps, "initial")
