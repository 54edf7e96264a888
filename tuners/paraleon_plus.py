"""PARALEON within its successor's ranges, and PARALEON guided by bytes instead of flows.

The code of PARALEON's authors has a successor, ParaleonPlus, whose ranges of the knobs are narrower
than those of the first prototype, which the knob table holds: rate increases come at least every
600 us, Kmax stays above 480 KB, cuts and alpha keep near their defaults.
``paraleon-plus-ranges`` is Algorithm 1 within them; steps stay those of the table.

Algorithm 1 (line 14) takes mu from the *number* of active flows of each type. Mice are most of the
flows whenever arrivals run, so the search always leans towards delay, however many bytes elephants
have to send. ``paraleon-bytes`` (ours) takes the share of bytes: every active flow counts with what
it has sent so far, in the distribution's bins of one doubling each, and as an elephant by
min(1, bytes / tau).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import FSD_BINS, FlowSizeDistribution
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.tuners.base import TunerContext
from dcqcn_gym.tuners.paraleon import ParaleonTuner

PLUS_RANGES: Mapping[str, tuple[float, float]] = {
    "rp_time_reset": (50, 600),
    "rp_ai_rate": (5, 100),
    "rp_hai_rate": (30, 600),
    "rp_rate_to_set_on_first_cnp": (30, 80),
    "rp_min_dec_fac": (30, 80),
    "rp_gd": (11, 13),
    "np_min_time_between_cnps": (4, 128),
    "rp_dce_tcp_g": (960, 1019),
    "kmin": (40, 1600),
    "kmax": (480, 6400),
    "pmax": (0.1, 0.4),
}
"""Ranges of ParaleonPlus (its tuning.py), as the knob table writes them: NVIDIA's units at
100 Gb/s, the first-CNP rate in percent of the line rate. Its 1020 for g is 1019 here, where the
table's range ends; knobs that are not here have the same range in both."""

_FIRST_BIN, _BINS = 2.0**10.5, np.arange(FSD_BINS)
MIDDLES = _FIRST_BIN * 2.0**_BINS
"""Bytes that a flow of each bin counts for: the geometric middle of the bin's doubling."""
TAU_BYTES = 1e6
"""From how many bytes on a flow is an elephant (tau of the paper's Fig. 4)."""
SHARES = np.minimum(MIDDLES / TAU_BYTES, 1.0)
"""By how much a flow of each bin counts as an elephant: the rule for potential elephants."""


def plus_space(space: KnobSpace) -> KnobSpace:
    """Return the space with the successor's ranges, within those that it has."""
    ranges = dict(space.ranges)
    for name in space.knobs:
        if name not in PLUS_RANGES:
            continue
        row = space.table[name]
        low, high = replace(row, tuned=PLUS_RANGES[name]).tuned_at(space.line_rate_bps)
        least, most = space.ranges.get(name) or row.tuned_at(space.line_rate_bps)
        if max(low, least) <= min(high, most):
            ranges[name] = max(low, least), min(high, most)
    return KnobSpace(space.knobs, space.line_rate_bps, space.table, ranges)


def by_bytes(fsd: FlowSizeDistribution) -> FlowSizeDistribution:
    """Return the distribution with its weights in bytes sent so far instead of flows."""
    sent = np.asarray(fsd.bins, dtype=np.float64) * MIDDLES
    return replace(
        fsd,
        weighted_elephants=float((sent * SHARES).sum()),
        weighted_mice=float((sent * (1.0 - SHARES)).sum()),
    )


class ParaleonPlusRangesTuner(ParaleonTuner):
    """Algorithm 1 within the ranges of ParaleonPlus."""

    name = "paraleon-plus-ranges"
    summary = "PARALEON within the narrower ranges of its authors' successor"

    def start(self, context: TunerContext) -> None:
        """Begin as PARALEON does, in the narrower space."""
        super().start(replace(context, space=plus_space(context.space)))


class ParaleonBytesTuner(ParaleonTuner):
    """Algorithm 1 whose dominant type is that of most bytes, not of most flows."""

    name = "paraleon-bytes"
    summary = "PARALEON guided by the bytes of elephants and mice instead of their number"

    def _mutate(self, fsd: FlowSizeDistribution) -> DeviceSetting:
        return super()._mutate(by_bytes(fsd))
