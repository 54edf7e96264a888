"""``python tests/report/racing.py``: does a race choose what trying everything chooses, how soon?

24 settings from all over the ranges on three small fabrics of the keeper's bank, three seeds; eight
draws of the settings (eight others chose the rungs). A line a draw: the two choices, how much S the
race's has less on all traffic, its share of the intervals and of the CPU seconds. About four CPU
minutes.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.leaderboard.bank.bank import bank
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.verdict import scores_by_seed
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.evaluated import evaluate
from dcqcn_gym.report.racing import race

SEEDS, DRAWS, SETTINGS = (1, 2, 3), range(9, 17), 24


def scenarios() -> list[Scenario]:
    """Return three small ones of the bank, of one line rate."""
    found = [s for s in bank("race", 60) if s.n_hosts <= 16]
    return [s for s in found if s.line_rate_bps == found[0].line_rate_bps][:3]


def settings(on: Scenario, draw: int, n: int = SETTINGS) -> list[Setting]:
    """Return settings from all over the ranges of all knobs."""
    base = on.default_setting()
    knobs = [name for name in base.table.knobs if name != "rp_max_rate"]
    space = KnobSpace(knobs, on.line_rate_bps)
    places = np.random.default_rng(draw).uniform(-1, 1, (n, space.n))
    return [space.setting(place, base) for place in places]


def worth_of_all(tried: list[Setting], on: list[Scenario]) -> npt.NDArray[np.float64]:
    """Return the mean S of each setting, each tried to the end."""
    theirs, *ours = evaluate([on[0].default_setting(), *tried], on, SEEDS, None, 1)
    pairs = [[scores_by_seed(m, d) for m, d in zip(one, theirs, strict=True)] for one in ours]
    return np.asarray(np.array(pairs, dtype=float).mean(axis=(1, 2)))


def all_intervals(on: list[Scenario]) -> int:
    """Return how many intervals trying everything, and the default, takes."""
    return sum(s.intervals for s in on) * len(SEEDS) * (1 + SETTINGS)


def main() -> None:
    """Print the table."""
    on = scenarios()
    print("| draw | race | all | S less | intervals | CPU |\n|---|---|---|---|---|---|")
    for draw in DRAWS:
        tried, began = settings(on[0], draw), time.process_time()
        found = race(tried, on[0].default_setting(), on, SEEDS, threads=1)
        mid = time.process_time()
        values = worth_of_all(tried, on)
        cpu = (mid - began) / (time.process_time() - mid)
        best = int(np.argmax(values))
        share = found.intervals / all_intervals(on)
        lost = values[best] - values[found.best]
        print(
            f"| {draw} | {found.best} | {best} | {lost:.3f} | {share:.2f} | {cpu:.2f} |", flush=True
        )


if __name__ == "__main__":
    main()
