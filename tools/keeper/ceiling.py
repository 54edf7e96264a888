"""``python tools/keeper/ceiling.py test-v2``: how much is there to gain on a suite.

For each scenario the best of 64 settings that are held from the first interval on: default,
lowest rate and the rule, then a Latin hypercube of the tuned ranges, and two rounds of settings
around the best two so far. The choice is by S on two traffics, twice: over all, and over those
that cross no limit of the verdict there. What was chosen is judged on three fresh traffics beside
the rule and Keeper. That the choice looks at the very scenario is what no tuner has: it is a
ceiling for settings that are held, but for those that 64 tries do not find. About half a CPU hour.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.statistics import estimate
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.verdict import Measured, flags, scores
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.runs.table import with_interval
from dcqcn_gym.tuners.rule import advise

CHOSEN_ON, JUDGED_ON, INTERVALS = (101, 102), (201, 202, 203), 60
FIRST, AROUND, ROUNDS, SPREAD = 31, 15, 2, 0.25
"""Of the Latin hypercube; then rounds of settings around the best, so far from it."""
COLUMNS = ("best of 64", "best without harm", "advise", "keeper")


class Search:
    """The settings of one scenario, with S and crossed limits where they are chosen."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.space = DcqcnEnv(scenario).space
        self.base = scenario.default_setting()
        self.rule = advise(facts_of(scenario), self.base).setting
        self.settings: list[Setting] = []
        self.found: list[tuple[float, int]] = []
        (self.default,) = self._runs([self.base], CHOSEN_ON)

    def _runs(self, settings: Sequence[Setting], seeds: Sequence[int]) -> list[list[Measured]]:
        return [row for (row,) in evaluate(settings, [self.scenario], seeds, None, 1)]

    def tell(self, settings: Sequence[Setting]) -> None:
        """Try settings."""
        for setting, runs in zip(settings, self._runs(settings, CHOSEN_ON), strict=True):
            s = scores(runs, self.default)
            self.settings.append(setting)
            self.found.append((s.mean if s.n else 0.0, _crossed(runs, self.default)))

    def best(self, *, harmless: bool) -> int:
        """Return the place of the best setting; the default crosses nothing."""
        allowed = [i for i, (_, n) in enumerate(self.found) if not (harmless and n)]
        return max(allowed, key=lambda i: self.found[i][0])

    def run(self) -> None:
        """Try all 64."""
        floor = self.base.replace(rp_min_rate=self.rule["rp_min_rate"])
        draws, n = np.random.default_rng(1), self.space.n
        strata = draws.permuted(np.tile(np.arange(FIRST), (n, 1)), axis=1).T  # a Latin hypercube
        cube = (strata + draws.random((FIRST, n))) / FIRST
        self.tell([self.base, floor, self.rule, *map(self._setting, 2 * cube - 1)])
        for _ in range(ROUNDS):
            around = [self.best(harmless=h) for h in (False, True)]
            at = [self.space.encode(self.settings[around[k % 2]]) for k in range(AROUND)]
            steps = draws.normal(scale=SPREAD, size=(AROUND, n))
            places = [np.clip(a + b, -1, 1) for a, b in zip(at, steps, strict=True)]
            self.tell([self._setting(place) for place in places])

    def _setting(self, unit: FloatArray) -> Setting:
        return self.space.setting(unit, self.base)

    def judged(self) -> list[tuple[float, int]]:
        """Return S and crossed limits of each column on fresh traffic."""
        held = [self.settings[self.best(harmless=h)] for h in (False, True)]
        default, *runs = self._runs([self.base, *held, self.rule], JUDGED_ON)
        runs.append(_keeper(self.scenario))
        rows = [(scores(r, default), _crossed(r, default)) for r in runs]
        return [(s.mean if s.n else 0.0, n) for s, n in rows]


def _crossed(ours: Sequence[Measured], default: Sequence[Measured]) -> int:
    return count(f.state != "few" and f.cost.harm.mean > f.limit for f in flags(ours, default))


def _text(values: Sequence[float]) -> str:
    return str(with_interval(estimate(values), "+.3f", style="brackets"))


def _keeper(scenario: Scenario) -> list[Measured]:
    """Return what Keeper does to the whole run, by seed."""
    found = []
    for seed in JUDGED_ON:
        with TemporaryDirectory() as folder:
            log = Path(folder) / "run.jsonl"
            run(RunSpec(scenario, "keeper", seed, scenario.intervals, "native", {}), log)
            found.append(measured(Series.of(read_run(log))))
    return found


def main() -> None:
    """Print a line a scenario, and the means with their 95 % intervals over the scenarios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    options = parser.parse_args()
    rows = []
    print(f"| scenario, S (limits crossed) | {' | '.join(COLUMNS)} |\n|---{'|---' * len(COLUMNS)}|")
    for scenario in load_suite(options.suite).scenarios.values():
        search = Search(changed_scenario(scenario, {"intervals": INTERVALS}, scenario.name))
        search.run()
        rows.append(search.judged())
        print(
            f"| {scenario.name} | {' | '.join(f'{s:+.3f} ({n})' for s, n in rows[-1])} |",
            flush=True,
        )
    means = [_text([r[k][0] for r in rows]) for k in range(len(COLUMNS))]
    print(f"| mean of {len(rows)} | {' | '.join(means)} |")
    harmed = [sum(row[k][1] > 0 for row in rows) for k in range(len(COLUMNS))]
    print(f"| scenarios with harm | {' | '.join(map(str, harmed))} |")


if __name__ == "__main__":
    main()
