"""The table of metrics: every figure of a log that has one value per run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.score import CLASSES, FlowClass
from dcqcn_gym.core.statistics import statistic
from dcqcn_gym.report.series import Series


@dataclass(frozen=True)
class Metric:
    """One figure of a run, in SI units; ``scale`` and ``unit`` show it to people."""

    of: Callable[[Series], float]
    title: str
    unit: str = ""
    scale: float = 1.0
    better: int = 0
    """1 where more is better, -1 where less is, 0 where neither is as such."""

    @property
    def heading(self) -> str:
        """Title with unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    @property
    def drawn(self) -> str:
        """Title of a picture: with the direction of good."""
        words = {1: " (more is better)", -1: " (less is better)"}.get(self.better, "")
        return self.heading + words


def _mean(values: FloatArray) -> float:
    return statistic(values[~np.isnan(values)])


def _busy(name: str, run: Series) -> float:
    """Return the mean of a column over the intervals with traffic."""
    return _mean(run.column(name)[run.busy])


def mean_utility(run: Series) -> float:
    """Return the mean utility over the intervals with traffic; NaN if there is none."""
    return _busy("utility", run)


def _term(i: int, run: Series) -> float:
    return _mean(np.array([r["terms"][i] for r in run.records if not r.get("idle")]))


def _share(above: str, below: str, run: Series) -> float:
    total = float(run.column(below).sum())
    return float(run.column(above).sum()) / total if total else float("nan")


def _slowdown(of: FlowClass | None, percent: float | None, run: Series) -> float:
    """Return mean or percentile over the flows of a class, unfinished ones at their age."""
    size, slowdown = run.every_flow
    if of is not None:
        slowdown = slowdown[of.holds(size)]
    return statistic(slowdown, percent)


def _finished(percent: float | None, run: Series) -> float:
    """Return the same of the flows alone that finished: starving flows makes it better."""
    return statistic(run.flow_slowdown, percent)


def _round(run: Series) -> float:
    times = [one["time_ps"] for record in run.records for one in record.get("rounds", ())]
    return _mean(np.array(times, dtype=np.float64) * 1e-12)


def _slowdowns() -> Mapping[str, Metric]:
    found = {}
    for key, percent in SLOWDOWN_STATISTICS.items():
        for of in (None, *CLASSES):
            name, of_whom = ("", "all flows") if of is None else (f"-{of.name.split()[0]}", of.name)
            title = f"slowdown of {of_whom}, {key}"
            found[f"slowdown{name}-{key}"] = Metric(
                partial(_slowdown, of, percent), title, better=-1
            )
        title = f"slowdown of finished flows, {key}"
        found[f"finished-{key}"] = Metric(partial(_finished, percent), title)
    return found


SLOWDOWN_STATISTICS: Mapping[str, float | None] = {"mean": None, "p99": 99.0}
"""Name of a statistic of slowdowns and its percentile (None: the mean)."""

METRICS: Mapping[str, Metric] = {
    "throughput": Metric(partial(_busy, "throughput_bps"), "throughput", "Gb/s", 1e-9, 1),
    "rtt": Metric(lambda run: _busy("rtt_mean_ps", run) * 1e-12, "round trip", "µs", 1e6, -1),
    "utility": Metric(mean_utility, "utility", better=1),
    "o_tp": Metric(partial(_term, 0), "O_TP", better=1),
    "o_rtt": Metric(partial(_term, 1), "O_RTT", better=1),
    "o_pfc": Metric(partial(_term, 2), "O_PFC", better=1),
    "paused": Metric(lambda run: _mean(run.pause_share), "paused, mean device", "%", 100, -1),
    "marked": Metric(partial(_share, "marks", "data_packets"), "packets marked", "%", 100),
    "cnps": Metric(lambda run: float(run.column("cnps").sum()), "CNPs"),
    "drops": Metric(lambda run: float(run.column("drops").sum()), "drops", better=-1),
    "round": Metric(_round, "round of a collective", "ms", 1e3, -1),
    "unfinished": Metric(lambda run: float(run.unfinished), "flows unfinished", better=-1),
    **_slowdowns(),
}
"""By name. Means over intervals leave idle ones out; a figure that a run lacks is NaN."""


def metric(name: str) -> Metric:
    """Return a metric; UnknownNameError with near ones for another name."""
    if name not in METRICS:
        raise UnknownNameError("metric", name, METRICS)
    return METRICS[name]


def metrics_of(run: Series) -> dict[str, float]:
    """Return every metric of a run, in SI units."""
    return {name: one.of(run) for name, one in METRICS.items()}
