"""The ranges within which PARALEON searches: those of its authors' later code.

The paper prints no ranges. The code of its authors has them twice: the first prototype's, which the
knob table holds, and those of its successor ParaleonPlus, which differ in eleven rows. In the
prototype's simulator five of the fourteen knobs never acted, so its wide ranges did no harm there.
Here all act, and the same search leads into settings that its authors never ran. In the later code
rates rise at least every 600 us, Kmax stays above 480 KB, cuts and alpha keep near their
defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dcqcn_gym.core.space import KnobSpace

LATER_RANGES: Mapping[str, tuple[float, float]] = {
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


def later_space(space: KnobSpace) -> KnobSpace:
    """Return the space with the later code's ranges, within those that it has."""
    ranges = dict(space.ranges)
    for name in space.knobs:
        if name not in LATER_RANGES:
            continue
        row = space.table[name]
        low, high = replace(row, tuned=LATER_RANGES[name]).tuned_at(space.line_rate_bps)
        least, most = space.ranges.get(name) or row.tuned_at(space.line_rate_bps)
        if max(low, least) <= min(high, most):
            ranges[name] = max(low, least), min(high, most)
    return KnobSpace(space.knobs, space.line_rate_bps, space.table, ranges)
