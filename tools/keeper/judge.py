"""``python tools/keeper/judge.py FILE``: race beside keeper, advise and held settings on test-v2.

All 42 scenarios, 100 intervals, the default on the same traffic beside every entry. *Online* is the
run in which the entry tunes, *final* what it recommends, held on fresh traffic. Held settings:
`slow` and `rule` of the portfolio, with no territory (what the race begins with), and the default
with its timer 1 us longer, which is chance. Harm is that of the leaderboard: the amount beyond a
limit after an allowance for chance. Intervals are those of its ranking, so differences are paired.
Seeds, entries and this file stood in a commit before the first run. Every other scenario comes
first, and the file is written at half, so that a run that is cut short has a half that was chosen
before. (The first start was killed from outside before it had written anything; it had three
repetitions.) About four CPU minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.bootstrap import hierarchical
from dcqcn_gym.benchmarks.leaderboard.harm import changes, harms_of
from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.core.groups import DeviceSetting, setting_of
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.verdict import Summary, scores, summary
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.portfolio import portfolio
from dcqcn_gym.tuners.rule import advise

SUITE, REPETITIONS = "test-v2", 2
ONLINE, FINAL = 3001, 4001
"""Seeds of the first repetition."""
TUNERS = ("keeper", "race")
HELD = ("default + 1 us", "slow", "rule", "advise")
STAGES = ("final", "online")
Pair = tuple[Summary, Summary]


def held(scenario: Scenario) -> list[DeviceSetting]:
    """Return the settings of :data:`HELD`."""
    facts, default = facts_of(scenario), scenario.default_setting()
    some = {one.name: one.setting for one in portfolio(facts, default)}
    later = default.replace(rp_time_reset=default["rp_time_reset"] + 1)
    return [later, some["slow"], some["rule"], advise(facts, default).setting]


def tuned(scenario: Scenario, tuner: str, seed: int) -> tuple[Summary, DeviceSetting]:
    """Return what a tuner did online, and what it recommends."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        run(RunSpec(scenario, tuner, seed, scenario.intervals, "native", {}), log)
        done = read_run(log)
        return summary(measured(Series.of(done))), setting_of((done.end or {})["recommended"])


def pairs(scenario: Scenario, repetition: int) -> Iterator[tuple[str, str, Pair]]:
    """Yield (stage, entry, its run beside the default's) of a repetition."""
    own = [scenario.default_setting(), *held(scenario)]
    online = [summary(r[0][0]) for r in evaluate(own, [scenario], [ONLINE + repetition], None, 1)]
    ran = [tuned(scenario, tuner, ONLINE + repetition) for tuner in TUNERS]
    own += [setting for _, setting in ran]
    final = [summary(r[0][0]) for r in evaluate(own, [scenario], [FINAL + repetition], None, 1)]
    online += [one for one, _ in ran]
    for stage, runs in zip(STAGES, (final, online), strict=True):
        for name, one in zip((*HELD, *TUNERS), runs[1:], strict=True):
            yield stage, name, (one, runs[0])


def _s(pair: Pair) -> float:
    found = scores([pair[0]], [pair[1]])
    return found.mean if found.n and np.isfinite(found.mean) else 0.0


def _text(values: FloatArray) -> str:
    found = hierarchical(values)
    return f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def table(found: Mapping[str, Mapping[str, Sequence[Sequence[Pair]]]]) -> dict[str, object]:
    """Return the figures of all entries, by stage; pairs are by stage, entry, scenario."""
    out: dict[str, object] = {}
    for stage, entries in found.items():
        s = {name: np.array([[_s(p) for p in own] for own in of]) for name, of in entries.items()}
        changed = {n: np.array([changes(own) for own in of]) for n, of in entries.items()}
        harms = harms_of(changed, list(changed))
        out[stage] = {
            name: {
                "S": _text(s[name]),
                "scenarios beyond": int((harms[name].by_scenario > 0).sum()),
                "beyond twice": int((harms[name].by_scenario > 1).sum()),
                "worst amount": round(harms[name].worst, 2),
                "tier": harms[name].tier,
                "worst scenario": round(float(s[name].mean(axis=1).min()), 3),
                "less keeper": _text(s[name] - s["keeper"]),
            }
            for name in entries
        }
        out[f"{stage}, by scenario"] = {
            name: [round(float(x), 3) for x in s[name].mean(axis=1)] for name in s
        }
    return out


def main() -> None:
    """Run all, print the figures and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    began = time.process_time()
    suite = list(load_suite(SUITE).scenarios.values())
    found: dict[str, dict[str, list[list[Pair]]]] = {
        stage: {name: [] for name in (*HELD, *TUNERS)} for stage in STAGES
    }
    done: list[str] = []
    for half in (suite[::2], suite[1::2]):
        for scenario in half:
            for entries in found.values():
                for own in entries.values():
                    own.append([])
            for repetition in range(REPETITIONS):
                for stage, name, pair in pairs(scenario, repetition):
                    found[stage][name][-1].append(pair)
            done.append(scenario.name)
            print(f"{len(done)}: {time.process_time() - began:.0f} CPU s", file=sys.stderr)
        figures = {"repetitions": REPETITIONS, "scenarios": done, **table(found)}
        options.file.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
