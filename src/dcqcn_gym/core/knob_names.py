"""The names that knobs have on devices, for people who type or paste those."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import KNOBS, Knob

T = TypeVar("T")


def knob_name(text: str, knobs: Mapping[str, Knob] = KNOBS) -> str:
    """Return the knob that mlxconfig calls so (``RPG_AI_RATE`` or with ``_P1``), or ``text``."""
    plain = text.removesuffix("_P1").removesuffix("_P2")
    return next((r.name for r in knobs.values() if plain in (r.mlxconfig, r.debugfs)), text)


def by_knob_name(values: Mapping[str, T], knobs: Mapping[str, Knob] = KNOBS) -> dict[str, T]:
    """Return ``values`` by the knobs' own names; ConfigError if a knob is there by two names."""
    named: dict[str, T] = {}
    for text, value in values.items():
        name = knob_name(str(text), knobs)
        if name in named:
            raise ConfigError(f"{name} is there twice, also as {text}; expected every knob once")
        named[name] = value
    return named
