"""How many flows a scenario holds at once: refused before any of them is drawn.

A flow is held from its start until it ends. Of an open loop that is at least what starts in one
monitor interval, and what its hosts cannot send until the run is over; of a round all of it.
"""

from __future__ import annotations

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.sums import total
from dcqcn_gym.envs.scenario.network import Network
from dcqcn_gym.envs.scenario.task import Task

__all__ = ["MAX_FLOWS", "check_held"]

MAX_FLOWS = 10_000_000
_FLOW_BYTES = 400
"""Of one flow in the engine and in the reports."""


def check_held(task: Task, network: Network) -> None:
    """Raise ConfigError for traffic of too many flows at once, with the key that makes most."""
    net = network.fabric
    run_us = task.warmup_us + task.intervals * task.monitor_interval_us
    held = [w.held(net, task.monitor_interval_us, run_us) for w in network.workloads]
    if total(held) <= MAX_FLOWS:
        return
    most = max(range(len(held)), key=held.__getitem__)
    flows = total(held)
    raise ConfigError(
        f"workloads[{most}]: {network.workloads[most].amount}: {flows:.3g} flows are there at once "
        f"and need about {flows * _FLOW_BYTES / 1e9:.3g} GB of memory; expected at most "
        f"{MAX_FLOWS}"
    )
