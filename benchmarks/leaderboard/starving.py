"""Two settings that starve large flows: entries of an experiment (docs/leaderboard.md).

Tuners found them by PARALEON's utility: both raise it by keeping queues empty, at the expense of
whatever has many bytes to send.
"""

from __future__ import annotations

from pathlib import Path

from dcqcn_gym.core.files import parse_json, read_text
from dcqcn_gym.core.knobs import Setting, default_setting
from dcqcn_gym.tuners.base import TunerContext
from dcqcn_gym.tuners.fixed import StaticTuner

_SETTINGS = Path(__file__).with_name("starving.json")
"""Knobs in NVIDIA's units; the others keep their default."""


class _Starving(StaticTuner):
    def _choose(self, context: TunerContext) -> Setting:
        values = parse_json(read_text(_SETTINGS))[self.name]
        rate, table = context.space.line_rate_bps, context.space.table
        return default_setting(rate, table).replace(values)


class Patient(_Starving):
    """Waits 6.9 ms before it raises a rate again; ``dqn-mini`` chose it."""

    name = "patient"
    summary = "starves large flows: rates rise once in 6.9 ms"


class Timid(_Starving):
    """Marks from 2.5 KB on and answers every mark; ``thompson`` chose it."""

    name = "timid"
    summary = "starves large flows: marks from 2.5 KB on, a CNP for every mark"
