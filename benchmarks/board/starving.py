"""Two settings that starve large flows: rows for the experiment of docs/board.md, not for use.

Tuners found them by PARALEON's utility: both raise it by keeping queues empty, at the expense of
whatever has many bytes to send.
"""

from __future__ import annotations

from collections.abc import Mapping

from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.tuners.base import TunerContext
from dcqcn_gym.tuners.fixed import StaticTuner

__all__ = ["Patient", "Timid"]

PATIENT: Mapping[str, float] = {
    "rp_time_reset": 6889, "rp_hai_rate": 47, "rp_min_dec_fac": 32, "rp_min_rate": 8,
    "rp_rate_to_set_on_first_cnp": 8125, "rp_dce_tcp_g": 764, "rp_initial_alpha_value": 768,
    "np_min_time_between_cnps": 7, "kmin": 8.891, "kmax": 35.566, "pmax": 0.7525,
}  # fmt: skip
TIMID: Mapping[str, float] = {
    "rp_time_reset": 500, "rp_ai_rate": 1, "rp_hai_rate": 10, "rp_gd": 10, "rp_min_dec_fac": 10,
    "rp_rate_to_set_on_first_cnp": 15000, "rp_rate_reduce_monitor_period": 1,
    "np_min_time_between_cnps": 0, "kmin": 2.5, "kmax": 10, "pmax": 0.28,
}  # fmt: skip
"""In NVIDIA's units."""


class _Starving(StaticTuner):
    values: Mapping[str, float]

    def _choose(self, context: TunerContext) -> Setting:
        rate, table = context.space.line_rate_bps, context.space.table
        return default_setting(rate, table).replace_nvidia(self.values)


class Patient(_Starving):
    """Waits 6.9 ms before it raises a rate again; ``dqn-mini`` chose it."""

    name = "patient"
    summary = "starves large flows: rates rise once in 6.9 ms"
    values = PATIENT


class Timid(_Starving):
    """Marks from 2.5 KB on and answers every mark; ``thompson`` chose it."""

    name = "timid"
    summary = "starves large flows: marks from 2.5 KB on, a CNP for every mark"
    values = TIMID
