"""Rows judged on fresh traffic: means over the seeds, differences pair by pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dcqcn_gym.core.statistics import ALL_SIZES, Estimate, estimate, paired_change, slowdown_by_seed
from dcqcn_gym.report.data import Series
from dcqcn_gym.report.headline import mean_utility
from dcqcn_gym.runs.log import read_run

__all__ = ["PairedRow", "paired_rows", "series_of"]


@dataclass(frozen=True)
class PairedRow:
    """One row of a table: estimates over the seeds, each pair on the same traffic."""

    name: str
    utility: Estimate
    utility_gain: Mapping[str, Estimate]
    """Utility minus that of each other row it is compared with."""
    slowdown: Mapping[str, Estimate]
    """FCT over the FCT in an idle network, all sizes: ``mean`` and ``p99``."""
    slowdown_change: Mapping[str, Estimate]
    """Relative change of either against the first row that is compared with."""


def series_of(paths: Iterable[Path]) -> Iterator[Series]:
    """Read logs, one at a time."""
    return (Series.of(read_run(path)) for path in paths)


def paired_rows(runs: Mapping[str, Iterable[Series]], against: Sequence[str]) -> list[PairedRow]:
    """Return a row per name from its runs, one per seed, compared with those of ``against``.

    The seeds are the same for all names and in the same order.
    """
    utility: dict[str, list[float]] = {}
    slow: dict[str, dict[str, Sequence[float]]] = {}
    for name, found in runs.items():
        kept = [(mean_utility(series), series.flows) for series in found]
        utility[name] = [mean for mean, _ in kept]
        flows = [some for _, some in kept]
        slow[name] = {s: slowdown_by_seed(flows, ALL_SIZES, s).tolist() for s in ("mean", "p99")}
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
        )
        for name in runs
    ]
