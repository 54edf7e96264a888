"""The hosts, switches, ports and link rates of a scenario, in the order of reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dcqcn_gym.envs.backends.device_counters import Shape

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario


def shape_of(scenario: Scenario) -> Shape:
    """Return the shape of a scenario's network, ports numbered as in reports."""
    fabric = scenario.fabric
    rates: list[list[float]] = [[] for _ in range(fabric.n_nodes)]
    for link in fabric.links:
        rates[link.a].append(link.rate_bps)
        rates[link.b].append(link.rate_bps)
    devices = fabric.devices
    ports = [rates[n][i] for n, i in zip(devices.port_node, devices.port_index, strict=True)]
    hosts = [link.rate_bps for link in fabric.host_link]
    return Shape(devices, np.array(hosts, np.float64), np.array(ports, np.float64))
