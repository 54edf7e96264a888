"""Scenarios: one frozen, validated model of a network and of the task on it.

A scenario is a TOML file, one of the package (:func:`scenario_names`) or a person's own. Its JSON
dump holds everything, tables included: ``Scenario.model_validate(dump)`` restores it anywhere.
docs/scenarios.md explains every key.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import CONFIGS, load_toml, validate
from dcqcn_gym.core.errors import ConfigError, UnknownNameError, quote
from dcqcn_gym.core.groups import check_group_names
from dcqcn_gym.core.guardrails import Guardrails
from dcqcn_gym.core.knob_names import by_knob_name, knob_name
from dcqcn_gym.core.knobs import DCQCN, KnobTable, Setting, default_setting
from dcqcn_gym.core.optional_knobs import OPTIONAL_KNOBS, with_optional
from dcqcn_gym.core.presets import PRESETS
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.sums import total
from dcqcn_gym.core.utility import UtilityWeights
from dcqcn_gym.envs.scenario.calibration import Calibration
from dcqcn_gym.envs.scenario.knob_selection import (
    KnobChoice,
    check_ranges,
    checked_choices,
    turned,
)
from dcqcn_gym.envs.scenario.names import Name
from dcqcn_gym.envs.scenario.network import Network
from dcqcn_gym.envs.scenario.rates import us_to_ps
from dcqcn_gym.envs.scenario.scheme import SchemeModel

# A flow takes memory from its start until it ends. Of an open loop that is at least what starts in
# one monitor interval, and what its hosts cannot send until the run is over; of a round all of it.
MAX_FLOWS = 10_000_000
_FLOW_BYTES = 400
"""Of one flow in the engine and in the reports."""


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


class Scenario(Network):
    """A :class:`Network` and the task of a tuner on it, in one file.

    ``knobs`` are those an action sets (the others stay as they start), as a list or as changes of
    the usual ones: :attr:`turned` and :attr:`ranges`. ``groups`` are the groups of devices that a
    tuner which sets groups apart turns beside ``"cluster"``
    (:data:`dcqcn_gym.core.groups.DeviceSetting`). Keys ending in ``_us`` are microseconds.
    """

    later: ClassVar[Collection[str]] = ("rtt_base", "guardrails", *Network.later, "calibration")

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
    name: Name = "scenario"
    description: str = ""
    calibration: Calibration | None = None

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

    @model_validator(mode="after")
    def _check_task_on_network(self) -> Self:
        self._check_flows_at_once()
        self.initial_setting()
        check_ranges(self.ranges, self.line_rate_bps, self.table)
        KnobSpace(self.turned, self.line_rate_bps, self.table, self.ranges)
        try:
            check_group_names(self.groups, self.fabric.devices)
        except ConfigError as error:
            raise ConfigError(f"groups: {error}") from None
        return self

    def _check_flows_at_once(self) -> None:
        """Raise ConfigError for traffic of too many flows at once, with the key that makes most."""
        run_us = self.warmup_us + self.intervals * self.monitor_interval_us
        each = self.monitor_interval_us
        found = [w.flows_at_once(self.fabric, each, run_us) for w in self.workloads]
        flows = total(found)
        if flows <= MAX_FLOWS:
            return
        most = max(range(len(found)), key=found.__getitem__)
        raise ConfigError(
            f"workloads[{most}]: {self.workloads[most].amount}: {flows:.3g} flows are there at "
            f"once and need about {flows * _FLOW_BYTES / 1e9:.3g} GB of memory; expected at most "
            f"{MAX_FLOWS}"
        )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy. One of another ``scheme`` is checked: its knobs are that scheme's.

        Raises ConfigError if what was given for the old scheme does not fit the new one.
        """
        if not update or "scheme" not in update:
            return super().model_copy(update=update, deep=deep)
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return validate({**given, **update}, type(self), source=f"scenario {self.name!r}")

    @property
    def turned(self) -> tuple[str, ...]:
        """The knobs that an action sets, in the order of the action."""
        return turned(self.knobs, self.table) if isinstance(self.knobs, dict) else self.knobs

    @property
    def table(self) -> KnobTable:
        """The knobs of a setting: those of the scheme, and the optional ones that ``knobs`` names.

        An optional knob starts as the key of ``switch`` of its kind says.
        """
        return with_optional(super().table, self.knobs)

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

    @property
    def calibrated(self) -> str:
        """How far it is from the network that it was calibrated by; empty if it was not."""
        return "" if self.calibration is None else self.calibration.note

    def default_setting(self) -> Setting:
        """Return the default of the scheme's knobs at this line rate: the common baseline."""
        return self._with_switch(default_setting(self.line_rate_bps, self.table))

    def initial_setting(self) -> Setting:
        """Return the setting in force at time 0: a preset, or the default with some knobs changed.

        Knobs in the file are in NVIDIA's units; a value out of range raises ConfigError.
        """
        rate, table, given = self.line_rate_bps, self.table, self.initial
        if isinstance(given, str):
            return self._with_switch(PRESETS[given](rate, table))
        setting = default_setting(rate, table).replace(dict(given)).check(rate, "initial")
        return setting if OPTIONAL_KNOBS.keys() & given.keys() else self._with_switch(setting)

    def _with_switch(self, setting: Setting) -> Setting:
        """Return ``setting`` with the alpha of ``switch``, if it has one at all."""
        own = {"pfc_alpha": self.alpha} if "pfc_alpha" in setting.table.knobs else {}
        return setting.replace(own)


SCHEMAS = {"scenario": Scenario}
"""Models whose JSON Schemas are exported to configs/schema by :func:`export_schemas`."""

_FOLDER = CONFIGS / "scenarios"


def scenario_names() -> list[str]:
    """Return the names of the scenarios that come with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Return a scenario by name, or from the path of a TOML file.

    Paths in the file are relative to it; its name is the file's unless it gives one. Raises
    :class:`ConfigError` (one sentence with file, key, value, expectation) or
    :class:`UnknownNameError` with near matches.
    """
    text = str(name_or_path)
    if text in scenario_names():
        path = _FOLDER / f"{text}.toml"
    elif text.endswith(".toml") or "/" in text or Path(text).is_file():
        path = Path(name_or_path)
    else:
        raise UnknownNameError("scenario", text, scenario_names())
    return load_toml(path, Scenario, {"name": path.stem})


def scenario_digest(scenario: Scenario | Mapping[str, Any]) -> str:
    """Return the sha256 of a scenario's JSON with sorted keys and no spaces."""
    data = scenario.model_dump(mode="json") if isinstance(scenario, Scenario) else scenario
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
