"""The main path: ask the tuner, step the network, tell the tuner, record. Everything starts here.

A resumed run walks the same path from the start: fresh tuner, fresh network, same seed. Recorded
intervals are repeated and compared byte by byte, then the log goes on, so its bytes are those of
a run that was never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.runs.bookkeeping import Summary, Window
from dcqcn_gym.runs.log import WIRE_FIELDS, Line, LogWriter, Run, interval_line
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners.base import Proposal

__all__ = ["RunSpec", "Timing", "Watch", "run"]

Watch: TypeAlias = Callable[[Line, dict[str, Any], bool], None]
"""Called after every interval: its log line, the tuner's state, True if it was a repetition."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one run on this machine; never part of a log."""

    wall_s: float
    cpu_s: float
    tuner_cpu_s: float
    intervals: int


def run(
    spec: RunSpec, path: Path, *, replay: Run | None = None, watch: Watch | None = None
) -> Timing:
    """Carry out a run and write its event log to ``path``; ``replay`` continues a log.

    The log appears once the warm-up is over and the tuner has started. An error later leaves the
    log with every finished interval.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    tuner = spec.make_tuner()
    summary = Summary()
    with closing(spec.make_env()) as env:
        observation, _ = env.reset(seed=spec.seed)
        setting: Proposal = env.initial_setting
        tuner.start(replace(spec.context(env), observation=observation), env.backend.offers)
        window = Window(spec.scenario.cadence)
        with LogWriter(path, spec.header(), replay) as log:
            for i in range(spec.intervals):
                if window.ready:
                    setting = _canonical(_or(tuner.ask(), setting))
                    window.open(setting)
                observation, reward, terminated, _, info = env.step_setting(
                    setting, tuning=tuner.tuning
                )
                line = interval_line(
                    i, setting, reward, info["terms"], info["report"], idle=info["idle"],
                    wire={name: info[name] for name in WIRE_FIELDS}, rounds=info["rounds"],
                )  # fmt: skip
                repeated = log.replaying
                log.append(line)
                summary.add(line)
                outcome = window.add(reward, observation, info)
                if outcome is not None:
                    tuner.tell(outcome)
                if watch is not None:
                    watch(line, tuner.state(), repeated)
                if terminated:
                    break
            log.append({"end": summary.end(tuner.recommend())})
    return Timing(
        time.perf_counter() - wall, time.process_time() - cpu, tuner.cpu_s, summary.intervals
    )


def _or(proposal: Proposal | None, setting: Proposal) -> Proposal:
    return setting if proposal is None else proposal


def _canonical(setting: Proposal) -> Proposal:
    """Return the setting as a log can hold it, so that a replay applies the same bits."""
    if isinstance(setting, Setting):
        return Setting.from_nvidia(setting.to_nvidia())
    return {group: Setting.from_nvidia(value.to_nvidia()) for group, value in setting.items()}
