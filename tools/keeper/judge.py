"""``python tools/keeper/judge.py FILE``: the tuner `prior` beside keeper and what it picks from.

On the 42 scenarios of test-v2, and on 26 of a fresh draw of the generator (two of each kind), two
repetitions, 100 intervals, the default on the same traffic beside every entry. *Online* is the run
in which an entry tunes, *final* what it recommends, held on fresh traffic. Nothing of `prior` was
trained or chosen on either. What is read, stated before the first run:

- success, by which `prior` is shipped: S final of `prior` less keeper's is above 0 by its 95 %
  interval on both together, and it is beyond twice a limit on no more scenarios than keeper;
- the aims: S final at least +0.25 and 80 % of the best candidate without harm, S online at least
  +0.18, nothing beyond twice a limit (an amount above 1), worst scenario above -0.05;
- ablations, of final S: what is picked from facts alone, from what is seen alone, and without the
  watch; the trees of the first two are grown with the same numbers.

Harm is that of the leaderboard: the amount beyond a limit after an allowance for chance; intervals
are those of its ranking, so differences are paired. Four parts, every other scenario of each set
first; the file is written after each, so that a run which is cut short has whole parts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from prior import LEAF, PRICE, TREES, Measurements, looked, scenario_of

from dcqcn_gym.benchmarks.leaderboard.bootstrap import hierarchical
from dcqcn_gym.benchmarks.leaderboard.harm import changes, harms_of
from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.core.groups import DeviceSetting, setting_of
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.verdict import Summary, scores, summary
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.extras.search.alike import OF_FABRIC, Alike, grown
from dcqcn_gym.extras.search.prior import candidates
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec

SUITE, SALT, REPETITIONS = "test-v2", "prior-1-judged", 2
ONLINE, FINAL = 3001, 4001
"""Seeds of the first repetition."""
TUNERS = ("keeper", "prior")
HELD = ("default", "rule", "slow", "careful")
PICKS = {"facts alone": slice(0, OF_FABRIC), "seen alone": slice(OF_FABRIC, None),
         "no watch": slice(None)}  # fmt: skip
Pair = tuple[Summary, Summary]


def tuned(scenario: Scenario, tuner: str, seed: int) -> tuple[Summary, DeviceSetting, list[str]]:
    """Return what a tuner did online, what it recommends, and its decisions."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        run(RunSpec(scenario, tuner, seed, scenario.intervals, "native", {}), log)
        done = read_run(log)
        end = done.end or {}
        said = list(end.get("decisions", []))
        return summary(measured(Series.of(done))), setting_of(end["recommended"]), said


def picked(model: Alike, numbers: Sequence[float]) -> str:
    """Return what the trees alone would hold."""
    weights = model.weights(numbers)
    worth = weights @ model.gains - PRICE * (weights @ model.harms)
    return HELD[1 + int(worth.argmax())] if worth.max() > 0 else "default"


class Judged:
    """All runs so far: by stage and entry, for each scenario its (entry, default) pairs."""

    def __init__(self, models: Mapping[str, Alike]) -> None:
        self._models = models
        self.found: dict[str, dict[str, list[list[Pair]]]] = {"final": {}, "online": {}}
        self.said: dict[str, list[list[str]]] = {}
        self.recommended: dict[str, list[str]] = {}
        self.scenarios: list[str] = []

    def add(self, name: str, scenario: Scenario) -> None:
        """Run a scenario."""
        self.scenarios.append(name)
        default = scenario.default_setting()
        held = {"default": default, **candidates(facts_of(scenario), default)}
        pairs: dict[tuple[str, str], list[Pair]] = {}
        for k in range(REPETITIONS):
            seed = ONLINE + k
            final = [summary(r[0][0]) for r in
                     evaluate(list(held.values()), [scenario], [FINAL + k], None, 1)]  # fmt: skip
            runs = dict(zip(held, final, strict=True))
            before = summary(evaluate([default], [scenario], [seed], None, 1)[0][0][0])
            for tuner in TUNERS:
                did, setting, said = tuned(scenario, tuner, seed)
                chose = next((n for n, s in held.items() if s == setting), None)
                if chose is None:
                    raise SystemExit(f"{name}: {tuner} recommends what was not held")
                self.said.setdefault(f"{name} {tuner}", []).append(said)
                self.recommended.setdefault(f"{name} {tuner}", []).append(chose)
                pairs.setdefault(("online", tuner), []).append((did, before))
                pairs.setdefault(("final", tuner), []).append((runs[chose], runs["default"]))
            for one in HELD[1:]:
                pairs.setdefault(("final", one), []).append((runs[one], runs["default"]))
            numbers = looked(scenario, seed)
            for what, part in PICKS.items():
                own = runs[picked(self._models[what], numbers[part])]
                pairs.setdefault(("final", what), []).append((own, runs["default"]))
        for (stage, entry), own in pairs.items():
            self.found[stage].setdefault(entry, []).append(own)

    def figures(self) -> dict[str, object]:
        """Return all figures."""
        out: dict[str, object] = {"scenarios": self.scenarios}
        sets = {"all": lambda n: True, SUITE: lambda n: n.startswith(SUITE),
                "draw": lambda n: not n.startswith(SUITE)}  # fmt: skip
        for stage, entries in self.found.items():
            for what, inside in sets.items():
                at = [i for i, name in enumerate(self.scenarios) if inside(name)]
                if at:
                    out[f"{stage}, {what}"] = _table(
                        {n: [of[i] for i in at] for n, of in entries.items()}
                    )
        out["by scenario"] = {
            stage: {
                n: [round(float(x), 3) for x in _s(of).mean(axis=1)] for n, of in entries.items()
            }
            for stage, entries in self.found.items()
        }
        return {**out, "recommended": self.recommended, "decisions": self.said}


def _s(of: Sequence[Sequence[Pair]]) -> FloatArray:
    found = np.array([[scores([a], [b]).mean for a, b in own] for own in of])
    return np.where(np.isfinite(found), found, 0.0)


def _text(values: FloatArray) -> str:
    found = hierarchical(values)
    return f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _table(entries: Mapping[str, Sequence[Sequence[Pair]]]) -> dict[str, object]:
    s = {name: _s(of) for name, of in entries.items()}
    changed = {n: np.array([changes(own) for own in of]) for n, of in entries.items()}
    harms = harms_of(changed, list(changed))
    out: dict[str, object] = {
        name: {
            "S": _text(s[name]),
            "less keeper": _text(s[name] - s["keeper"]),
            "beyond": int((harms[name].by_scenario > 0).sum()),
            "beyond twice": int((harms[name].by_scenario > 1).sum()),
            "worst amount": round(float(harms[name].worst), 2),
            "worst scenario": round(float(s[name].mean(axis=1).min()), 3),
            "harm": [round(float(h), 2) for h in harms[name].by_scenario],
        }
        for name in entries
    }
    if "rule" in entries:
        safe = [np.where(harms[n].by_scenario > 0, 0.0, s[n].mean(axis=1)) for n in HELD[1:]]
        best = np.maximum(np.max(safe, axis=0), 0.0)
        out["best without harm"] = _text(np.repeat(best[:, None], REPETITIONS, axis=1))
        out["best without harm, by scenario"] = [round(float(b), 3) for b in best]
    return out


def parts() -> list[list[tuple[str, Scenario]]]:
    """Return the scenarios in four parts."""
    suite = [(f"{SUITE} {n}", s) for n, s in load_suite(SUITE).scenarios.items()]
    fresh = [(s.name, s) for s in (scenario_of(SALT, i) for i in range(26))]
    return [suite[::2], fresh[:13], suite[1::2], fresh[13:]]


def main() -> None:
    """Run all, print the figures and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("measured", type=Path, help="measurements that `prior.py` kept")
    options = parser.parse_args()
    began = time.process_time()
    on = Measurements(**np.load(options.measured))
    models = {n: grown(on.x[:, p], on.gains, on.harms, TREES, LEAF) for n, p in PICKS.items()}
    judged = Judged(models)
    for part in parts():
        for name, scenario in part:
            judged.add(name, scenario)
            print(f"{name}: {time.process_time() - began:.0f} CPU s", file=sys.stderr, flush=True)
        options.file.write_text(json.dumps(judged.figures(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
