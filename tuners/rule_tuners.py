"""Static tuners: the rule's setting, and one knob of the default. docs/measured/keeper.md."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.core.optional_knobs import keeping_optional
from dcqcn_gym.tuners.base import TunerContext, TunerSettings
from dcqcn_gym.tuners.fixed import StaticTuner
from dcqcn_gym.tuners.rule import advise


def advised_setting(context: TunerContext) -> Setting:
    """Return the rule's setting for the fabric of a run; optional knobs stay as they are."""
    table = context.space.table
    default = default_setting(context.space.line_rate_bps, table)
    return keeping_optional(advise(context.fabric, default).setting, context.base)


class AdviseTuner(StaticTuner):
    """The rule's setting for the fabric, never changed."""

    name = "advise"
    summary = "a setting from facts of the fabric alone, never changed"

    def _choose(self, context: TunerContext) -> Setting:
        return advised_setting(context)


class _FloorSettings(TunerSettings):
    share: float = Field(
        default=0.047, gt=0, le=1, description="the floor rp_min_rate over the line rate"
    )


class DefaultMinRateTuner(StaticTuner):
    """The vendor's default with a higher floor rate: the one knob that any tuner has to beat."""

    name = "default-min-rate"
    summary = "NVIDIA's default with a floor rate of 4.7 % of the line rate, never changed"
    Settings: ClassVar[type[TunerSettings]] = _FloorSettings

    def _choose(self, context: TunerContext) -> Setting:
        rate, table = context.space.line_rate_bps, context.space.table
        default = default_setting(rate, table)
        if "rp_min_rate" in table.knobs:
            assert isinstance(self.settings, _FloorSettings)
            floor = max(1, round(self.settings.share * rate / 1e6))
            default = default.replace(rp_min_rate=floor)
        return keeping_optional(default, context.base)
