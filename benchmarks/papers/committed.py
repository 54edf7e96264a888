"""The results that are committed with the project, one file per figure and size.

Those with ACKs in the class of their data lie in a folder of their own; comparisons with ns-3 are
one file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dcqcn_gym.benchmarks.papers.acks import FOLDER, has_data_acks, with_data_acks
from dcqcn_gym.benchmarks.papers.catalog import figure as figure_of
from dcqcn_gym.benchmarks.papers.checks import CONFIRMED_FILE, Checks, read_confirmed
from dcqcn_gym.benchmarks.papers.figure import SIZES, Figure
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.benchmarks.papers.results import RESULTS_FILE, TIMING_FILE, read_results, size_of
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.runs.atomic_file import write_atomically


def commit_results(folder: Path, keep: Path) -> Path:
    """Copy the results of a run into ``keep``, with the time they took; return the file.

    Raises RunError for results that are not of the figure as it is now.
    """
    results = read_results(folder / RESULTS_FILE)
    _check_current(folder, results)
    if not keep.is_dir():
        raise RunError(f"--keep {keep} is no folder; run this in a checkout, or make the folder")
    place = keep / FOLDER if has_data_acks(results) else keep
    path = committed_file(place, results.figure, results.size)
    path.parent.mkdir(exist_ok=True)
    timing = (folder / TIMING_FILE).read_bytes()
    write_atomically(path, (folder / RESULTS_FILE).read_bytes())
    write_atomically(_timing(path), timing)
    return path


def _check_current(folder: Path, results: FigureResults) -> None:
    """Raise RunError if a figure's rows, length or revision are no longer those of its results."""
    of = figure_of(results.figure)
    if has_data_acks(results):
        of = with_data_acks(of)
    size = size_of(of, results.size)
    now = [
        (of.revision, size.length_ms, dict(size.more), cell.row, cell.x, cell.seed)
        for cell in size.cells()
    ]
    keys = ("revision", "length_ms", "more", "row", "x", "seed")
    if [tuple(line[key] for key in keys) for line in results.lines] != now:
        raise RunError(
            f"{folder} holds results of another state of {of.name}: its rows, length or revision "
            f"have changed since; run dcqcn-gym paper run {of.name} --size {results.size} again"
        )


def committed_file(folder: Path, figure: str, size: str) -> Path:
    """Return where the results of a figure at a size are committed."""
    return folder / f"{figure}-{size}.jsonl"


def committed_checks(keep: Path) -> Checks:
    """Return what was checked beside the figures; empty where nothing is committed."""
    data = [read_results(path) for path in sorted((keep / FOLDER).glob("*.jsonl"))]
    both = {
        one.figure: (read_results(committed_file(keep, one.figure, one.size)), one) for one in data
    }
    confirmed = keep / CONFIRMED_FILE
    return Checks(both, read_confirmed(confirmed) if confirmed.exists() else {})


def committed_results(keep: Path) -> Mapping[str, tuple[FigureResults, float | None]]:
    """Return the results of every figure at its largest size, and the CPU seconds they took."""
    best: dict[str, tuple[FigureResults, float | None]] = {}
    found = [read_results(path) for path in sorted(keep.glob("*.jsonl"))]
    for results in sorted(found, key=lambda one: SIZES.index(one.size)):
        best[results.figure] = results, committed_seconds(keep, results.figure, results.size)
    return best


def committed_seconds(keep: Path, figure: str, size: str) -> float | None:
    """Return the CPU seconds that a figure's committed results at a size took; None if unknown.

    Raises RunError for a file that lacks them.
    """
    timing = _timing(committed_file(keep, figure, size))
    if not timing.exists():
        return None
    try:
        return float(json.loads(timing.read_bytes())["cpu_s"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{timing} does not hold the CPU time of a figure; remove it, or keep the results anew"
        ) from error


def cost_in_words(keep: Path, figure: Figure, size: str) -> str:
    """Say how many cells a size has, and what they cost when their results were committed.

    Raises UnknownNameError for a size that the figure does not have.
    """
    cells = len(list(size_of(figure, size).cells()))
    spent = {name: committed_seconds(keep, figure.name, name) for name in figure.sizes}
    known = {name: f"{seconds:,.0f} s of CPU time" for name, seconds in spent.items() if seconds}
    cost = f"{known[size]} when they were kept" if size in known else "cost not known"
    others = [f"; {name} took {words}" for name, words in known.items() if size not in known]
    return f"{figure.name} at size {size}: {cells} cells, {cost}{''.join(others)}"


def _timing(kept: Path) -> Path:
    return kept.with_suffix(f".{TIMING_FILE}")
