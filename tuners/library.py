"""The arms of the bandits: a small library of settings to choose among.

By default (ours): NVIDIA's default, the experts' setting, the two pretrained ones, and four on a
ladder from delay-friendly to throughput-friendly: the default with every tuned knob moved by 4 or
8 table steps in its friendly direction. A TOML file of ``[NAME]`` tables with knobs in NVIDIA's
units, each a change of the setting in force, replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dcqcn_gym.core.config import read_toml
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.knobs import DCQCN, Setting, default_setting, expert_setting
from dcqcn_gym.core.optional_knobs import keeping_optional
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.tuners.base import TunerContext
from dcqcn_gym.tuners.pretrained import FOLDER, pretrained_setting
from dcqcn_gym.tuners.steps import moved

PRETRAINED = ("pretrained-alltoall", "pretrained-fbhadoop")
"""Arms that exist for DCQCN alone."""

__all__ = ["default_library", "load_library"]

LADDER: Mapping[str, int] = {
    "delay-8": -8,
    "delay-4": -4,
    "throughput-4": 4,
    "throughput-8": 8,
}
"""Table steps of each rung; positive is throughput-friendly."""


def default_library(space: KnobSpace, base: Setting | None = None) -> dict[str, Setting]:
    """Return the built-in arms for a knob space, by name, in a fixed order.

    Optional knobs, of which they say nothing, are those of ``base``; the ladder moves from there.
    """
    rate, table = space.line_rate_bps, space.table
    start = default_setting(rate, table)
    base = start if base is None else base
    arms = {"default": start, "expert": expert_setting(rate, table)}
    for name in PRETRAINED if table.scheme.partition("+")[0] == DCQCN.scheme else ():
        arms[name] = pretrained_setting(FOLDER / f"{name}.toml", rate, table)
    arms = {name: keeping_optional(arm, base) for name, arm in arms.items()}
    start = arms["default"]
    for name, steps in LADDER.items():
        arms[name] = _rung(start, steps, space)
    return arms


def _rung(start: Setting, steps: int, space: KnobSpace) -> Setting:
    values: dict[str, float] = {}
    for name in space.knobs:
        row = space.row(name)
        by = steps * row.direction * row.step_at(space.line_rate_bps)
        values[name] = moved(row, start, by, space.line_rate_bps)
    return space.moved(values, start)


def load_library(path: str, context: TunerContext) -> dict[str, Setting]:
    """Return the arms of a TOML file; raise ConfigError naming the file and the arm."""
    arms: dict[str, Setting] = {}
    for name, knobs in read_toml(Path(path)).items():
        if not isinstance(knobs, dict):
            raise ConfigError(f"{path}: expected tables of knobs such as [{name}], got a value")
        values: dict[str, float] = {}
        for knob, value in knobs.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(f"{path}: [{name}] {knob} = {quote(value)}: expected a number")
            values[knob] = value
        setting = context.base.replace(values)
        arms[name] = setting.check(context.space.line_rate_bps, f"{path}: [{name}]")
    if len(arms) < 2:
        raise ConfigError(f"{path}: a library needs at least two settings, got {len(arms)}")
    return arms
