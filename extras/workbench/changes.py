"""What a setting changes on devices; those that change alike stand in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dcqcn_gym.core.groups import Devices, DeviceSetting, resolve
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.knobs import Knob, Setting
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.table import count_of, number

NAMED = 3
"""So many hosts that differ from the others are named."""


@dataclass(frozen=True)
class KnobChange:
    """One knob that changes alike on some devices; values in NVIDIA's units."""

    devices: str
    knob: str
    before: str
    after: str
    unit: str


def changes(setting: DeviceSetting, scenario: Scenario, in_service: Setting) -> list[KnobChange]:
    """Return what differs from the setting in service, hosts first.

    Raises ConfigError for a setting that the scenario's devices do not take.
    """
    devices, table = scenario.fabric.devices, scenario.table
    after, before = (resolve(s, devices, table) for s in (setting, in_service))
    ports = [p for p, node in enumerate(devices.port_node) if node in devices.tiers]
    found: list[KnobChange] = []
    for part, names, places in (
        (0, table.nic, list(range(devices.n_hosts))),
        (1, table.ecn, ports),
    ):
        for column, name in enumerate(names):
            values = before[part][:, column], after[part][:, column]
            found += _of_knob(table[name], values, places, devices)
    return found


def _of_knob(
    knob: Knob, values: tuple[FloatArray, FloatArray], places: Sequence[int], devices: Devices
) -> list[KnobChange]:
    alike: dict[tuple[float, float], list[int]] = {}
    for place in places:
        change = float(values[0][place]), float(values[1][place])
        if change[0] != change[1]:
            alike.setdefault(change, []).append(place)
    name = _ports if knob.is_ecn else _hosts
    return [
        KnobChange(name(some, devices), knob.name, number(old), number(new), knob.unit)
        for (old, new), some in alike.items()
    ]


def _hosts(some: Sequence[int], devices: Devices) -> str:
    if len(some) == devices.n_hosts:
        return f"all {count_of(len(some), 'host')}" if len(some) > 1 else "1 host"
    named = f": {', '.join(f'h{host}' for host in some)}" if len(some) <= NAMED else ""
    return f"{len(some)} of {count_of(devices.n_hosts, 'host')}{named}"


def _ports(some: Sequence[int], devices: Devices) -> str:
    nodes = {devices.port_node[port] for port in some}
    every = [port for port, node in enumerate(devices.port_node) if node in nodes]
    switches = "switches" if len(nodes) > 1 else "switch"
    if len(every) == len(some):
        return f"{len(nodes)} {switches}, all ports"
    return f"{len(nodes)} {switches}, {len(some)} of {len(every)} ports"
