"""Rows judged on fresh traffic: means over the seeds, differences pair by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dcqcn_gym.core.statistics import ALL_SIZES, Estimate, estimate, paired_change, slowdown_by_seed
from dcqcn_gym.report.data import Series
from dcqcn_gym.report.headline import mean_utility
from dcqcn_gym.runs.log import read_run

__all__ = ["PairedRow", "paired_rows"]


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


def paired_rows(logs: Mapping[str, Sequence[Path]], against: Sequence[str]) -> list[PairedRow]:
    """Return a row per name from its logs, one log per seed, compared with those of ``against``.

    The seeds are the same for all names and in the same order; every log is read once.
    """
    utility: dict[str, list[float]] = {}
    slow: dict[str, dict[str, Sequence[float]]] = {}
    for name, paths in logs.items():
        runs = [Series.of(read_run(path)) for path in paths]
        utility[name] = [mean_utility(series) for series in runs]
        flows = [series.flows for series in runs]
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
        for name in logs
    ]
