"""A trace is cut behind what a search has seen; traffic that is drawn is not."""

from __future__ import annotations

from typing import Any

import pytest

from dcqcn_gym.core.errors import ConfigError
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


def blocks(ms: int, us: float = 2000.0, seed: int = 0) -> list[tuple[Scenario, str]]:
    """Parts of a trace of ``ms``, 10 ms of it searched, each of 5 ms put together from blocks."""
    whole = trace(ms)
    (workload,) = whole.model_dump()["workloads"]
    return later_parts(trace(ms, workloads=[{**workload, "blocks_us": us}]), 9, 4, 3, seed)


def test_parts_of_blocks_have_whole_blocks_of_their_own_in_another_order() -> None:
    found = blocks(50)
    assert [words[:23] for _, words in found] == ["blocks in another order"] * 3
    numbers = []
    for part, _ in found:
        flows = flows_of(part)
        assert all(0 <= flow.start_ns < 5e6 for flow in flows)
        for flow in flows:  # the size says where in the trace it was: 100 us a flow from 0 on
            was = (int(flow.bytes) - 5000) * 1e5
            assert was >= 10e6
            assert (was - 10e6) % 2e6 == pytest.approx(flow.start_ns % 2e6, abs=1e-3)
        order = list(dict.fromkeys(int(f.start_ns // 2e6) for f in flows))
        assert sorted(order) == [0, 1, 2]
        numbers.append([(100 * (int(f.bytes) - 5000) - 10_000) // 2_000 for f in flows])
    used = [set(n) for n in numbers]
    assert all(len(u) == 3 for u in used)  # two whole blocks, and half of a third
    assert not used[0] & used[1] | used[1] & used[2] | used[0] & used[2]
    assert sorted(set().union(*used)) != list(range(9))  # not simply the first ones


def test_a_seed_gives_the_order_of_blocks_and_the_same_bytes_again() -> None:
    same, again, other = (
        [part.model_dump_json() for part, _ in blocks(50, seed=seed)] for seed in (1, 1, 2)
    )
    assert same == again
    assert same != other


@pytest.mark.parametrize(("ms", "parts"), [(20, 0), (21, 0), (22, 2), (28, 3)])
def test_there_are_as_many_parts_as_blocks_suffice_for(ms: int, parts: int) -> None:
    assert len(blocks(ms)) == parts


def test_blocks_without_number_are_refused_and_unused_ones_are_in_no_log() -> None:
    with pytest.raises(ConfigError, match=r"blocks_us = 1e-06 cuts the trace into 3999"):
        blocks(50, us=1e-6)
    assert "blocks_us" not in trace(20).model_dump_json()
    assert '"blocks_us":2000.0' in blocks(50)[0][0].model_dump_json()
