"""Scenarios that tell no settings apart: the experts' moves no flow that the default's does not.

``11-fast-uplinks-alltoall`` of test-v1 is one. Such a scenario gives every entry S = 0 and costs as
much as any other, so that none goes into a suite that is drawn from now on.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from dcqcn_gym.benchmarks.leaderboard.generator import Drawn
from dcqcn_gym.core.config import validate
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.entries import REFERENCES, reference_settings
from dcqcn_gym.runs.log_line import interval_line
from dcqcn_gym.runs.run_totals import left_over_line
from dcqcn_gym.runs.spec import RunSpec


def blind_scenarios(drawn: Iterable[Drawn]) -> list[str]:
    """Return the names of the scenarios that cannot tell the experts' setting from the default."""
    return [
        one.name
        for one in drawn
        if not tells_apart(validate({"name": one.name, **one.table}, Scenario, source=one.name))
    ]


def tells_apart(scenario: Scenario, seed: int = 1) -> bool:
    """Return whether the flows of the two reference settings ever differ on the same traffic."""
    settings = reference_settings(scenario)
    spec = RunSpec(scenario, "do-nothing", seed, scenario.intervals)
    with closing(spec.make_env()) as one, closing(spec.make_env()) as other:
        worlds = tuple(zip((one, other), REFERENCES, strict=True))
        for env, _ in worlds:
            env.reset(seed=seed)
        for _ in range(scenario.intervals):
            flows = [
                interval_line(env.run_interval(settings[name]))["flows"] for env, name in worlds
            ]
            if flows[0] != flows[1]:  # most scenarios: within a few intervals
                return True
        return left_over_line(one.left_over()) != left_over_line(other.left_over())
