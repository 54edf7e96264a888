"""Where the time of flows and iterations goes: a run again without marks, pauses and collisions.

A cause is taken away and nothing else changes: *marks* by thresholds that no queue reaches,
*pauses* (without PFC: drops) by a buffer that nothing fills, *collisions* by a table of next hops
that spreads the flows of the first run by the bytes under way, as a scheduler that knows them all
would. What a cause costs depends on which others are there, so every combination is run, and a
cause has the mean of its effect over all orders in which the causes can be taken away (the Shapley
value: L. S. Shapley, "A value for n-person games", 1953). So the parts add up to what was lost.
A negative part is time that a cause saves.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dcqcn_gym.core.collectives import RoundTracker
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import DeviceSetting, by_group
from dcqcn_gym.core.interval import IntArray
from dcqcn_gym.core.score import CLASSES, GUARD
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.backends.base import live_flows_of
from dcqcn_gym.envs.scenario.next_hops import NextHop, Paths
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.workloads import collectives_of

MARKS, PAUSES, DROPS, COLLISIONS = "marks", "pauses", "drops", "collisions"
NEVER_BYTES = 2**40
"""A buffer, and a threshold of a class, that nothing reaches."""
MOST_NEXT_HOPS = 500_000


@dataclass(frozen=True)
class Traffic:
    """Every flow of a run that had time to finish, and the rounds of its jobs and collectives.

    ``flows`` has a column a flow: source, destination, ordinal, bytes, start, time (of one that is
    unfinished its age) and time in an idle network, in ps.
    """

    flows: IntArray
    rounds: Mapping[str, float]
    """Mean time of the finished rounds in ps, by what repeats them."""


@dataclass(frozen=True)
class Division:
    """One figure of a run, divided: ``now`` = ``idle`` + every cause + ``rest``; times in us."""

    name: str
    count: int
    now: float
    idle: float | None
    """Of flows their time in an idle network; None of rounds, whose ``rest`` is all that stays."""
    causes: Mapping[str, float]
    rest: float
    """What stays with no cause at work: sharing links, and of rounds their work itself."""


def simulated(scenario: Scenario, setting: DeviceSetting, seed: int, intervals: int) -> Traffic:
    """Run a setting from time 0 on the packet engine and return what its traffic took."""
    backend = make_backend("native")
    tracker = RoundTracker(collectives_of(scenario.workloads, scenario.fabric))
    parts: list[IntArray] = []
    times: dict[str, list[int]] = {}
    try:
        backend.open(scenario, seed)
        backend.apply(setting)
        end_ps = 0
        for _ in range(intervals):
            report = backend.advance()
            f, end_ps = report.finished, int(report.end_ps)
            parts.append(np.array([f.src, f.dst, f.ordinal, f.bytes, f.start_ps, f.fct_ps,
                                   f.ideal_fct_ps]))  # fmt: skip
            for done in tracker.add(f, report.job_spans):
                name = f"{done.collective.kind} of workload {done.collective.workload}"
                times.setdefault(name, []).append(done.time_ps)
        if (live := live_flows_of(backend)) is not None:
            parts.append(np.array([live.src, live.dst, live.ordinal, live.bytes, live.start_ps,
                                   end_ps - live.start_ps, live.ideal_fct_ps]))  # fmt: skip
    finally:
        backend.close()
    flows = np.concatenate(parts, axis=1)
    flows = flows[:, flows[4] < (1 - GUARD) * end_ps]
    return Traffic(flows, {name: float(np.mean(found)) for name, found in times.items()})


def causes_of(scenario: Scenario, first: Traffic) -> dict[str, Callable[[Scenario], Scenario]]:
    """Return the causes that a network can have, and what takes each out of its description.

    Marks also have to go from the setting: :func:`without_marks`.
    """
    found: dict[str, Callable[[Scenario], Scenario]] = {MARKS: _no_class_marks}
    found[PAUSES if scenario.switch.pfc else DROPS] = _no_full_buffer
    if rows := spread(scenario, first.flows):
        found[COLLISIONS] = lambda s: _switch(s, ecmp_table=rows)
    return found


def without_marks(setting: DeviceSetting) -> DeviceSetting:
    """Return the setting with thresholds that no queue reaches, of every group."""
    never = {}
    for group, one in by_group(setting):
        highest = one.table.knobs["kmin"].legal[1]
        never[group] = one.replace(kmin=highest, kmax=highest)
    return never


def _no_class_marks(scenario: Scenario) -> Scenario:
    never = (NEVER_BYTES, NEVER_BYTES, 0.0)
    classes = tuple(
        one.model_copy(update={"ecn": never}) if one.ecn else one for one in scenario.classes
    )
    return scenario.model_copy(update={"classes": classes})


def _no_full_buffer(scenario: Scenario) -> Scenario:
    return _switch(scenario, buffer_bytes=NEVER_BYTES)


def _switch(scenario: Scenario, **changes: object) -> Scenario:
    return scenario.model_copy(update={"switch": scenario.switch.model_copy(update=changes)})


def spread(scenario: Scenario, flows: IntArray) -> tuple[NextHop, ...]:
    """Return the next hops of a scheduler that knows all flows; nothing where there is one path.

    Flows take their turn by their start; at each switch one goes to the port with the fewest bytes
    of flows that are under way by the first run's times, the lowest of equals. ConfigError for
    more than :data:`MOST_NEXT_HOPS`.
    """
    net = scenario.fabric
    paths = Paths(net)
    ports: dict[tuple[int, int], list[int]] = {}
    load: dict[tuple[int, int], int] = {}
    under_way: list[tuple[int, int, tuple[int, int]]] = []
    rows: list[NextHop] = []
    for column in np.lexsort((flows[2], flows[0], flows[4])):
        src, dst, ordinal, size, start, took, _ = (int(value) for value in flows[:, column])
        while under_way and under_way[0][0] <= start:
            _, gone, place = heapq.heappop(under_way)
            load[place] -= gone
        node = net.tor(src)
        while node != dst:
            if (node, dst) not in ports:
                ports[node, dst] = paths.ports(node, dst)
            choice = ports[node, dst]
            port = min(choice, key=lambda p: (load.get((node, p), 0), p))
            if len(choice) > 1:
                rows.append(NextHop(node, src, dst, ordinal, port))
                load[node, port] = load.get((node, port), 0) + size
                heapq.heappush(under_way, (start + took, size, (node, port)))
            node = net.peers[node][port]
        if len(rows) > MOST_NEXT_HOPS:
            raise ConfigError(
                f"the flows take more than {MOST_NEXT_HOPS} next hops; expected a shorter run or "
                "fewer flows"
            )
    return tuple(rows)


def divide(
    scenario: Scenario, setting: DeviceSetting, seed: int, intervals: int,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> list[Division]:  # fmt: skip
    """Return each class of flows and each kind of round of a run, divided among its causes.

    Runs 2 to the power of the number of causes; ``progress`` is told how many are done.
    """
    first = simulated(scenario, setting, seed, intervals)
    causes = causes_of(scenario, first)
    runs = {frozenset[str](): first}
    every = list(_subsets(causes))
    progress(1, len(every))
    for off in every[1:]:
        changed = scenario
        for cause in off:
            changed = causes[cause](changed)
        chosen = without_marks(setting) if MARKS in off else setting
        runs[frozenset(off)] = simulated(changed, chosen, seed, intervals)
        progress(len(runs), len(every))
    return [*_of_flows(runs, list(causes)), *_of_rounds(runs, list(causes))]


def _subsets(causes: Collection[str]) -> Iterator[tuple[str, ...]]:
    for many in range(len(causes) + 1):
        yield from combinations(causes, many)


def shares(values: Mapping[frozenset[str], float], causes: Sequence[str]) -> dict[str, float]:
    """Return each cause's part of ``values[nothing off] - values[all off]``: its Shapley value."""
    n = len(causes)
    found = {}
    for cause in causes:
        others = [one for one in causes if one != cause]
        weighed = [
            (values[frozenset(off)] - values[frozenset((*off, cause))])
            * math.factorial(len(off)) * math.factorial(n - len(off) - 1) / math.factorial(n)
            for off in _subsets(others)
        ]  # fmt: skip
        found[cause] = math.fsum(weighed)
    return found


def _of_flows(runs: Mapping[frozenset[str], Traffic], causes: Sequence[str]) -> Iterable[Division]:
    nothing, all_off = frozenset[str](), frozenset(causes)
    for one in CLASSES:
        chosen = {off: t.flows[:, one.holds(t.flows[3])] for off, t in runs.items()}
        if any(not flows.shape[1] for flows in chosen.values()):
            continue
        values = {off: float(np.mean(flows[5])) * 1e-6 for off, flows in chosen.items()}
        idle = float(np.mean(chosen[nothing][6])) * 1e-6
        yield Division(one.name, chosen[nothing].shape[1], values[nothing], idle,
                       shares(values, causes), values[all_off] - idle)  # fmt: skip


def _of_rounds(runs: Mapping[frozenset[str], Traffic], causes: Sequence[str]) -> Iterable[Division]:
    nothing, all_off = frozenset[str](), frozenset(causes)
    for name in runs[nothing].rounds:
        if all(name in t.rounds for t in runs.values()):
            values = {off: t.rounds[name] * 1e-6 for off, t in runs.items()}
            yield Division(name, 0, values[nothing], None, shares(values, causes), values[all_off])
