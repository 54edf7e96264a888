"""``python tools/keeper/importance.py FILE``: which knobs matter, for S and each harm.

Morris' elementary effects of every knob over its tuned range, then Sobol's total indices of the
:data:`MOST` that matter most for S, on eight scenarios of the keeper's bank at two scales: four of
at most 20 hosts, four of 21 to 64. FILE gets the tables too. About 14 CPU minutes; with
``--trajectories 8 --base 16 --seeds 1`` three. Needs ``pip install SALib``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from SALib.analyze import morris, sobol
from SALib.sample import morris as morris_sample
from SALib.sample import sobol as sobol_sample

from dcqcn_gym.benchmarks.leaderboard.bank.bank import bank
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.verdict import Measured, changes, scores
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.batch_evaluation import evaluate

LEVELS, MOST = 4, 6
FEW = 1e-2
AT_ONCE = 40
FIGURES = ("S", "mean 0-100KB", "p99 0-100KB", "mean 100KB-1MB", "p99 100KB-1MB", "mean 1MB-",
           "p99 1MB-", "goodput", "unfinished", "pause")  # fmt: skip
"""S; logarithms of a class's slowdown and of goodput over the default's; points of the others."""
Table = npt.NDArray[np.float64]


def scenarios() -> list[Scenario]:
    """Return the eight, of a salt of their own."""
    drawn = [s for s in bank("importance", 40) if s.n_hosts <= 64]
    small = [s for s in drawn if s.n_hosts <= 20]
    return small[:4] + [s for s in drawn if s.n_hosts > 20][:4]


def figures(
    places: Table, knobs: Sequence[str], on: Sequence[Scenario], seeds: Sequence[int]
) -> Table:
    """Return a line of figures per place in the ranges, in the mean over the scenarios."""
    found = []
    for scenario in on:
        space, default = KnobSpace(knobs, scenario.line_rate_bps), scenario.default_setting()
        settings: list[Setting] = [default, *(space.setting(place, default) for place in places)]
        rows: list[list[float]] = []
        theirs: list[Measured] = []
        for first in range(0, len(settings), AT_ONCE):
            for (ours,) in evaluate(settings[first : first + AT_ONCE], [scenario], seeds, None, 1):
                theirs = theirs or ours
                rows.append(_line(ours, theirs))
        found.append(rows[1:])
    mean: Table = np.nanmean(np.array(found, dtype=float), axis=0)
    return mean


def _line(ours: Sequence[Measured], theirs: Sequence[Measured]) -> list[float]:
    table = {c.key: c.change.mean for c in changes(ours, theirs)}
    line = [scores(ours, theirs).mean]
    for key in FIGURES[1:]:
        points = key in ("unfinished", "pause")
        line.append(100 * table[key] if points else float(np.log(max(1 + table[key], FEW))))
    return line


def _table(first: str, rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    lines = [f"| {first} | {' | '.join(FIGURES)} |", f"|---{'|---' * len(FIGURES)}|"]
    return "\n".join([*lines, *(f"| `{name}` | {' | '.join(cells)} |" for name, cells in rows)])


def main() -> None:
    """Print both tables, with what they cost, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    for name, number in (("trajectories", 16), ("base", 64), ("seeds", 2)):
        parser.add_argument(f"--{name}", type=int, default=number)
    options = parser.parse_args()
    seeds = range(1, options.seeds + 1)
    began, on = time.process_time(), scenarios()
    knobs = [name for name in on[0].default_setting().table.knobs if name != "rp_max_rate"]
    problem = {"num_vars": len(knobs), "names": knobs, "bounds": [[-1.0, 1.0]] * len(knobs)}
    places = morris_sample.sample(problem, options.trajectories, num_levels=LEVELS, seed=1)
    values = figures(places, knobs, on, seeds)
    effects = [
        morris.analyze(problem, places, column, num_levels=LEVELS, seed=1)["mu_star"]
        for column in values.T
    ]
    order = np.argsort(-np.asarray(effects[0]))
    rows = [(knobs[i], [f"{effect[i]:.2f}" for effect in effects]) for i in order]
    text = _table(f"knob, Morris' mu* of {len(places)} settings", rows)
    print(text, flush=True)
    chosen = [knobs[i] for i in order[:MOST]]
    problem = {"num_vars": MOST, "names": chosen, "bounds": [[-1.0, 1.0]] * MOST}
    places = sobol_sample.sample(problem, options.base, calc_second_order=False, seed=1)
    values = figures(places, chosen, on, seeds)
    found = [sobol.analyze(problem, v, calc_second_order=False, seed=1) for v in values.T]
    rows = [
        (name, [f"{f['ST'][i]:.2f} ± {f['ST_conf'][i]:.2f}" for f in found])
        for i, name in enumerate(chosen)
    ]
    second = _table(f"knob, Sobol's total index of {len(places)} settings", rows)
    print(second)
    print(f"{time.process_time() - began:.0f} CPU seconds", file=sys.stderr)
    options.file.write_text(f"{text}\n\n{second}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
