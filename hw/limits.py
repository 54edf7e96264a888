"""What an agent lets its device be given, whatever a controller asks: ranges by the line rate.

Firmware takes far more than is safe: a lowest rate above the line's turns congestion control off,
thresholds above the buffer turn marking off. Unless the agent's file says otherwise, a knob stays
within the range that tuners reach (docs/reference/knobs.md), two of them within NVIDIA's
narrower one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import DCQCN, Knob

NVIDIA = {"rp_gd": (10.0, 11.0), "rp_rate_to_set_on_first_cnp": (0.0, 85.0)}
"""NVIDIA's "DCQCN CC Parameters": the first rate in percent of the line's."""
BY_LINE = ("rp_max_rate", "rp_min_rate", "rp_rate_to_set_on_first_cnp", "kmin", "kmax")
"""Knobs whose range follows the line rate."""
LOWEST_SHARE = 0.05
"""``rp_min_rate`` at most, of the line rate."""


class Range(StrictModel):
    """A knob's smallest and largest value, in the unit of ``dcqcn-gym knobs``."""

    low: float = Field(description="the smallest value that the device may be given")
    high: float = Field(description="the largest one")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.low <= self.high:
            raise ConfigError(f"low = {self.low:g} is above high = {self.high:g}")
        return self


def check_limits(
    targets: Mapping[str, Mapping[str, float]],
    own: Mapping[str, Range],
    line_rate_bps: Callable[[], float | None],
) -> None:
    """Raise ConfigError for a knob of ``targets`` that is out of its limits.

    ``own`` are those of the agent's file, which go before. A range that follows the line rate is
    refused where that is not known.
    """
    for knobs in targets.values():
        for name, value in knobs.items():
            row = DCQCN[name]
            low, high = _range(row, own, line_rate_bps)
            off = row.off is not None and value == row.off and row.name not in own
            if not (low <= value <= high or off):
                raise ConfigError(
                    f"{row.name} = {value:g} {row.unit} is beyond this agent's limits, {low:g} to "
                    f"{high:g} {row.unit}; they are the device's owner's to change, in [limits] "
                    "of the agent's file"
                )


def _range(
    row: Knob, own: Mapping[str, Any], line_rate_bps: Callable[[], float | None]
) -> tuple[float, float]:
    if row.name in own:
        return own[row.name].low, own[row.name].high
    if row.name not in BY_LINE:
        low, high = NVIDIA.get(row.name, row.tuned)
        return min(low, row.default), max(high, row.default)
    rate = line_rate_bps()
    if rate is None:
        raise ConfigError(
            f"{row.name} is limited by the line rate, which this agent does not know; put "
            "line_rate_gbps into its file"
        )
    line = rate / row.si_per_unit
    if row.name in NVIDIA:
        low, high = NVIDIA[row.name]
        return low / 100.0 * line, high / 100.0 * line
    if row.name == "rp_min_rate":
        return row.default, LOWEST_SHARE * line
    return row.tuned_at(rate)
