"""What evaluation in one call costs beside the engine: CPU seconds of the calling thread.

The engine runs in threads of its own, so that what the caller's thread spends is everything else:
set-up, copies of figures, scores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from dcqcn_gym.core.knobs import default_setting, expert_setting
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.batch_evaluation import evaluate


@dataclass(frozen=True)
class BatchSpeed:
    """One job: intervals that were run, CPU seconds in all and those beside the engine."""

    job: str
    intervals: int
    cpu_s: float
    outside_s: float

    @property
    def per_cpu_s(self) -> float:
        """Intervals per CPU second."""
        return self.intervals / self.cpu_s

    @property
    def outside_share(self) -> float:
        """Share of the CPU time that is spent outside the engine, in 0..1."""
        return self.outside_s / self.cpu_s


def evaluation_speed(scenario: str, seeds: int = 4, intervals: int = 100) -> BatchSpeed:
    """Measure `evaluate` of two settings."""
    loaded = load_scenario(scenario)
    settings = [make(loaded.line_rate_bps) for make in (default_setting, expert_setting)]
    runs = 2 * seeds
    return _measured(
        f"evaluate {scenario}",
        runs * intervals,
        lambda: evaluate(settings, [loaded], range(1, seeds + 1), intervals),
    )


def _measured(job: str, intervals: int, work: Callable[[], object]) -> BatchSpeed:
    work()
    all_cpu, own = time.process_time(), time.thread_time()
    work()
    return BatchSpeed(job, intervals, time.process_time() - all_cpu, time.thread_time() - own)
