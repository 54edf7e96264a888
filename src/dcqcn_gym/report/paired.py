"""Rows judged on fresh traffic: means over the seeds, differences pair by pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dcqcn_gym.core.statistics import ALL_SIZES, Estimate, estimate, paired_change, slowdown_by_seed
from dcqcn_gym.report.judged import mean_utility
from dcqcn_gym.report.series import FloatArray, IntArray, Series
from dcqcn_gym.runs.log import read_run

__all__ = ["ONE_TRACE", "PairedRow", "one_trace", "paired_rows", "series_of"]

ONE_TRACE = "every seed gives the same result: one trace, no interval"


@dataclass(frozen=True)
class PairedRow:
    """One row of a table: estimates over the seeds, each pair on the same traffic."""

    name: str
    utility: Estimate
    utility_gain: Mapping[str, Estimate]
    """Utility minus that of each other row it is compared with."""
    slowdown: Mapping[str, Estimate]
    """FCT over the FCT in an idle network, all sizes: ``mean`` and ``p99``. Of all flows, those
    unfinished at their age; NaN where a log does not tell them."""
    slowdown_change: Mapping[str, Estimate]
    """Relative change of either against the first row that is compared with."""
    slowdown_finished: Mapping[str, Estimate]
    """The same of the flows that finished alone: starving flows makes it better."""
    unfinished: Estimate
    """Flows that were not finished at the end of a run."""


def one_trace(rows: Sequence[PairedRow]) -> bool:
    """Return whether no row differs between seeds: then they are no evidence on other traffic."""
    figures = [e for row in rows for e in (row.utility, *row.slowdown_finished.values())]
    known = [e for e in figures if e.n > 1]
    return bool(known) and all(e.constant for e in known)


def series_of(paths: Iterable[Path]) -> Iterator[Series]:
    """Read logs, one at a time; which ones is settled now, not when they are read."""
    settled = list(paths)
    return (Series.of(read_run(path)) for path in settled)


def paired_rows(runs: Mapping[str, Iterable[Series]], against: Sequence[str]) -> list[PairedRow]:
    """Return a row per name from its runs, one per seed, compared with those of ``against``.

    The seeds are the same for all names and in the same order.
    """
    utility: dict[str, list[float]] = {}
    slow: dict[str, dict[str, Sequence[float]]] = {}
    finished: dict[str, dict[str, Sequence[float]]] = {}
    left: dict[str, list[float]] = {}
    for name, found in runs.items():
        kept = [
            (mean_utility(one), one.every_flow, one.flows, float(one.unfinished)) for one in found
        ]
        utility[name] = [row[0] for row in kept]
        slow[name] = _slowdowns([row[1] for row in kept])
        finished[name] = _slowdowns([row[2] for row in kept])
        left[name] = [row[3] for row in kept]
    return [
        PairedRow(
            name=name,
            utility=estimate(utility[name]),
            utility_gain={
                other: paired_change(utility[name], utility[other])
                for other in against
                if other != name
            },
            slowdown={statistic: estimate(values) for statistic, values in slow[name].items()},
            slowdown_change={
                statistic: paired_change(values, slow[other][statistic], relative=True)
                for other in against[:1]
                for statistic, values in slow[name].items()
            },
            slowdown_finished={s: estimate(values) for s, values in finished[name].items()},
            unfinished=estimate(left[name]),
        )
        for name in runs
    ]


def _slowdowns(flows: Sequence[tuple[IntArray, FloatArray]]) -> dict[str, Sequence[float]]:
    """Return mean and 99th percentile over all sizes, one per run; NaN for one without flows."""
    return {s: slowdown_by_seed(flows, ALL_SIZES, s).tolist() for s in ("mean", "p99")}
