"""States and actions of ACC (SIGCOMM'21), shared by its training and its tuner.

The paper's end gives layers of {20, 40, 40, 20}, so 20 inputs and 20 actions. That an input is four
intervals of five figures, and which 20 of the paper's 55 x 20 settings these are, is ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.groups import TIERS, Devices, members
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.port_view import FIGURES

HISTORY = 4
HIDDEN = (40, 40)

TEMPLATES: tuple[Mapping[str, float], ...] = tuple(
    {"kmin": 20.0 * 2.0 ** max(n - 2, 0), "kmax": 20.0 * 2.0**n, "pmax": pmax}
    for n in range(10)
    for pmax in (1.0, 0.2)
)
"""Marking curves in KB from the most delay-friendly to the most throughput-friendly: Kmax runs over
ACC's ladder 20 * 2^n KB, Kmin is two rungs below, Pmax is 100 % or 20 %."""

CENTRAL: tuple[Mapping[str, float], ...] = TEMPLATES[1::3][:6]
"""What the centralised agent chooses among, per side: six of them, so 216 actions for three sides
("hundreds", section 5.4)."""


def sides_of(devices: Devices) -> tuple[str, ...]:
    """Return the groups that C-ACC sets alike: all uplinks or all downlinks of a tier."""
    every = (f"{tier}-{side}" for tier in TIERS for side in ("downlinks", "uplinks"))
    return tuple(group for group in every if members(group, devices)[1])


def joint_actions(sides: int) -> npt.NDArray[np.int64]:
    """Return the template of every side for every action of the centralised agent."""
    grid = np.indices((len(CENTRAL),) * sides).reshape(sides, -1).T
    return np.ascontiguousarray(grid, dtype=np.int64)


def sizes(central_sides: int = 0) -> tuple[int, ...]:
    """Return the sizes of the layers: {20, 40, 40, 20}, or those of C-ACC for so many sides."""
    inputs = HISTORY * (len(FIGURES) + 1)
    if not central_sides:
        return (inputs, *HIDDEN, len(TEMPLATES))
    return (inputs * central_sides, *HIDDEN, len(CENTRAL) ** central_sides)


def layout(central_sides: int = 0) -> str:
    """Return the name that a policy file has for what its inputs and outputs mean."""
    chosen = CENTRAL if central_sides else TEMPLATES
    text = repr((HISTORY, FIGURES, [sorted(t.items()) for t in chosen], central_sides))
    kind = "acc-central" if central_sides else "acc"
    return f"1/{kind}/{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def place_of(chosen: npt.NDArray[np.int64], n: int) -> FloatArray:
    """Return templates as their share of the list, -1 for none (a negative number)."""
    index = np.asarray(chosen, dtype=np.float64)
    return np.where(index < 0, -1.0, index / (n - 1))
