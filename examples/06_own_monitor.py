# %% [markdown]
"""
# A flow-size monitor of your own

Exact counts over a window, fed by the flow log; it says what the engine's `exact` says. From the
command line the same file is a monitor too:
`dcqcn-gym tune --scenario mini-fb-hadoop --monitor examples/06_own_monitor.py:Window --out DIR`.
Run it: `python examples/06_own_monitor.py`, or open it as a notebook in its own folder (jupytext's
percent format).
"""

# %%
from __future__ import annotations

from pathlib import Path

import numpy as np
from pydantic import Field

from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.monitors import (
    FlowLog,
    FlowMonitor,
    MonitorContext,
    MonitorSettings,
    summarise,
)
from dcqcn_gym.envs.scenario.monitor import monitor_of
from dcqcn_gym.envs.scenario.scenario import load_scenario

REPORT_BYTES = 96
"""What a ToR sends to the controller per interval."""


class Window(FlowMonitor):
    """Adds up the bytes of every flow; a flow that stays is a potential elephant."""

    name = "window"
    summary = "exact counts of every flow until it was idle for delta intervals"

    class Settings(MonitorSettings):
        """Options in ``[monitor.options]``."""

        delta: int = Field(3, ge=1, description="active intervals of a potential elephant")

    def __init__(self, context: MonitorContext, settings: Settings) -> None:
        super().__init__(context, settings)
        self._delta = settings.delta
        self._flows: dict[tuple[int, int], tuple[int, int, int]] = {}  # bytes, active, last seen
        self._tors: set[int] = set()
        self._now = 0
        self._shares = np.zeros(0)

    def observe(self, log: FlowLog) -> FlowSizeDistribution:
        """Judge every flow of the interval by its bytes and intervals so far."""
        so_far, active = np.zeros((2, len(log.key)), dtype=np.int64)
        self._tors.update(log.tor.tolist())
        names = zip(log.tor.tolist(), log.key.tolist(), strict=True)
        for i, name in enumerate(names):
            before = self._flows.get(name, (0, 0, 0))
            so_far[i], active[i] = before[0] + log.payload_bytes[i], before[1] + 1
            self._flows[name] = (int(so_far[i]), int(active[i]), self._now)
        elephant = so_far >= self.context.tau_bytes
        potential = ~elephant & (active >= self._delta)
        weights = np.minimum(so_far / self.context.tau_bytes, 1.0)
        self._shares = np.where(elephant, 1.0, np.where(potential, weights, 0.0))
        self._forget()
        wire = REPORT_BYTES * len(self._tors)
        return summarise(so_far, self._shares, potential=potential, monitor_bytes=wire)

    def elephant_shares(self, log: FlowLog) -> np.ndarray:
        """Return what each flow of the last interval counted as."""
        return self._shares

    def _forget(self) -> None:
        self._now += 1
        oldest = self._now - self._delta
        self._flows = {name: flow for name, flow in self._flows.items() if flow[2] >= oldest}


# %% [markdown]
# Watch four milliseconds of traffic with it and with the engine's exact counters. A monitor is
# named by its file, which a notebook does not know of itself.

# %%
if __name__ == "__main__":
    this = Path(globals().get("__file__", "06_own_monitor.py")).resolve()
    scenario = load_scenario("mini-fb-hadoop")
    for kind in (f"{this}:Window", "exact"):
        backend = make_backend("native")
        watched = scenario.model_copy(update={"monitor": monitor_of({"kind": kind})})
        backend.open(watched, seed=1)
        backend.apply(scenario.initial_setting())
        seen = [backend.advance().fsd for _ in range(4)]
        backend.close()
        flows = [f"{s.elephants:.0f} + {s.potential:.0f} + {s.mice:.0f}" for s in seen]
        print(f"{kind.rpartition(':')[2]}: elephants + potential ones + mice: {', '.join(flows)}")
