"""What a kind of device can hold of a knob, and what it is safe to be given: the one table.

``emit``, the drivers of ``hw``, its agents and ``settings import`` read their ranges here, so none
writes, takes or believes what another refuses. Sources: tests/data/hw/vendor-units.toml.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dcqcn_gym.core.device_units import PERCENT, WORD, device_unit
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import Knob

HELD: dict[str, dict[str, tuple[int, int]]] = {
    "mlxconfig": {"rp_byte_reset": (0, 2**15 - 1)},
    "bnxt": {"np_min_time_between_cnps": (0, 2**16 - 1)},
    # orchagent reads a threshold by stoi, and 0 B is the whole buffer to SAI
    "sonic": {"kmin": (1, 2**31 - 1), "kmax": (1, 2**31 - 1)},
    "eos": {"kmin": (1, 256_000_000), "kmax": (1, 256_000_000), "pmax": (1, 100)},  # AVD's schema
    "nvue": {"kmin": (1, 2**32 - 1), "kmax": (1, 2**32 - 1), "pmax": (1, 100)},
}
"""Form of commands, or driver -> knob -> lowest and highest number, where less than is legal."""
MAKERS: Mapping[str, str] = {"sonic": "SONiC", "eos": "EOS", "nvue": "NVUE"}
"""How a form is called in sentences; the others by their own name."""
SAFE: dict[str, tuple[float, float]] = {
    "rp_gd": (10, 11),
    "rp_rate_to_set_on_first_cnp": (0, 85),
}
"""NVIDIA's "DCQCN CC Parameters", where narrower than the search; the rate as % of the line's."""
BY_LINE = ("rp_max_rate", "rp_min_rate", "rp_rate_to_set_on_first_cnp", "kmin", "kmax")
"""Knobs whose safe range follows the line rate."""
LOWEST_SHARE = 0.05
"""``rp_min_rate`` at most, of the line rate."""


def held_range(form: str, row: Knob) -> tuple[int, int]:
    """Return the lowest and highest whole number that a kind of device holds, in its own unit."""
    own = HELD.get(form, {}).get(row.name)
    if own is not None:
        return own
    low, high = row.legal
    unit = device_unit(row)
    if not row.is_ecn:
        return round(low), min(round(high), WORD - 1)
    if unit == "log2":
        return round(math.log2(low)), round(math.log2(high))
    scale = PERCENT if unit == "%" else row.si_per_unit
    return round(low * scale), round(high * scale)


def why_not_held(form: str, row: Knob, number: int) -> str | None:
    """Return why a kind of device cannot hold a number in its own unit; None if it can."""
    low, high = held_range(form, row)
    if low <= number <= high:
        return None
    unit = device_unit(row)
    return f"{number} {unit}; {MAKERS.get(form, form)} holds {low} to {high} {unit}"


def check_held(form: str, row: Knob, number: int) -> int:
    """Return a number in the device's unit; ConfigError if the kind of device cannot hold it."""
    if why := why_not_held(form, row, number):
        raise ConfigError(f"{row.name} = {why}")
    return number


def safe_range(row: Knob, line_rate_bps: float | None) -> tuple[float, float] | None:
    """Return what an agent lets its device be given, in the knob's unit.

    None if that follows the line rate, which is not known. Firmware takes far more: a lowest rate
    above the line's turns congestion control off, thresholds above the buffer turn marking off.
    """
    if row.name not in BY_LINE:
        low, high = SAFE.get(row.name, row.tuned)
        return min(low, row.default), max(high, row.default)
    if line_rate_bps is None:
        return None
    line = line_rate_bps / row.si_per_unit
    if row.name in SAFE:
        low, high = SAFE[row.name]
        return low / PERCENT * line, high / PERCENT * line
    if row.name == "rp_min_rate":
        return row.default, LOWEST_SHARE * line
    return row.tuned_at(line_rate_bps)


def is_safe(row: Knob, value: float, limits: tuple[float, float]) -> bool:
    """Return whether a value is within limits, or the knob's own "off"."""
    return limits[0] <= value <= limits[1] or (row.off is not None and value == row.off)
