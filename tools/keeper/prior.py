"""``python tools/keeper/prior.py FILE``: measure what settings are worth, grow the prior's trees.

Scenarios are drawn by the generator of suites from a salt of their own: all kinds of traffic, and
those with an incast more often, since most harm is there (:func:`indices`). On each the default and
three candidates are held for 100 intervals of one seed; the first eight of the default are what the
tuner will see. FILE is what ``configs/tuners/prior.npz`` holds; beside it stands what the
trees expect of scenarios that they have not seen (four folds). About 13 CPU minutes.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.generator import INTERVALS, KINDS, draw
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.verdict import Measured, flags, scores
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.extras.search.alike import grown, of_facts, of_interval, of_intervals, save
from dcqcn_gym.extras.search.prior import LOOK, candidates
from dcqcn_gym.report.batch_evaluation import evaluate

SALT, SEED = "prior-1-fitted", 1
WHOLE, LAST = 114, 383
"""Indices below the first are all drawn; those up to the other by the rule of `indices`."""
INCASTS = (5, 6)
TREES, LEAF, MOST_HARM, FOLDS, PRICE = 60, 4, 3.0, 4, 0.15


def indices() -> Iterator[int]:
    """Yield what is drawn: whole rounds of kinds first, then two in three of incasts alone."""
    for index in range(LAST):
        turn, kind = divmod(index, len(KINDS))
        if index < WHOLE or kind in INCASTS or turn % 3 == 2:
            yield index


def scenario_of(salt: str, index: int) -> Scenario:
    """Return a drawn scenario."""
    drawn = draw(salt, index, INTERVALS)
    return validate({"name": drawn.name, **drawn.table}, Scenario, source=drawn.name)


def looked(scenario: Scenario, seed: int) -> list[float]:
    """Return what the tuner knows of a scenario when it picks."""
    env = DcqcnEnv(scenario, "native", intervals=LOOK)
    env.reset(seed=seed)
    default = scenario.default_setting()
    reports = [env.run_interval(default).report for _ in range(LOOK)]
    env.close()
    shown = [r for r in reports if r.data_packets] or reports[-1:]
    return of_facts(facts_of(scenario)) + of_intervals([of_interval(r) for r in shown])


def harm_of(ours: Measured, theirs: Measured) -> float:
    """Return the largest harm of any figure of the verdict, in its limits."""
    found = [f.cost.harm.mean / f.limit for f in flags([ours], [theirs]) if f.state != "few"]
    return max([one for one in found if math.isfinite(one)], default=0.0)


@dataclass(frozen=True)
class Measurements:
    """A row per scenario: what is known of it, and each candidate's S and harm."""

    x: FloatArray
    gains: FloatArray
    harms: FloatArray


def measured(scenarios: Iterator[Scenario]) -> Measurements:
    """Measure the candidates on scenarios."""
    rows = []
    for scenario in scenarios:
        default = scenario.default_setting()
        some = [default, *candidates(facts_of(scenario), default).values()]
        base, *runs = [r for ((r,),) in evaluate(some, [scenario], [SEED], None, 1)]
        found = [scores([run], [base]) for run in runs]
        gains = [s.mean if s.n and math.isfinite(s.mean) else 0.0 for s in found]
        harms = [min(max(harm_of(run, base), 0.0), MOST_HARM) for run in runs]
        rows.append((looked(scenario, SEED), gains, harms))
    return Measurements(*(np.array(column) for column in zip(*rows, strict=True)))


def judged(on: Measurements, features: slice = slice(None)) -> tuple[FloatArray, FloatArray]:
    """Return expected gains and harms of each scenario by trees that have not seen it."""
    fold = np.random.default_rng(5).permutation(len(on.x)) % FOLDS
    gains, harms = np.zeros_like(on.gains), np.zeros_like(on.harms)
    x = on.x[:, features]
    for one in range(FOLDS):
        own = fold != one
        model = grown(x[own], on.gains[own], on.harms[own], TREES, LEAF)
        for at in np.flatnonzero(~own):
            weights = model.weights(x[at])
            gains[at], harms[at] = weights @ model.gains, weights @ model.harms
    return gains, harms


def main() -> None:
    """Measure, grow, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--measured", type=Path, help="keep or reuse the measurements in this .npz")
    options = parser.parse_args()
    began = time.process_time()
    if options.measured and options.measured.exists():
        on = Measurements(**np.load(options.measured))
    else:
        on = measured(scenario_of(SALT, index) for index in indices())
        if options.measured:
            np.savez_compressed(options.measured, x=on.x, gains=on.gains, harms=on.harms)
    save(grown(on.x, on.gains, on.harms, TREES, LEAF), options.file)
    gains, harms = judged(on)
    for k, name in enumerate(("rule", "slow", "careful")):
        for parts, truth, what in ((gains, on.gains, "S"), (harms, on.harms, "harm")):
            fifths = np.array_split(np.argsort(parts[:, k]), 5)
            cells = (f"{parts[f, k].mean():+.2f} {truth[f, k].mean():+.2f}" for f in fifths)
            print(f"| {name}, {what}: expected, was | " + " | ".join(cells) + " |")
    print(f"{time.process_time() - began:.0f} CPU seconds", file=sys.stderr)


if __name__ == "__main__":
    main()
