"""The results that are kept with the project, one file per figure and size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dcqcn_gym.benchmarks.papers.figure import SIZES
from dcqcn_gym.benchmarks.papers.results import RESULTS_FILE, TIMING_FILE, Results, read_results
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.runs.log import write_atomically

__all__ = ["keep_results", "kept_results"]


def keep_results(folder: Path, keep: Path) -> Path:
    """Copy the results of a run into ``keep``, with the time they took; return the file."""
    results = read_results(folder / RESULTS_FILE)
    if not keep.is_dir():
        raise RunError(f"--keep {keep} is no folder; run this in a checkout, or make the folder")
    path = keep / f"{results.figure}-{results.size}.jsonl"
    timing = (folder / TIMING_FILE).read_bytes()
    write_atomically(path, (folder / RESULTS_FILE).read_bytes())
    write_atomically(path.with_suffix(".timing.json"), timing)
    return path


def kept_results(keep: Path) -> Mapping[str, tuple[Results, float | None]]:
    """Return the results of every figure at its largest size, and the CPU seconds they took."""
    best: dict[str, tuple[Results, float | None]] = {}
    found = [(read_results(path), path) for path in sorted(keep.glob("*.jsonl"))]
    for results, path in sorted(found, key=lambda pair: SIZES.index(pair[0].size)):
        timing = path.with_suffix(".timing.json")
        spent = json.loads(timing.read_bytes())["cpu_s"] if timing.exists() else None
        best[results.figure] = results, spent
    return best
