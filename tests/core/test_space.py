"""The knob space: every action is a valid setting, and the maps are inverse to each other."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.knobs import (
    KNOBS,
    TUNED_KNOBS,
    default_setting,
    expert_setting,
    knob,
    knob_table,
)
from dcqcn_gym.core.space import KnobSpace

RATES = (10e9, 25e9, 40e9, 100e9, 200e9, 400e9, 800e9)
ALL = tuple(KNOBS)


def _spaces() -> list[KnobSpace]:
    return [KnobSpace(names, rate) for names in (TUNED_KNOBS, ALL) for rate in RATES]


def _close(a: dict[str, float], b: dict[str, float]) -> bool:
    return all(math.isclose(a[name], b[name], rel_tol=1e-12) for name in a)


@pytest.mark.parametrize("space", _spaces(), ids=repr)
def test_every_action_is_in_range_and_whole(space: KnobSpace) -> None:
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([1, space.n])))
    edges = rng.choice([-1.0, 1.0], (50, space.n))
    inside = rng.uniform(-1.2, 1.2, (200, space.n))
    base = default_setting(space.line_rate_bps)
    assert space.knobs
    for unit in np.concatenate([edges, inside]):
        values = space.decode(unit)
        assert tuple(values) == space.knobs
        for name, raw in values.items():
            row = KNOBS[name]
            low, high = row.tuned_at(space.line_rate_bps)
            assert low * (1 - 1e-12) <= raw <= high * (1 + 1e-12), name
            if row.integer:
                assert raw == round(raw), name
        assert values["kmin"] <= values["kmax"]
        space.setting(unit, base).check(space.line_rate_bps)


@pytest.mark.parametrize("space", _spaces(), ids=repr)
def test_decode_undoes_encode(space: KnobSpace) -> None:
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([2, space.n])))
    for unit in rng.uniform(-1, 1, (300, space.n)):
        values = space.decode(unit)
        again = space.encode(values)
        assert again.shape == (space.n,)
        assert np.all(np.abs(again) <= 1.0)
        assert _close(space.decode(again), values)


def test_ends_of_the_box_are_the_ends_of_the_ranges() -> None:
    space = KnobSpace()
    assert space.knobs
    low, high = space.decode(-np.ones(space.n)), space.decode(np.ones(space.n))
    for name in space.knobs:
        row = knob(name)
        expected = row.tuned_at(100e9)
        assert low[name] == pytest.approx(expected[0], rel=1e-12)
        assert high[name] == pytest.approx(expected[1], rel=1e-12)


def test_rates_and_timers_are_logarithmic() -> None:
    space = KnobSpace(("rp_hai_rate", "rp_gd"))
    middle = space.decode(np.zeros(2))
    assert middle["rp_hai_rate"] == pytest.approx(math.sqrt(10 * 5000), rel=0.01)
    assert KnobSpace(("pmax",)).decode(np.zeros(1))["pmax"] == pytest.approx(0.505)


def test_gap_from_zero_is_logarithmic_too() -> None:
    space = KnobSpace(("np_min_time_between_cnps",))
    assert space.decode([-1.0]) == {"np_min_time_between_cnps": 0.0}
    assert space.decode([0.0])["np_min_time_between_cnps"] == 63
    assert space.decode([1.0])["np_min_time_between_cnps"] == 4095


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=2))
def test_kmin_is_at_most_kmax_for_every_action(unit: list[float]) -> None:
    values = KnobSpace(("kmax", "kmin"), 25e9).decode(unit)
    assert values["kmin"] <= values["kmax"]
    for name in ("kmin", "kmax"):  # whole bytes
        assert values[name] == round(values[name] * 1000) / 1000


@pytest.mark.parametrize("alone", ["kmin", "kmax"])
@pytest.mark.parametrize("edge", [-1.0, 1.0])
def test_a_single_threshold_is_bounded_by_the_base(alone: str, edge: float) -> None:
    base = default_setting().replace({"kmin": 500, "kmax": 600})
    setting = KnobSpace((alone,)).setting([edge], base)
    assert setting["kmin"] <= setting["kmax"]
    setting.check(100e9)


@pytest.mark.parametrize(("alone", "value"), [("kmin", 900.0), ("kmax", 90.0)])
def test_a_moved_threshold_is_bounded_as_an_action_is(alone: str, value: float) -> None:
    base = default_setting().replace({"kmin": 500, "kmax": 600})
    moved = KnobSpace((alone, "pmax")).moved({alone: value, "pmax": 0.3}, base)
    assert moved == base.replace({alone: {"kmin": 600, "kmax": 500}[alone], "pmax": 0.3})
    both = KnobSpace(("kmin", "kmax")).moved({"kmin": 900, "kmax": 90}, base)
    assert both == base.replace({"kmin": 900, "kmax": 900})
    with pytest.raises(ConfigError, match="scheme 'dcqcn-plus'"):
        KnobSpace(("kmin",), table=knob_table("dcqcn-plus")).moved({"kmin": 100}, base)


def test_a_part_of_a_space_has_its_rate_table_and_ranges() -> None:
    table = knob_table("dcqcn-plus")
    ranges = {"kmin": (50.0, 100.0), "pmax": (0.1, 0.2)}
    whole = KnobSpace(("kmin", "kmax", "pmax"), 25e9, table, ranges)
    part = whole.part(("pmax", "kmin"))
    assert (part.knobs, part.line_rate_bps, part.table) == (("pmax", "kmin"), 25e9, table)
    assert part.ranges == ranges
    assert part.decode([1.0, 1.0]) == {"pmax": 0.2, "kmin": 100}
    assert whole.part(("kmax",)).ranges == {}


def test_setting_changes_only_the_tuned_knobs() -> None:
    base = expert_setting()
    space = KnobSpace(("rp_ai_rate", "pmax"))
    setting = space.setting([0.3, -0.2], base)
    assert {n for n in KNOBS if setting[n] != base[n]} == {"rp_ai_rate", "pmax"}


@pytest.mark.parametrize("rate", RATES)
def test_default_and_expert_encode_inside_the_box(rate: float) -> None:
    space = KnobSpace(line_rate_bps=rate)
    for setting in (default_setting(rate), expert_setting(rate)):
        unit = space.encode(setting)
        assert np.all(np.isfinite(unit))
        assert np.all(np.abs(unit) <= 1.0)
        assert _close(space.decode(unit), space.clip({n: setting[n] for n in space.knobs}))


def test_off_is_encoded_as_what_it_acts_like_and_never_decoded() -> None:
    names = ("rp_rate_to_set_on_first_cnp", "rp_byte_reset", "rp_max_rate")
    space = KnobSpace(names)
    base = default_setting().replace(dict.fromkeys(names, 0.0))
    assert np.array_equal(space.encode(base), np.ones(3))
    assert all(value > 0 for value in space.decode(-np.ones(3)).values())
    assert space.clip({"rp_rate_to_set_on_first_cnp": 0.0}) == {
        "rp_rate_to_set_on_first_cnp": 100e3
    }


def test_clip_brings_values_into_range_whole_and_ordered() -> None:
    clipped = KnobSpace().clip(
        {"rp_gd": 99.0, "rp_time_reset": 2.4, "kmin": 900, "kmax": 300, "rp_threshold": 7}
    )
    assert clipped == pytest.approx(
        {"rp_gd": 13.0, "rp_time_reset": 2, "kmin": 900, "kmax": 900, "rp_threshold": 7.0}
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_named(bad: float) -> None:
    space = KnobSpace()
    unit = np.zeros(space.n)
    unit[3] = bad
    with pytest.raises(ConfigError, match=r"action\[3\] \(rp_gd\) = .*finite"):
        space.decode(unit)
    with pytest.raises(ConfigError, match=r"rp_gd = .*finite"):
        space.clip({"rp_gd": bad})


@pytest.mark.parametrize("shape", [(), (13,), (15,), (14, 1)])
def test_wrong_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match=r"expected \(14,\)"):
        KnobSpace().decode(np.zeros(shape))


def test_bad_construction() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'rp_gd'"):
        KnobSpace(("rp_g",))
    with pytest.raises(ConfigError, match="none repeated"):
        KnobSpace(("kmin", "kmin"))
    with pytest.raises(ConfigError, match="at least one"):
        KnobSpace(())
    with pytest.raises(ConfigError, match="positive rate"):
        KnobSpace(line_rate_bps=math.nan)


def test_equality() -> None:
    assert KnobSpace() == KnobSpace()
    assert KnobSpace(line_rate_bps=25e9) != KnobSpace()
    assert len({KnobSpace(), KnobSpace(("kmin",))}) == 2


@pytest.mark.parametrize("odd", ["x", b"x", [1, [2]], iter([1]), 10**400, [10**400], {1, 2}])
def test_what_is_no_action_is_a_sentence(odd: Any) -> None:
    with pytest.raises(ConfigError, match=r"an action (is|has shape) .*; expected"):
        KnobSpace(["kmin", "kmax"], 100e9).decode(odd)


def test_help_on_a_space_fits_a_screen() -> None:
    assert len(str(inspect.signature(KnobSpace))) < 300
