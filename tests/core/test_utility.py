"""The utility by hand calculation: PARALEON eq. 1 and the choices the paper leaves open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.utility import (
    Terms,
    UtilityWeights,
    is_idle,
    judge,
    o_pfc,
    o_rtt,
    o_tp,
    terms,
    utility,
)
from dcqcn_gym.envs.scenario.scenario import load_scenario
from hand_made import blank_report

MS = 1_000_000_000
WEIGHTS = UtilityWeights(tp=0.2, rtt=0.5, pfc=0.3)
FULL = 12_500_000  # bytes of a 100 Gb/s link in 1 ms


def busy(**changes: Any) -> IntervalReport:
    return blank_report(data_packets=1, active_flows=1, **changes)


def test_o_tp_is_the_mean_over_active_uplinks() -> None:
    report = busy(host_tx_bytes=[FULL // 2, FULL, FULL // 100, 0])
    assert o_tp(report) == pytest.approx(0.75)
    assert o_tp(report, active_share=0.005) == pytest.approx((0.5 + 1 + 0.01) / 3)


def test_o_tp_of_strangled_senders_is_small_but_a_number() -> None:
    assert o_tp(busy(host_tx_bytes=[FULL // 100, 0, 0, 0])) == pytest.approx(0.01)
    assert o_tp(busy(host_tx_bytes=[0, 0, 0, 0])) == 0.0


def test_o_tp_never_exceeds_one() -> None:
    # a packet that begins at the end of the interval counts whole
    assert o_tp(busy(host_tx_bytes=[FULL + 1000, 0, 0, 0])) == 1.0


def test_o_tp_uses_each_link_s_own_rate() -> None:
    report = busy(host_tx_bytes=[FULL, FULL, 0, 0], host_rate_bps=[100e9, 200e9, 100e9, 100e9])
    assert o_tp(report) == pytest.approx(0.75)


def test_o_rtt_means_per_pair_before_the_pairs() -> None:
    report = busy(
        rtt_src=[0, 1],
        rtt_dst=[1, 2],
        rtt_count=[1000, 1],
        rtt_sum_ps=[1000 * 40, 20],
        rtt_base_ps=[20, 20],
    )
    assert o_rtt(report) == pytest.approx((0.5 + 1.0) / 2)


def test_the_base_taken_one_way_halves_the_term() -> None:
    """As PARALEON prints it: no queue at all then gives 0.5."""
    pairs = {"rtt_src": [0, 1], "rtt_dst": [1, 2], "rtt_count": [1, 1], "rtt_sum_ps": [20, 40],
             "rtt_base_ps": [20, 20]}  # fmt: skip
    report = busy(host_tx_bytes=[FULL, 0, 0, 0], **pairs)
    assert o_rtt(report, "one-way") == pytest.approx((0.5 + 0.25) / 2)
    assert terms(report, rtt_base="one-way") == Terms(1.0, 0.375, 1.0)
    assert terms(report).rtt == pytest.approx(0.75)
    literal = load_scenario("mini-fb-hadoop").model_copy(update={"rtt_base": "one-way"})
    assert judge(report, literal).utility == pytest.approx(0.2 + 0.5 * 0.375 + 0.3)


def test_a_pair_faster_than_its_base_counts_as_one() -> None:
    # ACKs may come back by a shorter way than the data took: base 30, means 20, 25 and 60;
    # the ratios 1.5, 1.2 and 0.5 count as 1, 1 and 0.5
    report = busy(
        rtt_src=[0, 1, 2],
        rtt_dst=[1, 2, 3],
        rtt_count=[2, 1, 1],
        rtt_sum_ps=[40, 25, 60],
        rtt_base_ps=[30, 30, 30],
    )
    assert o_rtt(report) == (1.0 + 1.0 + 0.5) / 3
    one = busy(rtt_src=[0], rtt_dst=[1], rtt_count=[1], rtt_sum_ps=[20], rtt_base_ps=[30])
    assert o_rtt(one) == 1.0
    assert terms(one).rtt == 1.0


def test_o_rtt_without_samples() -> None:
    assert o_rtt(busy(host_tx_bytes=[1000, 0, 0, 0])) == 1.0
    assert o_rtt(blank_report(active_flows=3)) == 0.0  # flows wait, nothing was sent


def test_o_pfc_means_per_device_before_the_devices() -> None:
    pause = np.zeros(8)
    pause[0] = MS  # host 0 was paused all the time
    pause[4] = MS / 2  # one of four switch ports half of it
    report = busy(port_pause_ps=pause)
    assert report.paused_ps == pytest.approx([MS, 0, 0, 0, MS / 8])
    assert o_pfc(report) == pytest.approx(1 - (1 + 1 / 8) / 5)
    assert o_pfc(report, "paused") == pytest.approx(1 - 0.75)
    assert o_pfc(blank_report(), "paused") == 1.0


def test_idle_means_nobody_waits() -> None:
    silent, strangled = blank_report(), blank_report(active_flows=2)
    assert is_idle(silent)
    assert terms(silent) == Terms(1.0, 1.0, 1.0)
    assert not is_idle(strangled)
    assert terms(strangled) == Terms(0.0, 0.0, 1.0)


def test_utility_is_the_weighted_sum() -> None:
    assert utility(Terms(0.5, 0.25, 1.0), WEIGHTS) == pytest.approx(0.1 + 0.125 + 0.3)
    assert utility(Terms(1.0, 1.0, 1.0), WEIGHTS) == pytest.approx(1.0)


@pytest.mark.parametrize("bad", [float("nan"), -0.1, 1.1])
def test_a_broken_term_is_refused(bad: float) -> None:
    with pytest.raises(ConfigError, match="rtt"):
        utility(Terms(0.5, bad, 1.0), WEIGHTS)
