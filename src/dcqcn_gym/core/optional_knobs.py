"""Knobs of a switch that no table has unless a scenario names them: ``pfc_alpha``.

A table with some of them is called ``"dcqcn+pfc_alpha"``. Observation, default action and files of
networks without them know nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from dcqcn_gym.core.knobs import OPTIONAL_ROWS, Knob, KnobTable, Setting

OPTIONAL_KNOBS: Mapping[str, Knob] = {row.name: row for row in OPTIONAL_ROWS}
"""Every optional row by its name."""


def with_optional(table: KnobTable, names: Iterable[str]) -> KnobTable:
    """Return ``table`` with the optional knobs among ``names`` behind its rows."""
    given = set(names)
    wanted = tuple(n for n in OPTIONAL_KNOBS if n in given and n not in table.knobs)
    return _extended(table, wanted) if wanted else table


@cache
def _extended(table: KnobTable, names: tuple[str, ...]) -> KnobTable:
    rows = tuple(OPTIONAL_KNOBS[name] for name in names)
    return KnobTable("+".join((table.scheme, *names)), (*table.rows, *rows))


def keeping_optional(setting: Setting, base: Setting) -> Setting:
    """Return ``setting`` with the optional knobs of ``base``: no preset says anything of them.

    ``setting`` may be of the scheme's own table or of that of ``base``. Raises ConfigError for one
    of another scheme.
    """
    return base.replace({n: value for n, value in setting.items() if n not in OPTIONAL_KNOBS})
