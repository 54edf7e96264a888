"""Tuners that do not search: the vendor's default, the experts' setting, a given one, nothing.

``vendor-ecn`` is printed in ACC (SIGCOMM'21), section 5.3.1. What ``secn1`` and ``secn2`` stand for
is in a part of that paper that we do not have: they are second-hand, the values of the DCQCN paper
(SIGCOMM'15) and of HPCC (SIGCOMM'19), whose thresholds follow the line rate. ACC's and HPCC's
curves are given for 25 Gb/s; ``secn1`` and ``vendor-ecn`` are the printed numbers at every rate.
``advise`` and ``default-min-rate``: docs/measured/keeper.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

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
from dcqcn_gym.tuners.rule import advise

TABLE_I_RATE_BPS = 400e9
"""The speed that PARALEON's Table I was made for; its times and probabilities stay as printed."""
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


class DoNothingTuner(StaticTuner):
    """Leaves the network as the scenario starts it; never sends a setting."""

    name = "do-nothing"
    summary = "leaves the scenario's initial setting in force"

    def _choose(self, context: TunerContext) -> Setting:
        return context.base

    def ask(self) -> None:
        """Never propose anything."""


def _static(
    name: str, summary: str, choose: Callable[[TunerContext], Setting]
) -> type[StaticTuner]:
    """Return the tuner of a setting, of which optional knobs stay as they start."""

    class Static(StaticTuner):
        def _choose(self, context: TunerContext) -> Setting:
            return keeping_optional(choose(context), context.base)

    Static.name, Static.summary = name, summary
    return Static


def _default(context: TunerContext) -> Setting:
    return default_setting(context.space.line_rate_bps, context.space.table)


def _expert(context: TunerContext) -> Setting:
    return expert_setting(context.space.line_rate_bps, context.space.table)


def _expert_scaled(context: TunerContext) -> Setting:
    printed, scale = _expert(context), context.space.line_rate_bps / TABLE_I_RATE_BPS
    return printed.replace({name: printed[name] * scale for name in SCALED if name in printed})


def _curve(
    kmin: float, kmax: float, pmax: float, *, scaled: bool = False
) -> Callable[[TunerContext], Setting]:
    """Return a marking curve for every switch: KB at 25 Gb/s, or at every rate; NICs stay."""

    def choose(context: TunerContext) -> Setting:
        scale = context.space.line_rate_bps / 25e9 if scaled else 1.0
        return context.base.replace(kmin=kmin * scale, kmax=kmax * scale, pmax=pmax)

    return choose


DefaultTuner = _static("default", "NVIDIA's default setting, never changed", _default)
ExpertTuner = _static(
    "expert", "the experts' setting of PARALEON (ICNP'24) Table I, never changed", _expert
)
ExpertScaledTuner = _static(
    "expert-scaled",
    "the experts' Table I, its rates and thresholds times line rate / 400 Gb/s",
    _expert_scaled,
)
AdviseTuner = _static(
    "advise",
    "a setting from facts of the fabric alone, never changed",
    lambda context: advise(context.fabric, _default(context)).setting,
)
Secn1Tuner = _static(
    "secn1",
    "static ECN 5 KB / 200 KB / 1 % (DCQCN's paper; ACC's SECN1, second-hand)",
    _curve(5.0, 200.0, 0.01),
)
Secn2Tuner = _static(
    "secn2",
    "static ECN 100 KB / 400 KB / 20 % per 25 Gb/s (HPCC; ACC's SECN2, second-hand)",
    _curve(100.0, 400.0, 0.2, scaled=True),
)
VendorEcnTuner = _static(
    "vendor-ecn",
    "static ECN 30 KB / 270 KB / 10 %, a device vendor's advice at 25 Gb/s (ACC)",
    _curve(30.0, 270.0, 0.1),
)


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
        default, share = _default(context), cast(_FloorSettings, self.settings).share
        if "rp_min_rate" in default:
            floor = max(1, round(share * context.space.line_rate_bps / 1e6))
            default = default.replace(rp_min_rate=floor)
        return keeping_optional(default, context.base)


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
