"""``pfc_alpha``: in no table by default, and in every one of a network whose scenario names it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import setting_of
from dcqcn_gym.core.knobs import DCQCN
from dcqcn_gym.core.optional_knobs import OPTIONAL_KNOBS, keeping_optional, named_table
from dcqcn_gym.core.scheme_tables import table_of_schemes
from dcqcn_gym.envs.observation import layout
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.hw.emit import emit
from dcqcn_gym.runs.rows import changed_scenario
from dcqcn_gym.tuners import make_tuner


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


def test_tables_are_found_again() -> None:
    setting = WITH.initial_setting().replace({"pfc_alpha": 0.25})
    assert pickle.loads(pickle.dumps(setting)) == setting
    assert named_table("dcqcn+pfc_alpha") == WITH.table
    assert setting_of(setting.to_nvidia()) == setting  # as a log or best.json holds it
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
