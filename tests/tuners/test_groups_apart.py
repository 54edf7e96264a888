"""Tuners that set groups of devices apart, on the packet engine; the static curves beside ACC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.knobs import NIC_KNOBS, Setting, default_setting
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.envs.wrappers import GroupAction
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import TunerContext, make_tuner

MINI = load_scenario("mini-llm-alltoall").model_copy(update={"warmup_us": 500.0})
SIDES = ("tor-uplinks", "tor-downlinks", "spine")


def settings(name: str, path: Path, apart: tuple[str, ...] = (), **arguments: Any) -> list[Any]:
    """Run a tuner for four intervals and return the settings of its log."""
    scenario = MINI.model_copy(update={"groups": apart})
    run(RunSpec(scenario, name, 1, 4, tuner_args=arguments), path)
    done = read_run(path)
    assert done.end is not None
    return [*(line["setting"] for line in done.intervals), done.end["recommended"]]


@pytest.mark.parametrize("tuner", ["paraleon-tiers", "cmaes-tiers", "per-group"])
def test_every_tier_gets_a_curve_of_its_own(tuner: str, tmp_path: Path) -> None:
    if tuner == "cmaes-tiers":
        pytest.importorskip("cmaes")
    seen = settings(tuner, tmp_path / "log")
    assert [list(s) for s in seen[1:4]] == [["cluster", "tor", "spine"]] * 3
    last = seen[3]
    assert last["tor"]["kmin"] != last["spine"]["kmin"]
    assert all(last["tor"][k] == seen[1]["tor"][k] for k in NIC_KNOBS)  # NICs are the cluster's
    assert last["cluster"]["rp_ai_rate"] != seen[1]["cluster"]["rp_ai_rate"]


@pytest.mark.parametrize("tuner", ["paraleon-tiers", "per-group"])
def test_groups_of_the_scenario_win(tuner: str, tmp_path: Path) -> None:
    seen = settings(tuner, tmp_path / "log", SIDES)
    assert list(seen[2]) == ["cluster", *SIDES]
    given = settings("per-group", tmp_path / "given", tuner="random", groups=["spine-downlinks"])
    assert list(given[1]) == ["cluster", "spine-downlinks"]


def test_controllers_of_groups_draw_numbers_of_their_own(tmp_path: Path) -> None:
    seen = settings("per-group", tmp_path / "log", tuner="random")[2]
    assert seen["tor"]["kmin"] != seen["spine"]["kmin"]
    assert seen["tor"]["pmax"] != seen["spine"]["pmax"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tuner": "per-group"}, "has no end"),
        ({"tuner": "paraleonn"}, "did you mean 'paraleon'"),
        ({"tuner": "paraleon-tiers"}, "sets groups apart itself"),
        ({"groups": ["tor", "tors"]}, "did you mean 'tor'"),
        ({"arguments": {"etaa": 1}}, "etaa"),
    ],
)
def test_bad_arguments_of_per_group(arguments: dict[str, Any], message: str) -> None:
    env = DcqcnEnv(MINI, "fake")
    tuner = make_tuner("per-group", arguments)
    context = RunSpec(MINI, "per-group", 1, 4, "fake").context(env)

    def drive() -> None:
        tuner.start(context)
        tuner.ask()
        tuner.recommend()

    with pytest.raises(ConfigError, match=message):
        drive()


def test_an_agent_may_act_per_group() -> None:
    env = GroupAction(DcqcnEnv(MINI), ("tor", "spine"))
    env.reset(seed=1)
    action = env.action_space.sample()
    assert env.action_space.shape == (env.parts.n,)
    *_, info = env.step(action)
    assert list(info["setting"]) == ["cluster", "tor", "spine"]
    assert GroupAction(DcqcnEnv(MINI)).parts.groups == ("tor", "spine")


@pytest.mark.parametrize(
    ("name", "rate", "curve"),
    [
        ("secn1", 25e9, (5, 200, 0.01)),
        ("secn1", 100e9, (5, 200, 0.01)),
        ("secn2", 25e9, (100, 400, 0.2)),
        ("secn2", 100e9, (400, 1600, 0.2)),
        ("vendor-ecn", 25e9, (30, 270, 0.1)),
    ],
)
def test_static_curves(name: str, rate: float, curve: tuple[float, float, float]) -> None:
    base = default_setting(rate).replace({"rp_ai_rate": 77})
    tuner = make_tuner(name)
    tuner.start(TunerContext(KnobSpace(line_rate_bps=rate), base, 1, 10))
    found: DeviceSetting | None = tuner.ask()
    assert isinstance(found, Setting)
    values = dict(found)
    assert tuple(values[k] for k in ("kmin", "kmax", "pmax")) == curve
    assert {k for k in base if found[k] != base[k]} <= {"kmin", "kmax", "pmax"}
    assert tuner.ask() is None
    assert tuner.recommend() == found
