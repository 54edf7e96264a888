"""Knob tables that no scheme has: DCQCN's with a row more, and one of another scheme."""

from __future__ import annotations

from dataclasses import replace

from dcqcn_gym.core.knobs import DCQCN, Knob, KnobTable

TOY = Knob(
    "toy_gap", "np", "us", 1e-6, "s", 5.0, (0.0, 100.0), (1.0, 50.0), 5.0, 1,
    "a row that a test brings", mlxconfig="TOY_GAP", log=True,
)  # fmt: skip
"""Neither tuned nor observed: the kind of row that breaks nothing."""

ECN_ROWS = tuple(DCQCN[name] for name in DCQCN.ecn)
WITH_TOY = KnobTable("dcqcn", (*(DCQCN[name] for name in DCQCN.nic), TOY, *ECN_ROWS))
OTHER_SCHEME = KnobTable("toy", (replace(TOY, tuned_by_default=True, observed=True), *ECN_ROWS))
