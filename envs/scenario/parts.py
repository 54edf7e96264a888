"""Parts of a trace: a list of flows is searched on its begin and judged on what comes later."""

from __future__ import annotations

from collections.abc import Sequence

from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.workload import BaseWorkload
from dcqcn_gym.envs.scenario.workloads import Flows


def later_parts(
    scenario: Scenario, intervals: int, judged_intervals: int, most: int
) -> list[tuple[Scenario, str]]:
    """Return up to ``most`` parts of a trace behind what ``intervals`` intervals have seen of it.

    A part is a scenario of its own with the flows that start in it, from time 0, and words on where
    it lies; it lasts a warm-up and ``judged_intervals`` intervals. Parts have the same distance and
    do not overlap. Empty unless all traffic is lists of flows and two parts have flows: one part
    would have no interval.
    """
    lists = [w for w in scenario.workloads if isinstance(w, Flows)]
    if len(lists) < len(scenario.workloads):
        return []
    us = scenario.monitor_interval_us
    length_ns = 1000 * (scenario.warmup_us + judged_intervals * us)
    first_ns = 1000 * (scenario.warmup_us + intervals * us)
    last_ns = max(flow.start_ns for workload in lists for flow in workload.flows)
    n = min(most, int((last_ns - first_ns) // length_ns))
    step_ns = (last_ns - first_ns) / max(n, 1)
    found = []
    for k in range(max(n, 0)):
        begin = first_ns + k * step_ns
        workloads = _between(lists, begin, begin + length_ns)
        if workloads:
            words = f"{begin * 1e-6:g} to {(begin + length_ns) * 1e-6:g} ms of the trace"
            found.append((scenario.model_copy(update={"workloads": workloads}), words))
    return found if len(found) > 1 else []


def _between(lists: Sequence[Flows], begin_ns: float, end_ns: float) -> tuple[BaseWorkload, ...]:
    """Return the lists with the flows that start in a window, counted from its begin."""
    found = []
    for workload in lists:
        flows = tuple(
            flow._replace(start_ns=flow.start_ns - begin_ns)
            for flow in workload.flows
            if begin_ns <= flow.start_ns < end_ns
        )
        if flows:
            found.append(workload.model_copy(update={"flows": flows}))
    return tuple(found)
