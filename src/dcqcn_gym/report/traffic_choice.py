"""Which of a scenario's traffic a session runs, and whether that can answer at all.

A :class:`~dcqcn_gym.core.traffic_check.Problem` rules an answer out whatever the runs show.
:func:`choose` takes the busiest stretch of a trace, lengths that fit a short one and a job's scale,
and says so; `tune`, `compare` and `simulate` run what it returns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from dcqcn_gym.core.sums import total
from dcqcn_gym.core.traffic_check import (
    Census,
    Length,
    Problem,
    busiest_begin,
    sampled_problem,
    window_of,
)
from dcqcn_gym.envs.scenario.parts import in_window
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.tables import UNLIMITED, Flow
from dcqcn_gym.envs.scenario.workloads import Flows

LEAST_SCALE = 0.005
"""No job is scaled further by itself: its messages would be a few packets."""
MOST_OFFERED, FEWEST_OFFERED = 2.0, 100
"""No trace of so many flows offers so many times what links carry: bursts are below it."""
LONGER = 1.1
"""A trace is longer than a session from so many times its length on."""


class SessionLength(NamedTuple):
    """A session: intervals of the search, then ``parts`` of held-out traffic, 0 for none.

    ``sharing`` seeds of the search have them in equal shares.
    """

    intervals: int
    parts: int = 0
    part_intervals: int = 0
    sharing: int = 1


def census_of(scenario: Scenario) -> Census | None:
    """Return what is in the flows of a scenario; None unless all its traffic is lists of flows."""
    lists = scenario.only(Flows)
    if not lists:
        return None
    found = Census()
    for one in lists:
        src, dst, size, start = (
            np.array([x if isinstance(x, int | float) else 0 for x in column], dtype=np.int64)
            for column in zip(*one.flows, strict=True)
        )
        found.add(src, dst, size, start)
    return found


def _flows(scenario: Scenario) -> list[Flow]:
    """Return every flow of a trace; none where other traffic is beside its lists."""
    return [flow for one in scenario.only(Flows) for flow in one.flows]


def _at_most(flows: Iterable[Flow], most: float) -> list[float]:
    """Return the bytes of each flow up to ``most``, which is what one without an end has."""
    return [most if f.bytes == UNLIMITED else min(f.bytes, most) for f in flows]


def problem_of(scenario: Scenario, asked: SessionLength | None = None) -> Problem | None:
    """Return why runs of this scenario cannot answer, whatever they show; None: they may.

    With ``asked``, a job whose iteration is longer than what is judged is such a reason.
    """
    return (
        _thresholds(scenario)
        or _captured(scenario)
        or _offered(scenario, asked)
        or _jobs(scenario, asked)
    )


def _thresholds(scenario: Scenario) -> Problem | None:
    """Return that a threshold in force lies above the buffer: it was given in bytes."""
    given = scenario.initial if isinstance(scenario.initial, dict) else {}
    shared = scenario.shared_bytes / 1000
    kmin = given.get("kmin", 0)
    if kmin <= shared:
        return None
    return Problem(
        f"kmin = {kmin:g} KB in [initial] is above the {shared:.0f} KB that switches share, so "
        "nothing is ever marked: the setting in service cannot be that",
        f"thresholds are in KB: if the switch says {kmin:g} bytes, write kmin = {kmin / 1000:g}",
    )


def _captured(scenario: Scenario) -> Problem | None:
    census = census_of(scenario)
    if census is None:
        return None
    rate = max(one.sampled for one in scenario.only(Flows))
    return sampled_problem(rate) or census.coverage(scenario.fabric.n_hosts).problem


def _offered(scenario: Scenario, asked: SessionLength | None) -> Problem | None:
    """Return that a trace sends more than the links of its senders carry: it is of another fabric.

    Only of one that is as long as the session: in a short one flows may wait for each other.
    """
    needs = None if asked is None else length_of(scenario, asked)
    if needs is None or not needs.enough or not asked or not asked.parts:
        return None
    flows = _flows(scenario)
    seconds = 1e-9 * max(flow.start_ns for flow in flows)
    most = scenario.line_rate_bps * seconds / 8
    times = total(_at_most(flows, most)) / (most * len({flow.src for flow in flows}))
    if len(flows) < FEWEST_OFFERED or times < MOST_OFFERED:
        return None
    return Problem(
        f"the flows offer {times:.2g} times what the links of their senders carry "
        f"({scenario.line_rate_bps * 1e-9:g} Gb/s each), so they were not sent on this fabric",
        "give the fabric on which they were captured; if it is this one, look at the unit of "
        "time (`--columns start=NAME:us`)",
    )


def _jobs(scenario: Scenario, asked: SessionLength | None) -> Problem | None:
    iterations_ms = _iterations_ms(scenario)
    if not iterations_ms:
        return None
    if not any(job.largest_flow(scenario.fabric)[0] for job in scenario.workloads):
        return Problem(
            "the job sends nothing over the network: its ranks are inside one server, so no "
            "setting can matter",
            "a job of more ranks than a server has GPUs",
        )
    if asked is None:
        return None
    ms = min(iterations_ms)
    us = scenario.monitor_interval_us
    judged_ms = _judged_ms(scenario, asked)
    if ms <= judged_ms:
        return None
    need = math.ceil(1.5 * ms * 1e3 / us)
    options = f"--intervals {need}" + f" --eval-intervals {need}" * bool(asked.parts)
    return Problem(
        f"an iteration of the job takes at least {ms:.4g} ms and {judged_ms * 1e3 / us:.0f} "
        f"intervals have {judged_ms:.4g}: none would end",
        f"{options}, or a job of fewer layers or a smaller batch (of a plan: scale = "
        f"{_scale_for(judged_ms, ms):.1g})",
    )


def _judged_ms(scenario: Scenario, asked: SessionLength) -> float:
    judged = asked.part_intervals if asked.parts else asked.intervals
    return judged * scenario.monitor_interval_us * 1e-3


def _scale_for(judged_ms: float, ms: float) -> float:
    """Return by how much to scale a job of which an iteration takes at least so long.

    Half of what is judged, in one digit: the rest is for what the network adds.
    """
    return float(f"{0.5 * judged_ms / ms:.1g}")


def _scaled(scenario: Scenario, asked: SessionLength) -> tuple[float | None, str]:
    """Return the scale for jobs alone that are longer than what is judged, and words on it.

    None where they fit, where a plan has a scale of its own, and where it would be too small.
    """
    if not all(workload.takes_scale for workload in scenario.workloads):
        return None, ""
    ms = max(_iterations_ms(scenario))
    judged_ms = _judged_ms(scenario, asked)
    scale = _scale_for(judged_ms, ms)
    if ms <= judged_ms or scale < LEAST_SCALE:
        return None, ""
    return scale, (
        f"chose scale = {scale:g} for the job: an iteration takes at least {ms:.4g} ms and "
        f"{judged_ms:.4g} are judged; bursts are shorter than the job's, so with time for it set "
        "scale = 1 in the plan and give more intervals"
    )


def _with_scale(scenario: Scenario, scale: float) -> Scenario:
    """Return a scenario whose jobs' bytes and times are this much."""
    found = tuple(workload.scaled(scale) for workload in scenario.workloads)
    return scenario.model_copy(update={"workloads": found})


def _iterations_ms(scenario: Scenario) -> list[float]:
    """Return what an iteration of each job takes at least; none where other traffic is beside."""
    rate = scenario.line_rate_bps
    found = [workload.least_iteration_ms(rate) for workload in scenario.workloads]
    return [] if None in found else [ms for ms in found if ms is not None]


def length_of(scenario: Scenario, asked: SessionLength) -> Length | None:
    """Return what a session needs of a scenario's trace; None unless its traffic is one."""
    lists = scenario.only(Flows)
    if not lists:
        return None
    last_ms = 1e-6 * max(flow.start_ns for flow in _flows(scenario))
    if lists[0].stretch_ms is not None:
        last_ms = lists[0].stretch_ms[2]
    warmup_ms = scenario.warmup_us * 1e-3 if asked.parts else 0.0
    interval_ms = scenario.monitor_interval_us * 1e-3
    return Length(last_ms, warmup_ms, interval_ms, *asked)


def fitted(scenario: Scenario, asked: SessionLength) -> tuple[SessionLength, str]:
    """Return the session that fits what a trace has, and words on what changed."""
    needs = length_of(scenario, asked) if asked.parts else None
    fits = None if needs is None or needs.enough else needs.fitting()
    if needs is None or fits is None:
        return asked, ""
    found = SessionLength(fits.intervals, fits.parts, fits.part_intervals, asked.sharing)
    return found, (
        f"the trace has {needs.there_ms:.4g} ms, and {asked.intervals} intervals with "
        f"{asked.parts} parts of {asked.part_intervals} need {needs.needed_ms:.4g}: chose "
        f"{fits.options}"
    )


def remarks(scenario: Scenario, asked: SessionLength | None = None) -> list[str]:
    """Return lines on what rules an answer out; none if nothing does."""
    found = [problem.text] if (problem := problem_of(scenario, asked)) else []
    needs = length_of(scenario, asked) if asked and asked.parts else None
    if needs is not None and not needs.enough:
        found.append(needs.text)
    return found


class ChosenTraffic(NamedTuple):
    """What is run: the scenario with how much of which traffic, and the lines that say it.

    ``window_ms`` is a stretch of the trace, ``scale`` that of jobs, None: as they were given.
    """

    scenario: Scenario
    asked: SessionLength
    window_ms: tuple[float, float] | None
    scale: float | None
    said: tuple[str, ...]


def as_chosen(
    scenario: Scenario, window_ms: tuple[float, float] | None, scale: float | None
) -> Scenario:
    """Return a scenario with a stretch of its trace alone, and with jobs of this scale."""
    found = scenario if window_ms is None else in_window(scenario, *window_ms)
    return found if scale is None else _with_scale(found, scale)


def choose(
    scenario: Scenario,
    asked: SessionLength,
    *,
    fit: bool = False,
    window_ms: tuple[float, float] | None = None,
) -> ChosenTraffic:
    """Choose what a session runs of a scenario: nothing that the user gave is changed.

    With ``fit`` lengths follow a trace that is too short. Of one that is longer than the session
    the stretch is taken in which most bytes start, unless ``window_ms`` names another, or its parts
    are dealt (``blocks_us``). Raises ConfigError for a window without flows.
    """
    said = []
    if fit:
        asked, words = fitted(as_chosen(scenario, window_ms, None), asked)
        said.append(words)
    if window_ms is None:
        window_ms, words = _busiest(scenario, asked)
        said.append(words)
    scale, words = _scaled(scenario, asked)
    chosen = as_chosen(scenario, window_ms, scale)
    said += [words, *remarks(chosen, asked)]
    return ChosenTraffic(chosen, asked, window_ms, scale, tuple(filter(None, said)))


def chosen_for(
    scenario: Scenario,
    intervals: int | None,
    seeds: int | None,
    judged: int | None,
    window: str | None = None,
) -> ChosenTraffic:
    """Return what `tune` runs; None is a length that was not given.

    Usual are the scenario's budget, 5 held-out seeds, and for each a sixth of the budget, of 5 to
    20 intervals.
    """
    n = scenario.intervals if intervals is None else intervals
    some = min(n, max(5, min(20, n // 6)))
    return choose(
        scenario,
        SessionLength(n, 5 if seeds is None else seeds, judged or some),
        fit=intervals is None and seeds is None and judged is None,
        window_ms=window_of(window),
    )


def _busiest(scenario: Scenario, asked: SessionLength) -> tuple[tuple[float, float] | None, str]:
    """Return the busiest stretch of a trace that is longer than the session, and words on it."""
    needs = length_of(scenario, asked)
    if needs is None or any(one.blocks_us for one in scenario.only(Flows)):
        return None, ""
    if needs.there_ms <= LONGER * needs.needed_ms:
        return None, ""
    # parts need a start behind them to be as many: one interval more
    length_ms = needs.needed_ms + bool(asked.parts) * needs.interval_ms
    flows = _flows(scenario)
    sizes = np.array(_at_most(flows, scenario.line_rate_bps * length_ms * 1e-3 / 8))
    starts = np.array([f.start_ns for f in flows])
    begin_ms = 1e-6 * busiest_begin(starts, sizes, 1e6 * length_ms, 1e6 * needs.interval_ms)
    end_ms = begin_ms + length_ms
    return (begin_ms, end_ms), (
        f"judged: {begin_ms:.6g} to {end_ms:.6g} ms of the trace, the busiest of "
        f"{needs.there_ms:.6g} ms; --window FROM:TO (in s) takes another"
    )
