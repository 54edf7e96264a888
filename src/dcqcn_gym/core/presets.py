"""Settings with a name, which ``initial`` of a scenario takes: :data:`PRESETS`.

Sources: NVIDIA's defaults, PARALEON (ICNP'24) Table I, DCQCN (SIGCOMM'15), DCQCN+ (ICNP'18) Table I
and section V-D, the simulations of Dolce-RC.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import (
    KnobTable,
    Setting,
    dcqcn_paper_setting,
    default_setting,
    expert_setting,
    knob_table,
    setting_with,
)

Preset: TypeAlias = Callable[[float, KnobTable], Setting]

_QUARTERED_UP_TO_BPS = 10e9
"""ICNP'18 simulates 10 Gb/s links with a quarter of the rate steps of 40 Gb/s."""

_CX4 = {
    "rp_time_reset": 300,
    "rp_byte_reset": 2_000_000 / 64,
    "rp_threshold": 5,
    "rp_ai_rate": 5,
    "rp_hai_rate": 40,
    "rp_rate_reduce_monitor_period": 4,
    "np_min_time_between_cnps": 0,
    "kmin": 5,
    "kmax": 200,
    "pmax": 0.01,
}
"""ConnectX-4 (ICNP'18, Table I); F is DCQCN's, the marking that of its simulations."""


_DOLCE = {"kmin": 7, "kmax": 500, "dolce_cnp_gap": 50}
"""Dolce-RC (section V-A). Its gap: five are "about one fast recovery phase", 5 x 55 us (def. 2)."""


def _of_paper(changes: Mapping[str, float], line_rate_bps: float, table: KnobTable) -> Setting:
    known = {name: value for name, value in changes.items() if name in table.knobs}
    return dcqcn_paper_setting(line_rate_bps, table).replace(known)


def _scaled_paper(line_rate_bps: float, table: KnobTable) -> Setting:
    """Return DCQCN as published, at 10 Gb/s with a quarter of its rate steps (ICNP'18)."""
    if line_rate_bps > _QUARTERED_UP_TO_BPS:
        return dcqcn_paper_setting(line_rate_bps, table)
    return _of_paper({"rp_ai_rate": 10, "rp_hai_rate": 25}, line_rate_bps, table)


PRESETS: Mapping[str, Preset] = {
    "default": default_setting,
    "expert": expert_setting,
    "dcqcn-paper": dcqcn_paper_setting,
    "dcqcn-paper-scaled": _scaled_paper,
    "cx4": lambda rate, table: setting_with(_CX4, rate, table),
    "dcqcn-plus": lambda rate, table: _of_paper({"kmin": 20}, rate, table),
    "dolce-rc": lambda rate, table: _of_paper(_DOLCE, rate, table),
}
"""Every preset by its name: a function of line rate and table; it sets what the table has."""


def dcqcn_static_setting(flows: int, line_rate_bps: float) -> Setting:
    """Return D-static(N): DCQCN with what DCQCN+ would have at N converged flows (ICNP'18, V-D).

    K = 2 max(N us, 8000 bit / (C/N)) and R_AI = C / (10 N), in whole us and Mb/s of at least 1; the
    rest is DCQCN as published with the marking of DCQCN+. Raises ConfigError for no flow at all.
    """
    if flows < 1:
        raise ConfigError(f"flows = {flows}: expected at least 1")
    timer_us = 2 * max(float(flows), 8000 * flows / line_rate_bps * 1e6)
    ai_mbps = line_rate_bps / (10 * flows) / 1e6
    changes = {"rp_time_reset": max(1, round(timer_us)), "rp_ai_rate": max(1, round(ai_mbps))}
    return _of_paper({**changes, "kmin": 20}, line_rate_bps, knob_table())
