"""Does it pay to look on fluid and to settle on packets? ``python tools/fluid_screen.py FILE``.

One scenario of each kind of ``fluid_error.py``, 40 intervals, five searches each. On packets alone
a search tries twelve settings of the tuned ranges, drawn evenly. With fluid it tries as many there
as six on packets cost (by the CPU ratios of docs/measured/fluid.md), and the best six of these on
packets. Both keep what is best there, the default if nothing is better, and are judged on three
other traffics. Scenarios, seeds and this rule stood before the first run.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.statistics import estimate
from dcqcn_gym.core.verdict import scores
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.runs.table import with_interval
from fluid_error import CASES, SUITES

INTERVALS, CHOSEN_ON, JUDGED_ON, DRAWS, TRIED = 40, (1, 2), (11, 12, 13), 5, 12
RATIO = {"open traffic": 4.9, "incast": 4.2, "incast of mice": 2.9, "pause storm": 5.3,
         "all-to-all": 3.7, "ring, permutation": 4.9, "job": 1.9, "storage": 3.8}  # fmt: skip


class Worth:
    """S of settings on a scenario, over the default on the same traffic."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.default = scenario, scenario.default_setting()

    def of(self, settings: list[Setting], seeds: tuple[int, ...], engine: str) -> list[float]:
        """Return S of each."""
        rows = evaluate([self.default, *settings], [self.scenario], seeds, INTERVALS, 1, engine)
        found = [scores(row, rows[0][0]) for (row,) in rows[1:]]
        return [float(s.mean) if s.n and np.isfinite(s.mean) else 0.0 for s in found]

    def best(self, settings: list[Setting]) -> Setting:
        """Return the one that is best on packets, or the default."""
        worth = self.of(settings, CHOSEN_ON, "default")
        at = int(np.argmax(worth))
        return settings[at] if worth[at] > 0 else self.default


def search(scenario: Scenario, ratio: float, draw: int) -> list[float]:
    """Return S of what is found on packets alone, and with fluid first."""
    worth, space = Worth(scenario), KnobSpace(line_rate_bps=scenario.line_rate_bps)
    places = np.random.default_rng(draw).uniform(-1, 1, (TRIED + int(TRIED / 2 * ratio), space.n))
    drawn = [space.setting(place, worth.default) for place in places]
    looked = worth.of(drawn[TRIED:], CHOSEN_ON, "fluid")
    first = [drawn[TRIED + i] for i in np.argsort(looked)[::-1][: TRIED // 2]]
    return worth.of([worth.best(drawn[:TRIED]), worth.best(first)], JUDGED_ON, "default")


def main() -> None:
    """Write a line a scenario and the mean difference, with its 95 % interval over scenarios."""
    lines = ["| kind | scenario | packets alone | fluid, then packets | difference |",
             "|---|---|---|---|---|"]  # fmt: skip
    gained = []
    for kind, (name, *_) in CASES.items():
        path = SUITES / f"{name}.toml"
        scenario = load_scenario(str(path) if path.exists() else name)
        found = np.array([search(scenario, RATIO[kind], draw) for draw in range(DRAWS)])
        alone, screened = found.mean(axis=0)
        gained.append(float(screened - alone))
        gap = with_interval(
            estimate((found[:, 1] - found[:, 0]).tolist()), "+.3f", style="brackets"
        )
        lines.append(f"| {kind} | {scenario.name} | {alone:+.3f} | {screened:+.3f} | {gap} |")
        print(lines[-1], file=sys.stderr, flush=True)
    mean = with_interval(estimate(gained), "+.3f", style="brackets")
    lines.append(f"| mean of {len(gained)} | | | | {mean} |")
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
