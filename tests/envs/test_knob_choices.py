"""The table [knobs] of a scenario: which knobs a tuner turns, and within which ranges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.knobs import TUNED_KNOBS
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.observation import layout_name
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import RunSpec, run

REST = """
[topology]
kind = "single-switch"
hosts = 3
gbps = 100
[[workloads]]
kind = "incast"
bytes = 100_000
"""


def scenario(tmp_path: Path, knobs: str) -> Scenario:
    path = tmp_path / "own.toml"
    path.write_text(f"intervals = 4\nwarmup_us = 0\n[knobs]\n{knobs}\n{REST}", encoding="utf-8")
    return load_scenario(path)


def test_a_table_changes_what_is_usual(tmp_path: Path) -> None:
    own = scenario(tmp_path, 'rp_gd = "fixed"\nrp_byte_reset = "tuned"\nkmin = [50, 800]')
    assert set(own.turned) == {*TUNED_KNOBS, "rp_byte_reset"} - {"rp_gd"}
    assert own.ranges == {"kmin": (50.0, 800.0)}


def test_names_of_devices_are_taken(tmp_path: Path) -> None:
    own = scenario(tmp_path, 'RPG_GD_P1 = "fixed"\nRPG_AI_RATE = [5, 50]')
    assert "rp_gd" not in own.turned
    assert own.ranges == {"rp_ai_rate": (5.0, 50.0)}


def test_every_action_stays_in_the_ranges(tmp_path: Path) -> None:
    own = scenario(tmp_path, "kmin = [50, 80]\nkmax = [70, 90]\nrp_ai_rate = [7, 9]")
    env = DcqcnEnv(own, "fake")
    random = np.random.default_rng(1)
    actions = [*random.uniform(-1, 1, (200, env.space.n)), -np.ones(env.space.n)]
    for action in actions:
        got = env.space.setting(action, env.initial_setting).to_nvidia()
        assert 50 <= got["kmin"] <= 80
        assert 70 <= got["kmax"] <= 90
        assert got["kmin"] <= got["kmax"]
        assert got["rp_ai_rate"] in (7, 8, 9)


@pytest.mark.parametrize("tuner", ["paraleon", "naive-sa", "random", "cmaes", "ars"])
def test_tuners_stay_in_the_ranges(tmp_path: Path, tuner: str) -> None:
    own = scenario(tmp_path, 'kmin = [50, 80]\nkmax = [100, 200]\nrp_gd = "fixed"')
    run(RunSpec(own, tuner, 1, 12, "fake"), tmp_path / "run.jsonl")
    settings = [line["setting"] for line in read_run(tmp_path / "run.jsonl").intervals]
    tried = settings[1:]  # the first may be the setting in force
    assert {s["rp_gd"] for s in tried} == {11}
    assert all(50 <= s["kmin"] <= 80 for s in tried if s != settings[0])
    assert all(100 <= s["kmax"] <= 200 for s in tried if s != settings[0])
    assert any(s != settings[0] for s in tried)


def test_a_list_is_written_as_before_and_a_table_comes_back(tmp_path: Path) -> None:
    listed = load_scenario("mini-fb-hadoop")
    assert listed.model_dump(mode="json")["knobs"] == list(TUNED_KNOBS)
    own = scenario(tmp_path, 'kmin = [50, 800]\nrp_gd = "fixed"')
    assert Scenario.model_validate(own.model_dump(mode="json")) == own


def test_a_policy_of_other_ranges_is_another_layout(tmp_path: Path) -> None:
    own = scenario(tmp_path, "kmin = [50, 800]")
    here = DcqcnEnv(own, "fake").space
    assert here != KnobSpace(here.knobs)
    assert layout_name(here) != layout_name(KnobSpace(here.knobs))


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ("kmni = [1, 2]", "kmin"),
        ("kmin = 50", "lowest, highest"),
        ("kmin = [80, 50]", "lower end first"),
        ("kmin = [nan, 50]", "lowest, highest"),
        ("kmin = [50, 5_000_000]", "within"),
        ("rp_gd = [10.5, 12]", "whole numbers"),
        ("rp_byte_reset = [0, 100]", "switches it off"),
        ("kmin = [500, 800]\nkmax = [100, 700]", "kmin's range to end"),
        ("\n".join(f'{name} = "fixed"' for name in TUNED_KNOBS), "at least one"),
        ('kmin = "frozen"', "fixed"),
        ("rp_gd = false", "fixed"),
        ('rp_gd = "fixed"\nRPG_GD = "fixed"', "twice"),
    ],
)
def test_bad_tables_are_one_sentence(tmp_path: Path, knobs: str, message: str) -> None:
    with pytest.raises(DcqcnGymError, match=message) as caught:
        scenario(tmp_path, knobs)
    assert "\n" not in str(caught.value)
