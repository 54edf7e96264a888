"""One step of one knob, for annealing and for greedy search."""

from __future__ import annotations

from dcqcn_gym.core.knobs import Knob, Setting


def whole_step(row: Knob, step: float) -> float:
    """Return a step that the knob can take: an integer knob moves by a whole number, at least 1."""
    return float(max(1, round(step))) if row.integer else step


def begin(row: Knob, setting: Setting, line_rate_bps: float) -> float:
    """Return the knob's value; one that is "off" begins at what that acts like."""
    value = setting[row.name]
    if row.off is None or value != row.off:
        return value
    low, high = row.tuned_at(line_rate_bps)
    return low + row.off_acts_like * (high - low)


def moved(row: Knob, setting: Setting, by: float, line_rate_bps: float) -> float:
    """Return the value after a move by ``by``, inside the tuned range, so never "off"."""
    low, high = row.tuned_at(line_rate_bps)
    return min(max(begin(row, setting, line_rate_bps) + by, low), high)
