"""The knob table and settings: units, ranges, presets, and what a bad value is told."""

from __future__ import annotations

import math
import pickle
import re
from dataclasses import replace
from typing import Any, get_args

import pytest

from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.knobs import (
    DCQCN,
    ECN_KNOBS,
    GROUP_TITLES,
    KNOBS,
    NIC_KNOBS,
    TUNED_KNOBS,
    Group,
    KnobTable,
    Scaling,
    Setting,
    dcqcn_paper_setting,
    default_setting,
    expert_setting,
    knob,
    knob_table,
    schemes,
)
from dcqcn_gym.core.space import KnobSpace
from toy_tables import OTHER_SCHEME, WITH_TOY

RATES = (10e9, 25e9, 40e9, 100e9, 200e9, 400e9, 800e9)


def test_table_has_twenty_knobs_fourteen_tuned() -> None:
    assert (len(KNOBS), len(NIC_KNOBS), len(ECN_KNOBS), len(TUNED_KNOBS)) == (20, 17, 3, 14)
    assert len(DCQCN.observed) == 20
    assert list(KNOBS) == [*NIC_KNOBS, *ECN_KNOBS]


@pytest.mark.parametrize("name", list(KNOBS))
@pytest.mark.parametrize("rate", RATES)
def test_ranges_are_nested_and_hold_the_default(name: str, rate: float) -> None:
    row = KNOBS[name]
    legal, tuned = row.legal_at(rate), row.tuned_at(rate)
    assert legal[0] <= tuned[0] < tuned[1] <= legal[1]
    assert legal[0] <= row.default_at(rate) <= legal[1]
    assert row.step_at(rate) > 0


@pytest.mark.parametrize("rate", RATES)
def test_presets_are_legal_at_every_rate(rate: float) -> None:
    for preset in (default_setting, expert_setting, dcqcn_paper_setting):
        preset(rate).check(rate)


def test_default_in_nvidias_units() -> None:
    values = dict(default_setting())
    assert values["rp_time_reset"] == 300
    assert values["rp_byte_reset"] == 32767
    assert DCQCN["rp_byte_reset"].to_si(values["rp_byte_reset"]) == 32767 * 64
    assert (values["kmin"], values["kmax"], values["pmax"]) == (400, 1600, 0.2)
    assert default_setting(25e9)["kmin"] == 100


def test_expert_is_as_printed_at_every_speed() -> None:
    assert expert_setting(25e9)["kmax"] == 6400
    assert expert_setting(25e9)["np_min_time_between_cnps"] == 96


def test_published_dcqcn() -> None:
    values = dcqcn_paper_setting()
    assert values["rp_byte_reset"] * 64 == 10e6
    assert 1 - values["rp_dce_tcp_g"] / 1024 == 1 / 256
    assert values["rp_time_reset"] == 55
    assert (values["kmin"], values["kmax"], values["pmax"]) == (5, 200, 0.01)


def test_a_setting_is_built_from_all_its_knobs() -> None:
    setting = expert_setting()
    assert Setting.of(dict(setting)) == setting


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
        ({"kmin": 2e3}, "kmin = 2000 KB is larger than kmax = 1600 KB"),
        ({"rp_ai_rate": 0.0}, "rp_ai_rate = 0 Mb/s is out of range; expected 1 to"),
        ({"rp_min_rate": 200e3}, "expected 1 to 100000 Mb/s"),
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
        Setting.of({"kmin": 1})
    with pytest.raises(ConfigError, match=f"{len(KNOBS)} values"):
        Setting((1.0,))


def test_a_table_lists_its_rows() -> None:
    assert DCQCN is knob_table("dcqcn") is knob_table()
    assert DCQCN.scheme == "dcqcn"
    assert (DCQCN.nic, DCQCN.ecn, DCQCN.tuned) == (NIC_KNOBS, ECN_KNOBS, TUNED_KNOBS)
    assert DCQCN.observed == tuple(name for name in KNOBS if KNOBS[name].observed)
    assert [DCQCN.index[name] for name in KNOBS] == list(range(len(KNOBS)))
    assert WITH_TOY.nic == (*NIC_KNOBS, "toy_gap")
    assert (WITH_TOY.tuned, WITH_TOY.observed) == (TUNED_KNOBS, DCQCN.observed)
    with pytest.raises(UnknownNameError, match=r"unknown scheme 'dcqn'; did you mean 'dcqcn'"):
        knob_table("dcqn")


@pytest.mark.parametrize("scheme", schemes())
def test_rows_are_well_formed(scheme: str) -> None:
    table = knob_table(scheme)
    assert table.ecn == ECN_KNOBS
    for row in table.rows:
        assert row.group in get_args(Group)
        assert row.scaling in get_args(Scaling)
        assert row.direction in (1, -1)
        assert row.observed or not row.tuned_by_default
        assert row.help
        assert row.source


def test_every_group_has_a_heading() -> None:
    assert list(GROUP_TITLES) == list(get_args(Group))


def test_equal_tables_are_the_same_whoever_made_them() -> None:
    copy = KnobTable("dcqcn", tuple(replace(row) for row in DCQCN.rows))
    assert copy == DCQCN
    assert hash(copy) == hash(DCQCN)
    assert Setting(default_setting().numbers, copy) == default_setting()
    assert pickle.loads(pickle.dumps(DCQCN)) is DCQCN
    assert pickle.loads(pickle.dumps(default_setting())) == default_setting()
    for table in (WITH_TOY, OTHER_SCHEME):
        assert pickle.loads(pickle.dumps(table)) == table != DCQCN


def test_a_digest_names_what_values_mean() -> None:
    row = DCQCN["kmin"]
    said_otherwise = replace(row, help="x", source="y", default=7.0, sonic=None)
    assert KnobTable("dcqcn", (said_otherwise,)).digest() == KnobTable("dcqcn", (row,)).digest()
    changes: list[dict[str, Any]] = [
        {"log": False}, {"tuned": (1.0, 2.0)}, {"si_per_unit": 1024.0}, {"off": 0.0},
        {"observed": False},
    ]  # fmt: skip
    for change in changes:
        other = KnobTable("dcqcn", (replace(row, **change),))
        assert other.digest() != KnobTable("dcqcn", (row,)).digest()
    assert WITH_TOY.digest() != DCQCN.digest()
    assert WITH_TOY.digest(KNOBS) == DCQCN.digest()


def test_settings_of_two_tables_never_mix() -> None:
    ours, theirs = default_setting(), default_setting(table=OTHER_SCHEME)
    both = rf"scheme 'toy' \(knob table {OTHER_SCHEME.digest()}\).*scheme 'dcqcn' \(knob table"
    with pytest.raises(ConfigError, match=both):
        ours.replace(theirs)
    with pytest.raises(ConfigError, match=both):
        KnobSpace().encode(theirs)
    with pytest.raises(ConfigError, match=both):
        KnobSpace().setting([0.0] * 14, theirs)
    assert ours != theirs
    assert {ours: 1}.get(theirs) is None
    with pytest.raises(ConfigError, match=r"'dcqcn' \(knob table \w+\) cannot stand for one of"):
        KnobSpace(table=WITH_TOY).encode(ours)  # the same scheme, a row more
    with pytest.raises(
        ConfigError, match=f"a setting has 4 values, one per knob; got {len(KNOBS)}"
    ):
        Setting(ours.numbers, OTHER_SCHEME)


def test_a_setting_of_another_table() -> None:
    setting = Setting.of({"toy_gap": 7, "kmin": 5, "kmax": 9, "pmax": 1}, OTHER_SCHEME)
    assert list(setting) == ["toy_gap", "kmin", "kmax", "pmax"]
    assert dict(setting) == {"toy_gap": 7, "kmin": 5, "kmax": 9, "pmax": 1}
    highest = KnobSpace(table=OTHER_SCHEME).setting([1, 1, 1, 1], setting)
    assert dict(highest) == {"toy_gap": 50, "kmin": 1600, "kmax": 6400, "pmax": 1}
    with pytest.raises(ConfigError, match="toy_gap = 101 us is out of range; expected 0 to 100"):
        setting.replace({"toy_gap": 101}).check(100e9)
    with pytest.raises(UnknownNameError, match="did you mean 'toy_gap'"):
        setting.replace({"toy_gp": 1.0})


def test_a_setting_of_another_table_lacks_its_knobs() -> None:
    with pytest.raises(ConfigError, match=r"missing: toy_gap$"):
        Setting.of(expert_setting(), WITH_TOY)


def test_knobs_are_changed_by_keyword_or_by_mapping() -> None:
    base = default_setting()
    assert base.replace(kmin=300, rp_gd=12) == base.replace({"kmin": 300.0, "rp_gd": 12.0})
    assert base.replace({"kmin": 300}, kmin=200)["kmin"] == 200
    assert base.replace() == base
    with pytest.raises(UnknownNameError, match="did you mean 'kmin'"):
        base.replace(k_min=1)


@pytest.mark.parametrize(("given", "held"), [(5.4, 5), (5.5, 6), (6.5, 6), (7, 7), (True, 1)])
def test_an_integer_knob_holds_whole_numbers(given: float, held: float) -> None:
    setting = default_setting().replace(rp_ai_rate=given, pmax=0.123)
    assert (setting["rp_ai_rate"], setting["pmax"]) == (held, 0.123)
    assert all(type(value) is float for value in setting.values())


@pytest.mark.parametrize("bad", [None, "50", [1.0], 1j])
def test_a_value_that_is_no_number_is_named(bad: Any) -> None:
    expected = f"rp_clamp_tgt_rate = {bad!r}: expected a number"
    with pytest.raises(ConfigError, match=re.escape(expected)):
        Setting((bad,) * len(KNOBS))
    with pytest.raises(ConfigError, match=re.escape(expected)):
        default_setting().replace({"rp_clamp_tgt_rate": bad})
    with pytest.raises(ConfigError, match=f"{len(KNOBS)} values, one per knob; got"):
        Setting(bad)


def test_a_long_value_is_quoted_in_part() -> None:
    with pytest.raises(ConfigError) as caught:
        default_setting().replace({"kmin": "9" * 1000})  # type: ignore[dict-item]
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("RPG_AI_RATE", "rp_ai_rate"),
        ("DCE_TCP_G_P1", "rp_dce_tcp_g"),
        ("MIN_TIME_BETWEEN_CNP", "np_min_time_between_cnps"),
        ("green_min_threshold", "kmin"),
    ],
)
def test_a_devices_name_leads_to_the_knob(name: str, meant: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown knob '{name}'; did you mean '{meant}'"):
        knob(name)
