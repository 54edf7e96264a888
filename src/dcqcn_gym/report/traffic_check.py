"""Can the traffic of a scenario answer? Asked before anything runs, and again by the answer.

What stands in the way whatever the runs show is a :class:`~dcqcn_gym.core.traffic_check.Problem`;
:func:`remarks` says it in lines, with lengths, before `tune`, `compare`, `simulate` and `advise`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dcqcn_gym.core.traffic_check import Census, Length, Problem, sampled_problem
from dcqcn_gym.envs.scenario.facts import facts_of
from dcqcn_gym.envs.scenario.job import JobLoad
from dcqcn_gym.envs.scenario.job_graph import NodeKind
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.workloads import Flows


class Asked(NamedTuple):
    """A session: intervals of the search, then ``parts`` of held-out traffic, 0 for none.

    ``sharing`` seeds of the search have them in equal shares.
    """

    intervals: int
    parts: int = 0
    part_intervals: int = 0
    sharing: int = 1


def census_of(scenario: Scenario) -> Census | None:
    """Return what is in the flows of a scenario; None unless all its traffic is lists of flows."""
    lists = _lists(scenario)
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


def _lists(scenario: Scenario) -> list[Flows]:
    """Return the lists of flows; none where other traffic is beside them."""
    lists = [w for w in scenario.workloads if isinstance(w, Flows)]
    return lists if len(lists) == len(scenario.workloads) else []


def problem_of(scenario: Scenario, asked: Asked | None = None) -> Problem | None:
    """Return why runs of this scenario cannot answer, whatever they show; None: they may.

    With ``asked``, a job whose iteration is longer than what is judged is such a reason.
    """
    return _thresholds(scenario) or _captured(scenario) or _jobs(scenario, asked)


def _thresholds(scenario: Scenario) -> Problem | None:
    """Return that a threshold in force lies above the buffer: it was given in bytes."""
    given = scenario.initial if isinstance(scenario.initial, dict) else {}
    shared = facts_of(scenario).shared_bytes / 1000
    kmin = given.get("kmin", 0)
    if kmin <= shared:
        return None
    return Problem(
        f"kmin = {kmin:g} KB in [initial] is above the {shared:.0f} KB that switches share, so "
        "nothing is ever marked: the setting in service cannot be that",
        f"thresholds are in KB: if the switch says {kmin:g} bytes, write kmin = {kmin / 1000:g}",
    )


def _captured(scenario: Scenario) -> Problem | None:
    lists = _lists(scenario)
    census = census_of(scenario)
    if census is None:
        return None
    rate = max(one.sampled for one in lists)
    return sampled_problem(rate) or census.coverage(scenario.fabric.n_hosts).problem


def _jobs(scenario: Scenario, asked: Asked | None) -> Problem | None:
    jobs = [w for w in scenario.workloads if isinstance(w, JobLoad)]
    if not jobs or len(jobs) < len(scenario.workloads):
        return None
    if not any(np.any(job.graph.kind == NodeKind.TRANSFER) for job in jobs):
        return Problem(
            "the job sends nothing over the network: its ranks are inside one server, so no "
            "setting can matter",
            "a job of more ranks than a server has GPUs",
        )
    if asked is None:
        return None
    ms = min(least_iteration_ms(scenario, job) for job in jobs)
    us = scenario.monitor_interval_us
    judged = asked.part_intervals if asked.parts else asked.intervals
    if ms <= judged * us * 1e-3:
        return None
    need = math.ceil(1.5 * ms * 1e3 / us)
    options = f"--intervals {need}" + f" --eval-intervals {need}" * bool(asked.parts)
    return Problem(
        f"an iteration of the job takes at least {ms:.4g} ms and {judged} intervals have "
        f"{judged * us * 1e-3:.4g}: none would end",
        f"{options}, or a job of fewer layers or a smaller batch (of a plan: scale = "
        f"{0.5 * judged * us * 1e-3 / ms:.1g})",
    )


def least_iteration_ms(scenario: Scenario, job: JobLoad) -> float:
    """Return what a rank computes, or sends at the rate of its NIC if that is more: the longest."""
    graph = job.graph
    sends = np.where(graph.kind == NodeKind.TRANSFER, graph.sizes, 0)
    seconds = [
        float(np.bincount(graph.src, of * graph.executions * unit).max(initial=0.0))
        for of, unit in ((graph.delay_ps, 1e-12), (sends, 8 / scenario.line_rate_bps))
    ]
    return 1e3 * max(seconds)


def length_of(scenario: Scenario, asked: Asked) -> Length | None:
    """Return what a session needs of a scenario's trace; None unless its traffic is one."""
    lists = _lists(scenario)
    if not lists:
        return None
    last_ns = max(flow.start_ns for one in lists for flow in one.flows)
    return Length(
        last_ns * 1e-6, scenario.warmup_us * 1e-3, scenario.monitor_interval_us * 1e-3, *asked
    )


def fitted(scenario: Scenario, asked: Asked) -> tuple[Asked, str]:
    """Return the session that fits what a trace has, and words on what changed."""
    needs = length_of(scenario, asked) if asked.parts else None
    fits = None if needs is None or needs.enough else needs.fitting()
    if needs is None or fits is None:
        return asked, ""
    found = Asked(fits.intervals, fits.parts, fits.part_intervals, asked.sharing)
    return found, (
        f"the trace has {needs.there_ms:.4g} ms, and {asked.intervals} intervals with "
        f"{asked.parts} parts of {asked.part_intervals} need {needs.needed_ms:.4g}: chose "
        f"{fits.options}"
    )


def remarks(scenario: Scenario, asked: Asked | None = None) -> list[str]:
    """Return what is to be said of a scenario's traffic before it runs; nothing if all is well."""
    found = []
    if problem := problem_of(scenario, asked):
        found.append(problem.text)
    census = None if asked is None else census_of(scenario)
    if asked is None or census is None:
        return found
    needs = length_of(scenario, asked)
    if needs is not None and not needs.enough and asked.parts:
        found.append(needs.text)
    elif needs is not None and census.busiest_text and needs.there_ms > 2 * needs.needed_ms:
        found.append(
            f"the run looks at {needs.needed_ms:.6g} of {needs.there_ms:.6g} ms of the trace; "
            f"{census.busiest_text}"
        )
    return found


def recorded_scenario(header: Mapping[str, Any]) -> Scenario | None:
    """Return the scenario of a log; None if it is unreadable."""
    try:
        return Scenario.model_validate(header.get("scenario"))
    except ValueError:
        return None
