"""The main path: ask the tuner, step the network, tell the tuner, record. Everything starts here.

A resumed run walks the same path from the start: fresh tuner, fresh network, same seed. Recorded
intervals are repeated and compared byte by byte, then the log goes on, so its bytes are those of
a run that was never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dcqcn_gym.core.measured import Interval
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.runs.log import Line, LogWriter, Run
from dcqcn_gym.runs.log_line import interval_line
from dcqcn_gym.runs.run_totals import ProposalWindow, RunSummary, left_over_line
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.base import Proposal
from dcqcn_gym.tuners.guard import GuardedTuner

Watch: TypeAlias = Callable[[Line, Line, bool], None]
"""Called after every interval: its log line, the tuner's state, True if it was a repetition."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one run on this machine; never part of a log.

    ``cpu_s`` is this process's, ``tuner_cpu_s`` the tuner's, in a plug-in's own process too,
    ``engine_s`` the engine's share of ``cpu_s``; 0 where the backend has no such engine.
    """

    wall_s: float
    cpu_s: float
    tuner_cpu_s: float
    intervals: int
    engine_s: float = 0.0


def walk(
    tuner: GuardedTuner,
    env: DcqcnEnv,
    keep: Callable[[Proposal, Interval], None],
    after: Callable[[], None] | None = None,
) -> None:
    """Let the tuner act for the environment's budget of intervals.

    ``keep`` gets each interval and what was in force in it, before the tuner does: a tuner that
    fails, or never returns, loses no interval of the log. ``after`` is called after the tuner.
    """
    setting: Proposal = env.initial_setting
    window = ProposalWindow(env.scenario.cadence)
    for _ in range(env.intervals):
        if window.ready:
            setting = tuner.ask() or setting  # no proposal: what is in force stays
            window.open()
        interval = env.run_interval(setting, tuning=tuner.tuning)
        keep(setting, interval)
        outcome = window.add(interval)
        if outcome is not None:
            tuner.tell(outcome)
        if after is not None:
            after()
        if env.done:  # a finite workload is delivered: further intervals would be empty
            break


def run(
    spec: RunSpec, path: Path, *, replay: Run | None = None, watch: Watch | None = None
) -> Timing:
    """Carry out a run and write its event log to ``path``; ``replay`` continues a log.

    The log appears once the warm-up is over and the tuner has started. An error later leaves the
    log with every finished interval.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    summary = RunSummary()
    with spec.started() as (tuner, env), LogWriter(path, spec.header(), replay) as log:
        last: tuple[Line, bool] = {}, False

        def keep(_: Proposal, interval: Interval) -> None:
            nonlocal last
            last = interval_line(interval), log.replaying
            log.append(last[0])
            summary.add(interval)

        def after() -> None:
            # after the tuner, so that its state is that of this interval
            if watch is not None:
                watch(last[0], tuner.state(), last[1])

        walk(tuner, env, keep, after)
        end = summary.end(tuner.recommend())
        said = tuner.decisions()
        decided = {"decisions": said} if said else {}
        log.append({"end": {**end, **decided, **left_over_line(env.left_over())}})
    return Timing(
        time.perf_counter() - wall, time.process_time() - cpu, tuner.cpu_s, summary.intervals,
        getattr(env.backend, "engine_s", 0.0),
    )  # fmt: skip
