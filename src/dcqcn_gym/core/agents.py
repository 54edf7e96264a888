"""Agents: which devices each of several controllers of one network sees and sets.

The multi-agent environment, ACC's tuner and its training share this one definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dcqcn_gym.core.errors import ConfigError, did_you_mean, quote
from dcqcn_gym.core.groups import Devices, DeviceSetting, members
from dcqcn_gym.core.knobs import KnobTable, Setting

KINDS = ("switch", "port", "nic")

AgentSpec: TypeAlias = str | Sequence[str] | Mapping[str, str | Sequence[str]]
"""``"switch"``, ``"port"`` (egress ports of switches) or ``"nic"``: one agent per such device; a
list of groups of devices: one agent each; a table of names: one agent each, over one or more
groups (:data:`dcqcn_gym.core.groups.DeviceSetting`)."""


@dataclass(frozen=True)
class Agent:
    """One controller: the groups of devices it sets, the hosts and ports it sees, its knobs.

    ``ports`` are numbers as in reports: the switch ports of its groups, or, of an agent that has
    NICs alone, the ports of these NICs. ``switches`` distinguishes the two kinds.
    """

    name: str
    groups: tuple[str, ...]
    hosts: tuple[int, ...]
    ports: tuple[int, ...]
    switches: bool
    knobs: tuple[str, ...]


def agents_of(
    spec: AgentSpec, devices: Devices, knobs: Sequence[str], table: KnobTable
) -> tuple[Agent, ...]:
    """Return the agents in their fixed order: of devices by number, of groups as they are given.

    ``knobs`` are those that may be turned; an agent has those of its devices. Raises
    :class:`ConfigError` for an unknown kind or group, a device that two agents set, and an agent
    without a device or a knob.
    """
    named = _named(spec, devices)
    found = [_agent(name, groups, devices, knobs, table) for name, groups in named.items()]
    if not found:
        raise ConfigError(f"agents = {quote(spec)}: this network has none of them")
    _check_apart(found, devices)
    return tuple(found)


def joint_setting(base: Setting, chosen: Mapping[Agent, Setting]) -> DeviceSetting:
    """Return the setting of the whole network: ``base``, but for the groups of these agents."""
    groups: dict[str, Setting] = {"cluster": base}
    for agent, setting in chosen.items():
        groups |= dict.fromkeys(agent.groups, setting)
    return groups


def _named(spec: AgentSpec, devices: Devices) -> dict[str, tuple[str, ...]]:
    if isinstance(spec, str):
        if spec not in KINDS:
            raise ConfigError(
                f"agents = {quote(spec)}{did_you_mean(spec, KINDS)}; or a list of groups of "
                "devices, or a table of names and their groups"
            )
        names = {
            "switch": [f"switch:{node}" for node in sorted(devices.tiers)],
            "port": [f"port:{name}" for name in devices.port_names],
            "nic": [f"nic:{host}" for host in range(devices.n_hosts)],
        }[spec]
        return {name: (name,) for name in names}
    if isinstance(spec, Mapping):
        return {
            str(name): (groups,) if isinstance(groups, str) else tuple(groups)
            for name, groups in spec.items()
        }
    if len(set(spec)) != len(spec):
        raise ConfigError(f"agents = {quote(list(spec))}: expected no group twice")
    return {name: (name,) for name in spec}


def _agent(
    name: str, groups: tuple[str, ...], devices: Devices, knobs: Sequence[str], table: KnobTable
) -> Agent:
    hosts: set[int] = set()
    ports: set[int] = set()
    for group in groups:
        of_group = members(group, devices)
        hosts.update(of_group[0])
        ports.update(of_group[1])
    if not hosts and not ports:
        raise ConfigError(f"agent {quote(name)}: {quote(list(groups))} holds no device")
    own = tuple(k for k in knobs if (ports if table[k].is_ecn else hosts))
    if not own:
        kind = "switches" if ports else "NICs"
        raise ConfigError(
            f"agent {quote(name)} has {kind} alone, and none of the knobs to turn is one of theirs "
            f"({', '.join(knobs)})"
        )
    seen = ports or {p for p, node in enumerate(devices.port_node) if node in hosts}
    return Agent(name, groups, tuple(sorted(hosts)), tuple(sorted(seen)), bool(ports), own)


def _check_apart(agents: Sequence[Agent], devices: Devices) -> None:
    owner: dict[tuple[str, int], str] = {}
    for agent in agents:
        ports = agent.ports if agent.switches else ()
        for device in (*(("nic", h) for h in agent.hosts), *(("port", p) for p in ports)):
            other = owner.setdefault(device, agent.name)
            if other != agent.name:
                raise ConfigError(
                    f"agents {quote(other)} and {quote(agent.name)} both set "
                    f"{_device(*device, devices)}; expected groups that are apart"
                )


def _device(kind: str, number: int, devices: Devices) -> str:
    if kind == "nic":
        return f"the NIC of host {number}"
    return f"port {devices.port_index[number]} of switch {devices.port_node[number]}"
