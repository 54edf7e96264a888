"""Entries judged on held-out traffic: means over the seeds, differences pair by pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dcqcn_gym.core.statistics import Estimate, estimate, paired_change
from dcqcn_gym.core.verdict import ONE_TRACE
from dcqcn_gym.report.metrics import METRICS, SLOWDOWN_STATISTICS
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.table import Table, point, with_interval

_SHOWN = (
    "utility",
    "unfinished",
    *(f"{kind}-{s}" for kind in ("slowdown", "finished") for s in SLOWDOWN_STATISTICS),
)


@dataclass(frozen=True)
class PairedRow:
    """One row of a table: estimates over the seeds, each pair on the same traffic."""

    name: str
    utility: Estimate
    utility_gain: Mapping[str, Estimate]
    """Utility minus that of each other row it is compared with."""
    slowdown: Mapping[str, Estimate]
    """FCT over the FCT in an idle network, all sizes: ``mean`` and ``p99``. Of all flows, those
    unfinished at their age; NaN where a log lacks them."""
    slowdown_change: Mapping[str, Estimate]
    """Relative change of either against the first row that is compared with."""
    slowdown_finished: Mapping[str, Estimate]
    """The same of the flows that finished alone: starving flows makes it better."""
    unfinished: Estimate
    """Flows that were not finished at the end of a run."""


def one_trace(rows: Sequence[PairedRow]) -> bool:
    """Return whether seeds change no traffic, or nothing: they are no evidence on other traffic."""
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
    found: dict[str, dict[str, list[float]]] = {}
    drawn = True
    for name, some in runs.items():
        found[name] = {metric: [] for metric in _SHOWN}
        for one in some:
            drawn = drawn and one.drawn
            for metric, values in found[name].items():
                values.append(METRICS[metric].of(one))

    return [_paired(name, found, against, drawn=drawn) for name in found]


def _paired(
    name: str,
    found: Mapping[str, Mapping[str, list[float]]],
    against: Sequence[str],
    *,
    drawn: bool,
) -> PairedRow:
    """Return the row of a name; ``found`` has the values of each name by metric and seed."""
    mine = found[name]

    def judged(value: Estimate) -> Estimate:
        return value if drawn else value.of_one_trace()

    def change(metric: str, other: str, *, relative: bool = False) -> Estimate:
        return judged(paired_change(mine[metric], found[other][metric], relative=relative))

    return PairedRow(
        name=name,
        utility=judged(estimate(mine["utility"])),
        utility_gain={other: change("utility", other) for other in against if other != name},
        slowdown={s: judged(estimate(mine[f"slowdown-{s}"])) for s in SLOWDOWN_STATISTICS},
        slowdown_change={
            s: change(f"slowdown-{s}", other, relative=True)
            for other in against[:1]
            for s in SLOWDOWN_STATISTICS
        },
        slowdown_finished={s: judged(estimate(mine[f"finished-{s}"])) for s in SLOWDOWN_STATISTICS},
        unfinished=judged(estimate(mine["unfinished"])),
    )


def paired_table(rows: Sequence[PairedRow], title: str) -> Table:
    """Return the table of rows; brackets are 95 % intervals over the seeds, paired."""
    known = {name for row in rows for name in row.utility_gain}
    others = [row.name for row in rows if row.name in known]
    first = others[:1]
    columns = ["entry", "utility", *(f"minus {name}" for name in others)]
    for what in ("mean slowdown", "p99 slowdown"):
        columns += [what, *(f"against {name}" for name in first)]
    columns += ["finished only, mean", "p99", "unfinished"]
    words = f"{title} ({ONE_TRACE})" if one_trace(rows) else title
    return Table(columns, [_cells(row, others) for row in rows], words)


def _cells(row: PairedRow, others: Sequence[str]) -> list[str]:
    gains = [with_interval(row.utility_gain.get(name), "+.4f", style="brackets") for name in others]
    cells = [row.name, point(row.utility), *gains]
    for statistic, value in row.slowdown.items():
        cells.append(point(value, ".2f"))
        if others:
            change = None if row.name == others[0] else row.slowdown_change[statistic]
            cells.append(with_interval(change, "+.1f", 100, unit=" %", style="brackets"))
    cells += [point(value, ".2f") for value in row.slowdown_finished.values()]
    return [*cells, point(row.unfinished, ".0f")]
