"""What a comparison shows besides utility: applications, round trips, fairness, a paper's sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from dcqcn_gym.comparison.results import EntryResult
from dcqcn_gym.report.applications import application_tables, grid_of
from dcqcn_gym.report.network import (
    CURVES_FILE,
    mean_figures,
    network_table,
    size_table,
    write_curves,
)
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.table import Table
from dcqcn_gym.runs.trials import Trial


def network_tables(
    name: str, entries: Sequence[EntryResult], bins: str | None = None
) -> list[Table]:
    """Return the tables of a scenario: of what each entry recommends, on held-out seeds.

    ``bins`` names the paper whose sizes are wanted too; raises UnknownNameError for another name.
    """
    return [table for table in _tables(name, entries, bins) if table.rows]


def _tables(name: str, entries: Sequence[EntryResult], bins: str | None) -> Iterator[Table]:
    there = [entry for entry in entries if entry.seeds]
    seeds = sorted({f.seed for entry in there for f in entry.figures})
    done = {}
    for entry in there:
        runs = {f.seed: {s["workload"]: s for s in f.applications} for f in entry.figures}
        done[entry.tuner] = [runs.get(seed, {}) for seed in seeds]
    for table in application_tables(done):
        yield grid_of(table, f"{name}: {table.title} on held-out traffic")
    network = {
        entry.tuner: mean_figures([f.network for f in entry.figures if f.network is not None])
        for entry in there
    }
    yield network_table(network, f"{name}: round trips and fairness on held-out traffic")
    if bins is not None:
        yield size_table(network, bins, f"{name}: slowdown by size on held-out traffic")


def write_fct_curves(trials: Iterable[Trial], out: Path, bins: str | None = None) -> Path:
    """Write completion times on held-out seeds as curves by scenario and tuner; return the path."""
    parts: dict[str, dict[str, list[Series]]] = {}
    for trial in trials:
        logs = [path for path in trial.held_out if path.exists()]
        runs = parts.setdefault(trial.folder.parent.name, {})
        if logs:
            runs.setdefault(trial.label, []).extend(Series.of(read_run(path)) for path in logs)
    known: Mapping[str, Mapping[str, Sequence[Series]]] = parts
    write_curves(out / CURVES_FILE, known, bins)
    return out / CURVES_FILE
