"""Parts of a trace: a list of flows is searched on its begin and judged on what comes later."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from math import ceil

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.workloads import Flows

Placed = Callable[[float], float]
"""From the start of a flow in the trace to its start in a part, in ns; below 0: not in it."""

MOST_BLOCKS = 1_000_000
REORDERED = "blocks in another order"
"""What is said of parts that are put together from blocks."""


def later_parts(
    scenario: Scenario, intervals: int, judged_intervals: int, most: int, seed: int = 0
) -> list[tuple[Scenario, str]]:
    """Return up to ``most`` parts of a trace behind what ``intervals`` intervals have seen of it.

    A part is a scenario of its own with the flows that start in it, from time 0, and words on where
    it lies; it lasts a warm-up and ``judged_intervals`` intervals. Parts have the same distance and
    do not overlap. With ``blocks_us`` they are dealt blocks of that length, in an order that
    ``seed`` gives and none twice, so that a change along the trace is in every part alike. Empty
    unless all traffic is lists of flows and two parts have flows: one part would have no interval.
    """
    lists = scenario.only(Flows)
    if not lists:
        return []
    us, offset_ns = scenario.monitor_interval_us, 1e6 * (lists[0].stretch_ms or (0.0,))[0]
    length_ns = 1000 * (scenario.warmup_us + judged_intervals * us)
    first_ns = 1000 * (scenario.warmup_us + intervals * us)
    last_ns = max(flow.start_ns for workload in lists for flow in workload.flows)
    block_ns = 1000 * max(workload.blocks_us for workload in lists)
    if block_ns:
        cuts = _of_blocks(first_ns, last_ns, length_ns, block_ns, seed, most)
    else:
        cuts = _in_a_row(first_ns, last_ns, length_ns, most, offset_ns)
    found = []
    for placed, words in cuts:
        if workloads := _cut(lists, placed, length_ns):
            found.append((scenario.model_copy(update={"workloads": workloads}), words))
    return found if len(found) > 1 else []


def in_window(scenario: Scenario, begin_ms: float, end_ms: float) -> Scenario:
    """Return a scenario with the flows that start in a window of its trace, from time 0 on.

    Raises ConfigError where traffic is not lists of flows, and where no flow starts there.
    """
    lists = scenario.only(Flows)
    if not lists:
        raise ConfigError(
            f"scenario {scenario.name!r} has no trace to take a window of; --window is for lists "
            "of flows alone"
        )
    whole_ms = 1e-6 * max(flow.start_ns for workload in lists for flow in workload.flows)
    found = _cut(lists, _since(1e6 * begin_ms), 1e6 * (end_ms - begin_ms))
    if not found:
        raise ConfigError(
            f"no flow starts from {begin_ms:g} to {end_ms:g} ms; the trace has {whole_ms:g} ms"
        )
    where = (begin_ms, min(end_ms, whole_ms), whole_ms)
    parts = [workload.model_copy(update={"stretch_ms": where}) for workload in found]
    return scenario.model_copy(update={"workloads": tuple(parts)})


def _in_a_row(
    first_ns: float, last_ns: float, length_ns: float, most: int, offset_ns: float
) -> list[tuple[Placed, str]]:
    """Return stretches of a trace with the same distance; words count from ``offset_ns`` before."""
    n = min(most, int((last_ns - first_ns) // length_ns))
    step_ns = (last_ns - first_ns) / max(n, 1)
    begins = [first_ns + k * step_ns for k in range(n)]
    return [
        (
            _since(begin),
            f"{(offset_ns + begin) * 1e-6:g} to {(offset_ns + begin + length_ns) * 1e-6:g} ms of "
            "the trace",
        )
        for begin in begins
    ]


def _since(begin_ns: float) -> Placed:
    return lambda start: start - begin_ns


def _of_blocks(
    first_ns: float, last_ns: float, length_ns: float, block_ns: float, seed: int, most: int
) -> list[tuple[Placed, str]]:
    """Return as many parts as there are whole blocks for, each with blocks of its own."""
    blocks = max(0, int((last_ns - first_ns) // block_ns))
    if blocks > MOST_BLOCKS:
        raise ConfigError(
            f"blocks_us = {block_ns / 1000:g} cuts the trace into {blocks} blocks; expected at "
            f"most {MOST_BLOCKS}"
        )
    each = ceil(length_ns / block_ns)
    order = sorted(range(blocks), key=lambda b: hashlib.sha256(f"{seed} {b}".encode()).digest())

    def part(own: Sequence[int]) -> Placed:
        begins = {block: i * block_ns for i, block in enumerate(own)}  # of the others: below 0

        def placed(start: float) -> float:
            block, offset = divmod(start - first_ns, block_ns)
            return begins.get(int(block), -block_ns) + offset

        return placed

    where = f"{block_ns * 1e-6:g} ms each, from {first_ns * 1e-6:g} ms of the trace on"
    return [
        (part(order[k : k + each]), f"{REORDERED}, {where} ({k // each + 1})")
        for k in range(0, min(blocks - each + 1, most * each), each)
    ]


def _cut(lists: Sequence[Flows], placed: Placed, length_ns: float) -> tuple[Flows, ...]:
    """Return the lists with the flows that start in a part, counted from its begin."""
    found = []
    for workload in lists:
        flows = tuple(
            flow._replace(start_ns=start)
            for flow in workload.flows
            if 0 <= (start := placed(flow.start_ns)) < length_ns
        )
        if flows:
            found.append(workload.model_copy(update={"flows": flows}))
    return tuple(found)
