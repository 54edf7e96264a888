"""Scenarios: one frozen, validated model of a network and of the task on it.

A scenario is a TOML file, one of the package (:func:`scenario_names`) or a person's own. Its JSON
dump holds everything, tables included: ``Scenario.model_validate(dump)`` restores it anywhere.
docs/scenarios.md explains every key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import CONFIGS, load_toml, validate
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.groups import check_group_names
from dcqcn_gym.core.knobs import KnobTable, Setting, default_setting
from dcqcn_gym.core.optional_knobs import OPTIONAL_KNOBS, with_optional
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.sums import total
from dcqcn_gym.envs.scenario.calibration import Calibration
from dcqcn_gym.envs.scenario.knob_selection import check_ranges, turned
from dcqcn_gym.envs.scenario.names import Name
from dcqcn_gym.envs.scenario.network import Network
from dcqcn_gym.envs.scenario.task import Task

# A flow takes memory from its start until it ends. Of an open loop that is at least what starts in
# one monitor interval, and what its hosts cannot send until the run is over; of a round all of it.
MAX_FLOWS = 10_000_000
_FLOW_BYTES = 400
"""Of one flow in the engine and in the reports."""


def check_flows_at_once(task: Task, network: Network) -> None:
    """Raise ConfigError for traffic of too many flows at once, with the key that makes most."""
    net = network.fabric
    run_us = task.warmup_us + task.intervals * task.monitor_interval_us
    found = [w.flows_at_once(net, task.monitor_interval_us, run_us) for w in network.workloads]
    if total(found) <= MAX_FLOWS:
        return
    most = max(range(len(found)), key=found.__getitem__)
    flows = total(found)
    raise ConfigError(
        f"workloads[{most}]: {network.workloads[most].amount}: {flows:.3g} flows are there at once "
        f"and need about {flows * _FLOW_BYTES / 1e9:.3g} GB of memory; expected at most "
        f"{MAX_FLOWS}"
    )


class Scenario(Task, Network):
    """A :class:`Task` on a :class:`Network`, in one file whose keys are those of both.

    :attr:`task` and :attr:`network` are the two halves; what needs one of them alone asks for that.
    """

    later: ClassVar[Collection[str]] = (*Task.later, *Network.later, "calibration")

    name: Name = "scenario"
    description: str = ""
    calibration: Calibration | None = None

    @model_validator(mode="after")
    def _check_task_on_network(self) -> Self:
        check_flows_at_once(self, self)
        self.initial_setting()
        check_ranges(self.ranges, self.line_rate_bps, self.table)
        KnobSpace(self.turned, self.line_rate_bps, self.table, self.ranges)
        try:
            check_group_names(self.groups, self.fabric.devices)
        except ConfigError as error:
            raise ConfigError(f"groups: {error}") from None
        return self

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
    def task(self) -> Task:
        """What is asked."""
        return Task.model_construct(**{key: getattr(self, key) for key in Task.model_fields})

    @property
    def network(self) -> Network:
        """What is simulated."""
        return Network.model_construct(**{key: getattr(self, key) for key in Network.model_fields})

    @property
    def calibrated(self) -> str:
        """How far it is from the network that it was calibrated by; empty if it was not."""
        return "" if self.calibration is None else self.calibration.note

    def default_setting(self) -> Setting:
        """Return the default of the scheme's knobs at this line rate: the common baseline."""
        return self._with_switch(default_setting(self.line_rate_bps, self.table))

    def initial_setting(self) -> Setting:
        """Return the setting in force at time 0, as :meth:`Task.setting_at` says."""
        setting = self.setting_at(self.line_rate_bps, self.table)
        given = self.initial if isinstance(self.initial, dict) else {}
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
