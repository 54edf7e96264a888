"""An interval as everybody sees it: figures worked out by hand, and the same ones everywhere."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from dcqcn_gym.core.interval import FinishedFlows
from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.core.measured import Interval, figures_of, measure
from dcqcn_gym.core.utility import IDLE_TERMS
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.info import make_info
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.log_line import interval_line
from hand_made import blank_report

MINI = load_scenario("mini-fb-hadoop")
FULL = 12_500_000  # bytes of a 100 Gb/s link in 1 ms

BUSY: dict[str, Any] = {
    "data_packets": 10,
    "active_flows": 3,
    "delivered_bytes": 1_000_000,
    "host_tx_bytes": [FULL, FULL // 2, 0, 0],
    "rtt_src": [0, 1],
    "rtt_dst": [1, 0],
    "rtt_count": [1, 3],
    "rtt_sum_ps": [10_000_000, 90_000_000],
    "rtt_base_ps": [10_000_000, 20_000_000],
    "port_pause_ps": [5e8, 0, 0, 0, 0, 0, 0, 1e8],
    "port_max_queue_bytes": [0, 0, 0, 0, 0, 0, 7000, 0],
    "pauses": 2,
}


def interval(number: int = 1, **changes: Any) -> Interval:
    report = blank_report(**changes)
    return measure(report, MINI, number=number, setting=default_setting())


def test_figures_by_hand() -> None:
    figures = figures_of(blank_report(**BUSY))
    assert figures.throughput_bps == 8e9  # 1 MB in 1 ms
    assert figures.sent_bps == pytest.approx(150e9)
    assert figures.rtt_mean_ps == 25_000_000
    assert figures.rtt_base_ps == 17_500_000
    # host 0 paused for 0.5 ms, the switch 0.1 ms on one of 4 ports, three hosts never
    assert figures.device_pause_ps == pytest.approx((5e8 + 1e8 / 4) / 5)
    assert figures.worst_pause_ps == 5e8
    assert (figures.max_queue_bytes, figures.finished_flows) == (7000, 0)


def test_nothing_measured_is_zero_or_none() -> None:
    figures = figures_of(blank_report(start_ps=5, end_ps=5))
    assert (figures.throughput_bps, figures.sent_bps, figures.device_pause_ps) == (0.0, 0.0, 0.0)
    assert figures.rtt_mean_ps is None
    assert figures.rtt_base_ps is None


def test_an_interval_is_judged_once_and_frozen() -> None:
    busy, idle = interval(**BUSY), interval()
    w, t = MINI.weights, busy.terms
    assert busy.utility == w.tp * t.tp + w.rtt * t.rtt + w.pfc * t.pfc < 1.0
    assert (idle.utility, idle.terms, idle.idle) == (1.0, IDLE_TERMS, True)
    assert busy.figures is busy.figures
    with pytest.raises(FrozenInstanceError):
        busy.utility = 2.0  # type: ignore[misc]


def test_info_and_the_log_read_the_same_figures() -> None:
    one = interval(3, **BUSY, finished=FinishedFlows(*(np.arange(1, 3) for _ in range(8))))
    info = make_info(seed=7, interval=3, setting=one.setting, intervals=[one])
    line = interval_line(one)
    assert (line["i"], info["interval"]) == (2, 3)
    assert line["throughput_bps"] == info["throughput_bps"] == one.figures.throughput_bps
    assert line["rtt_mean_ps"] * 1e-12 == info["rtt_mean_s"]
    assert line["device_pause_ps"] * 1e-12 == info["device_pause_s"] > 0
    assert line["worst_pause_ps"] == 5e8
    assert line["utility"] == info["utility"]
    assert line["flows"]["src"] == [1, 2]
    assert info["finished_flows"] == 2
    assert "rounds" not in line
    assert "unknown" not in line


def test_the_main_path_s_step_is_gymnasium_s_step() -> None:
    one, two = DcqcnEnv(MINI, "fake"), DcqcnEnv(MINI, "fake")
    first, second = (env.reset(seed=3)[0] for env in (one, two))
    assert np.array_equal(first, second)
    setting = one.initial_setting.replace({"rp_ai_rate": 9})
    for chosen in (setting, setting, one.initial_setting):
        measured = one.run_interval(chosen, tuning=False)
        observation, reward, terminated, _, info = two.step_setting(chosen, tuning=False)
        assert np.array_equal(measured.observation, observation)
        assert (measured.utility, measured.number) == (reward, info["interval"])
        assert vars(measured.cost) == {name: info[name] for name in vars(measured.cost)}
        assert measured.report == info["report"]
        assert one.done == terminated
