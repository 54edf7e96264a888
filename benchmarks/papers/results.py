"""Results of a figure: one line of JSON per cell, made by jobs that a campaign carries out.

A figure at a size is a :class:`~dcqcn_gym.runs.study.Study`: a cell leaves a file of its own.
``results.jsonl`` holds all of them in the order of the plan: the same bytes whatever the number of
workers. What it cost in time is in ``timing.json``, which alone differs from run to run.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.papers.figure import SIZES, Cell, Figure, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.core.errors import RunError, UnknownNameError
from dcqcn_gym.core.files import parse_json
from dcqcn_gym.core.sums import total
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.campaign import JsonJob, Progress, carry_out, raise_failures
from dcqcn_gym.runs.log import encode_line, write_json
from dcqcn_gym.runs.study import Study

KIND = "paper run"
RESULTS_FILE = "results.jsonl"
TIMING_FILE = "timing.json"
SCHEMA = 1
DIGITS = 6
"""Significant digits of what is committed: enough for every table, the same on every machine."""


def measured(figure: Figure, size: str, cell: Cell) -> dict[str, Any]:
    """Measure a cell; return its line of the results, and the CPU seconds it took."""
    of = figure.sizes[size]
    begin = time.process_time()
    found = figure.measure(cell, of)
    spent = round(time.process_time() - begin, 2)
    return {
        "schema": SCHEMA,
        "figure": figure.name,
        "revision": figure.revision,
        "size": size,
        "length_ms": of.length_ms,
        "more": dict(of.more),
        "row": cell.row,
        "x": cell.x,
        "seed": cell.seed,
        "values": {name: _rounded(value) for name, value in found.values.items()},
        "series": {
            name: [[_rounded(v) for v in x], [_rounded(v) for v in y]]
            for name, (x, y) in found.series.items()
        },
        "hops": found.hops,
        "cpu_s": spent,
    }


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


def _rounded(value: float) -> float | None:
    """Return a number with :data:`DIGITS` digits; None for one that is not known."""
    number = float(f"{value:.{DIGITS}g}")
    return number if abs(number) < float("inf") else None


def size_of(figure: Figure, name: str) -> Size:
    """Return a size of a figure; UnknownNameError for one that it does not have."""
    if name not in figure.sizes:
        raise UnknownNameError(f"size of {figure.name}", name, figure.sizes)
    return figure.sizes[name]


def study_of(figure: Figure, size: str, out: Path) -> Study[JsonJob]:
    """Return the study of a figure at a size: a job for each of its cells."""
    of = size_of(figure, size)
    cells = list(of.cells())
    return Study(
        kind=KIND,
        same={
            "figure": figure.name,
            "revision": figure.revision,
            "size": size,
            "length_ms": of.length_ms,
            "more": dict(of.more),
        },
        parts={
            "row": {cell.row: None for cell in cells},
            "place": {str(cell.x): None for cell in cells},
            "seed": {str(cell.seed): None for cell in cells},
        },
        jobs={
            (cell.row, str(cell.x), str(cell.seed)): JsonJob(
                f"{figure.name} {cell.name}", _path(out, cell),
                partial(measured, figure, size, cell),
            )
            for cell in cells
        },
    )  # fmt: skip


def produce(
    figure: Figure,
    size: str,
    out: Path,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
) -> FigureResults:
    """Measure every cell that ``out`` lacks, and write the files of its results.

    Raises RunError naming what differs from what ``out`` holds, or what failed.
    """
    study = study_of(figure, size, out)
    study.begin(out)
    return finish(study, out, workers=workers, executor=executor)


def finish(
    study: Study[JsonJob],
    out: Path,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> FigureResults:
    """Carry out a study that has begun; RunError names what failed, what is finished stays."""
    jobs = list(study.jobs.values())
    raise_failures(carry_out(jobs, workers=workers, executor=executor, progress=progress))
    lines = [job.result() for job in jobs]
    spent = total(float(line.pop("cpu_s")) for line in lines)
    for line in lines:
        if line["seed"] != 1:
            line["series"] = {}
    write_atomically(out / RESULTS_FILE, b"".join(encode_line(line) for line in lines))
    write_json(out / TIMING_FILE, {"cpu_s": round(spent, 1)})
    return FigureResults(study.same["figure"], study.same["size"], lines)


def _path(out: Path, cell: Cell) -> Path:
    """Return the file of a cell: its words, and a few digits that distinguish like words."""
    words = re.sub(r"[^A-Za-z0-9.]+", "-", cell.name)
    mark = hashlib.sha256(repr(cell).encode()).hexdigest()[:6]
    return out / "cells" / f"{words}-{mark}.json"


def read_results(path: Path) -> FigureResults:
    """Return results on file; RunError for a file that holds none."""
    try:
        lines = [parse_json(line) for line in path.read_bytes().splitlines()]
        if not all(map(_is_line, lines)):
            raise ValueError("a line that no cell leaves")
        names, sizes = ({line[key] for line in lines} for key in ("figure", "size"))
        (figure,), (size,) = names, sizes
    except (OSError, ValueError) as error:
        raise RunError(f"{path} does not hold results of a figure of a paper") from error
    return FigureResults(figure, size, lines)
