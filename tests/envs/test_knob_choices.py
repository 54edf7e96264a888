"""The table [knobs] of a scenario: which knobs a tuner turns, and within which ranges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.groups import by_group, resolve
from dcqcn_gym.core.knobs import TUNED_KNOBS
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.observation import layout_name
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.wrappers import GroupAction
from dcqcn_gym.extras.learn.parallel import AgentsEnv
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec

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
        got = dict(env.space.setting(action, env.initial_setting))
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


RANGES: dict[str, tuple[float, float]] = {
    "kmin": (50, 100),
    "kmax": (200, 300),
    "rp_ai_rate": (5, 10),
}


def ranged() -> Scenario:
    """Return a fabric of two tiers with ranges of its own."""
    knobs = {name: list(bounds) for name, bounds in RANGES.items()}
    return changed_scenario(load_scenario("mini-fb-hadoop"), {"knobs": knobs}, "test")


def largest(face: Any, own: Scenario) -> dict[str, float]:
    """Return the largest values on any device where every number of every action is 1."""
    face.reset(seed=0)
    if isinstance(face, AgentsEnv):
        face.step({agent.name: np.ones(len(agent.knobs)) for agent in face.members})
        setting = face.setting
    else:
        setting = face.step(np.ones(face.action_space.shape))[4]["setting"]
    devices, table = own.fabric.devices, own.table
    nic, ecn = resolve(setting, devices, table)
    ports = ecn[list(devices.port_names.values())]
    found = {name: nic[:, table.nic.index(name)].max() for name in RANGES if name in table.nic}
    found |= {name: ports[:, table.ecn.index(name)].max() for name in RANGES if name in table.ecn}
    return found


@pytest.mark.parametrize(
    "face",
    [
        lambda own: DcqcnEnv(own, "fake"),
        lambda own: DcqcnEnv(own, "fake", knobs=tuple(RANGES)),
        lambda own: GroupAction(DcqcnEnv(own, "fake"), ("tor", "spine")),
        lambda own: AgentsEnv(own, agents=["hosts", "tor", "spine"]),
    ],
    ids=["whole", "knobs", "groups", "agents"],
)
def test_every_face_of_a_scenario_has_its_ranges(face: Callable[[Scenario], Any]) -> None:
    own = ranged()
    assert largest(face(own), own) == {"kmin": 100, "kmax": 300, "rp_ai_rate": 10}


INSIDE: dict[str, dict[str, Any]] = {
    "paraleon-tiers": {},
    "cmaes-tiers": {},
    "per-group": {"tuner": "random"},
    "two-sides": {"switches": "random", "hosts": "random"},
}


@pytest.mark.parametrize("tuner", INSIDE)
def test_tuners_of_groups_stay_in_the_ranges(tmp_path: Path, tuner: str) -> None:
    spec = RunSpec(ranged(), tuner, 1, 12, "fake", INSIDE[tuner])
    run(spec, tmp_path / "run.jsonl")
    lines = read_run(tmp_path / "run.jsonl").intervals
    start = lines[0]["setting"].get("cluster", lines[0]["setting"])
    tried = {n: {own[n] for line in lines for own in line["setting"].values()
                 if isinstance(own, dict)} - {start[n]} for n in RANGES}  # fmt: skip
    for name, (low, high) in RANGES.items():
        assert tried[name]
        assert all(low <= value <= high for value in tried[name])


def test_templates_are_settings_that_are_given_as_they_are() -> None:
    knobs = {"kmin": "fixed", "kmax": [50, 90]}
    own = changed_scenario(load_scenario("mini-fb-hadoop"), {"knobs": knobs}, "test")
    templates = [{"kmin": 100, "kmax": 400}, {"kmin": 200, "kmax": 800}]
    env = AgentsEnv(own, templates=templates)
    env.reset(seed=0)
    env.step(dict.fromkeys(env.agents, 1))
    assert {s["kmax"] for g, s in by_group(env.setting) if g != "cluster"} == {800}


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
