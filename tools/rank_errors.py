"""How often the leaderboard's rule errs, from real runs: the tables of docs/leaderboard.md.

``python tools/rank_errors.py KEPT [BOARD]``: KEPT is a leaderboard's folder with results, BOARD one
with the logs of the default's online runs, five repetitions or so. Of KEPT come Kendall's tau
between halves of its scenarios, and how often a gain of 5 % is seen; of BOARD what becomes of the
default on other seeds, and of one class that is 50 % slower. Draws are made of each half of the
scenarios by itself: constants are chosen on the first, and checked once on the other.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.leaderboard import bootstrap
from dcqcn_gym.benchmarks.leaderboard.bootstrap import hierarchical
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE, open_leaderboard
from dcqcn_gym.benchmarks.leaderboard.reading import read_stage
from dcqcn_gym.benchmarks.leaderboard.risk import SEEN, References, references
from dcqcn_gym.core.compressed_files import read_packed
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.verdict import Summary

DRAWS = 300
SCENARIOS = 42
GAIN = -math.log(0.95)
TRIED = ("keeper", "chameleon", "tpe")

Runs = Sequence[Sequence[Summary]]
Places = npt.NDArray[np.int64]


def halves(count: int) -> tuple[Places, Places]:
    """Return the places of two halves of the scenarios."""
    order = np.random.default_rng(1).permutation(count)
    return order[: count // 2], order[count // 2 :]


def agreement(risks: dict[str, FloatArray], rank: dict[str, int]) -> float:
    """Return Kendall's tau between halves of the scenarios, over pairs of different ranks."""
    random, found = np.random.default_rng(1), []
    pairs = [(a, b) for a, b in combinations(rank, 2) if rank[a] != rank[b]]
    for _ in range(DRAWS):
        order = random.permutation(len(next(iter(risks.values()))))
        parts = order[: len(order) // 2], order[len(order) // 2 :]
        one, two = ({n: float(r[part].mean()) for n, r in risks.items()} for part in parts)
        found += [np.sign(one[a] - one[b]) * np.sign(two[a] - two[b]) for a, b in pairs]
    return float(np.mean(found))


def gains(risks: FloatArray, places: Places, count: int) -> float:
    """Return how often a gain of 5 % of an entry as noisy is seen on ``count`` scenarios."""
    random, noise = np.random.default_rng(2), risks[places] - risks[places].mean()
    seen = 0
    for _ in range(DRAWS):
        drawn = random.integers(len(noise), size=(count, 1))
        within = random.integers(noise.shape[1], size=(count, noise.shape[1]))
        seen += hierarchical(noise[drawn, within] + GAIN).low > 0
    return seen / DRAWS


def default_runs(folder: Path) -> list[list[Summary]]:
    """Return the default's online runs of every scenario that has four or more."""
    board = open_leaderboard(folder)
    default = next(entry for entry in board.entries if entry.name == BASELINE)
    found: dict[str, list[Summary]] = {}
    for attempt in board.attempts(default):
        run = read_stage(attempt.logs[0], curve=False)
        if run is not None:
            found.setdefault(attempt.scenario.name, []).append(run.whole)
    return [runs for runs in found.values() if len(runs) >= 4]


def other_seeds(runs: Runs, random: np.random.Generator) -> Iterator[tuple[References, Runs]]:
    """Yield the references of drawn scenarios, and two runs of the default on other seeds."""
    for i in random.integers(len(runs), size=SCENARIOS):
        order = [runs[i][k] for k in random.permutation(len(runs[i]))]
        yield References(order[:2], np.zeros(0), np.zeros(0)), [order[2:4], order[:4]]


def slower(run: Summary, i: int) -> Summary:
    """Return a run whose flows of one class are 50 % slower."""
    classes = list(run.classes)
    classes[i] = replace(classes[i], mean=1.5 * classes[i].mean, p99=1.5 * classes[i].p99)
    return replace(run, classes=classes)


def errors(runs: Runs) -> dict[str, float]:
    """Return what becomes of the default on other seeds, and how often one class's harm is seen."""
    random = np.random.default_rng(1)
    inside = worse = seen = 0
    shares = []
    for draw in range(DRAWS):
        drawn = list(other_seeds(runs, random))
        known = references([four for _, (_, four) in drawn])  # what chance does, from four runs
        level = references([list(one.default) for one, _ in drawn])
        against = [replace(a, allowance=b.allowance) for a, b in zip(level, known, strict=True)]
        ours = [two for _, (two, _) in drawn]
        prices = np.array([a.prices(a.changes(o)) for a, o in zip(against, ours, strict=True)])
        scores = [[g.score for g in a.gains(o)] for a, o in zip(against, ours, strict=True)]
        found = hierarchical(np.array(scores) - prices.sum(axis=1))
        inside += found.low <= 0 <= found.high
        worse += found.high < 0
        shares.append(float(np.mean(prices.mean(axis=2).sum(axis=1) >= SEEN)))
        i = draw % 3
        hit = [a for a in against if a.default[0].classes[i].count >= 15][:3]
        harmed = [a.prices(a.changes([slower(run, i) for run in a.default])) for a in hit]
        seen += any(price.mean(axis=1).sum() >= SEEN for price in harmed)
    return {
        "within its interval of 0": inside / DRAWS, "called worse": worse / DRAWS,
        "scenarios with harm": float(np.mean(shares)), "harm on 3 seen": seen / DRAWS,
    }  # fmt: skip


def main(kept: Path, board: Path | None = None) -> None:
    """Print the tables."""
    bootstrap.RESAMPLES = 300
    rows = json.loads(read_packed(kept / "results.json"))["rows"]
    risks = {row["entry"]: np.array(list(row["online"]["risks"].values())) for row in rows}
    rank = {row["entry"]: row["online"]["rank"] for row in rows if row["category"] != "scheme"}
    print(f"tau between halves: {agreement(risks, rank):.2f}, {len(set(rank.values()))} ranks")
    parts = halves(len(next(iter(risks.values()))))
    for name in TRIED:
        for count in (SCENARIOS, 4 * SCENARIOS):
            found = [f"{gains(risks[name], part, count):.0%}" for part in parts]
            print(f"5 % as noisy as {name}, {count} scenarios: {', '.join(found)}")
    if board is not None:
        runs = default_runs(board)
        for part in halves(len(runs)):
            print(errors([runs[int(i)] for i in part]))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
