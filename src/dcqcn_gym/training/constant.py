"""Is a policy more than a constant? It against its own mean action, on scenarios it never saw.

``python -m dcqcn_gym.training.constant POLICY...`` prints a row for each; a policy that is not
better than that constant has learned a setting and nothing else, and is not shipped.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.statistics import Estimate, estimate
from dcqcn_gym.core.verdict import Measured, scores_by_seed
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.report.evaluated import evaluate
from dcqcn_gym.report.judged import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec

HELD_OUT = ("00-four-racks-steady", "02-fat-tree-incast", "04-fast-uplinks-steps",
            "07-dumbbell-swap", "10-fat-tree-bursts", "11-one-switch-alltoall")  # fmt: skip
"""Scenarios of suite ``dev-v1``; the shipped policies learned on others."""
SEEDS, INTERVALS = (1, 2), 40


def held_out() -> list[Scenario]:
    """Return the scenarios that policies are held against."""
    suite = Path("configs/suites/dev-v1")
    return [load_scenario(str(suite / f"{name}.toml")) for name in HELD_OUT]


def against_constant(
    policy: str,
    scenarios: Sequence[Scenario],
    seeds: Sequence[int] = SEEDS,
    intervals: int = INTERVALS,
) -> tuple[Estimate, float]:
    """Return S of a policy over its own mean action, and how far its actions are from that.

    The mean is one action for all scenarios, of the knobs that the policy turns; the distance is
    the standard deviation of an action's component, the ranges being -1 to 1.
    """
    runs = {(s.name, seed): _acted(policy, s, seed, intervals) for s in scenarios for seed in seeds}
    actions = np.concatenate([taken for _, taken in runs.values()])
    found = []
    for scenario in scenarios:
        constant = _setting(scenario, actions.mean(axis=0))
        theirs = evaluate([constant], [scenario], seeds, intervals)[0][0]
        found += scores_by_seed([runs[scenario.name, seed][0] for seed in seeds], theirs)
    return estimate([v for v in found if np.isfinite(v)]), float(actions.std(axis=0).mean())


def _setting(scenario: Scenario, action: FloatArray) -> Setting:
    return _space(scenario).setting(action, scenario.initial_setting())


def _space(scenario: Scenario) -> KnobSpace:
    return KnobSpace(scenario.turned, scenario.line_rate_bps, scenario.table, scenario.ranges)


def _acted(
    policy: str, scenario: Scenario, seed: int, intervals: int
) -> tuple[Measured, FloatArray]:
    """Return a run of the policy, and its action in each interval."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        run(RunSpec(scenario, "policy", seed, intervals, "native", {"file": policy}), log)
        done = read_run(log)
    space = _space(scenario)
    return measured(Series.of(done)), np.array(
        [space.encode(line["setting"]) for line in done.intervals]
    )


def main(policies: Sequence[str]) -> None:
    """Print a row for each policy."""
    for policy in policies:
        gain, spread = against_constant(policy, held_out())
        word = "more than a constant" if (gain.low or 0.0) > 0 else "a constant"
        print(f"| `{policy}` | {gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}] | {spread:.3f} "
              f"| {word} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
