"""The table of a recommendation per group of devices: what each group has of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dcqcn_gym.core.knobs import KNOBS

__all__ = ["GroupTable", "group_table"]


@dataclass(frozen=True)
class GroupTable:
    """Knobs that some group sets on its own, and one line per group, in NVIDIA's units."""

    columns: tuple[str, ...]
    """Name and unit of each knob; the name alone of another scheme's."""
    lines: tuple[tuple[str, tuple[float, ...]], ...]


def group_table(recommended: Mapping[str, Any]) -> GroupTable | None:
    """Return the table for a logged recommendation; None if it is one setting for all devices."""
    if "cluster" not in recommended:
        return None
    cluster = recommended["cluster"]
    knobs = [k for k in cluster if len({group[k] for group in recommended.values()}) > 1]
    lines = tuple(
        (name, tuple(float(group[knob]) for knob in knobs)) for name, group in recommended.items()
    )
    units = {knob: KNOBS[knob].unit.replace("us", "µs") for knob in knobs if knob in KNOBS}
    return GroupTable(tuple(f"{k} [{units[k]}]" if k in units else k for k in knobs), lines)
