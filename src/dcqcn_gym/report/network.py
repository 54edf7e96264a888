"""Figures of runs beside utility and the usual sizes: round trips, fairness, the papers' sizes.

All come from logs, so every backend that writes one gives them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dcqcn_gym.core.interval import IntArray
from dcqcn_gym.core.statistics import (
    ALL_SIZES,
    PAPER_BINS,
    SizeBin,
    SlowdownRow,
    estimate,
    fairness_of,
    paper_bins,
    slowdown_by_size,
    statistic,
)
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.table import MISSING, Table, as_csv

CDF_POINTS = 1000
"""Points of a curve at most."""

CDF_COLUMNS = ("traffic", "setting", "size", "flows", "fct_ns", "share")
CURVES_FILE = "fct-cdf.csv"


@dataclass(frozen=True)
class NetworkFigures:
    """One run, or the means of several; NaN where a run has nothing."""

    rtt_p99_us: float
    """99th percentile, over the monitor intervals with traffic, of their mean round trip."""
    jain: float
    """Jain's index of the rates (size / completion time) of the finished long flows."""
    sizes: Mapping[str, Sequence[SlowdownRow]]
    """Slowdowns by :data:`PAPER_BINS`, unfinished flows at their age."""


def network_figures(run: Series) -> NetworkFigures:
    """Return the figures of a run."""
    rtt = run.column("rtt_mean_ps")
    rtt = rtt[~np.isnan(rtt)]
    flows = run.every_flow if run.left is not None else run.flows
    return NetworkFigures(
        rtt_p99_us=statistic(rtt, 99) * 1e-6,
        jain=fairness_of(run.finished.bytes, run.fct_ps),
        sizes={name: slowdown_by_size(*flows, bins) for name, bins in PAPER_BINS.items()},
    )


def mean_figures(runs: Sequence[NetworkFigures]) -> NetworkFigures:
    """Return the means over runs of what each has."""
    return NetworkFigures(
        rtt_p99_us=estimate([r.rtt_p99_us for r in runs]).mean,
        jain=estimate([r.jain for r in runs]).mean,
        sizes={
            name: [_mean_row(bin_, [r.sizes[name][i] for r in runs]) for i, bin_ in enumerate(bins)]
            for name, bins in PAPER_BINS.items()
        },
    )


def _mean_row(size_bin: SizeBin, rows: Sequence[SlowdownRow]) -> SlowdownRow:
    means = (estimate([getattr(r, s) for r in rows]).mean for s in ("mean", "p50", "p99", "p999"))
    return SlowdownRow(size_bin, int(np.sum([r.count for r in rows])), *means)


def network_table(figures: Mapping[str, NetworkFigures], title: str = "") -> Table:
    """Return round trips and fairness, a row per setting."""
    columns = (
        "setting",
        "round trip, p99 of intervals, µs",
        "Jain's index, flows from 1 MB on",
    )
    rows = [[name, _cell(f.rtt_p99_us, ".4g"), _cell(f.jain, ".3f")] for name, f in figures.items()]
    return Table(columns, rows, title)


def size_table(figures: Mapping[str, NetworkFigures], bins: str, title: str = "") -> Table:
    """Return slowdowns by a paper's sizes, a row per setting; sizes without a flow are left out.

    Raises UnknownNameError for bins of no paper.
    """
    wanted = paper_bins(bins)
    there = [i for i in range(len(wanted)) if any(f.sizes[bins][i].count for f in figures.values())]
    names = [wanted[i].label for i in there]
    columns = ["setting", *(f"{label}, {s}" for label in names for s in ("flows", "mean", "p99"))]
    rows = [[name, *_size_cells([f.sizes[bins][i] for i in there])] for name, f in figures.items()]
    return Table(columns, rows, title)


def _size_cells(rows: Sequence[SlowdownRow]) -> Iterator[str]:
    for row in rows:
        yield str(row.count)
        yield _cell(row.mean, ".2f")
        yield _cell(row.p99, ".1f")


def _cell(value: float, form: str) -> str:
    return MISSING if math.isnan(value) else format(value, form)


def write_curves(
    path: Path, parts: Mapping[str, Mapping[str, Sequence[Series]]], bins: str | None = None
) -> None:
    """Write the completion times of finished flows as curves, :data:`CDF_COLUMNS`.

    ``parts`` are the runs of each setting by traffic. All sizes, or those of a paper: ``share`` of
    the flows of that size had finished after ``fct_ns``.
    """
    write_atomically(path, as_csv([CDF_COLUMNS, *_curves(parts, bins)]))


def _curves(
    parts: Mapping[str, Mapping[str, Sequence[Series]]], bins: str | None
) -> Iterator[Sequence[object]]:
    wanted = (ALL_SIZES,) if bins is None else paper_bins(bins)
    for part, runs in parts.items():
        for name, many in runs.items():
            size = np.concatenate([run.finished.bytes for run in many])
            fct = np.concatenate([run.fct_ps for run in many])
            yield from ((part, name, *row) for row in cdf_rows(size, fct, wanted))


def curves_of(flows: Path, bins: str | None = None) -> bytes:
    """Return the curves of a table of flows as ``simulate`` writes it, all of one setting."""
    size, fct_ns = np.loadtxt(
        flows, delimiter=",", skiprows=1, usecols=(2, 4), ndmin=2, unpack=True
    ).reshape(2, -1)
    fct_ps = np.round(fct_ns * 1000).astype(np.int64)
    wanted = (ALL_SIZES,) if bins is None else paper_bins(bins)
    rows = (("simulate", "given", *r) for r in cdf_rows(size.astype(np.int64), fct_ps, wanted))
    return as_csv([CDF_COLUMNS, *rows])


def cdf_rows(
    size: IntArray, fct_ps: IntArray, bins: Sequence[SizeBin]
) -> Iterator[tuple[str, int, float, float]]:
    """Yield size, flows, completion time in ns and share of a curve.

    Curves of more than :data:`CDF_POINTS` flows keep ranks at even distances, the first and the
    last.
    """
    for size_bin in bins:
        chosen = np.sort(fct_ps[size_bin.holds(size)])
        n = chosen.size
        if not n:
            continue
        ranks = np.unique(np.linspace(1, n, min(n, CDF_POINTS)).round().astype(np.int64))
        for rank in ranks.tolist():
            yield size_bin.key, n, int(chosen[rank - 1]) / 1000, rank / n
