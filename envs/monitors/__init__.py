"""Flow-size monitors written in Python, fed by the flow log.

The engine's own kinds are in ``engine/model/monitors``. One of your own is a class in one file:
``path.py:Class``, or an entry point of the group ``dcqcn_gym.monitors``. The guide is
docs/measured/monitoring.md.
"""

from __future__ import annotations

from dcqcn_gym.core.add_ons import ADD_ONS
from dcqcn_gym.core.registry import Registry
from dcqcn_gym.envs.monitors.base import (
    FlowLog,
    FlowMonitor,
    MonitorContext,
    MonitorSettings,
    summarise,
)

__all__ = [
    "BUILTIN",
    "MONITORS",
    "FlowLog",
    "FlowMonitor",
    "MonitorContext",
    "MonitorSettings",
    "summarise",
]

BUILTIN = {
    **ADD_ONS["dcqcn_gym.monitors"],
}
"""Name to ``module:Class`` of those that come with the package: one line each."""

MONITORS: Registry[FlowMonitor] = Registry(
    "monitor",
    "dcqcn_gym.monitors",
    FlowMonitor,  # type: ignore[type-abstract]  # only its subclasses are made
    BUILTIN,
)
