"""Whether the traffic of a recorded run can answer: from the scenario in its log's header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dcqcn_gym.core.traffic_check import Coverage, Length, coverage
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.workloads import Flows


def coverage_of(scenario: Scenario) -> Coverage | None:
    """Return who is in the flows of a scenario; None unless all its traffic is lists of flows."""
    lists = [w for w in scenario.workloads if isinstance(w, Flows)]
    if not lists or len(lists) < len(scenario.workloads):
        return None
    flows = [flow for one in lists for flow in one.flows]
    src, dst = (
        np.array([getattr(f, end) for f in flows], dtype=np.int64) for end in ("src", "dst")
    )
    return coverage(src, dst, scenario.fabric.n_hosts)


def length_of(scenario: Scenario, intervals: int, parts: int, part_intervals: int) -> Length | None:
    """Return what a session needs of a scenario's trace; None unless its traffic is one."""
    lists = [w for w in scenario.workloads if isinstance(w, Flows)]
    if not lists or len(lists) < len(scenario.workloads):
        return None
    last_ns = max(flow.start_ns for one in lists for flow in one.flows)
    return Length(
        last_ns * 1e-6, scenario.warmup_us * 1e-3, scenario.monitor_interval_us * 1e-3,
        intervals, parts, part_intervals,
    )  # fmt: skip


def recorded_scenario(header: Mapping[str, Any]) -> Scenario | None:
    """Return the scenario of a log; None if it is unreadable."""
    try:
        return Scenario.model_validate(header.get("scenario"))
    except ValueError:
        return None
