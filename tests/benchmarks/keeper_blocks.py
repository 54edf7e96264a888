"""``python tests/benchmarks/keeper_blocks.py test-v1 test-v2``: harm in blocks of ten intervals.

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
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.core.score import CLASSES, GUARD
from dcqcn_gym.core.statistics import estimate
from dcqcn_gym.core.verdict import FEWEST_FLOWS, LIMITS
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec

SEEDS, BLOCK, MORE = (1, 2, 3), 10, 0.01
ENTRIES: dict[str, tuple[str, dict[str, Any]]] = {
    "keeper": ("keeper", {}),
    "advise": ("advise", {}),
    "1 us": ("fixed", {"rp_time_reset": 301}),
}
Blocks = list[list[npt.NDArray[np.float64]]]
"""For each block and class the slowdowns of the flows that start there."""


def blocks_of(series: Series) -> Blocks:
    """Return the slowdowns of a run's flows, unfinished ones at their age, by block and class."""
    assert series.left is not None
    _, end = series.window_ps
    left = series.left
    size = np.concatenate([series.finished.bytes, left.bytes])
    start = np.concatenate([series.finished.start_ps, left.start_ps])
    age = np.maximum(1.0, (end - left.start_ps) / left.ideal_fct_ps)
    slow = np.concatenate([series.flow_slowdown, age])
    n = int(len(series) * (1 - GUARD)) // BLOCK
    edges = [series.records[k * BLOCK]["start_ps"] for k in range(n + 1)]
    return [
        [slow[(start >= low) & (start < high) & (size >= c.low) & (size < c.high)] for c in CLASSES]
        for low, high in pairwise(edges)
    ]


def run_of(
    scenario: Scenario, intervals: int, tuner: str, given: dict[str, Any], seed: int
) -> Blocks:
    """Return the blocks of one run."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        run(RunSpec(scenario, tuner, seed, intervals, "native", given), log)
        return blocks_of(Series.of(read_run(log)))


def bad(ours: Blocks, default: Blocks) -> list[bool]:
    """Return for each block that can be judged whether a class is beyond the limit in it."""
    found = []
    for a, b in zip(ours, default, strict=True):
        judged = [(x, y) for x, y in zip(a, b, strict=True) if len(y) >= FEWEST_FLOWS and len(x)]
        if judged:
            found.append(any(_beyond(x, y) for x, y in judged))
    return found


def _beyond(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> bool:
    most = 1 + LIMITS["class"]
    return bool(x.mean() > most * y.mean() or np.percentile(x, 99) > most * np.percentile(y, 99))


def suite_rows(name: str, seeds: Sequence[int]) -> bool:
    """Print a suite's row; return whether Keeper has at most :data:`MORE` bad blocks more."""
    shares: dict[str, list[float]] = {entry: [] for entry in ENTRIES}
    n = 0
    suite = load_suite(name)
    for scenario in suite.scenarios.values():

        def blocks(tuner: str, given: dict[str, Any], seed: int, on: Scenario = scenario) -> Blocks:
            return run_of(on, suite.file.intervals, tuner, given, seed)

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
