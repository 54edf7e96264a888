"""PARALEON's variants: the later code's ranges hold, and bytes decide where flows would not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dcqcn_gym.core.interval import FSD_BINS, FlowSizeDistribution
from dcqcn_gym.core.knobs import KNOBS
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.paraleon import by_bytes
from dcqcn_gym.tuners.paraleon_ranges import LATER_RANGES, later_space


def test_ranges_scale_and_stay_within_those_of_the_scenario() -> None:
    space = later_space(KnobSpace(line_rate_bps=25e9, ranges={"rp_ai_rate": (50, 200)}))
    assert space.ranges["kmax"] == (120, 1600)
    assert space.ranges["rp_rate_to_set_on_first_cnp"] == (7500, 20000)
    assert space.ranges["rp_ai_rate"] == (50, 100)
    assert space.ranges["rp_time_reset"] == (50, 600)
    apart = later_space(KnobSpace(ranges={"rp_time_reset": (700, 900)}))
    assert apart.ranges["rp_time_reset"] == (700, 900)
    assert set(LATER_RANGES) <= set(KNOBS)


@pytest.mark.parametrize("tuner", ["paraleon", "naive-sa", "paraleon-prototype"])
def test_proposals_keep_within_the_ranges(tuner: str, tmp_path: Path) -> None:
    """From the second interval on, which the first proposal of its own decides."""
    scenario = load_scenario("mini-fb-hadoop")
    run(RunSpec(scenario, tuner, 1, 60, "fake"), tmp_path / "run.jsonl")
    settings = [line["setting"] for line in read_run(tmp_path / "run.jsonl").intervals[1:]]
    ranges = later_space(KnobSpace(line_rate_bps=25e9)).ranges
    within = all(
        low <= setting[name] <= high for setting in settings for name, (low, high) in ranges.items()
    )
    assert within == (tuner != "paraleon-prototype")


def test_bytes_decide_where_flows_would_not() -> None:
    """99 mice of 3 KB and one elephant of 12 MB: most flows are mice, most bytes are not."""
    bins = np.zeros(FSD_BINS)
    bins[1], bins[13] = 99, 1
    fsd = FlowSizeDistribution(
        elephants=1, mice=99, weighted_elephants=1, weighted_mice=99, bins=bins
    )
    assert not fsd.elephants_dominate
    heavy = by_bytes(fsd)
    assert heavy.elephants_dominate
    middles = 2**10.5 * np.array([2.0, 2.0**13])
    sent = middles * [99, 1]
    mice = sent[0] * (1 - middles[0] / 1e6)
    assert heavy.mu == pytest.approx(1 - mice / sent.sum())
    assert not by_bytes(replace(fsd, bins=np.eye(FSD_BINS)[8])).elephants_dominate
    assert by_bytes(replace(fsd, bins=np.eye(FSD_BINS)[9])).elephants_dominate  # holds 1 MB
    assert by_bytes(replace(fsd, bins=np.zeros(FSD_BINS))).mu == 0.5
