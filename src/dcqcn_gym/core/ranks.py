"""Ranks of figures, and the correlation of two rankings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def places(values: Sequence[float]) -> list[int]:
    """Return the place of every value, 1 for the largest; equal ones share the better place."""
    return [1 + len([other for other in values if other > value]) for value in values]


def _mean_ranks(values: Sequence[float]) -> FloatArray:
    """Return the rank of every value, the first for the largest; equal ones share their mean."""
    equal = np.array([values.count(value) for value in values])
    return np.array(places(values)) + (equal - 1) / 2


def rank_agreement(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Spearman's rank correlation of two lists of figures, -1..1; 1 if one is all equal.

    Equal figures share the mean of their ranks, as Spearman has it.
    """
    ranks = [_mean_ranks(values) for values in (one, other)]
    spread = [r - r.mean() for r in ranks]
    scale = float(np.sqrt((spread[0] ** 2).sum() * (spread[1] ** 2).sum()))
    return 1.0 if scale == 0.0 else float((spread[0] * spread[1]).sum()) / scale
