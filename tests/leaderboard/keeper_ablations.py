"""``python tests/leaderboard/keeper_ablations.py``: the rule without a term, Keeper without a part.

The rule on the small scenarios of the bank's validation kinds, which the fit never saw; Keeper on
those of ``keeper_hardships`` where it decides anything. Printed are S against the default with its
95 % interval (over scenarios; over runs), and how many limits are crossed in the mean of the seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.bank.bank import bank
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.statistics import Estimate, estimate
from dcqcn_gym.core.sums import count, mean
from dcqcn_gym.core.verdict import Measured, changes, flags, scores, scores_by_seed
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.runs.table import with_interval
from dcqcn_gym.tuners.keeper import KeeperTuner
from dcqcn_gym.tuners.rule import advise, rule_file

sys.path.insert(0, str(Path(__file__).parent))
from keeper_hardships import runs_of, scenario_of

__all__ = ["NoAlarm", "NoDuel", "NoReturn", "keeper", "rule", "without"]

SALT, DRAWN, MOST_HOSTS, SEEDS = "ablations", 24, 48, (1, 2)

GROUPS = {
    "the floor": ("rp_min_rate",),
    "the shorter period": ("rp_time_reset",),
    "the larger step": ("rp_ai_rate", "rp_hai_rate"),
    "the quicker alpha": ("rp_dce_tcp_g",),
    "earlier marking": ("kmin", "kmax", "pmax"),
}
"""Knobs that go back to the default together."""

TERMS: dict[str, dict[str, float]] = {
    "less with more hosts": {"fan_in_power": 1.0},
    "the round trip": {"rtt_power": 0.0},
    "the buffer": {"buffer_share": 1e6},
}
"""Terms without effect; ``fan_in_power`` 1 keeps the sum of all floors as it is."""

ON = ("overload", "23:1 beside rpc", "31:1 beside rpc", "flips of 4 ms", "flips of 20 ms")


def without(knobs: Sequence[str], **terms: float) -> Callable[[Scenario], Setting]:
    """Return the rule with other terms and some knobs at the default."""
    shipped = rule_file()
    file = shipped.model_copy(update={"terms": shipped.terms.model_copy(update=terms)})

    def setting(scenario: Scenario) -> Setting:
        default = scenario.default_setting()
        found = advise(facts_of(scenario), default, file).setting
        return found.replace({name: default[name] for name in knobs})

    return setting


class NoAlarm(KeeperTuner):
    """Never alarmed: the rule's setting, but for the first look where buffers are shallow."""

    def _new_watch(self) -> None:
        super()._new_watch()
        self._watch.levels = dict.fromkeys(self._watch.levels, 1e9)


class NoDuel(KeeperTuner):
    """An alarm alone decides for the default."""

    def _begin(self, why: str) -> None:
        self._settle("default", self._recent[-1].busy if self._recent else 0.0, paused=True)
        self._decide(why)


class NoReturn(KeeperTuner):
    """What is decided stays, whatever the traffic does."""

    def _shifted(self, signs: Any) -> str:
        return ""


def _crossed(ours: Sequence[Measured], default: Sequence[Measured]) -> int:
    return count(f.state != "few" and f.cost.harm.mean > f.limit for f in flags(ours, default))


def _text(of: Estimate) -> str:
    return str(with_interval(of, "+.3f", style="brackets"))


def rule() -> None:
    """Print the rule without each of its terms."""
    scenarios = [s for s in bank(SALT, DRAWN, "validation") if s.n_hosts <= MOST_HOSTS]
    variants = {"nothing": without(())}
    variants |= {name: without(knobs) for name, knobs in GROUPS.items()}
    variants |= {name: without((), **terms) for name, terms in TERMS.items()}
    settings = [lambda s: s.default_setting(), *variants.values()]
    default, *found = evaluate(settings, scenarios, SEEDS)
    print(f"| the rule without, {len(scenarios)} scenarios | S | limits crossed |\n|---|---|---|")
    for name, runs in zip(variants, found, strict=True):
        pairs = list(zip(runs, default, strict=True))
        s = [scores(a, b).mean for a, b in pairs if scores(a, b).n]
        crossed = count(_crossed(a, b) for a, b in pairs)
        print(f"| {name} | {_text(estimate(s))} | {crossed} |", flush=True)


def keeper() -> None:
    """Print Keeper without each of its parts."""
    tuners = {"nothing": "keeper"}
    for part, of in (("alarm", NoAlarm), ("duel", NoDuel), ("re-entry", NoReturn)):
        tuners[part] = f"{__file__}:{of.__name__}"
    scenarios = {name: scenario_of(name) for name in ON}
    default = {name: runs_of(s, "default", SEEDS) for name, s in scenarios.items()}
    print("| Keeper without | S online | points of pause | limits crossed |\n|---|---|---|---|")
    for part, tuner in tuners.items():
        runs = {name: runs_of(s, tuner, SEEDS) for name, s in scenarios.items()}
        s = [v for name, r in runs.items() for v in scores_by_seed(r, default[name])]
        more = [
            next(c for c in changes(r, default[name]) if c.key == "pause").change.mean
            for name, r in runs.items()
        ]
        crossed = count(_crossed(r, default[name]) for name, r in runs.items())
        known = estimate([v for v in s if np.isfinite(v)])
        print(f"| {part} | {_text(known)} | {100 * mean(more):+.2f} | {crossed} |", flush=True)


if __name__ == "__main__":
    rule()
    keeper()
