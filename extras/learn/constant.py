"""Is a policy more than a constant? It against the best action it could hold, on other scenarios.

One that is not better has learned a setting and nothing else: ``train`` and ``evaluate`` refuse it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.statistics import Estimate, estimate
from dcqcn_gym.core.verdict import scores_by_seed
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report.batch_evaluation import evaluate
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.runs.table import with_interval
from dcqcn_gym.runs.trials import Trial
from dcqcn_gym.tuners.policy import load_policy

HELD_OUT = ("00-four-racks-steady", "02-fat-tree-incast", "04-fast-uplinks-steps",
            "07-dumbbell-swap", "10-fat-tree-bursts", "11-one-switch-alltoall")  # fmt: skip
"""Scenarios of suite ``dev-v1``; the shipped policies learned on others."""
SEEDS, INTERVALS = (1, 2), 40
FEWEST = 3
"""Runs on other scenarios from which on ``evaluate`` judges."""


def held_out() -> list[Scenario]:
    """Return the scenarios that policies are held against."""
    suite = CONFIGS / "suites" / "dev-v1"
    return [load_scenario(str(suite / f"{name}.toml")) for name in HELD_OUT]


def against_constant(
    policy: str,
    scenarios: Sequence[Scenario],
    seeds: Sequence[int] = SEEDS,
    intervals: int = INTERVALS,
) -> tuple[Estimate, float]:
    """Run a policy and return what :func:`over_constant` says of it."""
    with TemporaryDirectory() as folder:
        specs = [
            RunSpec(scenario, "policy", seed, intervals, "native", {"file": policy})
            for scenario, seed in product(scenarios, seeds)
        ]
        runs = [(spec, Path(folder) / f"{i}.jsonl") for i, spec in enumerate(specs)]
        for spec, log in runs:
            run(spec, log)
        return over_constant(runs)


def over_constant(runs: Sequence[tuple[RunSpec, Path]]) -> tuple[Estimate, float]:
    """Return S of a policy's runs over its own best constant, and how far its actions are from it.

    A constant is one action for all scenarios, of the knobs that the policy turns: the mean or the
    median of what it did, whichever has the higher S. The distance is the standard deviation of an
    action's component, the ranges being -1 to 1.
    """
    done = [(spec, _space(spec.scenario), read_run(log)) for spec, log in runs]
    actions = np.concatenate(
        [[space.encode(line["setting"]) for line in log.intervals] for _, space, log in done]
    )
    held = (actions.mean(axis=0), np.median(actions, axis=0))
    gains: list[list[float]] = [[], []]
    for spec, space, log in done:
        base = spec.scenario.initial_setting()
        settings = [space.setting(action, base) for action in held]
        theirs = evaluate(settings, [spec.scenario], [spec.seed], spec.intervals)
        ours = [measured(Series.of(log))]
        for found, (constant,) in zip(gains, theirs, strict=True):
            found += [s for s in scores_by_seed(ours, constant) if np.isfinite(s)]
    least = min(map(estimate, gains), key=lambda gain: gain.mean)
    return least, float(actions.std(axis=0).mean())


def constants(trials: Iterable[Sequence[Trial]]) -> list[str]:
    """Return why policies are refused, of those with enough finished trials on other scenarios."""
    runs: dict[str, list[tuple[RunSpec, Path]]] = {}
    for trial in chain.from_iterable(trials):
        file = str(trial.spec.tuner_args.get("file", "")) if trial.spec.tuner == "policy" else ""
        if file and trial.spec.scenario.name not in load_policy(file).meta.scenarios:
            runs.setdefault(file, []).append((trial.spec, trial.log))
    enough = {file: over_constant(found)[0] for file, found in runs.items() if len(found) >= FEWEST}
    return [why for file, gain in enough.items() if (why := refusal(file, gain))]


def refusal(policy: str, gain: Estimate) -> str:
    """Return why a policy is not to be shipped, in a sentence, or nothing."""
    if (gain.low or 0.0) > 0:
        return ""
    found = with_interval(gain, "+.3f", style="brackets")
    return (
        f"{policy} is not to be shipped: its S over its own best constant is {found} on "
        f"{gain.n} runs of scenarios that it did not learn on; hold that constant, or train longer"
    )


def _space(scenario: Scenario) -> KnobSpace:
    return KnobSpace(scenario.turned, scenario.line_rate_bps, scenario.table, scenario.ranges)
