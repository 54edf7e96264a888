"""The table ``[knobs]`` of a scenario: which knobs are tuned, and within which range.

It says what is other than usual: ``kmin = [50, 800]`` searches that range only (NVIDIA's units),
``rp_gd = "fixed"`` leaves the knob as it starts, ``rp_byte_reset = "tuned"`` turns one that is
usually left alone. A range must lie within what the device takes at the network's line rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.knob_names import by_knob_name
from dcqcn_gym.core.knobs import Knob, KnobTable

KnobChoice: TypeAlias = tuple[float, float] | Literal["fixed", "tuned"]
"""What a scenario says of one knob."""


def checked_choices(values: Mapping[Any, Any], table: KnobTable) -> dict[str, KnobChoice]:
    """Return the table by the knobs' own names; raise ConfigError or UnknownNameError."""
    named = by_knob_name(values, table.knobs)
    choices = {name: _choice(table[name], value) for name, value in named.items()}
    if not turned(choices, table):
        raise ConfigError("every knob is fixed; expected at least one that is tuned")
    return choices


def turned(choices: Mapping[str, KnobChoice], table: KnobTable) -> tuple[str, ...]:
    """Return the knobs that an action sets, in the order of the knob table."""
    return tuple(
        row.name
        for row in table.knobs.values()
        if choices.get(row.name, "tuned" if row.name in table.tuned else "fixed") != "fixed"
    )


def check_ranges(
    ranges: Mapping[str, tuple[float, float]], line_rate_bps: float, table: KnobTable
) -> None:
    """Raise ConfigError for a range that is not legal at this line rate."""
    for name, (low, high) in ranges.items():
        bottom, top = table[name].legal_at(line_rate_bps)
        if low < bottom or high > top:
            raise ConfigError(
                f"knobs.{name} = [{low:g}, {high:g}]; expected a range within "
                f"{bottom:g}..{top:g} {table[name].unit} at {line_rate_bps / 1e9:g} Gb/s"
            )


def _choice(row: Knob, value: Any) -> KnobChoice:
    if value in ("fixed", "tuned"):
        return "fixed" if value == "fixed" else "tuned"
    if not isinstance(value, list | tuple) or len(value) != 2 or not all(map(_number, value)):
        raise ConfigError(
            f'{row.name} = {quote(value)}; expected [lowest, highest] ({row.unit}), "fixed" or '
            '"tuned"'
        )
    low, high = map(float, value)
    if low >= high:
        raise ConfigError(f"{row.name} = {quote(value)}; expected the lower end first")
    if row.integer and not (low.is_integer() and high.is_integer()):
        raise ConfigError(f"{row.name} = {quote(value)}; expected whole numbers ({row.unit})")
    if row.off is not None and low <= row.off <= high:
        raise ConfigError(
            f"{row.name} = {quote(value)}; {row.off:g} switches it off, so expected a range "
            "without it"
        )
    return low, high


def _number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (not isinstance(value, int) or value.bit_length() <= 63) and math.isfinite(value)
