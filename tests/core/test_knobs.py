"""The knob table and settings: units, ranges, presets, and what a bad value is told."""

from __future__ import annotations

import math

import pytest

from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.knobs import (
    ECN_KNOBS,
    KNOBS,
    NIC_KNOBS,
    TUNED_KNOBS,
    Setting,
    dcqcn_paper_setting,
    default_setting,
    expert_setting,
    knob,
)

RATES = (10e9, 25e9, 40e9, 100e9, 200e9, 400e9, 800e9)


def test_table_has_twenty_knobs_fourteen_tuned() -> None:
    assert (len(KNOBS), len(NIC_KNOBS), len(ECN_KNOBS), len(TUNED_KNOBS)) == (20, 17, 3, 14)
    assert list(KNOBS) == [*NIC_KNOBS, *ECN_KNOBS]


@pytest.mark.parametrize("name", list(KNOBS))
@pytest.mark.parametrize("rate", RATES)
def test_ranges_are_nested_and_hold_the_default(name: str, rate: float) -> None:
    row = KNOBS[name]
    legal, tuned = row.legal_at(rate), row.tuned_at(rate)
    assert legal[0] <= tuned[0] < tuned[1] <= legal[1]
    assert legal[0] <= row.default_at(rate) <= legal[1]
    assert row.step_at(rate) > 0


@pytest.mark.parametrize("name", list(KNOBS))
def test_units_convert_both_ways(name: str) -> None:
    row = KNOBS[name]
    for value in (row.default, *row.tuned):
        assert row.to_nvidia(row.to_si(value)) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("rate", RATES)
def test_presets_are_legal_at_every_rate(rate: float) -> None:
    for preset in (default_setting, expert_setting, dcqcn_paper_setting):
        preset(rate).check(rate)


def test_default_in_nvidias_units() -> None:
    values = default_setting().to_nvidia()
    assert values["rp_time_reset"] == 300
    assert values["rp_byte_reset"] == 32767
    assert default_setting()["rp_byte_reset"] == 32767 * 64
    assert (values["kmin"], values["kmax"], values["pmax"]) == (400, 1600, 0.2)
    assert default_setting(25e9).to_nvidia()["kmin"] == 100


def test_expert_is_as_printed_at_every_speed() -> None:
    assert expert_setting(25e9).to_nvidia()["kmax"] == 6400
    assert expert_setting(25e9).to_nvidia()["np_min_time_between_cnps"] == 96


def test_published_dcqcn() -> None:
    values = dcqcn_paper_setting()
    assert values["rp_byte_reset"] == 10e6
    assert 1 - values["rp_dce_tcp_g"] == 1 / 256
    assert values["rp_time_reset"] == pytest.approx(55e-6)
    assert (values["kmin"], values["kmax"], values["pmax"]) == (5e3, 200e3, 0.01)


def test_setting_round_trip_through_nvidias_units() -> None:
    setting = expert_setting()
    assert Setting.from_nvidia(setting.to_nvidia()) == setting


def test_setting_is_a_mapping_of_every_knob() -> None:
    setting = default_setting()
    assert dict(setting) == {name: setting[name] for name in KNOBS}
    with pytest.raises(KeyError):
        setting["nothing"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rp_gd": 99.0}, "rp_gd = 99 log2 is out of range; expected 0 to 15 log2"),
        ({"pmax": 1.5}, "pmax = 1.5 probability is out of range; expected 0 to 1"),
        ({"kmin": 2e6}, "kmin = 2000 KB is larger than kmax = 1600 KB"),
        ({"rp_ai_rate": 0.0}, "rp_ai_rate = 0 Mb/s is out of range; expected 1 to"),
        ({"rp_min_rate": 200e9}, "expected 1 to 100000 Mb/s"),
        ({"rp_time_reset": math.nan}, "rp_time_reset = nan us is out of range"),
        ({"kmax": math.inf}, "kmax = inf KB is out of range"),
    ],
)
def test_check_says_what_is_wrong(changes: dict[str, float], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        default_setting().replace(changes).check(100e9, "here")
    assert expected in str(caught.value)
    assert str(caught.value).startswith("here: ")


def test_unknown_knob_and_incomplete_setting() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'rp_time_reset'"):
        knob("time_reset")
    with pytest.raises(UnknownNameError):
        default_setting().replace({"k_min": 1.0})
    with pytest.raises(ConfigError, match="missing: rp_clamp_tgt_rate"):
        Setting.from_nvidia({"kmin": 1})
    with pytest.raises(ConfigError, match="20 values"):
        Setting((1.0,))
