"""How much could whoever switches settings gain? ``python tools/headroom.py FILE``.

Nine settings: the default and the rule with the changes of ``leaderboard/bank/portfolio.toml``. On
every scenario whose traffic has phases, of four suites, and on nine made ones that jump between
two extremes: the best setting that is held, and the best sequence of one setting a phase, found
from it phase by phase in two passes. Both are chosen by S on two traffics, with hindsight of the
phases, which no agent has; both are judged on four others. Harm is not counted: it is a ceiling for
switching where traffic switches. Seeds, settings and this rule stood before the first run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.core.config import read_toml, validate
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.statistics import estimate
from dcqcn_gym.core.verdict import Measured, scores
from dcqcn_gym.envs.backends.native_batch import Ground
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.batch_evaluation import begun, go_on
from dcqcn_gym.runs.table import with_interval
from dcqcn_gym.tuners.rule import advise, rule_file

CHOSEN_ON, JUDGED_ON, PASSES = (101, 102), (201, 202, 203, 204), 2
SUITES = ("dev-v1", "dev-v2", "test-v2", "season-1")
PORTFOLIO = Path(__file__).parents[1] / "benchmarks/leaderboard/bank/portfolio.toml"

FABRICS: dict[str, dict[str, Any]] = {
    "star-25g": {"kind": "single-switch", "hosts": 12, "gbps": 25},
    "star-100g": {"kind": "single-switch", "hosts": 24, "gbps": 100},
    "racks-100g": {"kind": "leaf-spine", "tors": 2, "hosts_per_tor": 8, "spines": 2,
                   "host_gbps": 100, "uplink_gbps": 200},
}  # fmt: skip
EXTREMES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "incast-mice": (
        {"kind": "incast", "dst": 0, "hosts": [*range(1, 9)], "bytes": 65536},
        {"kind": "poisson", "cdf": "FB_Hadoop", "load": 0.3, "load_of": "host"},
    ),
    "ring-elephants": (
        {"kind": "ring", "bytes": 4000000},
        {"kind": "poisson", "cdf": "WebSearch", "load": 0.5, "load_of": "host"},
    ),
    "alltoall-incast": (
        {"kind": "alltoall", "bytes": 262144},
        {"kind": "incast", "dst": 0, "hosts": [*range(1, 12)], "bytes": 500000},
    ),
}

Places = tuple[int, ...]
"""The place of a setting for each phase."""


def scenarios() -> Iterator[tuple[Scenario, list[int]]]:
    """Yield every scenario with the intervals at which its phases begin."""
    for suite in map(load_suite, SUITES):
        for one in suite.file.scenarios:
            if len(one.phases) > 1:
                yield suite.scenarios[one.name], list(one.phases)
    for fabric, topology in FABRICS.items():
        for name, traffic in EXTREMES.items():
            yield made(f"{fabric}-{name}", topology, traffic)


def made(
    name: str, topology: dict[str, Any], traffic: Sequence[dict[str, Any]]
) -> tuple[Scenario, list[int]]:
    """Return a scenario of four phases of 25 intervals, in which the two take turns."""
    edges = [0, 15_500, 28_000, 40_500, 53_000]  # the warm-up belongs to the first
    loads = [traffic[k % 2] | {"start_us": edges[k], "stop_us": edges[k + 1]} for k in range(4)]
    table = {
        "name": name, "intervals": 100, "monitor_interval_us": 500, "warmup_us": 3000,
        "topology": topology, "workloads": loads,
    }  # fmt: skip
    return validate(table, Scenario, source=name), [0, 25, 50, 75]


def settings(scenario: Scenario) -> list[Setting]:
    """Return the default and every setting of the portfolio that the rule makes."""
    default, file = scenario.default_setting(), rule_file()
    anywhere = dict.fromkeys(
        ("line_rate_gbps", "hosts", "base_rtt_us", "oversubscription"), (0.0, 1e9)
    )
    found = [default]
    for one in read_toml(PORTFOLIO)["settings"]:
        if one.get("preset"):
            continue
        terms = {
            n: v * one.get("times", {}).get(n, 1.0) for n, v in file.terms.model_dump().items()
        }
        changed = {"terms": terms | one.get("set", {}), "territory": {
            **file.territory.model_dump(), **anywhere}}  # fmt: skip
        advice = advise(facts_of(scenario), default, validate(
            file.model_dump() | changed, type(file), source=one["name"]))  # fmt: skip
        turned = [n for n in advice.reasons if n in one.get("only", advice.reasons)]
        found.append(default.replace({n: advice.setting[n] for n in turned}))
    return found


class Phases:
    """One scenario with its settings: what sequences of them do."""

    def __init__(self, scenario: Scenario, starts: Sequence[int]) -> None:
        self.ground, self.ends = Ground(scenario), [*starts[1:], scenario.intervals]
        self.settings = settings(scenario)
        self.held = [(k,) * len(self.ends) for k in range(len(self.settings))]

    def runs(self, sequences: Sequence[Places], seeds: Sequence[int]) -> list[list[Measured]]:
        """Return what each sequence does, by seed."""
        jobs = [(self.ground, seed, self.settings[s[0]]) for s in sequences for seed in seeds]
        runs = begun(jobs)
        for phase, end in enumerate(self.ends):
            for at, run in enumerate(runs if phase else ()):  # the first is in force
                run.run.apply(self.settings[sequences[at // len(seeds)][phase]])
            go_on(runs, end)
        figures = [run.measured() for run in runs]
        return [figures[i : i + len(seeds)] for i in range(0, len(figures), len(seeds))]

    def best(self) -> tuple[Places, Places, float]:
        """Return the best setting that is held, the best sequence from there, and its lead here."""
        held = self.runs(self.held, CHOSEN_ON)
        default = held[0]
        worth = {s: _s(r, default) for s, r in zip(self.held, held, strict=True)}
        constant = best = max(self.held, key=lambda s: worth[s])
        for phase in [*range(len(self.ends))] * PASSES:
            others = [(*best[:phase], k, *best[phase + 1 :]) for k in range(len(self.settings))]
            new = [s for s in others if s not in worth]
            worth |= {
                s: _s(r, default) for s, r in zip(new, self.runs(new, CHOSEN_ON), strict=True)
            }
            best = max(others, key=lambda s: worth[s])
        return constant, best, worth[best] - worth[constant]

    def judged(self) -> tuple[float, float, float, str]:
        """Return S of both on other traffic, the lead where they were chosen, the sequence."""
        constant, best, lead = self.best()
        default, *runs = self.runs([self.held[0], constant, best], JUDGED_ON)
        return _s(runs[0], default), _s(runs[1], default), lead, " ".join(map(str, best))


def _s(ours: Sequence[Measured], default: Sequence[Measured]) -> float:
    found = scores(ours, default)
    return float(found.mean) if found.n and np.isfinite(found.mean) else 0.0


def main() -> None:
    """Print a line a scenario, then the mean headroom with its 95 % interval over scenarios."""
    lines = ["| scenario | S, best held | S, best sequence | headroom | where chosen | settings |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    leads = []
    for scenario, starts in scenarios():
        held, switched, lead, words = Phases(scenario, starts).judged()
        leads.append((switched - held, lead))
        cells = (f"{value:+.3f}" for value in (held, switched, *leads[-1]))
        lines.append(f"| {scenario.name} | {' | '.join(cells)} | {words} |")
        print(lines[-1], file=sys.stderr, flush=True)
    means = (
        with_interval(estimate(found), "+.3f", style="brackets")
        for found in zip(*leads, strict=True)
    )
    lines.append(f"| mean of {len(leads)} | | | {' | '.join(means)} | |")
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
