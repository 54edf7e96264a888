"""``pfc_alpha``: in no table by default, and in every one of a network whose scenario names it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dcqcn_gym.cli import app
from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.core.device_commands import emit
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import setting_of
from dcqcn_gym.core.knobs import DCQCN, Setting, default_setting
from dcqcn_gym.core.optional_knobs import OPTIONAL_KNOBS, keeping_optional
from dcqcn_gym.core.scheme_tables import named_table, table_of_schemes
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.observation import layout
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.simulation.difference import AGAINST, other_setting
from dcqcn_gym.tuners import TunerContext, make_tuner
from dcqcn_gym.tuners.bandits import LADDER, PRETRAINED, default_library


def _mini(**changes: Any) -> Scenario:
    return changed_scenario(load_scenario("mini-fb-hadoop"), changes, "test")


WITH = _mini(knobs={"pfc_alpha": "tuned"})


def test_nobody_has_it_who_does_not_ask() -> None:
    assert list(OPTIONAL_KNOBS) == ["pfc_alpha"]
    assert "pfc_alpha" not in DCQCN.knobs
    assert _mini().table is DCQCN
    with pytest.raises(ConfigError, match="unknown knob 'pfc_alpha'"):
        _mini(initial={"pfc_alpha": 0.25})


def test_a_scenario_switches_it_on() -> None:
    assert WITH.table.scheme == "dcqcn+pfc_alpha"
    assert WITH.table.ecn == (*DCQCN.ecn, "pfc_alpha")
    assert WITH.turned == (*DCQCN.tuned, "pfc_alpha")
    assert layout(WITH.table) == layout(DCQCN)  # policies of other networks see the same figures
    fixed = _mini(knobs={"pfc_alpha": "fixed"})
    assert fixed.table == WITH.table
    assert "pfc_alpha" not in fixed.turned
    assert _mini(knobs=["kmin", "pfc_alpha"]).turned == ("kmin", "pfc_alpha")
    plus = _mini(knobs={"pfc_alpha": [0.0625, 1]}, scheme="dcqcn-plus")
    assert plus.table.scheme == "dcqcn-plus+pfc_alpha"


def test_it_starts_as_the_switches_do() -> None:
    assert WITH.initial_setting()["pfc_alpha"] == 0.125
    other = _mini(knobs={"pfc_alpha": "tuned"}, switch={"alpha": 0.5})
    assert other.initial_setting()["pfc_alpha"] == 0.5
    assert other.default_setting()["pfc_alpha"] == 0.5
    given = _mini(knobs={"pfc_alpha": "tuned"}, initial={"pfc_alpha": 0.25})
    assert given.initial_setting()["pfc_alpha"] == 0.25
    assert keeping_optional(WITH.default_setting(), other.initial_setting())["pfc_alpha"] == 0.5


@pytest.mark.parametrize(
    "tuner", ["default", "expert", "expert-scaled", "pretrained-alltoall", "pretrained-fbhadoop"]
)
def test_settings_that_know_nothing_of_it_leave_it_as_it_is(tuner: str) -> None:
    scenario = _mini(knobs={"pfc_alpha": "tuned"}, switch={"alpha": 0.25})
    rate, base = scenario.line_rate_bps, scenario.initial_setting()
    found = make_tuner(tuner)
    found.start(TunerContext(KnobSpace(scenario.turned, rate, base.table), base, 1, 9))
    setting = found.ask()
    assert isinstance(setting, Setting)
    assert setting.table == scenario.table
    assert setting["pfc_alpha"] == 0.25
    own = make_tuner(tuner)
    own.start(TunerContext(KnobSpace(line_rate_bps=rate), default_setting(rate), 1, 9))
    without = own.ask()
    assert isinstance(without, Setting)
    assert {n: v for n, v in setting.items() if n != "pfc_alpha"} == dict(without.items())


def test_arms_of_bandits_leave_it_as_it_is_and_the_ladder_moves_it() -> None:
    scenario = _mini(knobs={"pfc_alpha": "tuned"}, switch={"alpha": 0.25})
    rate, base = scenario.line_rate_bps, scenario.initial_setting()
    arms = default_library(KnobSpace(scenario.turned, rate, base.table), base)
    assert {arms[name]["pfc_alpha"] for name in ("default", "expert", *PRETRAINED)} == {0.25}
    assert {arms[name]["pfc_alpha"] for name in LADDER} - {0.25} != set()


def test_a_simulation_is_compared_with_settings_that_keep_it() -> None:
    scenario = _mini(knobs={"pfc_alpha": "tuned"}, switch={"alpha": 0.25})
    for name in AGAINST:
        assert other_setting(name, scenario)["pfc_alpha"] == 0.25
    timely = _mini(scheme="timely")
    assert other_setting("default", timely) == timely.default_setting()
    with pytest.raises(ConfigError, match="knob of scheme 'dcqcn'; expected one of scheme 'timely"):
        other_setting("dcqcn-paper", timely)


def test_a_run_that_turns_it_has_a_report(tmp_path: Path, in_threads: None) -> None:
    text = (CONFIGS / "scenarios" / "mini-fb-hadoop.toml").read_text(encoding="utf-8")
    path = tmp_path / "own.toml"
    path.write_text(f"{text}\n[knobs]\npfc_alpha = [0.0625, 0.5]\n", encoding="utf-8")
    words = ["tune", "--scenario", str(path), "--tuner", "random", "--intervals", "2", "--quiet"]
    words += ["--backend", "fake", "--eval-seeds", "1", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Switch: PFC" in page
    assert "pfc_alpha" in page


def test_tables_are_found_again() -> None:
    setting = WITH.initial_setting().replace({"pfc_alpha": 0.25})
    assert pickle.loads(pickle.dumps(setting)) == setting
    assert named_table("dcqcn+pfc_alpha") == WITH.table
    assert setting_of(dict(setting)) == setting  # as a log or best.json holds it
    mixed = table_of_schemes(["dcqcn", "dcqcn-plus"])
    assert "pfc_alpha" not in mixed.knobs


def test_values_out_of_range() -> None:
    with pytest.raises(ConfigError, match="pfc_alpha = 9 share is out of range"):
        _mini(knobs={"pfc_alpha": "tuned"}, initial={"pfc_alpha": 9})
    with pytest.raises(ConfigError, match="pfc_alpha"):
        _mini(knobs={"pfc_alpha": [0.001, 1]})
    tuner = make_tuner("fixed", {"pfc_alpha": 0.5})
    assert tuner.settings.model_dump(exclude_none=True)["pfc_alpha"] == 0.5


def test_a_switch_takes_powers_of_two() -> None:
    setting = WITH.initial_setting()
    text = emit(setting.replace({"pfc_alpha": 0.3}), "sonic", before=setting)
    assert text.splitlines()[2:] == [
        "# pfc_alpha 0.3 is rounded: SONiC takes powers of two.",
        "sonic-db-cli CONFIG_DB hset 'BUFFER_PROFILE|'"
        '"${BUFFER:?set BUFFER, for example pg_lossless_100000_5m_profile}" dynamic_th -2',
        "# The NIC part belongs to the hosts: the forms mlxconfig and debugfs.",
    ]
    assert "WRED_PROFILE" not in text
    assert "dynamic_th -3" in emit(setting, "sonic")
    assert "dynamic_th" not in emit(_mini().initial_setting(), "sonic")


@pytest.mark.parametrize(
    ("scenario", "alpha"),
    [
        # 10 ports of 25 Gb/s: headroom 3 x 5 us x 3125 B/us and 4096 B each, 3,145,728 B of buffer:
        # a pool of 2,636,018 B; 10 x (3125 B/us x 40 us) = 1,250,000 B, so alpha > 0.902
        ("mini-fb-hadoop", 1.0),
        # 8 ports less of everything: twice the buffer leaves 5,781,746 B; alpha > 0.276
        ("mini-fb-hadoop/double", 0.5),
    ],
)
def test_alpha_from_buffer_rates_and_delays(scenario: str, alpha: float) -> None:
    switch: dict[str, Any] = {"alpha": "computed"}
    if scenario.endswith("double"):
        switch["buffer_bytes"] = 2 * 3_145_728
    found = _mini(switch=switch)
    assert found.alpha == alpha
    small = _mini(switch={**switch, "buffer_bytes": 600_000})
    assert small.alpha == 8.0  # no alpha is enough
    with pytest.raises(ConfigError, match="alpha"):
        _mini(switch={"alpha": "compute"})
