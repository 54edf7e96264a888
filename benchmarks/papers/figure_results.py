"""The results of a figure as they are on file, for claims, tables and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.sums import count

Place: TypeAlias = float | str
"""Where along x: a number, or a name such as a workload's."""
Series: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""x and y of a curve that one run gives, such as a queue over time."""


@dataclass(frozen=True)
class FigureResults:
    """All cells of a figure at one size, as they are on file."""

    figure: str
    size: str
    lines: Sequence[Mapping[str, Any]]

    @property
    def seeds(self) -> list[int]:
        """Every seed, once."""
        return sorted({int(line["seed"]) for line in self.lines})

    @property
    def places(self) -> list[tuple[str, Place]]:
        """Every (row, place), in the order of the plan."""
        return list(dict.fromkeys((line["row"], line["x"]) for line in self.lines))

    @property
    def hops(self) -> int:
        """Packet-hops of all runs."""
        return count(line["hops"] for line in self.lines)

    def values(self, measure: str, row: str, x: Place) -> list[float]:
        """Return a measure of all seeds; NaN where it is not known.

        Raises ConfigError if a cell has no such measure: the recipe asks for what it does not make.
        """
        found = [line for line in self.lines if line["row"] == row and line["x"] == x]
        if not found or any(measure not in line["values"] for line in found):
            raise ConfigError(
                f"{self.figure}: no {measure!r} of row {row!r} at {x!r} in the results of size "
                f"{self.size!r}"
            )
        return [_number(line["values"][measure]) for line in found]

    def value(self, measure: str, row: str, x: Place, seed: int) -> float:
        """Return a measure of one seed."""
        return self.values(measure, row, x)[self.seeds.index(seed)]

    def series(self, name: str, row: str, x: Place) -> Series:
        """Return a series of the first seed; empty if there is none."""
        for line in self.lines:
            if line["row"] == row and line["x"] == x and name in line["series"]:
                xs, ys = line["series"][name]
                return [_number(v) for v in xs], [_number(v) for v in ys]
        return [], []


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
