"""Axes of charts: from the least to the largest value, with round ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dcqcn_gym.core.interval import FloatArray

LOG_STEPS = ((1, 2, 5), (1, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 3, 5, 7))
"""Ticks of a decade on a logarithmic axis: the first that give :data:`FEWEST_TICKS`."""
FEWEST_TICKS = 4
NAMED_DECADES = 2.5
"""On a logarithmic axis of fewer decades every tick has its label."""
LARGEST = 1e290
"""Values beyond it are drawn there: a span of doubles must not overflow."""


@dataclass(frozen=True)
class Axis:
    """From ``low`` to ``high``; ``ticks`` are places with their labels."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def at(self, values: FloatArray | Sequence[float] | float) -> FloatArray:
        """Return where values stand, 0 at ``low`` and 1 at ``high``; NaN where unknown."""
        x = np.clip(np.asarray(values, dtype=np.float64), -LARGEST, LARGEST)
        low, high = self.low, self.high
        if self.log:
            x = np.log(np.maximum(x, low * 1e-3))
            low, high = math.log(low), math.log(high)
        return np.asarray(np.clip((x - low) / (high - low), -9.0, 9.0), dtype=np.float64)


def _known(values: Sequence[FloatArray]) -> FloatArray:
    every = np.concatenate([np.ravel(v) for v in values]) if values else np.zeros(0)
    return np.asarray(np.clip(every[np.isfinite(every)], -LARGEST, LARGEST), dtype=np.float64)


def linear_axis(
    values: Sequence[FloatArray], *, margin: float = 0.06, exact: bool = False, wanted: int = 5
) -> Axis:
    """Return an axis that holds all finite values, ``margin`` of their span more, round ticks.

    ``exact``: from the least to the largest value and no further.
    """
    known = _known(values)
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    least = max(abs(low), abs(high)) * 1e-9
    if high - low <= max(least, 1e-280):
        room = max(abs(high) * 0.1, 1e-270)
        low, high = (low - room, high + room) if high else (0.0, 1.0)
    elif not exact:
        room = margin * (high - low)
        low, high = low - room, high + room
    raw = (high - low) / wanted
    base = 10.0 ** math.floor(math.log10(raw))
    step = next(m * base for m in (1, 2, 5, 10, 20) if m * base >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = [(k * step, _tick(k * step, digits)) for k in range(first, last + 1)]
    return Axis(low, high, tuple(ticks))


def _tick(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}" if digits < 7 and abs(value) < 1e7 else f"{value:.3g}"
    return text.replace("-", "−")


def log_axis(values: Sequence[FloatArray], unit: str = "") -> Axis:
    """Return a logarithmic axis that holds all finite positive values, with ticks at 1, 2 and 5.

    Over many decades 2 and 5 have no label, over very many they are left out.
    """
    known = _known(values)
    known = known[known > 1e-280]
    low, high = (float(known.min()), float(known.max())) if known.size else (1.0, 10.0)
    low, high = low / 1.1, high * 1.15
    decades = math.log10(high / low)
    skip = max(1, round(decades / 6))
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1, skip)
    places: list[tuple[float, float]] = []
    for steps in LOG_STEPS if skip == 1 else ((1,),):
        places = [(m, m * 10.0**e) for e in exponents for m in steps if low <= m * 10.0**e <= high]
        if len(places) >= FEWEST_TICKS:
            break
    named = decades < NAMED_DECADES
    ticks = [(p, f"{p:.7g}{unit}" if named or m == 1 else "") for m, p in places]
    return Axis(low, high, tuple(ticks), log=True)


def named_axis(labels: Sequence[str], *, down: bool = False) -> Axis:
    """Return an axis of places 0, 1, ... with these names; ``down``: the first one at the top."""
    ticks = tuple((float(i), label) for i, label in enumerate(labels))
    low, high = -0.6, len(labels) - 0.4
    return Axis(high, low, ticks) if down else Axis(low, high, ticks)
