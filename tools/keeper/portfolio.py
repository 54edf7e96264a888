"""``python tools/keeper/portfolio.py FILE``: which settings does a portfolio need?

Every setting of the portfolio, held from the first interval on, on two draws of the generator of
suites: 26 scenarios each, two of a kind, two seeds. On the first draw a set is chosen greedily:
each step adds the setting that raises most the mean over the scenarios of the best S without harm
(no limit of the verdict crossed by the mean of the seeds). The second draw judges what the first
chose. Salts, seeds and this rule stood before the first run. About four CPU minutes.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.bank.portfolio import portfolio
from dcqcn_gym.benchmarks.leaderboard.generator import INTERVALS, KINDS, draw
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.statistics import estimate
from dcqcn_gym.core.verdict import Measured, flags, scores
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.runs.table import with_interval

SALTS = {"chosen on": "portfolio-1-chosen", "judged on": "portfolio-1-judged"}
SEEDS, EACH = (1, 2), 2


@dataclass(frozen=True)
class Held:
    """What held settings did: S and harm in limits, of shape (settings, scenarios)."""

    names: Sequence[str]
    s: FloatArray
    harm: FloatArray

    def best(self, chosen: Sequence[str]) -> FloatArray:
        """Return by scenario the best S of those chosen that cross no limit; the default has 0."""
        rows = [self.names.index(name) for name in chosen]
        allowed = np.where(self.harm[rows] <= 1, self.s[rows], 0.0)
        return np.asarray(allowed.max(axis=0, initial=0.0))


def drawn(salt: str, each: int = EACH) -> list[Scenario]:
    """Return scenarios of a salt, ``each`` of every kind of traffic."""
    found = [draw(salt, i, INTERVALS) for i in range(each * len(KINDS))]
    return [validate({"name": d.name, **d.table}, Scenario, source=d.name) for d in found]


def harm_of(ours: Sequence[Measured], theirs: Sequence[Measured]) -> float:
    """Return the largest mean harm of any figure, in limits of the verdict."""
    found = [f.cost.harm.mean / f.limit for f in flags(ours, theirs) if f.state != "few"]
    return max([one for one in found if math.isfinite(one)], default=0.0)


def held(scenarios: Sequence[Scenario]) -> Held:
    """Measure every setting on every scenario."""
    columns: list[list[tuple[float, float]]] = []
    names: list[str] = []
    for scenario in scenarios:
        default = scenario.default_setting()
        some = portfolio(facts_of(scenario), default)
        names = [one.name for one in some]
        runs = [r for (r,) in evaluate([c.setting for c in some], [scenario], SEEDS, None, 1)]
        found = [scores(run, runs[0]) for run in runs]
        columns.append([
            (s.mean if s.n and math.isfinite(s.mean) else 0.0, harm_of(run, runs[0]))
            for s, run in zip(found, runs, strict=True)
        ])  # fmt: skip
    table = np.array(columns)
    return Held(names, table[..., 0].T, table[..., 1].T)


def cover(on: Held) -> list[str]:
    """Return settings in the order in which they add most."""
    chosen: list[str] = []
    left = [name for name in on.names if name != "default"]
    while left:
        best = max(left, key=lambda name: float(on.best([*chosen, name]).mean()))
        chosen.append(best)
        left.remove(best)
    return chosen


def _line(name: str, on: Held, s: FloatArray, harm: FloatArray | None) -> str:
    shown = with_interval(estimate(s.tolist()), "+.3f", style="brackets")
    beyond = "" if harm is None else f"{int((harm > 1).sum())} | {int((harm > 2).sum())}"
    return f"| {name} | {shown} | {beyond or '0 | 0'} | {s.min():+.2f} |"


def report(what: str, on: Held, order: Sequence[str]) -> list[str]:
    """Return the table of a draw."""
    head = f"| {what}, {on.s.shape[1]} scenarios | S | beyond | over 2 | worst S |"
    head += f"\n{'|---' * 5}|"
    rows = [_line(n, on, on.s[i], on.harm[i]) for i, n in enumerate(on.names) if n != "default"]
    rows += [
        _line(f"best without harm of the first {k}: + {order[k - 1]}", on, on.best(order[:k]), None)
        for k in range(1, len(order) + 1)
    ]
    return [head, *rows, ""]


def main() -> None:
    """Print both tables, and write them to the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    began = time.process_time()
    found = {what: held(drawn(salt)) for what, salt in SALTS.items()}
    order = cover(found["chosen on"])
    lines = [line for what, on in found.items() for line in report(what, on, order)]
    text = "\n".join(lines)
    print(text)
    options.file.write_text(text, encoding="utf-8")
    print(f"{time.process_time() - began:.0f} CPU seconds", file=sys.stderr)


if __name__ == "__main__":
    main()
