"""Units both ways, for all knobs; a list by hand, so that a wrong factor cannot hide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcqcn_gym.core.device_units import device_unit, from_device, setting_on_devices, to_device
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import DCQCN, KNOBS, default_setting, expert_setting

# knob, value, what the device holds, its unit: written by hand
BY_HAND = [
    ("rp_clamp_tgt_rate", 1.0, 1, "flag"),
    ("rp_clamp_tgt_rate_ati", 1.0, 1, "flag"),
    ("rp_time_reset", 300.0, 300, "us"),
    ("rp_byte_reset", 32767.0, 32767, "64 B"),
    ("rp_threshold", 5.0, 5, "stages"),
    ("rp_max_rate", 100000.0, 100000, "Mb/s"),
    ("rp_ai_rate", 50.0, 50, "Mb/s"),
    ("rp_hai_rate", 150.0, 150, "Mb/s"),
    ("rp_gd", 11.0, 11, "log2"),
    ("rp_min_dec_fac", 50.0, 50, "%"),
    ("rp_min_rate", 1.0, 1, "Mb/s"),
    ("rp_rate_to_set_on_first_cnp", 50000.0, 50000, "Mb/s"),
    ("rp_rate_reduce_monitor_period", 80.0, 80, "us"),
    ("rp_dce_tcp_g", 1019.0, 1019, "1/1024"),
    ("rp_dce_tcp_rtt", 1.0, 1, "us"),
    ("rp_initial_alpha_value", 1023.0, 1023, "1/1024"),
    ("np_min_time_between_cnps", 96.0, 96, "us"),
    ("kmin", 1600.0, 1600000, "B"),
    ("kmax", 6400.0, 6400000, "B"),
    ("pmax", 0.2, 20, "%"),
]


def test_the_list_has_every_knob() -> None:
    assert [name for name, *_ in BY_HAND] == list(KNOBS)


@pytest.mark.parametrize(("name", "value", "held", "unit"), BY_HAND)
def test_units_by_hand(name: str, value: float, held: int, unit: str) -> None:
    row = DCQCN[name]
    assert to_device(row, value) == held
    assert from_device(row, held) == value
    assert device_unit(row) == unit


@given(st.sampled_from(sorted(KNOBS)), st.floats(0.0, 1.0))
def test_what_a_device_holds_comes_back_as_it_is(name: str, place: float) -> None:
    row = DCQCN[name]
    low, high = row.legal
    held = to_device(row, min(low + place * (high - low), high))
    assert to_device(row, from_device(row, held)) == held
    assert type(held) is int


def test_known_settings_fit_devices_exactly() -> None:
    for setting in (default_setting(), expert_setting(400e9)):
        assert setting_on_devices(setting) == setting


def test_a_small_probability_stays_above_zero() -> None:
    held = [to_device(DCQCN["pmax"], p) for p in (0.0, 0.001, 0.014, 0.1875, 1.0)]
    assert held == [0, 1, 1, 19, 100]


@pytest.mark.parametrize("name", sorted(KNOBS))
def test_out_of_range_is_refused(name: str) -> None:
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match=name):
            to_device(DCQCN[name], wrong)
