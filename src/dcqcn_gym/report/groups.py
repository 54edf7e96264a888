"""The table of a recommendation per group of devices: what each group has of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dcqcn_gym.core.knobs import KNOBS, Knob

__all__ = ["GroupTable", "group_table"]


@dataclass(frozen=True)
class GroupTable:
    """Knobs that some group has apart, and one line per group, in NVIDIA's units."""

    knobs: tuple[Knob, ...]
    lines: tuple[tuple[str, tuple[float, ...]], ...]


def group_table(recommended: Mapping[str, Any]) -> GroupTable | None:
    """Return the table for a logged recommendation; None if it is one setting for all devices."""
    if "cluster" not in recommended:
        return None
    knobs = tuple(
        row for name, row in KNOBS.items() if len({g[name] for g in recommended.values()}) > 1
    )
    lines = tuple(
        (name, tuple(float(group[row.name]) for row in knobs))
        for name, group in recommended.items()
    )
    return GroupTable(knobs, lines)
