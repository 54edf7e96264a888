"""Committed results measured again: are they still the same bytes?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.papers.catalog import PAPERS, figure
from dcqcn_gym.benchmarks.papers.committed import committed_file, committed_seconds
from dcqcn_gym.benchmarks.papers.results import read_results, size_of
from dcqcn_gym.core.errors import RunError, UnknownNameError
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.version import __version__
from dcqcn_gym.runs.table import Table

EACH = 2
"""How many figures of a paper are run again if none is named."""


@dataclass(frozen=True)
class Rerun:
    """A figure that was run again: its cells, and which of them (in words) have other results."""

    figure: str
    paper: str
    cells: int
    differing: Sequence[str]


def cheapest(keep: Path, size: str, each: int = EACH) -> list[str]:
    """Return the figures of each paper that took the least CPU time of those committed at a size.

    Raises RunError if none is committed.
    """
    found: list[str] = []
    for paper in PAPERS:
        spent = {
            name: seconds
            for name, seconds in _kept(keep, size).items()
            if figure(name).paper == paper.name
        }
        found += sorted(spent, key=lambda name: (spent[name], name))[:each]
    if not found:
        raise RunError(f"{keep} holds no results of size {size!r}; tools/paper_pages.py keeps some")
    return found


def _kept(keep: Path, size: str) -> dict[str, float]:
    """Return the CPU seconds of every figure that is committed at a size, by its name."""
    ending = f"-{size}.jsonl"
    names = [path.name.removesuffix(ending) for path in sorted(keep.glob(f"*{ending}"))]
    spent = {name: committed_seconds(keep, name, size) for name in names}
    return {name: float("inf") if cost is None else cost for name, cost in spent.items()}


def committed(name: str, size: str, keep: Path) -> Path:
    """Return the committed results of a figure at a size; UnknownNameError if there are none."""
    found = figure(name)
    size_of(found, size)
    if not keep.is_dir():
        raise RunError(
            f"{keep} does not exist: results are kept in the repository, not in wheels; "
            "expected a checkout, or run the figure with `dcqcn-gym paper run`"
        )
    path = committed_file(keep, found.name, size)
    if not path.is_file():
        raise UnknownNameError(f"figure kept at size {size!r}", found.name, _kept(keep, size))
    return path


def compared(results: Path, path: Path) -> Rerun:
    """Compare results of now with the committed ones."""
    old, new = path.read_bytes().splitlines(), results.read_bytes().splitlines()
    found = figure(read_results(results).figure)
    return Rerun(found.name, found.paper, len(new), _differing(old, new))


def _differing(old: Sequence[bytes], new: Sequence[bytes]) -> list[str]:
    """Return the cells whose lines differ, and those that only one of the two has."""
    pair = [{_cell(line): line for line in lines} for lines in (old, new)]
    cells = list(dict.fromkeys([*pair[0], *pair[1]]))
    named = [cell for cell in cells if pair[0].get(cell) != pair[1].get(cell)]
    return named or ([] if list(old) == list(new) else ["the order of the cells"])


def _cell(line: bytes) -> str:
    found: Mapping[str, Any] = json.loads(line)
    return f"{found['row']} at {found['x']}, seed {found['seed']}"


def table_of_reruns(reruns: Sequence[Rerun]) -> Table:
    """Return a line per figure: its cells, and whether they came out as they are committed."""
    rows = [
        (one.figure, one.paper, str(one.cells),
         f"{len(one.differing)} differ" if one.differing else "the same bytes")
        for one in reruns
    ]  # fmt: skip
    whole = count(one.cells for one in reruns)
    title = f"{whole} cells measured again by version {__version__}"
    return Table(("figure", "paper", "cells", "against what is kept"), rows, title=title, words=4)
