"""A setting per group of devices: the groups of a network, and the values of each device.

A tuner proposes one, the log and ``best.json`` hold it, a backend puts it in force: this is its one
definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from dcqcn_gym.core.errors import QUOTED, ConfigError, UnknownNameError, quote
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.knobs import DCQCN, KnobTable, Setting
from dcqcn_gym.core.scheme_tables import table_of

DeviceSetting: TypeAlias = Setting | Mapping[str, Setting]
"""One setting for every device, or a setting per group: ``"cluster"`` (required), then any of
``"hosts"``, ``"switches"``, ``"tor"``, ``"spine"``, ``"core"``, the same with ``"-uplinks"`` or
``"-downlinks"`` (``"tor-uplinks"``), ``"nic:HOST"``, ``"switch:NODE"``, ``"port:NODE:PORT"``; the
more specific group wins. NICs take only the NIC knobs of a group, ports only its ECN knobs."""

TIERS = ("tor", "spine", "core")
_SIDES = tuple(f"{tier}-{side}" for tier in TIERS for side in ("uplinks", "downlinks"))
_NAMED = ("cluster", "hosts", "switches", *TIERS, *_SIDES)


@dataclass(frozen=True)
class Devices:
    """Which devices a network has: hosts ``0..n_hosts-1``, then switches, then their ports.

    ``port_node`` is the owner of every egress port, ``port_index`` its number at that node and
    ``tiers`` the tier (0 ToR, 1 spine, 2 core) of every switch node. ``nic_knobs`` are the knobs of
    each host's NIC where schemes differ; else every NIC has those of the network's table.
    ``port_up`` distinguishes uplinks (True: towards a switch of the same or a higher tier) from
    downlinks; empty where that is unknown.
    """

    n_hosts: int
    port_node: Sequence[int]
    port_index: Sequence[int]
    tiers: Mapping[int, int]
    nic_knobs: Sequence[tuple[str, ...]] = ()
    port_up: Sequence[bool] = ()

    @cached_property
    def port_names(self) -> Mapping[str, int]:
        """The number of every switch port, by ``"NODE:PORT"``."""
        ports = enumerate(zip(self.port_node, self.port_index, strict=True))
        return {f"{node}:{index}": p for p, (node, index) in ports if node in self.tiers}

    @cached_property
    def port_groups(self) -> Sequence[tuple[str, ...]]:
        """The groups of every port, the narrowest first; none for a NIC, which does not mark."""
        ports = zip(self.port_node, self.port_index, strict=True)
        return [self._groups_of(p, node, index) for p, (node, index) in enumerate(ports)]

    def _groups_of(self, port: int, node: int, index: int) -> tuple[str, ...]:
        if node not in self.tiers:
            return ()
        tier = TIERS[min(self.tiers[node], len(TIERS) - 1)]
        side: tuple[str, ...] = ()
        if self.port_up:
            side = (f"{tier}-{'uplinks' if self.port_up[port] else 'downlinks'}",)
        return (f"port:{node}:{index}", f"switch:{node}", *side, tier, "switches")


def cluster_setting(setting: DeviceSetting) -> Setting:
    """Return the setting of the whole cluster, or of the group ``"cluster"``."""
    if isinstance(setting, Setting):
        return setting
    cluster = setting.get("cluster")
    if not isinstance(cluster, Setting):
        raise ConfigError(
            "a setting per group needs a Setting for the group 'cluster', which holds for every "
            f"device without a group of its own; got groups: {', '.join(map(str, setting))}"
        )
    return cluster


def resolve(
    setting: DeviceSetting, devices: Devices, table: KnobTable = DCQCN
) -> tuple[FloatArray, FloatArray]:
    """Return one row of NIC knobs per host and one of ECN knobs per port; the narrower group wins.

    Values are in the order of ``table``, the network's. Raises
    :class:`ConfigError` for a group without "cluster", for a device that does not exist and for a
    setting of another table.
    """
    cluster = cluster_setting(setting)
    table.require(cluster, "the network")
    if isinstance(setting, Setting):  # every step of a training comes here
        nic, ecn = same_everywhere(setting, devices.n_hosts, len(devices.port_node))
        if devices.nic_knobs:
            nic = _own_rows([setting] * devices.n_hosts, devices.nic_knobs)
        return nic, ecn
    groups: Mapping[str, Setting] = dict(setting)
    _check_values(groups)
    check_group_names(groups, devices)
    for name, value in groups.items():
        table.require(value, f"group {quote(name)}")
    hosts = [_first(groups, (f"nic:{h}", "hosts"), cluster) for h in range(devices.n_hosts)]
    ports = [_first(groups, names, cluster) for names in devices.port_groups]
    own = devices.nic_knobs
    return _own_rows(hosts, own) if own else _rows(hosts, table.nic), _rows(ports, table.ecn)


def same_everywhere(setting: Setting, n_hosts: int, n_ports: int) -> tuple[FloatArray, FloatArray]:
    """Return what :func:`resolve` does for one setting on every device of a network."""
    nic = np.empty((n_hosts, len(setting.table.nic)))
    ecn = np.empty((n_ports, len(setting.table.ecn)))
    nic[:] = [setting[k] for k in setting.table.nic]
    ecn[:] = [setting[k] for k in setting.table.ecn]
    return nic, ecn


def members(group: str, devices: Devices) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the hosts and the switch ports that a group names, in ascending order.

    Raises as :func:`check_group_names` does.
    """
    check_group_names([group], devices)
    whole = group == "cluster"
    hosts = (h for h in range(devices.n_hosts) if whole or group in ("hosts", f"nic:{h}"))
    ports = (
        p for p, names in enumerate(devices.port_groups) if (whole and names) or group in names
    )
    return tuple(hosts), tuple(ports)


def _first(groups: Mapping[str, Setting], names: Sequence[str], cluster: Setting) -> Setting:
    return next((groups[n] for n in names if n in groups), cluster)


def _rows(settings: Sequence[Setting], knobs: Sequence[str]) -> FloatArray:
    memo: dict[int, list[float]] = {}
    rows = [memo.setdefault(id(s), [s[k] for k in knobs]) for s in settings]
    return np.array(rows, dtype=np.float64).reshape(len(settings), len(knobs))


def _own_rows(settings: Sequence[Setting], knobs: Sequence[tuple[str, ...]]) -> FloatArray:
    """Return a row per host of its scheme's knobs; shorter ones are padded with zeros."""
    rows = np.zeros((len(settings), max(map(len, knobs))), dtype=np.float64)
    for row, setting, names in zip(rows, settings, knobs, strict=True):
        row[: len(names)] = [setting[name] for name in names]
    return rows


def by_group(setting: DeviceSetting) -> Iterator[tuple[str, Setting]]:
    """Yield (group, setting); one setting for every device is that of the group ``"cluster"``."""
    yield from ({"cluster": setting} if isinstance(setting, Setting) else setting).items()


def setting_of(values: Mapping[str, float] | Mapping[str, Mapping[str, float]]) -> DeviceSetting:
    """Return the setting that a log or ``best.json`` holds: knobs, or knobs per group.

    Its knobs show the scheme. Raises :class:`ConfigError` for a missing knob or a missing group
    ``"cluster"``.
    """
    groups = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    if not groups:
        plain = {n: v for n, v in values.items() if not isinstance(v, Mapping)}
        return Setting.of(plain, table_of(plain))
    found = {name: Setting.of(value, table_of(value)) for name, value in groups.items()}
    cluster_setting(found)
    return found


def check_group_names(names: Iterable[object], devices: Devices | None = None) -> None:
    """Raise :class:`ConfigError` for a group that is not text or names no device of the network.

    Without ``devices`` the numbers of hosts, switches and ports are not checked.
    """
    for name in names:
        if not isinstance(name, str):
            raise ConfigError(
                f"group {quote(name)} is of type {type(name).__name__}; expected a text such as "
                "'tor', 'switch:NODE' or 'nic:HOST'"
            )
        kind, _, rest = name.partition(":")
        if name in _SIDES and devices is not None and not devices.port_up:
            raise ConfigError(
                f"group {quote(name)}: this network does not tell uplinks from downlinks; "
                "name the tier or the ports"
            )
        if name in _NAMED:
            continue
        if kind not in ("nic", "switch", "port"):
            known = (*_NAMED, "nic:HOST", "switch:NODE", "port:NODE:PORT")
            raise UnknownNameError("group of devices", name, known)
        if devices is not None and not _is_member(kind, rest, devices):
            raise ConfigError(
                f"group {quote(name)} names no device of this network: {_have(devices)}"
            )


def _check_values(groups: Mapping[str, object]) -> None:
    for name, value in groups.items():
        if not isinstance(value, Setting):
            raise ConfigError(f"group {quote(name)} needs a Setting; got {type(value).__name__}")


def _is_member(kind: str, rest: str, devices: Devices) -> bool:
    if kind == "port":
        return rest in devices.port_names
    if not (rest.isascii() and rest.isdecimal() and rest == str(int(rest[:QUOTED]))):
        return False
    number = int(rest)
    return number < devices.n_hosts if kind == "nic" else number in devices.tiers


def _have(devices: Devices) -> str:
    switches = sorted(devices.tiers)
    span = f"{switches[0]} to {switches[-1]}" if switches else "none"
    return f"hosts are 0 to {devices.n_hosts - 1}, switches {span}"
