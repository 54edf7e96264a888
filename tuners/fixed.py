"""Tuners that do not search: the vendor's default, the experts' setting, a given one, nothing."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, create_model

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import check_group_names
from dcqcn_gym.core.knobs import (
    Setting,
    default_setting,
    expert_setting,
    knob_table,
    schemes,
)
from dcqcn_gym.core.optional_knobs import OPTIONAL_KNOBS, keeping_optional
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext, TunerSettings

TABLE_I_RATE_BPS = 400e9
SCALED = ("rp_ai_rate", "rp_hai_rate", "kmin", "kmax")


class StaticTuner(Tuner[Proposal]):
    """Puts one setting in force at the start and recommends it, whatever happens."""

    def start(self, context: TunerContext) -> None:
        """Choose the setting."""
        super().start(context)
        self._setting = self._choose(context)
        self._sent = False

    def _choose(self, context: TunerContext) -> Proposal:
        raise NotImplementedError

    def ask(self) -> Proposal | None:
        """Return the setting once."""
        if self._sent:
            return None
        self._sent = True
        return self._setting

    @property
    def tuning(self) -> bool:
        """Always False: nothing is measured."""
        return False

    def tell(self, outcome: Outcome) -> None:
        """Learn nothing."""

    def recommend(self) -> Proposal:
        """Return the setting."""
        return self._setting


class DefaultTuner(StaticTuner):
    """NVIDIA's defaults and the usual ECN thresholds, scaled to the line rate."""

    name = "default"
    summary = "NVIDIA's default setting, never changed"

    def _choose(self, context: TunerContext) -> Setting:
        chosen = default_setting(context.space.line_rate_bps, context.space.table)
        return keeping_optional(chosen, context.base)


class ExpertTuner(StaticTuner):
    """The experts' setting of PARALEON (ICNP'24) Table I, as printed, at every speed."""

    name = "expert"
    summary = "the experts' setting of PARALEON (ICNP'24) Table I, never changed"

    def _choose(self, context: TunerContext) -> Setting:
        chosen = expert_setting(context.space.line_rate_bps, context.space.table)
        return keeping_optional(chosen, context.base)


class ExpertScaledTuner(StaticTuner):
    """PARALEON's Table I with every rate and threshold in proportion to the line rate.

    The paper made it for 400 Gb/s; times and probabilities stay as printed.
    """

    name = "expert-scaled"
    summary = "the experts' Table I, its rates and thresholds times line rate / 400 Gb/s"

    def _choose(self, context: TunerContext) -> Setting:
        rate, table = context.space.line_rate_bps, context.space.table
        printed = expert_setting(rate, table)
        scale = rate / TABLE_I_RATE_BPS
        scaled = {name: printed[name] * scale for name in SCALED if name in table.knobs}
        return keeping_optional(printed.replace(scaled), context.base)


class DoNothingTuner(StaticTuner):
    """Leaves the network as the scenario starts it; never sends a setting."""

    name = "do-nothing"
    summary = "leaves the scenario's initial setting in force"

    def _choose(self, context: TunerContext) -> Setting:
        return context.base

    def ask(self) -> None:
        """Never propose anything."""


_FixedSettings = create_model(
    "FixedSettings",
    __base__=TunerSettings,
    **{
        row.name: (float | None, Field(default=None, description=f"{row.help} [{row.unit}]"))
        for rows in (*(knob_table(scheme).rows for scheme in schemes()), OPTIONAL_KNOBS.values())
        for row in rows
    },
    groups=(
        dict[str, dict[str, float]],
        Field(default={}, description='other values for a group of devices: {"tor": {"kmin": 50}}'),
    ),
)  # type: ignore[call-overload]


class FixedTuner(StaticTuner):
    """The scenario's initial setting with some knobs replaced, in NVIDIA's units.

    ``groups`` replaces more of them for groups of devices.
    """

    name = "fixed"
    summary = "the initial setting with given knobs, e.g. --tuner-arg rp_ai_rate=50"
    Settings: ClassVar[type[TunerSettings]] = _FixedSettings

    def _choose(self, context: TunerContext) -> Proposal:
        given: dict[str, Any] = self.settings.model_dump(exclude_none=True)
        groups: dict[str, dict[str, float]] = given.pop("groups")
        rate = context.space.line_rate_bps
        cluster = context.base.replace(given).check(rate, "tuner 'fixed'")
        if not groups:
            return cluster
        if "cluster" in groups:
            raise ConfigError("tuner 'fixed': the knobs of the group 'cluster' are given by name")
        check_group_names(groups, context.devices)
        return {
            "cluster": cluster,
            **{
                name: cluster.replace(knobs).check(rate, f"tuner 'fixed', group {name!r}")
                for name, knobs in groups.items()
            },
        }
