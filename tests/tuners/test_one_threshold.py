"""Scenarios that turn one ECN threshold: the other one stays, and Kmin never passes Kmax."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.bandits import LADDER, default_library

LOW_KMAX: dict[str, Any] = {"initial": {"kmax": 120}}
HIGH_KMIN: dict[str, Any] = {"initial": {"kmin": 100}}
CASES: dict[str, tuple[dict[str, Any], str, float]] = {
    "kmin listed": ({"knobs": ["kmin"], **LOW_KMAX}, "kmax", 120),
    "kmax fixed": ({"knobs": {"kmax": "fixed"}, **LOW_KMAX}, "kmax", 120),
    "kmax listed": ({"knobs": ["kmax"], **HIGH_KMIN}, "kmin", 100),
    "kmin fixed": ({"knobs": {"kmin": "fixed"}, **HIGH_KMIN}, "kmin", 100),
}
"""By name: what is changed of the scenario, the threshold that is not turned, and its value."""


@pytest.mark.parametrize("tuner", ["paraleon", "paraleon-tiers", "chameleon", "naive-sa", "random"])
@pytest.mark.parametrize("case", CASES)
def test_the_other_threshold_stays(tmp_path: Path, case: str, tuner: str) -> None:
    changes, fixed, value = CASES[case]
    scenario = changed_scenario(load_scenario("mini-fb-hadoop"), changes, "test")
    slow = tuner == "chameleon"  # it begins to move late
    arguments = {"patience": 1, "beta": 0.5} if slow else {}
    n = 60 if slow else 30
    run(RunSpec(scenario, tuner, 1, n, "fake", arguments), tmp_path / "run.jsonl")
    lines = read_run(tmp_path / "run.jsonl").intervals
    assert len(lines) == n
    settings = [s for line in lines for s in (*line["setting"].values(), line["setting"])
                if isinstance(s, dict) and "kmin" in s]  # fmt: skip
    assert {s[fixed] for s in settings} == {value}
    assert all(s["kmin"] <= s["kmax"] for s in settings)
    turned = "kmin" if fixed == "kmax" else "kmax"
    assert len({s[turned] for s in settings}) > 1


@pytest.mark.parametrize(("alone", "other"), [("kmin", "kmax"), ("kmax", "kmin")])
@pytest.mark.parametrize("rate", [10e9, 100e9])
def test_rungs_of_one_threshold_are_legal(alone: str, other: str, rate: float) -> None:
    arms = default_library(KnobSpace((alone,), rate))
    for name in LADDER:
        assert arms[name].check(rate, name)[other] == default_setting(rate)[other]
    assert len({arms[name][alone] for name in LADDER}) >= 3  # two may end at the same edge


def test_a_bandit_may_turn_kmax_alone(tmp_path: Path) -> None:
    scenario = changed_scenario(load_scenario("mini-fb-hadoop"), {"knobs": ["kmax"]}, "test")
    run(RunSpec(scenario, "ucb1", 1, 12, "fake"), tmp_path / "run.jsonl")
    assert len(read_run(tmp_path / "run.jsonl").intervals) == 12
