"""Does an entry do worse where its authors have not been? What was learned by heart shows there.

Scenarios are what varies: both tests are Student's t on scenario means, at 95 %, so that a few
repetitions on fresh traffic are enough, and three scenarios rarely convict.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.confidence import student_interval, student_quantile

__all__ = ["lower_elsewhere", "lower_on_same"]

FloatArray = npt.NDArray[np.float64]
CONFIDENCE = 0.95


def lower_on_same(before: FloatArray, now: FloatArray) -> bool:
    """Return whether scores on the same scenarios (scenarios, repetitions) have fallen.

    True if the paired interval of the difference lies below 0.
    """
    change = now.mean(axis=1) - before.mean(axis=1)
    return change.size > 1 and student_interval(change, CONFIDENCE)[1] < 0


def lower_elsewhere(before: FloatArray, now: FloatArray) -> bool:
    """Return whether scores on other scenarios of the same generator are lower.

    True if Welch's interval of the difference of the means lies below 0; the degrees of freedom
    (Welch 1947, equation 28) are rounded down.
    """
    means = [one.mean(axis=1) for one in (before, now)]
    if min(one.size for one in means) < 2:
        return False
    errors = [float(np.var(one, ddof=1)) / one.size for one in means]
    both = errors[0] + errors[1]
    difference = float(means[1].mean() - means[0].mean())
    if not both:
        return difference < 0
    shares = [e**2 / (one.size - 1) for e, one in zip(errors, means, strict=True)]
    freedom = max(1, math.floor(both**2 / (shares[0] + shares[1])))
    half = student_quantile(0.5 + CONFIDENCE / 2, freedom) * math.sqrt(both)
    return difference + half < 0
