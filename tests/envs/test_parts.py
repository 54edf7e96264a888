"""A trace is cut behind what a search has seen; traffic that is drawn is not."""

from __future__ import annotations

from typing import Any

import pytest

from dcqcn_gym.envs.scenario.parts import later_parts
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.scenario.tables import Flow
from dcqcn_gym.envs.scenario.workloads import Flows


def trace(ms: int, every_us: int = 100, **more: Any) -> Scenario:
    flows = [
        (0, 1 + i % 3, 5000 + i, 1000.0 * i * every_us) for i in range(ms * 1000 // every_us + 1)
    ]
    return Scenario.model_validate(
        {
            "weights": {"tp": 0.2, "rtt": 0.5, "pfc": 0.3},
            "topology": {"kind": "single-switch", "hosts": 4},
            "monitor_interval_us": 1000,
            "warmup_us": 1000,
            "workloads": [{"kind": "flows", "flows": flows}],
            **more,
        }
    )


def flows_of(scenario: Scenario) -> tuple[Flow, ...]:
    (workload,) = scenario.workloads
    assert isinstance(workload, Flows)
    return workload.flows


def test_parts_lie_behind_the_search_and_begin_at_zero() -> None:
    found = later_parts(trace(50), 9, 4, 3)  # 1 + 9 ms are searched, a part has 1 + 4
    assert [words.partition(" of")[0] for _, words in found] == [
        "10 to 15 ms", "23.3333 to 28.3333 ms", "36.6667 to 41.6667 ms",
    ]  # fmt: skip
    sizes = [[flow.bytes for flow in flows_of(part)] for part, _ in found]
    assert [s[0] for s in sizes] == [5100, 5234, 5367]
    assert [len(s) for s in sizes] == [50, 50, 50]
    starts = [flow.start_ns for flow in flows_of(found[1][0])]
    assert min(starts) == pytest.approx(1e8 / 1500, rel=1e-3)
    assert max(starts) < 5e6


@pytest.mark.parametrize(("ms", "parts"), [(14, 0), (19, 0), (20, 2), (24, 2), (25, 3), (99, 3)])
def test_there_are_as_many_as_fit_and_never_one(ms: int, parts: int) -> None:
    assert len(later_parts(trace(ms), 9, 4, 3)) == parts


def test_an_empty_stretch_is_no_part() -> None:
    whole = trace(50)
    flows = [f for f in flows_of(whole) if not 20e6 < f.start_ns < 30e6]
    whole = trace(50, workloads=[{"kind": "flows", "flows": [list(f) for f in flows]}])
    assert len(later_parts(whole, 9, 4, 3)) == 2


def test_drawn_traffic_and_collectives_are_not_cut() -> None:
    for name in ("mini-fb-hadoop", "mini-llm-alltoall"):
        assert later_parts(load_scenario(name), 2, 2, 5) == []
