"""The observation: frozen layout, bounds for any report, exact bytes."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.core.knobs import (
    DCQCN,
    KNOBS,
    TUNED_KNOBS,
    KnobTable,
    Setting,
    default_setting,
    expert_setting,
)
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.observation import (
    OBSERVATION_SIZE,
    OBSERVATION_VERSION,
    as_groups,
    bounds,
    idle_observation,
    layout,
    layout_name,
    log2p1,
    observe,
)
from hand_made import blank_report
from toy_tables import OTHER_SCHEME, WITH_TOY

SPACE = KnobSpace()


def slot(vector: np.ndarray, name: str) -> float:
    return float(vector[[s.name for s in layout()].index(name)])


def test_the_layout_is_frozen() -> None:
    """A change of names, order or bounds is a new OBSERVATION_VERSION and new environment ids."""
    text = "\n".join(f"{s.name} {s.low:g} {s.high:g}" for s in layout())
    frozen = {1: (67, "c70fea4bc1879bc0")}
    found = (OBSERVATION_SIZE, hashlib.sha256(text.encode()).hexdigest()[:16])
    assert found == frozen[OBSERVATION_VERSION]


def test_every_slot_is_named_once_and_described() -> None:
    names = [s.name for s in layout()]
    assert len(set(names)) == len(names) == OBSERVATION_SIZE
    assert all(s.meaning for s in layout())
    assert [n for n in names if n.startswith("setting/")] == [f"setting/{k}" for k in KNOBS]


def test_log2p1_is_log2_at_powers_of_two_and_monotone() -> None:
    assert [log2p1(2.0**k - 1) for k in range(40)] == list(range(40))
    values = [log2p1(x) for x in np.linspace(0, 5000, 999)]
    assert values == sorted(values)
    assert all(abs(log2p1(x) - math.log2(1 + x)) < 0.0861 for x in np.linspace(0, 5000, 999))
    assert log2p1(-1.0) == 0.0


def test_figures_land_in_their_slots() -> None:
    report = blank_report(
        data_packets=1000,
        active_flows=3,
        marks=100,
        cnps=7,
        delivered_bytes=5_000_000,
        host_tx_bytes=[12_500_000, 0, 0, 0],
        rtt_src=[0],
        rtt_dst=[1],
        rtt_count=[10],
        rtt_sum_ps=[10 * 40],
        rtt_base_ps=[20],
        port_max_queue_bytes=[0] * 7 + [1_000_000],
        fsd=FlowSizeDistribution(1, 2, 5, 2, 6, np.arange(16.0), 0.001, True),
    )
    seen = observe(report, default_setting(), SPACE)
    expected = {
        "fsd/elephant_share": 1 / 8,
        "fsd/mice_count": log2p1(5) / 20,
        "fsd/weighted_elephant_share": 0.25,
        "fsd/mu": 0.75,
        "fsd/kl": 1 / 14,
        "fsd/triggered": 1,
        "bins/15": 15 / 120,
        "throughput/o_tp": 1,
        "throughput/load": 0.25,
        "throughput/goodput": 0.1,
        "rtt/o_rtt": 0.5,
        "rtt/inflation": 0.1,
        "ecn/mark_share": 0.1,
        "ecn/cnps": 3 / 20,
        "queue/max": log2p1(1000) / 16,
        "flows/active": 2 / 20,
        "flows/idle": 0,
    }
    assert {n: slot(seen, n) for n in expected} == pytest.approx(expected)


def test_the_setting_is_shown_whatever_the_agent_may_turn() -> None:
    report = blank_report()
    narrow = KnobSpace(("kmin",))
    seen = observe(report, expert_setting(), narrow)
    assert np.array_equal(seen, observe(report, expert_setting(), SPACE))
    assert slot(seen, "setting/kmin") == 1.0
    assert slot(observe(report, default_setting(), SPACE), "setting/kmin") < 1.0


def test_an_unknown_distribution_is_neutral() -> None:
    unknown = FlowSizeDistribution(9, 9, 9, 9, 9, np.ones(16), known=False)
    seen = as_groups(observe(blank_report(fsd=unknown), default_setting(), SPACE))
    assert slot(observe(blank_report(fsd=unknown), default_setting(), SPACE), "fsd/mu") == 0.5
    assert not np.any(seen["bins"])


def test_groups_cover_the_vector_in_order() -> None:
    vector = idle_observation(default_setting(), SPACE)
    assert np.array_equal(np.concatenate(list(as_groups(vector).values())), vector)


def test_the_idle_observation_is_that_of_a_silent_network() -> None:
    silent = observe(blank_report(), default_setting(), SPACE)
    assert np.array_equal(idle_observation(default_setting(), SPACE), silent)


@given(
    big=st.floats(0, 1e18), count=st.integers(0, 2**40), pause=st.floats(0, 1e10), kl=st.floats(0)
)
@settings(max_examples=50, deadline=None)
def test_always_within_bounds(big: float, count: int, pause: float, kl: float) -> None:
    size = int(big)
    report = blank_report(
        data_packets=count,
        marks=count * 3,
        cnps=count,
        pauses=count,
        delivered_bytes=size,
        host_tx_bytes=[size, 0, 1, 5],
        port_pause_ps=np.full(8, pause),
        port_queue_bytes=[size] * 8,
        port_max_queue_bytes=[size] * 8,
        rtt_src=[0],
        rtt_dst=[1],
        rtt_count=[1],
        rtt_sum_ps=[size],
        rtt_base_ps=[1],
        fsd=FlowSizeDistribution(big, big, 1, big, big, np.full(16, big), kl),
    )
    low, high = bounds()
    wild = Setting(tuple(v * 1e3 for v in default_setting().numbers))
    for setting in (default_setting(), wild):
        seen = observe(report, setting, SPACE)
        assert seen.dtype == np.float32
        assert np.all((low <= seen) & (seen <= high))


def test_same_report_same_bytes() -> None:
    report = blank_report(data_packets=5, host_tx_bytes=[7, 8, 9, 10])
    again = replace(report)
    assert report == again
    setting = default_setting()
    assert observe(report, setting, SPACE).tobytes() == observe(again, setting, SPACE).tobytes()


def test_a_knob_that_is_neither_tuned_nor_observed_changes_no_layout() -> None:
    wider = KnobSpace(table=WITH_TOY)
    assert layout(WITH_TOY) == layout()
    assert layout_name(wider) == layout_name(SPACE) == "1/dcqcn/745b1213aff0"
    setting = expert_setting(table=WITH_TOY)
    seen = observe(blank_report(), setting.replace({"toy_gap": 1}), wider)
    assert np.array_equal(seen, observe(blank_report(), expert_setting(), SPACE))


def test_a_knob_that_is_moved_or_shown_gives_the_layout_another_name() -> None:
    moved = KnobSpace((*TUNED_KNOBS, "toy_gap"), table=WITH_TOY)
    assert layout_name(moved).startswith("1/dcqcn/")
    rows = tuple(replace(r, observed=True) for r in WITH_TOY.rows)
    shown = KnobSpace(table=KnobTable("dcqcn", rows))
    assert len(layout(shown.table)) == OBSERVATION_SIZE + 1
    log_scale = tuple(replace(r, log=not r.log) if r.name == "pmax" else r for r in DCQCN.rows)
    scaled = KnobSpace(table=KnobTable("dcqcn", log_scale))
    names = [layout_name(space) for space in (SPACE, moved, shown, scaled)]
    assert len(set(names)) == 4
    # fewer knobs to turn, all of them shown: the same numbers mean the same
    assert layout_name(KnobSpace(("kmin", "kmax"))) == names[0]


def test_another_scheme_has_a_layout_of_its_own() -> None:
    space = KnobSpace(table=OTHER_SCHEME)
    assert [s.name for s in layout(OTHER_SCHEME)][-4:] == [
        f"setting/{n}" for n in ("toy_gap", "kmin", "kmax", "pmax")
    ]
    assert layout_name(space).startswith("1/toy/")
    setting = default_setting(table=OTHER_SCHEME)
    vector = observe(blank_report(), setting, space)
    assert len(vector) == len(bounds(OTHER_SCHEME)[0]) == OBSERVATION_SIZE - 20 + 4
    assert vector[-4] == np.float32(space.encode(setting)[0])
    assert len(idle_observation(setting, space)) == len(vector)
    assert len(as_groups(vector, OTHER_SCHEME)["setting"]) == 4
    for mixed in (observe, lambda report, *rest: idle_observation(*rest)):
        with pytest.raises(ConfigError, match=r"an observation: .*'toy'.*'dcqcn'"):
            mixed(blank_report(), setting, SPACE)
