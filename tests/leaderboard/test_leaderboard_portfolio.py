"""The portfolio: each setting is the rule with the changes that its file says, and legal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dcqcn_gym.benchmarks.leaderboard.bank.portfolio import (
    PortfolioSetting,
    portfolio,
    portfolio_file,
)
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.fabric_facts import FabricFacts
from dcqcn_gym.core.knobs import Setting, default_setting, knob_table
from dcqcn_gym.tuners.rule import advise

RATE = 25e9
FACTS = FabricFacts(25.0, 16, 15, 40.0, 2_636_018, 4.0, "dcqcn", "nic", True)
DEFAULT = default_setting(RATE)
RULE = advise(FACTS, DEFAULT).setting


def settings(facts: FabricFacts = FACTS) -> dict[str, Setting]:
    default = default_setting(facts.line_rate_gbps * 1e9)
    return {one.name: one.setting for one in portfolio(facts, default)}


def turned(setting: Setting, other: Setting = DEFAULT) -> set[str]:
    return {name for name in setting if setting[name] != other[name]}


def test_each_setting_is_what_its_name_says() -> None:
    found = settings()
    assert next(iter(found)) == "default"
    assert found["default"] == DEFAULT
    assert found["rule"] == RULE
    assert turned(found["slow"], RULE) == {"rp_time_reset"}
    assert found["slow"]["rp_time_reset"] == DEFAULT["rp_time_reset"] == 300
    assert turned(found["floor"]) == turned(found["careful"]) == {"rp_min_rate"}
    assert found["floor"]["rp_min_rate"] == RULE["rp_min_rate"]
    assert found["careful"]["rp_min_rate"] == pytest.approx(RULE["rp_min_rate"] / 2, abs=1)
    assert turned(found["lower"], RULE) == {"kmin", "kmax"}
    assert found["lower"]["kmax"] == pytest.approx(RULE["kmax"] / 4, abs=1)
    assert found["rival"]["kmax"] == pytest.approx(RULE["kmax"] / 2, abs=1)
    assert found["rival"]["rp_min_rate"] == pytest.approx(2 * RULE["rp_min_rate"], abs=2)


def test_outside_the_rules_territory_they_are_whole() -> None:
    """Who chooses among them tries them: the rule itself would give half the floor alone."""
    small = replace(FACTS, hosts=8, meeting_hosts=7)
    assert turned(advise(small, DEFAULT).setting) == {"rp_min_rate"}
    assert turned(settings(small)["rule"]) == turned(RULE)


@pytest.mark.parametrize("gbps", [10.0, 25.0, 100.0, 800.0])
@pytest.mark.parametrize("hosts", [4, 16, 1024])
def test_all_are_legal(hosts: int, gbps: float) -> None:
    facts = replace(FACTS, hosts=hosts, meeting_hosts=hosts - 1, line_rate_gbps=gbps)
    for setting in settings(facts).values():
        setting.check(gbps * 1e9)
        assert setting["rp_min_rate"] * facts.meeting_hosts <= max(0.9 * gbps * 1e3, hosts)


def test_every_setting_says_what_it_is_for_and_where_it_harms() -> None:
    file = portfolio_file().settings
    assert 6 <= len(file) <= 12
    assert len({one.name for one in file}) == len(file)
    assert all(one.purpose and one.harms and one.provenance for one in file)


def test_dcqcn_plus_is_there_for_its_nics_but_on_a_star_of_400g() -> None:
    def names(facts: FabricFacts) -> list[str]:
        default = default_setting(facts.line_rate_gbps * 1e9, knob_table("dcqcn-plus"))
        return [one.name for one in portfolio(facts, default)]

    plus = replace(FACTS, scheme="dcqcn-plus")
    star = replace(plus, line_rate_gbps=400.0, oversubscription=1.0)
    assert "plus" not in settings()
    assert names(plus) == ["default", "plus"]
    assert names(star) == ["default"]
    assert names(replace(star, oversubscription=2.0)) == ["default", "plus"]


@pytest.mark.parametrize("facts", [None, replace(FACTS, pfc=False),
                                   replace(FACTS, reaction_point="paper")])  # fmt: skip
def test_where_no_setting_was_made_for_the_default_is_alone(facts: FabricFacts | None) -> None:
    assert [one.setting for one in portfolio(facts, DEFAULT)] == [DEFAULT]


@pytest.mark.parametrize("wrong", [{"times": {"kmn": 2.0}}, {"set": {"floor": 1.0}},
                                   {"preset": "defualt"}])  # fmt: skip
def test_a_term_or_preset_that_there_is_not_is_refused(wrong: dict[str, object]) -> None:
    said = {"name": "one", "purpose": "a", "harms": "b", "provenance": "c"}
    with pytest.raises(ConfigError, match=r"kmn|floor|defualt"):
        validate({**said, **wrong}, PortfolioSetting, source="mine")
