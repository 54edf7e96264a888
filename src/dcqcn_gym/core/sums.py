"""Sums that go into results, from left to right: the same bits under every version of Python.

From 3.12 on the builtin ``sum`` of floats compensates its rounding errors, so its last digit
differs from that of earlier versions. Results use the functions below instead of it; a test looks
for every other ``sum(``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


def total(values: Iterable[float]) -> float:
    """Return the plain sum from left to right; 0.0 without values."""
    result = 0.0
    for value in values:
        result += value
    return result


def mean(values: Collection[float]) -> float:
    """Return :func:`total` over the number of values; raises ZeroDivisionError without one."""
    return total(values) / len(values)


def count(values: Iterable[int]) -> int:
    """Return the exact sum of whole numbers, True counting as 1."""
    result = 0
    for value in values:
        result += value
    return result
