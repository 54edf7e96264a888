"""Confidence intervals of a mean, without scipy: the same numbers on every installation.

Student's t for few values, the BCa bootstrap for many; the tests hold both to scipy's.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

import numpy as np

from dcqcn_gym.core.interval import FloatArray

RESAMPLES = 9999
_NORMAL = NormalDist()


def _within(t: float, freedom: int) -> float:
    """Return P(\\|T\\| < t) of Student's distribution (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    first = freedom % 2  # the series runs over odd or even powers of the cosine
    power = cosine if first else 1.0
    series, factor = 0.0, 1.0
    for k in range(first, freedom - 1, 2):
        series += factor * power
        factor *= (k + 1) / (k + 2)
        power *= cosine * cosine
    if first:
        return 2 / math.pi * (angle + sine * series)
    return sine * series


@cache
def student_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t for a probability in 0.5..1 and ``freedom`` >= 1."""
    inside = 2 * probability - 1
    low, high = 0.0, 1.0
    while _within(high, freedom) < inside:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _within(middle, freedom) < inside else (low, middle)
    return high


def student_interval(values: FloatArray, confidence: float) -> tuple[float, float]:
    """Return the two-sided interval of the mean of at least two values."""
    n = values.size
    error = float(np.std(values, ddof=1)) / math.sqrt(n)
    half = student_quantile(0.5 + confidence / 2, n - 1) * error
    mean = float(np.mean(values))
    return mean - half, mean + half


def bca_interval(values: FloatArray, confidence: float, seed: int) -> tuple[float, float]:
    """Return the bias-corrected and accelerated bootstrap interval of the mean.

    Efron, "Better Bootstrap Confidence Intervals" (JASA 1987). ``seed`` fixes the resampling.
    """
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed])))
    mean = float(np.mean(values))
    means = values[random.integers(values.size, size=(RESAMPLES, values.size))].mean(axis=1)
    below = (np.count_nonzero(means < mean) + np.count_nonzero(means <= mean)) / 2
    bias = _NORMAL.inv_cdf(min(max(below / RESAMPLES, 1e-9), 1 - 1e-9))
    left_out = (values.sum() - values) / (values.size - 1)
    spread = left_out.mean() - left_out
    acceleration = float((spread**3).sum() / (6 * (spread**2).sum() ** 1.5))
    ends = []
    for tail in ((1 - confidence) / 2, (1 + confidence) / 2):
        z = bias + _NORMAL.inv_cdf(tail)
        ends.append(_NORMAL.cdf(bias + z / (1 - acceleration * z)))
    low, high = np.quantile(means, ends)
    return float(low), float(high)
