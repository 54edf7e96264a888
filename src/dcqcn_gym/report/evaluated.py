"""Many settings on many scenarios at once, without logs: for searches and fits.

What comes back is to the bit what :func:`~dcqcn_gym.report.judged.measured` makes of the log of the
same run: score and harms are those of :mod:`dcqcn_gym.core.verdict`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from dcqcn_gym.core.collectives import CollectiveRound, RoundTracker
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import FinishedFlows, IntervalReport
from dcqcn_gym.core.measured import figures_of
from dcqcn_gym.core.utility import judge
from dcqcn_gym.core.verdict import Measured
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.workloads import collectives_of
from dcqcn_gym.report.judged import measured
from dcqcn_gym.report.series import FlowTable, Series
from dcqcn_gym.runs.bookkeeping import left_over_line


def evaluate(
    settings: Sequence[DeviceSetting],
    scenarios: Sequence[Scenario],
    seeds: Sequence[int],
    intervals: int | None = None,
) -> list[list[list[Measured]]]:
    """Return what every setting does: one list per setting, in it one per scenario, by seed.

    A setting comes into force after the warm-up, which runs under the scenario's initial setting,
    as in a run of the tuner ``fixed``. ``intervals`` replaces the scenarios' own numbers.
    """
    return [
        [
            [_run(setting, one, seed, intervals or one.intervals) for seed in seeds]
            for one in scenarios
        ]
        for setting in settings
    ]


def _run(setting: DeviceSetting, scenario: Scenario, seed: int, intervals: int) -> Measured:
    tracker = RoundTracker(collectives_of(scenario.workloads, scenario.fabric))
    with closing(NativeBackend()) as backend:
        backend.open(scenario, seed)
        backend.apply(scenario.initial_setting())
        whole, rest = divmod(scenario.warmup_ps, scenario.monitor_interval_ps)
        for span in [rest] * bool(rest) + [scenario.monitor_interval_ps] * whole:
            report = backend.advance(span)
            tracker.add(report.finished, report.job_spans)
        backend.apply(setting)
        records: list[dict[str, Any]] = []
        finished: list[FinishedFlows] = []
        while len(records) < intervals and not backend.done:
            report = backend.advance()
            finished.append(report.finished)
            records.append(_record(report, scenario, tracker.add(report.finished, report.job_spans)))
        live = backend.live_flows()
        end = left_over_line((live, tracker.running(live)))
    return measured(_series(records, finished, end))


def _record(
    report: IntervalReport, scenario: Scenario, rounds: Sequence[CollectiveRound]
) -> dict[str, Any]:
    """Return what :func:`measured` reads of an interval's line."""
    figures, judged = figures_of(report), judge(report, scenario)
    return {
        "start_ps": int(report.start_ps),
        "end_ps": int(report.end_ps),
        "utility": float(judged.utility),
        "idle": judged.idle,
        "delivered_bytes": int(report.delivered_bytes),
        "rtt_mean_ps": figures.rtt_mean_ps,
        "device_pause_ps": figures.device_pause_ps,
        "active_flows": int(report.active_flows),
        "rounds": [r.as_dict() for r in rounds],
    }


def _series(
    records: Sequence[Mapping[str, Any]],
    finished: Sequence[FinishedFlows],
    end: Mapping[str, Any],
) -> Series:
    def joined(name: str) -> Any:
        return np.concatenate([getattr(flows, name) for flows in finished])

    return Series(
        header={},
        end=end,
        records=records,
        finished=FlowTable(joined("bytes"), joined("start_ps"), joined("ideal_fct_ps")),
        fct_ps=joined("fct_ps"),
        flow_interval=np.repeat(np.arange(len(records)), [f.src.size for f in finished]),
        left=FlowTable.of(end["unfinished"]),
    )
