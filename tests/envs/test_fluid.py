"""The fluid backend beside the shared kit: its knobs, its copies, what it refuses and says."""

from __future__ import annotations

import copy
import json
import math
import pickle
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import DCQCN, Setting
from dcqcn_gym.envs.backends import cautions_of, make_backend
from dcqcn_gym.envs.backends.fluid import ERRORS, FluidBackend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

pytest.importorskip("dcqcn_gym._core")

KEPT = Path(__file__).parents[2] / "tools" / "fluid_error.jsonl"


def _run(scenario: Scenario, setting: Setting, intervals: int = 4) -> list[IntervalReport]:
    backend = FluidBackend()
    backend.open(scenario, 1)
    backend.apply(setting)
    return [backend.advance() for _ in range(intervals)]


def test_every_knob_acts() -> None:
    scenario = load_scenario("mini-llm-alltoall")
    # few marks and fast stages: hyper increase, the minimum and both clamps are met
    often = {"kmin": 20, "kmax": 400, "rp_min_rate": 100, "rp_time_reset": 50}
    rare = {"pmax": 0.01, "rp_time_reset": 10, "rp_byte_reset": 5000, "rp_clamp_tgt_rate": 1}
    idle = {knob.name for knob in DCQCN.rows}
    for special in (often, often | rare):
        base = scenario.initial_setting().replace(special)
        usual = _run(scenario, base)
        for name in sorted(idle):
            values = [v for v in DCQCN[name].tuned_at(scenario.line_rate_bps) if v != base[name]]
            if name in ("kmin", "kmax"):  # which have an order
                values = [base[name] * 1.5]
            if any(_run(scenario, base.replace({name: value})) != usual for value in values):
                idle.remove(name)
    assert not idle


def test_a_copy_and_a_pickle_go_on_with_the_same_bytes() -> None:
    scenario = load_scenario("mini-fb-hadoop")
    backend = FluidBackend()
    backend.open(scenario, 3)
    backend.apply(scenario.initial_setting())
    backend.advance()
    others = [copy.deepcopy(backend), pickle.loads(pickle.dumps(backend))]
    expected = [backend.advance() for _ in range(3)]
    for other in others:
        assert [other.advance() for _ in range(3)] == expected


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lossy-incast", "loss"),
        ("tcp-incast", "TCP"),
    ],
)
def test_what_it_has_not_is_refused_by_name(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"{words}.*native"):
        FluidBackend().open(load_scenario(name), 1)


def test_it_is_an_environment() -> None:
    check_env(DcqcnEnv("mini-fb-hadoop", "fluid", intervals=5), skip_render_check=True)


def test_it_says_how_wrong_it_is() -> None:
    lines = cautions_of(make_backend("fluid"), load_scenario("mini-storm"))
    assert any("on incast S of settings" in line and "do not choose" in line for line in lines)
    assert cautions_of(make_backend("native"), load_scenario("mini-storm")) == ()


def test_the_errors_are_those_that_were_measured() -> None:
    kept = [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]
    for kind, said in ERRORS.items():
        lines = [line for line in kept if line["kind"] == kind]
        ranks = [line["rank"] for line in lines if not math.isnan(line["rank"])]
        assert said.lowest == pytest.approx(min(ranks), abs=0.005)
        assert said.highest == pytest.approx(max(ranks), abs=0.005)
        assert said.apart == pytest.approx(max(line["slowdown"] for line in lines), abs=0.005)
    assert {line["kind"] for line in kept} == set(ERRORS)
