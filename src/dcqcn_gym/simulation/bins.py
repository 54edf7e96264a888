"""What a trace remembers for its picture: growing series in a bounded number of bins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dcqcn_gym.core.interval import FinishedFlows, FloatArray

PLOTTED_FLOWS = 8

FlowName = tuple[int, int, int]
"""src, dst, ordinal"""


class Binned:
    """Mean and peak of several growing time series in at most ``2 * limit`` bins.

    Bins grow by doubling, so memory does not depend on the length of the run. NaN is no value.
    """

    def __init__(self, series: int, limit: int = 1000) -> None:
        self.width = 1
        self._limit = limit
        self._bins: list[tuple[FloatArray, FloatArray, FloatArray]] = []  # sum, count, peak
        self._filled = 0
        self._series = series

    def add(self, values: FloatArray) -> None:
        """Append one sample of every series."""
        there = ~np.isnan(values)
        new = (np.where(there, values, 0.0), there.astype(np.float64), values.astype(np.float64))
        if self._bins and self._filled < self.width:
            self._bins[-1] = _merged(self._bins[-1], new)
            self._filled += 1
            return
        if len(self._bins) == 2 * self._limit:
            pairs = zip(self._bins[::2], self._bins[1::2], strict=True)
            self._bins = [_merged(a, b) for a, b in pairs]
            self.width *= 2
        self._bins.append(new)
        self._filled = 1

    def forget(self, series: int) -> None:
        """Make all samples of a series unknown."""
        for total, count, peak in self._bins:
            total[series], count[series], peak[series] = 0.0, 0.0, np.nan

    def table(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the last sample number of every bin, and means and peaks as [bin, series]."""
        if not self._bins:
            empty = np.zeros((0, self._series))
            return np.zeros(0), empty, empty
        ends = np.arange(1, len(self._bins) + 1, dtype=np.float64) * self.width
        ends[-1] += self._filled - self.width
        total, count, peak = (np.stack(column) for column in zip(*self._bins, strict=True))
        with np.errstate(invalid="ignore"):
            mean = np.asarray(total / count, dtype=np.float64)
        return ends, mean, np.asarray(peak, dtype=np.float64)


def _merged(
    a: tuple[FloatArray, FloatArray, FloatArray], b: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    return a[0] + b[0], a[1] + b[1], np.fmax(a[2], b[2])


class FlowLines:
    """One number of each flow, binned: of :data:`PLOTTED_FLOWS` that live long; mean of all.

    The first flows that come have a column each. Where one has ended, a flow that has been there
    for longer takes its column, from that sample on.
    """

    def __init__(self) -> None:
        self.binned = Binned(PLOTTED_FLOWS)
        self.mean = Binned(1)
        self.names: dict[FlowName, int] = {}
        """The flows that have a column, and which."""
        self.seen = 0
        """Flows that came, those without a column too."""
        self._ages: dict[FlowName, int] = {}
        """In samples; of the flows that are there, and of those that have a column."""

    def add(self, names: Sequence[FlowName], values: FloatArray) -> None:
        """Append one sample: a value for each of these flows, which are all there are now."""
        self.seen += len([name for name in names if name not in self._ages])
        before = {name: self._ages[name] for name in self.names}
        self._ages = {**before, **{name: self._ages.get(name, 0) + 1 for name in names}}
        gone = sorted(self.names.keys() - set(names), key=lambda name: before[name], reverse=True)
        sample = np.full(PLOTTED_FLOWS, np.nan)
        for name, value in zip(names, values.tolist(), strict=True):
            if name not in self.names:
                if len(self.names) < PLOTTED_FLOWS:
                    self.names[name] = len(self.names)
                elif gone and self._ages[name] > before[gone[-1]]:
                    self.names[name] = self.names.pop(gone.pop())
                    self.binned.forget(self.names[name])
                else:
                    continue
            sample[self.names[name]] = value
        self.binned.add(sample)
        self.mean.add(np.array([values.mean() if len(values) else np.nan]))

    @property
    def lines(self) -> bool:
        """True if a flow with a column lived long enough to be a line: two bins."""
        known = np.isfinite(self.binned.table()[1])
        return bool(np.any(known[1:] & known[:-1]))


class CompletionBins:
    """Mean and longest completion time of messages, by workload, in at most ``limit`` bins.

    Bins are whole periods of the trace and grow by doubling.
    """

    def __init__(self, limit: int = 1000) -> None:
        self.width = 1
        self._limit = limit
        self._bins = np.zeros((3, limit, 0))  # sum, count, longest

    def add(self, done: FinishedFlows, every_ps: int) -> None:
        """Count these messages, each in the period in which it was done."""
        period = (done.start_ps + done.fct_ps) // every_ps
        while int(period.max()) >= self._limit * self.width:
            pairs = self._bins.reshape(3, self._limit // 2, 2, -1)
            merged = np.concatenate([pairs[:2].sum(axis=2), pairs[2:].max(axis=2)])
            self._bins = np.concatenate([merged, np.zeros_like(merged)], axis=1)
            self.width *= 2
        more = int(done.workload.max()) + 1 - self._bins.shape[2]
        if more > 0:
            self._bins = np.pad(self._bins, ((0, 0), (0, 0), (0, more)))
        place = (period // self.width, done.workload)
        np.add.at(self._bins[0], place, done.fct_ps)
        np.add.at(self._bins[1], place, 1)
        np.maximum.at(self._bins[2], place, done.fct_ps)

    def table(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the last period of every bin, and means and longest in ps as [bin, workload].

        NaN is no message.
        """
        total, count, longest = self._bins
        used = np.flatnonzero(count.any(axis=1))
        with np.errstate(invalid="ignore"):
            mean = total[used] / count[used]
        ends = np.asarray(used + 1, dtype=np.float64) * self.width
        peak = np.asarray(np.where(count[used] > 0, longest[used], np.nan), dtype=np.float64)
        return ends, np.asarray(mean, dtype=np.float64), peak
