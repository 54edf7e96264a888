"""``python tests/leaderboard/keeper_blocks.py test-v1 test-v2``: harm in blocks of ten intervals.

A mean over a run can hide ten bad intervals. So a run is cut into blocks, the flows belong to the
block in which they start, and a block counts as bad where the mean or the 99th percentile of a
class is beyond the verdict's limit above the default's in the same block of the same traffic.
Classes with fewer than 30 flows under the default do not count, nor does the guard at the run's
end. Networks are chaotic, so some blocks are bad by chance: the same is printed for the default
with ``rp_time_reset`` changed by 1 us. Keeper may have at most :data:`MORE` bad blocks more.
About 0.6 CPU seconds a run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.core.score import GUARD, ClassFigures, class_figures, window_flows
from dcqcn_gym.core.statistics import estimate
from dcqcn_gym.core.verdict import FEWEST_FLOWS, LIMITS
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.entries import changed_scenario

sys.path.insert(0, str(Path(__file__).parent))
from keeper_hardships import series_of

SEEDS, BLOCK, MORE = (1, 2, 3), 10, 0.01
ENTRIES: dict[str, tuple[str, dict[str, Any]]] = {
    "keeper": ("keeper", {}),
    "advise": ("advise", {}),
    "1 us": ("fixed", {"rp_time_reset": 301}),
}
Blocks = list[list[ClassFigures]]
"""For each block the figures of the flows that start there, by class."""


def blocks_of(series: Series) -> Blocks:
    """Return the figures of a run's flows, unfinished ones at their age, by block and class."""
    assert series.left is not None
    f, left = series.finished, series.left
    _, end = series.window_ps
    n = int(len(series) * (1 - GUARD)) // BLOCK
    edges = [series.records[k * BLOCK]["start_ps"] for k in range(n + 1)]
    return [
        class_figures(
            window_flows(
                (f.bytes, f.start_ps, series.fct_ps, f.ideal_fct_ps),
                (left.bytes, left.start_ps, left.ideal_fct_ps),
                begin_ps=low, end_ps=end, guard=(end - high) / (end - low),
            )
        )
        for low, high in pairwise(edges)
    ]  # fmt: skip


def bad(ours: Blocks, default: Blocks) -> list[bool]:
    """Return for each block that can be judged whether a class is beyond the limit in it."""
    found = []
    for a, b in zip(ours, default, strict=True):
        judged = [(x, y) for x, y in zip(a, b, strict=True) if y.count >= FEWEST_FLOWS and x.count]
        if judged:
            found.append(any(_beyond(x, y) for x, y in judged))
    return found


def _beyond(x: ClassFigures, y: ClassFigures) -> bool:
    most = 1 + LIMITS["class"]
    return x.mean > most * y.mean or x.p99 > most * y.p99


def suite_rows(name: str, seeds: Sequence[int]) -> bool:
    """Print a suite's row; return whether Keeper has at most :data:`MORE` bad blocks more."""
    shares: dict[str, list[float]] = {entry: [] for entry in ENTRIES}
    n = 0
    suite = load_suite(name)
    for scenario in suite.scenarios.values():
        long = changed_scenario(scenario, {"intervals": suite.file.intervals}, scenario.name)

        def blocks(tuner: str, given: dict[str, Any], seed: int, on: Scenario = long) -> Blocks:
            return blocks_of(series_of(on, tuner, seed, given))

        default = {seed: blocks("default", {}, seed) for seed in seeds}
        for entry, (tuner, given) in ENTRIES.items():
            found = [b for s in seeds for b in bad(blocks(tuner, given, s), default[s])]
            if found:
                shares[entry].append(float(np.mean(found)))
        n += len(found)
    cells = [f"{100 * np.mean(of):.1f} %" for of in shares.values()]
    more = estimate([a - b for a, b in zip(shares["keeper"], shares["1 us"], strict=True)])
    low, high = (100 * (x or 0.0) for x in (more.low, more.high))
    text = f"{100 * more.mean:+.1f} [{low:+.1f}, {high:+.1f}]"
    print(f"| {name} | {len(shares['keeper'])} | {n} | {' | '.join(cells)} | {text} |", flush=True)
    return more.mean <= MORE


def main() -> int:
    """Print a row a suite; return 1 where Keeper has too many bad blocks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="+")
    options = parser.parse_args()
    print(f"| suite | scenarios | blocks | {' | '.join(ENTRIES)} | keeper more, points |")
    kept = [suite_rows(name, SEEDS) for name in options.suites]
    return int(not all(kept))


if __name__ == "__main__":
    raise SystemExit(main())
