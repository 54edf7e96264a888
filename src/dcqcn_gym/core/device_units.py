"""Knobs as devices hold them: whole numbers in a device's own unit, and back.

A NIC takes the units of the knob table, one unsigned word of 32 bits per file (the kernel's
``cc_params`` hands it to the firmware as it is). A SONiC switch takes thresholds in whole bytes and
the marking probability in whole percents, its share of the shared buffer as a power of two.
Sources: docs/reference/knobs.md and docs/hardware.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import DCQCN, Knob, KnobTable, Setting

WORD = 2**32
PERCENT = 100
SONIC_FIELDS: Mapping[str, Mapping[str, str]] = {
    "wred": {
        "kmin": "{}_min_threshold",
        "kmax": "{}_max_threshold",
        "pmax": "{}_drop_probability",
    },
    "ecn": {
        "kmin": "ecn_{}_min_threshold",
        "kmax": "ecn_{}_max_threshold",
        "pmax": "ecn_{}_mark_probability",
    },
    "ect": {
        "kmin": "{}_ect_min_threshold",
        "kmax": "{}_ect_max_threshold",
        "pmax": "{}_ect_mark_probability",
    },
}
"""SONiC's fields by colour: where marking follows the drop curve, and both sets of a proposal."""
SONIC_OWN_CURVES = ("ecn", "ect")


def device_unit(row: Knob) -> str:
    """Return the unit of the whole number that a device holds for this knob."""
    if not row.is_ecn:
        return row.unit
    if row.group == "pfc":
        return "log2"
    return "%" if row.si_unit == "1" else "B"


def to_device(row: Knob, value: float) -> int:
    """Return the whole number that a device gets for a value in the knob's unit.

    Rounds to the nearest step of the device; a marking probability above 0 stays at least 1 %.
    Raises ConfigError for a value that is out of the knob's legal range.
    """
    low, high = row.legal
    if not low <= value <= high:  # also catches NaN
        raise ConfigError(
            f"{row.name} = {value:g} {row.unit} is out of range; "
            f"expected {low:g} to {high:g} {row.unit}"
        )
    if not row.is_ecn:
        return min(round(value), WORD - 1)
    if device_unit(row) == "log2":
        return round(math.log2(value))
    if device_unit(row) == "%":
        return max(round(value * PERCENT), 1 if value > 0 else 0)
    return round(row.to_si(value))


def from_device(row: Knob, value: int) -> float:
    """Return the value of the whole number that a device holds; the inverse of the above."""
    if not row.is_ecn:
        return float(value)
    if device_unit(row) == "log2":
        return float(2.0**value)
    return value / (PERCENT if device_unit(row) == "%" else row.si_per_unit)


def on_devices(values: Mapping[str, float], table: KnobTable = DCQCN) -> dict[str, float]:
    """Return the values that devices have in force once they were given ``values``."""
    return {n: from_device(table[n], to_device(table[n], v)) for n, v in values.items()}


def setting_on_devices(setting: Setting) -> Setting:
    """Return the whole setting that devices have in force once they were given ``setting``."""
    return setting.replace(on_devices(setting, setting.table))
