"""PARALEON's monitor without its parts: the two failures of a naive sketch, marking, the window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dcqcn_gym.benchmarks.papers.monitor_study.traces import (
    Packets,
    Sample,
    keys_of,
    replay,
    simulate,
)
from dcqcn_gym.benchmarks.papers.monitors import NO_WINDOW, unmarked
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

MS = 1_000_000_000
TAU = 1_000_000
MOUSE, POTENTIAL, ELEPHANT = 1, 2, 3


def one_flow(size: int, start_ns: int, gbps: float = 25) -> Scenario:
    """Return two hosts and one flow, which sends about 0.12 MB per ms for each Gb/s."""
    flows = [{"src": 0, "dst": 1, "bytes": size, "start_ns": start_ns}]
    return Scenario.model_validate(
        {
            "name": "one-flow",
            "topology": {"kind": "single-switch", "hosts": 2, "gbps": gbps},
            "workloads": [{"kind": "flows", "flows": flows}],
        }
    )


def states(scenario: Scenario, options: dict[str, Any], ms: int = 8) -> list[int]:
    """Return what a monitor holds the flow for in every interval of 1 ms in which it sent."""
    probe = Sample("probe", MS, options)
    replay(Packets(scenario, 1, MS, 0, ms * MS), [probe])
    return [int(seen.state[0]) for seen in probe.seen if len(seen.key)]


THROTTLED = one_flow(4_000_000, 0, gbps=5)
"""An elephant that sends about 0.6 MB, less than tau, in every interval."""
LATE = one_flow(1_300_000, 870_000)
"""An elephant that begins just before a reset: less than tau before it, less than tau after it."""


@pytest.mark.parametrize("scenario", [THROTTLED, LATE], ids=["throttled", "late"])
def test_a_naive_sketch_never_sees_these_elephants(scenario: Scenario) -> None:
    naive = states(scenario, {"kind": "elastic-naive"})
    assert len(naive) >= 2
    assert set(naive) == {MOUSE}


def test_ternary_states_see_a_throttled_elephant() -> None:
    found = states(THROTTLED, {"kind": "elastic"})
    assert found[0] == MOUSE
    assert set(found[1:]) == {ELEPHANT}


def test_ternary_states_see_an_elephant_that_came_just_before_a_reset() -> None:
    assert states(LATE, {"kind": "elastic"}) == [MOUSE, ELEPHANT]


def test_without_the_window_nobody_is_a_potential_elephant() -> None:
    slow = one_flow(900_000, 0, gbps=1)
    assert states(slow, {"kind": "elastic"})[2:7] == [POTENTIAL] * 5
    assert set(states(slow, NO_WINDOW)) == {MOUSE}


def test_without_marks_flows_between_racks_count_twice() -> None:
    study = Packets(load_scenario("mini-fb-hadoop"), 2, MS, 0, 3 * MS)
    net = study.scenario.fabric
    marked, twice = (Sample("elastic", MS, {"kind": "elastic"}) for _ in range(2))
    replay(study, [marked], simulate)
    replay(study, [twice], unmarked)
    away: set[int] = set()
    for _, _, flows in simulate(study):
        apart = [
            net.tor(int(a)) != net.tor(int(b))
            for a, b in zip(flows["src"], flows["dst"], strict=True)
        ]
        away |= set(keys_of(flows)[np.array(apart, dtype=bool)].tolist())
    assert away
    for one, other in zip(marked.seen, twice.seen, strict=True):
        assert len(np.unique(one.key)) == len(one.key)
        keys, times = np.unique(other.key, return_counts=True)
        assert set(keys) == set(one.key)
        assert {int(k) for k, n in zip(keys, times, strict=True) if n == 2} == away & set(
            one.key.tolist()
        )
        assert times.max() == 2
