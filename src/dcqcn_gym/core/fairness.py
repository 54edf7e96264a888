"""Jain's index of the rates of flows: how evenly they were served."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dcqcn_gym.core.statistics import IntArray

LONG_FLOW_BYTES = 1_000_000
"""Flows of this size or more count: smaller ones end before rates are shared."""


@dataclass
class Fairness:
    """Sums of the rates (size / completion time) of finished long flows, in constant memory."""

    flows: int = 0
    rates: float = 0.0
    squares: float = 0.0

    def add(self, size_bytes: IntArray, fct_ps: IntArray) -> None:
        """Count some finished flows."""
        long = size_bytes >= LONG_FLOW_BYTES
        rates = size_bytes[long] / fct_ps[long]
        self.flows += int(rates.size)
        self.rates += float(np.sum(rates))
        self.squares += float(np.sum(rates * rates))

    @property
    def index(self) -> float:
        """(sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has all; NaN without any.

        Jain, Chiu and Hawe, "A Quantitative Measure of Fairness" (DEC-TR-301, 1984).
        """
        return self.rates**2 / (self.flows * self.squares) if self.flows else math.nan


def fairness_of(size_bytes: IntArray, fct_ps: IntArray) -> float:
    """Return the index of these flows."""
    fairness = Fairness()
    fairness.add(size_bytes, fct_ps)
    return fairness.index
