"""What the bridge to ns-3 adds to a step: wall time at our end less the time in the simulator.

A step is ``apply`` of another setting and ``advance`` by a monitor interval with its report. What
the simulation process spends in the simulator itself it reports with every answer; the rest is
messages, copies, checks and waiting for the other process to wake up.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.knobs import Setting, expert_setting
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.extras.ns3.backend import Ns3Backend

__all__ = ["BridgeCost", "measure"]

WARM_UP = 3


@dataclass(frozen=True)
class BridgeCost:
    """Milliseconds per step of one scenario; ``report_kb`` is the median size of a report."""

    scenario: str
    hosts: int
    steps: int
    simulator_ms: float
    report_kb: float
    bridge_ms: Sequence[float]

    @property
    def median_ms(self) -> float:
        """Half of the steps cost at most so much."""
        return statistics.median(self.bridge_ms)

    @property
    def p95_ms(self) -> float:
        """95 % of the steps cost at most so much."""
        return sorted(self.bridge_ms)[-(-len(self.bridge_ms) * 95 // 100) - 1]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "median_ms": self.median_ms, "p95_ms": self.p95_ms}


def measure(
    name: str = "fb-hadoop",
    steps: int = 50,
    *,
    interval_us: float | None = None,
    backend: Ns3Backend | None = None,
    progress: Callable[[int], object] | None = None,
) -> BridgeCost:
    """Step a scenario (at its interval, or another one) and time the bridge.

    The first steps are not counted. Raises ConfigError for fewer than one step.
    """
    if steps < 1:
        raise ConfigError(f"steps = {steps}: expected at least 1")
    scenario = load_scenario(name)
    if interval_us is not None:
        scenario = scenario.model_copy(update={"monitor_interval_us": interval_us})
    settings = (scenario.initial_setting(), expert_setting(scenario.line_rate_bps))
    found = []
    with closing(Ns3Backend() if backend is None else backend) as simulator:
        simulator.open(scenario, 1)
        for step in range(WARM_UP + steps):
            found.append(_step(simulator, settings[step % 2]))
            if progress is not None:
                progress(step + 1)
    bridge_ms, simulator_ms, report_kb = zip(*found[WARM_UP:], strict=True)
    return BridgeCost(
        scenario.name, scenario.n_hosts, steps, statistics.median(simulator_ms),
        statistics.median(report_kb), bridge_ms,
    )  # fmt: skip


def _step(simulator: Ns3Backend, setting: Setting) -> tuple[float, float, float]:
    """Return milliseconds of the bridge and in the simulator, and the report's kilobytes."""
    before, began = simulator.busy_s, time.perf_counter()
    simulator.apply(setting)
    report = simulator.advance()
    took, busy = time.perf_counter() - began, simulator.busy_s - before
    return (took - busy) * 1e3, busy * 1e3, _size(report) / 1e3


def _size(report: Any) -> int:
    """Return the bytes of a report's arrays."""
    values = [*vars(report).values(), *vars(report.finished).values()]
    return count(int(getattr(value, "nbytes", 0)) for value in values)
