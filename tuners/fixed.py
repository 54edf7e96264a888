"""Rows that do not search: the vendor's default, the experts' setting, a given one, nothing."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, create_model

from dcqcn_gym.core.knobs import KNOBS, Setting, default_setting, expert_setting
from dcqcn_gym.tuners.base import Outcome, Tuner, TunerContext, TunerSettings

__all__ = ["DefaultTuner", "DoNothingTuner", "ExpertTuner", "FixedTuner", "StaticTuner"]


class StaticTuner(Tuner):
    """Puts one setting in force at the start and recommends it, whatever happens."""

    def start(self, context: TunerContext) -> None:
        """Choose the setting."""
        super().start(context)
        self._setting = self._choose(context)
        self._sent = False

    def _choose(self, context: TunerContext) -> Setting:
        raise NotImplementedError

    def ask(self) -> Setting | None:
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

    def recommend(self) -> Setting:
        """Return the setting."""
        return self._setting


class DefaultTuner(StaticTuner):
    """NVIDIA's defaults and the usual ECN thresholds, scaled to the line rate."""

    name = "default"
    summary = "NVIDIA's default setting, never changed"

    def _choose(self, context: TunerContext) -> Setting:
        return default_setting(context.space.line_rate_bps, context.space.table)


class ExpertTuner(StaticTuner):
    """The experts' setting of PARALEON (ICNP'24) Table I, as printed, at every speed."""

    name = "expert"
    summary = "the experts' setting of PARALEON (ICNP'24) Table I, never changed"

    def _choose(self, context: TunerContext) -> Setting:
        return expert_setting(context.space.line_rate_bps, context.space.table)


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
        for row in KNOBS.values()
    },
)  # type: ignore[call-overload]


class FixedTuner(StaticTuner):
    """The scenario's initial setting with some knobs replaced, in NVIDIA's units."""

    name = "fixed"
    summary = "the initial setting with given knobs, e.g. --tuner-arg rp_ai_rate=50"
    Settings: ClassVar[type[TunerSettings]] = _FixedSettings

    def _choose(self, context: TunerContext) -> Setting:
        given: dict[str, Any] = self.settings.model_dump(exclude_none=True)
        setting = context.base.replace_nvidia(given)
        return setting.check(context.space.line_rate_bps, "tuner 'fixed'")
