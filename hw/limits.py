"""What an agent lets its device be given, whatever a controller asks: ranges by the line rate.

Unless the agent's file says otherwise, a knob stays within the table of ``core.device_limits``:
the range that tuners reach (docs/reference/knobs.md), two knobs within NVIDIA's narrower one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.device_limits import is_safe, safe_range
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import DCQCN


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
            row, mine = DCQCN[name], own.get(name)
            limits = safe_range(row, line_rate_bps()) if mine is None else (mine.low, mine.high)
            if limits is None:
                raise ConfigError(
                    f"{name} is limited by the line rate, which this agent does not know; put "
                    "line_rate_gbps into its file"
                )
            low, high = limits
            if not (low <= value <= high or (mine is None and is_safe(row, value, limits))):
                raise ConfigError(
                    f"{row.name} = {value:g} {row.unit} is beyond this agent's limits, {low:g} to "
                    f"{high:g} {row.unit}; they are the device's owner's to change, in [limits] "
                    "of the agent's file"
                )
