"""Results of a figure: one line of JSON per cell, made by jobs that a campaign carries out.

A cell leaves a file of its own, so a run that is interrupted goes on with what is missing; files of
another version are made again, and a folder of another figure or size is refused.
``results.jsonl`` holds all of them in the order of the plan: the same bytes whatever the number of
workers. What it cost in time is in ``timing.json``, which alone differs from run to run.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dcqcn_gym
from dcqcn_gym.benchmarks.papers.figure import (
    DATA_ACKS,
    SIZES,
    Cell,
    Figure,
    Measured,
    Place,
    Series,
    Size,
)
from dcqcn_gym.core.errors import ConfigError, RunError, UnknownNameError
from dcqcn_gym.core.files import parse_json
from dcqcn_gym.core.sums import count, total
from dcqcn_gym.runs.campaign import Progress, carry_out, raise_failures
from dcqcn_gym.runs.log import encode_line, write_json
from dcqcn_gym.runs.pool import step_back
from dcqcn_gym.runs.whole_file import write_atomically

RESULTS_FILE = "results.jsonl"
TIMING_FILE = "timing.json"
SCHEMA = 1
DIGITS = 6
"""Significant digits of what is committed: enough for every table, the same on every machine."""


@dataclass(frozen=True)
class CellJob:
    """One cell and the file that it leaves: what was measured, and the CPU seconds it took."""

    figure: Figure
    size: str
    cell: Cell
    path: Path

    @property
    def name(self) -> str:
        """What people read that is being done."""
        return f"{self.figure.name} {self.cell.name}"

    def header(self) -> dict[str, Any]:
        """Return what has to be the same for a file that is there to be left as it is."""
        size = self.figure.sizes[self.size]
        return {
            "schema": SCHEMA,
            "figure": self.figure.name,
            "revision": self.figure.revision,
            "size": self.size,
            "length_ms": size.length_ms,
            "more": dict(size.more),
            "row": self.cell.row,
            "x": self.cell.x,
            "seed": self.cell.seed,
        }

    def work(self) -> None:
        """Measure, unless the file is there."""
        if self.done():
            return
        step_back()
        begin = time.process_time()
        measured = self.figure.measure(self.cell, self.figure.sizes[self.size])
        spent = round(time.process_time() - begin, 2)
        made = {"cpu_s": spent, "version": dcqcn_gym.__version__}
        line = {**self.header(), **_kept(measured), **made}
        write_atomically(self.path, encode_line(line))

    def done(self) -> bool:
        """Return whether the file holds this cell, measured in this way by this version."""
        found = _read_cell(self.path)
        if found is None or not isinstance(found.get("cpu_s"), int | float):
            return False
        wanted = {**self.header(), "version": dcqcn_gym.__version__}
        return {key: found.get(key) for key in wanted} == wanted


def _read_cell(path: Path) -> dict[str, Any] | None:
    """Return what a cell left; None for a file that is no cell."""
    try:
        found = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if _is_line(found) else None


_LINE: Mapping[str, type | tuple[type, ...]] = {
    "figure": str, "revision": int, "size": str, "length_ms": (int, float), "more": dict,
    "row": str, "x": (str, int, float), "seed": int, "values": dict, "series": dict, "hops": int,
}  # fmt: skip
"""What the results of a cell hold, and of which type."""


def _is_line(found: Any) -> bool:
    """Return whether this is what a cell leaves."""
    return (
        isinstance(found, dict)
        and all(isinstance(found.get(key), kind) for key, kind in _LINE.items())
        and found["size"] in SIZES
        and all(v is None or isinstance(v, int | float) for v in found["values"].values())
    )


def _kept(measured: Measured) -> dict[str, Any]:
    series = {
        name: [[_rounded(v) for v in x], [_rounded(v) for v in y]]
        for name, (x, y) in measured.series.items()
    }
    values = {name: _rounded(value) for name, value in measured.values.items()}
    return {"values": values, "series": series, "hops": measured.hops}


def _rounded(value: float) -> float | None:
    """Return a number with :data:`DIGITS` digits; None for one that is not known."""
    number = float(f"{value:.{DIGITS}g}")
    return number if abs(number) < float("inf") else None


@dataclass(frozen=True)
class Results:
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


def size_of(figure: Figure, name: str) -> Size:
    """Return a size of a figure; UnknownNameError for one that it does not have."""
    if name not in figure.sizes:
        raise UnknownNameError(f"size of {figure.name}", name, figure.sizes)
    return figure.sizes[name]


def produce(
    figure: Figure,
    size: str,
    out: Path,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Results:
    """Measure every cell that is missing in ``out`` and write :data:`RESULTS_FILE`.

    ``executor`` as in :func:`~dcqcn_gym.runs.campaign.carry_out`. Raises RunError if ``out`` holds
    another figure or size, or naming what failed; what is finished stays.
    """
    cells = list(size_of(figure, size).cells())
    jobs = [CellJob(figure, size, cell, _path(out, cell)) for cell in cells]
    _check_same(jobs[0].header(), out)
    (out / "cells").mkdir(parents=True, exist_ok=True)
    raise_failures(carry_out(jobs, workers=workers, executor=executor, progress=progress))
    lines = [parse_json(job.path.read_bytes()) for job in jobs]
    spent = total(float(line.pop("cpu_s")) for line in lines)
    for line in lines:
        del line["version"]
        if line["seed"] != 1:
            line["series"] = {}
    write_atomically(out / RESULTS_FILE, b"".join(encode_line(line) for line in lines))
    write_json(out / TIMING_FILE, {"cpu_s": round(spent, 1)})
    return Results(figure.name, size, lines)


def _check_same(wanted: Mapping[str, Any], out: Path) -> None:
    """Raise RunError if ``out`` holds cells of another figure or size, or with other ACKs.

    Cells of one row, place and seed have one name, so that they would take each other's place.
    """
    for path in sorted((out / "cells").glob("*.json")):
        found = _read_cell(path)
        if found is not None and _whose(found) != _whose(wanted):
            raise RunError(
                f"{out} holds cells of {_whose(found)}, not of {_whose(wanted)}; give another --out"
            )


def _whose(header: Mapping[str, Any]) -> str:
    """Return in words what has to be the same for all cells of a folder."""
    acks = " with ACKs in their data's class" if header["more"].get(DATA_ACKS) else ""
    return f"{header['figure']} at size {header['size']}{acks}"


def _path(out: Path, cell: Cell) -> Path:
    """Return the file of a cell: its words, and a few digits that distinguish like words."""
    words = re.sub(r"[^A-Za-z0-9.]+", "-", cell.name)
    mark = hashlib.sha256(repr(cell).encode()).hexdigest()[:6]
    return out / "cells" / f"{words}-{mark}.json"


def read_results(path: Path) -> Results:
    """Return results on file; RunError for a file that holds none."""
    try:
        lines = [parse_json(line) for line in path.read_bytes().splitlines()]
        if not all(map(_is_line, lines)):
            raise ValueError("a line that no cell leaves")
        names, sizes = ({line[key] for line in lines} for key in ("figure", "size"))
        (figure,), (size,) = names, sizes
    except (OSError, ValueError) as error:
        raise RunError(f"{path} does not hold results of a figure of a paper") from error
    return Results(figure, size, lines)
