"""What traffic is like, in figures, and a workload that is like it, with how well it fits.

Sizes become a table of quantiles, arrivals a Poisson process of the same rate. What such a process
does not have is measured and said: bursts, incast, and who talks to whom.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.errors import ConfigError

IntArray = npt.NDArray[np.int64]

MOST_FLOWS = 20_000_000
"""Flows that are looked at; 32 bytes each."""
POINTS = 200
"""Quantiles of a fitted table."""
WINDOWS_US = (100.0, 1_000.0, 10_000.0)
"""Windows for the arrivals' dispersion."""
FEWEST_WINDOWS = 20


@dataclass(frozen=True)
class Traffic:
    """Flows as columns, in order of their starts."""

    src: IntArray
    dst: IntArray
    bytes: IntArray
    start_ns: IntArray

    @property
    def seconds(self) -> float:
        """From the first start to the last one."""
        return float(self.start_ns[-1] - self.start_ns[0]) * 1e-9

    @property
    def hosts(self) -> int:
        """Hosts that send or receive."""
        return int(np.unique(np.concatenate([self.src, self.dst])).size)


def read_into(flows: Iterable[tuple[int, int, int, int]]) -> Traffic:
    """Return flows as columns; raises ConfigError for none, or more than can be looked at."""
    parts: list[IntArray] = []
    chunk: list[tuple[int, int, int, int]] = []
    for many, flow in enumerate(flows, start=1):
        chunk.append(flow)
        if many > MOST_FLOWS:
            raise ConfigError(f"more than {MOST_FLOWS} flows; look at a part of them by --window")
        if len(chunk) == 100_000:
            parts.append(np.array(chunk, dtype=np.int64))
            chunk.clear()
    if chunk:
        parts.append(np.array(chunk, dtype=np.int64))
    if not parts:
        raise ConfigError("no flow to look at")
    every = np.concatenate(parts)
    columns = every[np.argsort(every[:, 3], kind="stable")].T
    return Traffic(*(np.ascontiguousarray(column) for column in columns))


@dataclass(frozen=True)
class Fit:
    """What a workload needs, and what it leaves out."""

    points: tuple[tuple[int, float], ...]
    """Sizes in bytes with their cumulative probability."""
    size_distance: float
    """Largest difference of the cumulative distributions of sizes (Kolmogorov-Smirnov), 0..1."""
    mean_change: float
    """Mean size of the table against the flows', relative."""
    gap_us: float
    """Mean time between two flows of one sending host."""
    senders: tuple[int, ...]
    receivers: tuple[int, ...]
    dispersion: tuple[tuple[float, float], ...]
    """(window in us, variance of arrivals within it over their mean): 1 for a Poisson process."""
    incast: float
    """Mean over receivers of the most senders that were on their way at once, at line rate."""
    most_incast: int
    pair_share: float
    """Share of the bytes that the busiest tenth of all pairs of hosts has, 0.1 to 1."""


def fit(traffic: Traffic, rate_bps: float) -> Fit:
    """Fit a distribution of sizes and a rate; ``rate_bps`` of a host's link is for incast only.

    Raises ConfigError for fewer than two flows or no time between them.
    """
    if traffic.bytes.size < 2 or traffic.seconds == 0:
        raise ConfigError(
            f"{traffic.bytes.size} flows within {traffic.seconds:g} s; expected two or more at "
            "different times"
        )
    points = size_points(traffic.bytes)
    senders, receivers = np.unique(traffic.src), np.unique(traffic.dst)
    incasts = _incasts(traffic, rate_bps)
    return Fit(
        points=points,
        size_distance=_distance(traffic.bytes, points),
        mean_change=_mean(points) / float(traffic.bytes.mean()) - 1.0,
        gap_us=traffic.seconds * 1e6 * senders.size / (traffic.bytes.size - 1),
        senders=tuple(map(int, senders)),
        receivers=tuple(map(int, receivers)),
        dispersion=_dispersion(traffic.start_ns),
        incast=float(np.mean(incasts)),
        most_incast=int(max(incasts)),
        pair_share=_pair_share(traffic),
    )


def size_points(sizes: IntArray) -> tuple[tuple[int, float], ...]:
    """Return a cumulative distribution: every size if there are few, else quantiles.

    The largest sizes are closer together, since they carry the bytes.
    """
    values, counts = np.unique(sizes, return_counts=True)
    shares = np.cumsum(counts) / sizes.size
    if values.size > POINTS:
        body = np.linspace(0.0, 0.95, POINTS // 2, endpoint=False)
        tail = 1.0 - np.geomspace(0.05, 1.0 / sizes.size, POINTS // 2)
        at = np.unique(np.searchsorted(shares, np.concatenate([body, tail, [1.0 - 1e-15]])))
        at = np.union1d(at[at < values.size], [0, values.size - 1])
        values, shares = values[at], shares[at]
        return tuple((int(v), float(s)) for v, s in zip(values, shares, strict=True))
    # every size is a point mass: twice in the table, before and after
    before = np.concatenate([[0.0], shares[:-1]])
    found = [
        (int(v), float(s)) for v, b, a in zip(values, before, shares, strict=True) for s in (b, a)
    ]
    return tuple(found[1:])


def _mean(points: tuple[tuple[int, float], ...]) -> float:
    size = np.array([p[0] for p in points], dtype=np.float64)
    share = np.array([p[1] for p in points])
    middle = (size[1:] + size[:-1]) / 2
    return float(size[0] * share[0] + (np.diff(share) * middle).sum())


def _distance(sizes: IntArray, points: tuple[tuple[int, float], ...]) -> float:
    """Return the largest gap between the flows' distribution and the table's."""
    values, counts = np.unique(sizes, return_counts=True)
    after = np.cumsum(counts) / sizes.size
    table = np.array(points, dtype=np.float64)
    found = np.searchsorted(table[:, 0], values, side="right")
    low = np.maximum(found - 1, 0)
    high = np.minimum(found, len(table) - 1)
    width = table[high, 0] - table[low, 0]
    part = np.divide(values - table[low, 0], width, out=np.zeros(values.size), where=width > 0)
    fitted = table[low, 1] + part * (table[high, 1] - table[low, 1])
    return float(np.abs(fitted - after).max())


def _dispersion(start_ns: IntArray) -> tuple[tuple[float, float], ...]:
    found = []
    span = int(start_ns[-1] - start_ns[0])
    for window_us in WINDOWS_US:
        width = int(window_us * 1000)
        windows = span // width
        if windows < FEWEST_WINDOWS:
            continue
        number, counts = np.unique((start_ns - start_ns[0]) // width, return_counts=True)
        counts = counts[number < windows]
        mean = counts.sum() / windows
        if mean == 0:
            continue
        variance = float((counts.astype(np.float64) ** 2).sum() / windows - mean**2)
        found.append((window_us, variance / float(mean)))
    return tuple(found)


def _incasts(traffic: Traffic, rate_bps: float) -> list[int]:
    """Return, by receiver, the most flows that overlap if each took its bytes at line rate."""
    end = traffic.start_ns + np.ceil(traffic.bytes * 8e9 / rate_bps).astype(np.int64)
    order = np.argsort(traffic.dst, kind="stable")
    found = []
    for part in np.split(order, np.flatnonzero(np.diff(traffic.dst[order])) + 1):
        times = np.concatenate([end[part], traffic.start_ns[part]])
        steps = np.concatenate([np.full(part.size, -1), np.full(part.size, 1)])
        found.append(int(np.cumsum(steps[np.lexsort((steps, times))]).max()))
    return found


def _pair_share(traffic: Traffic) -> float:
    """Return the share of bytes of the busiest tenth of all pairs of a sender and a receiver."""
    pairs = traffic.src * (2**32) + traffic.dst
    _, places = np.unique(pairs, return_inverse=True)
    sums = np.sort(np.bincount(places, weights=traffic.bytes.astype(np.float64)))[::-1]
    senders, receivers = np.unique(traffic.src).size, np.unique(traffic.dst).size
    tenth = max(
        1, round(0.1 * (senders * receivers - np.intersect1d(traffic.src, traffic.dst).size))
    )
    return float(sums[:tenth].sum() / sums.sum())
