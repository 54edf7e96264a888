"""From a setting (of all devices, or of groups) to what each device of a fleet is to hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import (
    TIERS,
    Devices,
    DeviceSetting,
    by_group,
    cluster_setting,
    resolve,
)
from dcqcn_gym.core.knobs import ECN_KNOBS, NIC_KNOBS

if TYPE_CHECKING:
    from dcqcn_gym.hw.connections import Connections
    from dcqcn_gym.hw.drivers import Targets


def targets_of_setting(agents: Connections, wanted: Mapping[str, float]) -> dict[str, Targets]:
    """Return device -> those of the knobs that devices of its kind have."""
    own = {
        "nic": {n: wanted[n] for n in NIC_KNOBS if n in wanted},
        "switch": {n: wanted[n] for n in ECN_KNOBS if n in wanted},
    }
    found = agents.descriptions.items()
    return {name: {"": own[d.kind]} for name, d in found if own[d.kind]}


def targets_of_groups(
    agents: Connections, setting: DeviceSetting, devices: Devices
) -> dict[str, Targets]:
    """Return device -> its knobs of a setting per group; ``devices`` tells who is in which.

    Raises ConfigError if a group names no device, or if switches have other ports than ``devices``.
    """
    table = cluster_setting(setting).table
    nic, ecn = resolve(setting, devices, table)
    found: dict[str, Targets] = {
        name: {"": dict(zip(table.nic, row.tolist(), strict=True))}
        for name, row in zip(agents.nics, nic, strict=True)
    }
    rows = iter(ecn[devices.n_hosts :].tolist())
    for name, ports in ports_of(agents, devices).items():
        own = {port: dict(zip(table.ecn, next(rows), strict=True)) for port in ports}
        first = own[ports[0]]
        found[name] = {"": first} if all(knobs == first for knobs in own.values()) else own
    return found


def devices_of(agents: Connections, setting: DeviceSetting) -> Devices:
    """Return the devices of a fleet, as far as its file tells; raise if it does not tell enough.

    Which ports lead up it never does, so that groups such as tor-uplinks are refused later.
    """
    asked = [group for group, _ in by_group(setting) if group in TIERS]
    hosts = range(len(agents.nics))
    owners, numbers, tiers = [*hosts], [0 for _ in hosts], {}
    for node, (name, tier) in enumerate(agents.tiers.items(), len(hosts)):
        if asked and tier is None:
            raise ConfigError(
                f"the setting is one per tier ({', '.join(asked)}), and the fleet's file does not "
                f'say the tier of {name}; add tier = "tor", "spine" or "core" to each switch'
            )
        tiers[node] = TIERS.index(tier or TIERS[0])
        ports = range(len(agents.descriptions[name].ports))
        owners, numbers = [*owners, *(node for _ in ports)], [*numbers, *ports]
    return Devices(len(hosts), owners, numbers, tiers)


def ports_of(agents: Connections, devices: Devices) -> dict[str, list[str]]:
    """Return switch -> port names; raise ConfigError if the fleet is not the scenario's network."""
    nodes = sorted(devices.tiers)
    for what, here, wanted in (
        ("NICs", len(agents.nics), devices.n_hosts),
        ("switches", len(agents.switches), len(nodes)),
    ):
        if here != wanted:
            raise ConfigError(
                f"the fleet has {here} {what}, the scenario {wanted}; expected as many"
            )
    found = {}
    for name, node in zip(agents.switches, nodes, strict=True):
        ports, wanted = (
            list(agents.descriptions[name].ports),
            list(devices.port_node).count(node),
        )
        if len(ports) != wanted:
            raise ConfigError(
                f"switch {name} has {len(ports)} ports in its agent's file, the scenario's has "
                f"{wanted}; expected as many, in the same order"
            )
        found[name] = ports
    return found
