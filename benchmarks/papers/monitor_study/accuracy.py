"""How right a monitor is about flow sizes: the measures, on arrays alone.

PARALEON (ICNP'24) plots "FSD accuracy" in its figures 10(a) and 11(a) without a formula. The main
measure here, label accuracy, is the one that reproduces the order of its curves; the others stand
beside it because label accuracy is dominated by mice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.interval import FloatArray

IntArray = npt.NDArray[np.int64]

MEASURES: Mapping[str, str] = {
    "label": "active flows whose label is that of their final size; an unseen flow is wrong",
    "causal": "the same against the bytes they have sent so far",
    "share": "1 - |estimated - true share of elephants among active flows|",
    "recall": "active flows that end as elephants and are labelled so",
}


@dataclass(frozen=True)
class SeenFlows:
    """The flows active in one interval, one entry each, and the monitor's estimate of the whole."""

    key: IntArray
    total_bytes: IntArray
    """True payload bytes so far."""
    state: IntArray
    """What the monitor holds the flow for; 0 is unseen."""
    elephant_share: FloatArray
    """How much of an elephant it counts as, in 0..1."""
    estimate: float
    """Weighted share of elephants that the controller has; 0.5 if it has nothing."""

    @classmethod
    def of(cls, labels: Mapping[str, Any], fsd: Mapping[str, Any]) -> SeenFlows:
        """Take it from what the engine returns for a closed interval."""
        heavy, light = float(fsd["weighted_elephants"]), float(fsd["weighted_mice"])
        known = bool(fsd["known"]) and heavy + light > 0
        return cls(
            key=labels["key"],
            total_bytes=labels["total_bytes"],
            state=labels["state"],
            elephant_share=labels["elephant_share"],
            estimate=heavy / (heavy + light) if known else 0.5,
        )


@dataclass(frozen=True)
class Accuracy:
    """The measures of one interval or their means, each in 0..1; see :data:`MEASURES`."""

    label: float
    causal: float
    share: float
    recall: float | None
    """None if no active flow ends as an elephant."""


def accuracy(seen: SeenFlows, sizes: IntArray, tau: int) -> Accuracy | None:
    """Judge one interval; None if no flow was active.

    ``sizes`` are the final sizes of the flows of ``seen``, ``tau`` the bytes of an elephant. A flow
    is labelled elephant if it counts as one by half or more.
    """
    if not len(seen.key):
        return None
    observed = seen.state > 0
    labelled = seen.elephant_share >= 0.5
    final, so_far = sizes >= tau, seen.total_bytes >= tau
    return Accuracy(
        label=float(np.mean(observed & (labelled == final))),
        causal=float(np.mean(observed & (labelled == so_far))),
        share=1.0 - abs(seen.estimate - float(np.mean(final))),
        recall=float(np.mean(labelled[final])) if np.any(final) else None,
    )


def mean_accuracy(intervals: Sequence[Accuracy | None]) -> Accuracy:
    """Return the means over the intervals with traffic; recall over those with elephants."""
    busy = [a for a in intervals if a is not None]
    if not busy:
        raise ValueError("no interval had traffic")
    return Accuracy(
        label=float(np.mean([a.label for a in busy])),
        causal=float(np.mean([a.causal for a in busy])),
        share=float(np.mean([a.share for a in busy])),
        recall=mean_known([a.recall for a in busy]),
    )


def mean_known(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def sizes_of(key: IntArray, known_keys: IntArray, known_sizes: IntArray) -> IntArray:
    """Return the final size of every flow; ValueError if one of them is not known."""
    order = np.argsort(known_keys, kind="stable")
    sorted_keys = known_keys[order]
    place = np.searchsorted(sorted_keys, key)
    place = np.minimum(place, max(len(sorted_keys) - 1, 0))
    if len(key) and (not len(sorted_keys) or np.any(sorted_keys[place] != key)):
        raise ValueError("a monitor saw a flow that never existed")
    return np.asarray(known_sizes[order][place], dtype=np.int64)
