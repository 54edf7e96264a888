"""What to expect of a setting: what it was worth where traffic and fabric looked alike.

A forest of extremely randomised trees (P. Geurts, D. Ernst, L. Wehenkel, "Extremely randomized
trees", Machine Learning 63, 2006) says how alike the scenarios are on which every candidate was
measured: a scenario counts as often as it shares a leaf. Gains and harms are means over them, so
nothing is expected that was never measured. docs/measured/race.md; ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.fabric_facts import FabricFacts
from dcqcn_gym.core.interval import FloatArray, IntArray, IntervalReport
from dcqcn_gym.tuners.policy_file import read_arrays

MOST_BYTES = 2**20
"""Of a file of measurements and trees."""
SEEN = ("host_tx_bytes", "data_packets", "port_pause_ps", "rtt_sum_ps", "port_max_queue_bytes",
        "fsd.bins", "marks", "cnps")  # fmt: skip
"""What a report must know."""


OF_FABRIC, SLACK = 7, 0.5
"""Numbers of a fabric, and how far beyond those measured one may lie: logarithms to base 2."""


def of_facts(facts: FabricFacts) -> list[float]:
    """Return a fabric as numbers: rate, hosts, round trip, buffer, racks, overflow, slowest."""
    line = facts.line_rate_gbps
    shared = max(facts.shared_bytes, 1)
    ratios = (
        line / 100, facts.hosts, facts.base_rtt_us / 40, shared * 8e-6 / line,
        facts.oversubscription, facts.meeting_hosts * line * 125 * facts.base_rtt_us / shared,
        facts.receiver_gbps / line,
    )  # fmt: skip
    return [math.log2(max(ratio, 1e-6)) for ratio in ratios]


def of_interval(report: IntervalReport) -> list[float]:
    """Return what an interval showed: load, pauses, round trips, queues, marks, sizes of flows."""
    sampled = report.rtt_count > 0
    sent = report.host_tx_bytes
    total = max(float(sent.sum()), 1.0)
    hosts = max(sent.size, 1)
    load = total * 8e12 / (max(float(report.host_rate_bps.sum()), 1.0) * report.duration_ps)
    paused = report.paused_ps / report.duration_ps
    found = [load, float(paused.mean()), float(paused.max())]
    if sampled.any():
        count, to = report.rtt_count[sampled], report.rtt_dst[sampled]
        trips = report.rtt_sum_ps[sampled] / count / report.rtt_base_ps[sampled]
        pairs = np.bincount(to)
        beside = to != pairs.argmax()
        arrived = np.bincount(to, weights=count)
        means = (
            trips.mean(), (trips * count).sum() / count.sum(),
            (trips[beside] if beside.any() else trips).mean(), trips[~beside].mean(),
        )  # fmt: skip
        found += [math.log(max(float(mean), 1e-6)) for mean in means]
        found += [count.size / hosts, float(pairs.max()) / max(hosts - 1, 1)]
        found += [float(pairs.max()) / count.size, float(arrived.max() / arrived.sum())]
    else:
        found += [0.0] * 8
    running = report.port_rate_bps > 0
    queues = report.port_max_queue_bytes[running] * 8e6 / report.port_rate_bps[running]
    queues = queues if queues.size else np.zeros(1)
    packets = max(report.data_packets, 1)
    bins = report.fsd.bins
    flows = max(float(bins.sum()), 1.0)
    found += [math.log1p(float(queues.max())), math.log1p(float(queues.mean()))]
    found += [float(sent.max()) / total, float((sent > 0).mean())]
    found += [math.log1p(1e3 * report.marks / packets), math.log1p(1e3 * report.cnps / packets)]
    found += [
        float(bins[low:high].sum()) / flows for low, high in ((0, 2), (2, 6), (6, 9), (9, 12))
    ]
    found += [math.log1p(flows / hosts), float(bins.max()) / flows, math.log1p(total / flows)]
    return found


def of_intervals(shown: Sequence[Sequence[float]]) -> list[float]:
    """Return several intervals as numbers: their means, and how load, pauses and queues vary."""
    table = np.array(shown)
    load = table[:, 0]
    about = load - load.mean()
    spread = float(about @ about)
    found = [float(x) for x in table.mean(axis=0)]
    found[0] = math.log(max(found[0], 1e-4))
    found[1:3] = [math.sqrt(x) for x in found[1:3]]
    for shift in (1, 2):
        same = float(about[shift:] @ about[:-shift]) if load.size > shift else 0.0
        found.append(same / spread if spread > 0 else 0.0)
    found += [float(load.std() / max(float(load.mean()), 1e-9))]
    return [*found, math.sqrt(float(table[:, 1].max())), float(table[:, 11].max())]


@dataclass(frozen=True)
class Alike:
    """Measurements, and the trees that say which of them count: what ``prior.npz`` holds.

    ``gains`` and ``harms`` have a row per scenario, a column per candidate: S, and the largest harm
    in limits of the verdict. A node of a tree (rows of ``feature`` ... ``last``) sends what is
    below its threshold left; a leaf sends all to itself and holds ``rows[first:last]``.
    """

    gains: FloatArray
    harms: FloatArray
    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    first: IntArray
    last: IntArray
    rows: IntArray
    reach: FloatArray
    """Lowest and highest of each number of a fabric."""

    def reaches(self, of_fabric: Sequence[float]) -> bool:
        """Return whether each number of a fabric lies within those of the fabrics measured."""
        low, high = self.reach
        return bool(((low <= of_fabric) & (of_fabric <= high)).all())

    def weights(self, numbers: Sequence[float]) -> FloatArray:
        """Return how much each measured scenario counts where these numbers were seen; sum 1."""
        x = np.asarray(numbers, dtype=np.float64)
        trees = np.arange(len(self.rows))
        at = np.zeros(len(trees), dtype=np.int64)
        while True:
            low = x[self.feature[trees, at]] < self.threshold[trees, at]
            then = np.where(low, self.left[trees, at], self.right[trees, at])
            if (then == at).all():
                break
            at = then
        found = np.zeros(len(self.gains))
        for tree, first, last in zip(
            trees, self.first[trees, at], self.last[trees, at], strict=True
        ):
            found[self.rows[tree, first:last]] += 1.0 / (last - first)
        return found / len(trees)


def grown(
    x: FloatArray, gains: FloatArray, harms: FloatArray, trees: int, leaf: int, seed: int = 1
) -> Alike:
    """Return a forest over rows of ``x``; leaves have ``leaf`` rows at least, alike in both."""
    draws = np.random.default_rng(seed)
    y = np.hstack([gains / gains.std(), harms / harms.std()])
    forest = [_Tree(x, y - y.mean(axis=0), leaf, draws) for _ in range(trees)]
    table = np.zeros((trees, max(len(tree.nodes) for tree in forest), 6))
    for own, tree in zip(table, forest, strict=True):
        own[: len(tree.nodes)] = tree.nodes
    feature, left, right, first, last = (table[..., k].astype(np.int64) for k in (0, 2, 3, 4, 5))
    rows = np.array([tree.rows for tree in forest])
    reach = np.array([x[:, :OF_FABRIC].min(axis=0) - SLACK, x[:, :OF_FABRIC].max(axis=0) + SLACK])
    return Alike(gains, harms, feature, table[..., 1], left, right, first, last, rows, reach)


class _Tree:
    """Extremely randomised: of a third of the features a random threshold each, the best one."""

    def __init__(self, x: FloatArray, y: FloatArray, leaf: int, draws: np.random.Generator) -> None:
        self._x, self._y, self._leaf, self._draws = x, y, leaf, draws
        self.nodes: list[list[float]] = []
        self.rows: list[int] = []
        self._grow(np.arange(len(x)))

    def _grow(self, rows: IntArray) -> int:
        at = len(self.nodes)
        self.nodes.append([])
        split = self._split(rows)
        if split is None:
            first = len(self.rows)
            self.rows += rows.tolist()
            self.nodes[at] = [0, 0.0, at, at, first, len(self.rows)]
            return at
        feature, threshold = split
        low = self._x[rows, feature] < threshold
        left, right = self._grow(rows[low]), self._grow(rows[~low])
        self.nodes[at] = [feature, threshold, left, right, 0, 0]
        return at

    def _split(self, rows: IntArray) -> tuple[int, float] | None:
        best, found = -math.inf, None
        some = max(1, self._x.shape[1] // 3)
        for feature in self._draws.permutation(self._x.shape[1])[:some] if rows.size else ():
            x = self._x[rows, feature]
            threshold = float(self._draws.uniform(x.min(), x.max()))
            low = x < threshold
            sizes = int(low.sum()), int((~low).sum())
            if min(sizes) < self._leaf:
                continue
            sums = self._y[rows[low]].sum(axis=0), self._y[rows[~low]].sum(axis=0)
            worth = sum(float(s @ s) / n for s, n in zip(sums, sizes, strict=True))
            if worth > best:
                best, found = worth, (int(feature), threshold)
        return found


@cache
def alike(file: str = "") -> Alike:
    """Return what is shipped, or what another file holds; ConfigError if it cannot be read."""
    path = Path(file) if file else CONFIGS / "tuners" / "prior.npz"
    arrays = read_arrays(path, MOST_BYTES)
    names = [one.name for one in fields(Alike)]
    if set(arrays) != set(names):
        raise ConfigError(f"{path} holds {', '.join(arrays)}; expected {', '.join(names)}")
    whole: dict[str, npt.NDArray[Any]] = {
        name: arrays[name].astype(np.int64 if arrays[name].dtype.kind == "u" else np.float64)
        for name in names
    }
    return Alike(**whole)


def save(model: Alike, path: Path) -> None:
    """Write a file that :func:`alike` reads, in small numbers."""
    small = {"f": np.float32, "i": np.uint16}
    arrays = {one.name: getattr(model, one.name) for one in fields(Alike)}
    np.savez_compressed(path, **{n: a.astype(small[a.dtype.kind]) for n, a in arrays.items()})
