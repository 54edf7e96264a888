"""Statistics of results: slowdowns by flow size, intervals over seeds, paired gains, ranks.

A *slowdown* is a flow completion time divided by the time that the same flow takes in an idle
network, so it is at least 1. Everything here is a pure function of its arguments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.confidence import bca_interval, student_interval
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.interval import FloatArray, IntArray

BOOTSTRAP_FROM = 20
"""Fewer values than this get Student's t interval: on 5 normal values a 95 % BCa bootstrap
interval holds the mean 84 times in 100 and Student's 95 times (n = 10: 90 and 94)."""

BOOTSTRAP_SEED = 20240001
"""Fixed seed of the resampling, so that the same log always gives the same page."""

STATISTICS: Mapping[str, float | None] = {"mean": None, "p50": 50.0, "p99": 99.0, "p99.9": 99.9}
"""Name of each slowdown statistic and its percentile (None: the mean)."""


class SizeRange:
    """Flows of ``low <= bytes < high``."""

    low: int
    high: float

    def holds(self, size_bytes: IntArray) -> npt.NDArray[np.bool_]:
        """Tell of each size whether it lies within."""
        return (size_bytes >= self.low) & (size_bytes < self.high)


@dataclass(frozen=True)
class SizeBin(SizeRange):
    """Flows of ``low <= bytes < high`` (1 KB = 1000 B); ``key`` in files, ``label`` for people."""

    key: str
    label: str
    low: int
    high: float


ALL_SIZES = SizeBin("all", "all sizes", 0, math.inf)
SIZE_BINS: tuple[SizeBin, ...] = (
    SizeBin("0-1KB", "below 1 KB", 0, 1e3),
    SizeBin("1KB-10KB", "1–10 KB", 1_000, 1e4),
    SizeBin("10KB-100KB", "10–100 KB", 10_000, 1e5),
    SizeBin("100KB-1MB", "100 KB–1 MB", 100_000, 1e6),
    SizeBin("1MB-10MB", "1–10 MB", 1_000_000, 1e7),
    SizeBin("10MB-", "10 MB and above", 10_000_000, math.inf),
    ALL_SIZES,
)


PAPER_BINS: Mapping[str, tuple[SizeBin, ...]] = {
    "acc": (
        SizeBin("0-100KB", "100 KB and below", 0, 100_001),
        SizeBin("10MB-", "10 MB and above", 10_000_000, math.inf),
        ALL_SIZES,
    ),
    "paraleon": (
        SizeBin("0-120KB", "below 120 KB", 0, 120_000),
        SizeBin("1MB-", "above 1 MB", 1_000_001, math.inf),
        ALL_SIZES,
    ),
}
"""The sizes by which papers report: ACC (SIGCOMM 2021, figures 12 and 13) and PARALEON (ICNP 2024,
figure 7). They may be asked for beside :data:`SIZE_BINS`."""


def paper_bins(name: str) -> tuple[SizeBin, ...]:
    """Return the bins of a paper; raises :class:`UnknownNameError` for another name."""
    if name not in PAPER_BINS:
        raise UnknownNameError("bins", name, list(PAPER_BINS))
    return PAPER_BINS[name]


@dataclass(frozen=True)
class SlowdownRow:
    """Slowdown statistics of one size bin; NaN for a bin without flows."""

    bin: SizeBin
    count: int
    mean: float
    p50: float
    p99: float
    p999: float

    def value(self, statistic: str) -> float:
        """Return a statistic by its name in :data:`STATISTICS`."""
        return float(getattr(self, statistic.replace(".", "")))


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with a confidence interval; ``low``/``high`` are None if unknown.

    They are unknown for a single value, where one of several values is infinite, and for values
    that are all the same (``constant``): seeds that change nothing say nothing about other traffic.
    So it is with every seed of traffic that is not drawn: :meth:`of_one_trace`.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    constant: bool = False

    @property
    def known(self) -> bool:
        """True if there is an interval."""
        return self.low is not None and self.high is not None

    def of_one_trace(self) -> Estimate:
        """Return it for seeds that all had the same traffic: the mean, and no interval."""
        return replace(self, low=None, high=None, constant=True) if self.n else self

    @property
    def sign(self) -> int:
        """+1 or -1 if the whole interval lies on one side of 0, else 0 (also if unknown)."""
        if self.low is None or self.high is None:
            return 0
        return 1 if self.low > 0 else -1 if self.high < 0 else 0


def slowdowns(fct_ps: IntArray, ideal_fct_ps: IntArray) -> FloatArray:
    """Return fct/ideal per flow; raise ConfigError if an ideal time is not positive."""
    if ideal_fct_ps.size and int(ideal_fct_ps.min()) <= 0:
        raise ConfigError("an ideal flow completion time must be above 0 ps")
    return np.asarray(fct_ps / ideal_fct_ps, dtype=np.float64)


def statistic(values: FloatArray | IntArray, percent: float | None = None) -> float:
    """Return the mean, or a percentile between order statistics; NaN without values."""
    if not values.size:
        return math.nan
    return float(np.mean(values) if percent is None else np.percentile(values, percent))


def slowdown_by_size(
    size_bytes: IntArray, slowdown: FloatArray, bins: Sequence[SizeBin] = SIZE_BINS
) -> list[SlowdownRow]:
    """Return one row per bin."""
    rows = []
    for size_bin in bins:
        chosen = slowdown[size_bin.holds(size_bytes)]
        found = (statistic(chosen, percent) for percent in STATISTICS.values())
        rows.append(SlowdownRow(size_bin, int(chosen.size), *found))
    return rows


class SlowdownCounter:
    """Slowdown statistics of any number of flows in constant memory.

    Counts flows per size bin in logarithmic classes; percentiles are nearest ranks, to
    within 0.05 %. Mean and maximum are exact.
    """

    CLASSES_PER_E = 1000
    TOP = 30.0
    """Slowdowns above e^30 count as that."""

    def __init__(self, bins: Sequence[SizeBin] = SIZE_BINS) -> None:
        self.bins = tuple(bins)
        shape = (len(self.bins), int(self.TOP * self.CLASSES_PER_E) + 1)
        self._counts = np.zeros(shape, dtype=np.int64)
        self._sums = np.zeros(len(self.bins))
        self._largest = np.zeros(len(self.bins))

    def add(self, size_bytes: IntArray, slowdown: FloatArray) -> None:
        """Count some flows."""
        if not slowdown.size:
            return
        logs = np.clip(np.log(np.maximum(slowdown, 1.0)), 0.0, self.TOP)
        classes = np.floor(logs * self.CLASSES_PER_E).astype(np.int64)
        for i, size_bin in enumerate(self.bins):
            chosen = size_bin.holds(size_bytes)
            if np.any(chosen):
                counts = np.bincount(classes[chosen])
                self._counts[i, : counts.size] += counts
                self._sums[i] += float(np.sum(slowdown[chosen]))
                self._largest[i] = max(self._largest[i], float(np.max(slowdown[chosen])))

    def percentile(self, i: int, percent: float) -> float:
        """Return a percentile of bin number ``i``; NaN if it is empty."""
        cumulative = np.cumsum(self._counts[i])
        total = int(cumulative[-1])
        if not total:
            return math.nan
        rank = math.ceil(total * percent / 100)
        at = int(np.searchsorted(cumulative, max(rank, 1)))
        return min(math.exp((at + 0.5) / self.CLASSES_PER_E), float(self._largest[i]))

    def summary(self) -> dict[str, dict[str, float | int | None]]:
        """Return {bin key: count, mean, p50, p99, p99.9, max}; None in a bin without flows."""
        result: dict[str, dict[str, float | int | None]] = {}
        for i, size_bin in enumerate(self.bins):
            count = int(np.sum(self._counts[i]))
            row: dict[str, float | int | None] = {"count": count}
            row["mean"] = float(self._sums[i]) / count if count else None
            for name, percent in STATISTICS.items():
                if percent is not None:
                    row[name] = self.percentile(i, percent) if count else None
            row["max"] = float(self._largest[i]) if count else None
            result[size_bin.key] = row
        return result


def slowdown_by_seed(
    runs: Sequence[tuple[IntArray, FloatArray]], size_bin: SizeBin, name: str
) -> FloatArray:
    """Return a statistic of the bin in each run ``(bytes, slowdown)``; NaN where it is empty."""
    chosen = (slow[size_bin.holds(size)] for size, slow in runs)
    return np.array([statistic(values, STATISTICS[name]) for values in chosen])


def estimate(values: Sequence[float] | FloatArray, confidence: float = 0.95) -> Estimate:
    """Return the mean of one value per seed with a two-sided confidence interval.

    Student's t below :data:`BOOTSTRAP_FROM` values, the BCa bootstrap from there on. NaN values
    (seeds without such a flow) are left out; values that are all the same have no interval, and
    neither have values of which one is infinite.
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[~np.isnan(x)]
    if not x.size:
        return Estimate(math.nan, None, None, 0)
    with np.errstate(invalid="ignore"):  # infinite both ways: not known
        mean = float(np.mean(x))
    if x.size < 2 or np.all(x == x[0]):
        return Estimate(mean, None, None, int(x.size), constant=x.size > 1)
    if not np.all(np.isfinite(x)):
        return Estimate(mean, None, None, int(x.size))
    low, high = _interval(x, confidence)
    return Estimate(mean, low, high, int(x.size))


def _interval(x: FloatArray, confidence: float) -> tuple[float, float]:
    if x.size < BOOTSTRAP_FROM:
        return student_interval(x, confidence)
    return bca_interval(x, confidence, BOOTSTRAP_SEED)


def paired_change(
    values: Sequence[float] | FloatArray,
    reference: Sequence[float] | FloatArray,
    *,
    relative: bool = False,
    confidence: float = 0.95,
) -> Estimate:
    """Return the mean of ``values - reference`` over seeds, pair by pair.

    ``relative`` gives the geometric mean of ``values/reference`` minus 1 instead (-0.2: a fifth
    less), with the interval computed on the logarithms: a pair that falls to 0 or rises from it has
    none, one of two zeros is left out. Lengths that differ raise ConfigError.
    """
    x, y = np.asarray(values, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if x.shape != y.shape:
        raise ConfigError(f"pairs need as many values as references; got {x.size} and {y.size}")
    if not relative:
        return estimate(x - y, confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        e = estimate(np.log(x) - np.log(y), confidence)
    low = None if e.low is None else _expm1(e.low)
    high = None if e.high is None else _expm1(e.high)
    return Estimate(_expm1(e.mean), low, high, e.n, e.constant)


def _expm1(value: float) -> float:
    """Return exp(value) - 1; infinite where it is beyond every number."""
    try:
        return math.expm1(value)
    except OverflowError:
        return math.inf


LONG_FLOW_BYTES = 1_000_000
"""Flows of this size or more count: smaller ones end before rates are shared."""


@dataclass
class Fairness:
    """Sums of the rates (size / completion time) of finished long flows, in constant memory."""

    flows: int = 0
    rates: float = 0.0
    squares: float = 0.0

    def add(self, size_bytes: IntArray, fct_ps: IntArray) -> None:
        """Count some finished flows."""
        long = size_bytes >= LONG_FLOW_BYTES
        rates = size_bytes[long] / fct_ps[long]
        self.flows += int(rates.size)
        self.rates += float(np.sum(rates))
        self.squares += float(np.sum(rates * rates))

    @property
    def index(self) -> float:
        """(sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has all; NaN without any.

        Jain, Chiu and Hawe, "A Quantitative Measure of Fairness" (DEC-TR-301, 1984).
        """
        return self.rates**2 / (self.flows * self.squares) if self.flows else math.nan


def fairness_of(size_bytes: IntArray, fct_ps: IntArray) -> float:
    """Return the index of these flows."""
    fairness = Fairness()
    fairness.add(size_bytes, fct_ps)
    return fairness.index


def places(values: Sequence[float]) -> list[int]:
    """Return the place of every value, 1 for the largest; equal ones share the better place."""
    return [1 + len([other for other in values if other > value]) for value in values]


def _mean_ranks(values: Sequence[float]) -> FloatArray:
    """Return the rank of every value, the first for the largest; equal ones share their mean."""
    equal = np.array([values.count(value) for value in values])
    return np.array(places(values)) + (equal - 1) / 2


def rank_agreement(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Spearman's rank correlation of two lists of figures, -1..1; 1 if one is all equal.

    Equal figures share the mean of their ranks, as Spearman has it.
    """
    ranks = [_mean_ranks(values) for values in (one, other)]
    spread = [r - r.mean() for r in ranks]
    scale = float(np.sqrt((spread[0] ** 2).sum() * (spread[1] ** 2).sum()))
    return 1.0 if scale == 0.0 else float((spread[0] * spread[1]).sum()) / scale
