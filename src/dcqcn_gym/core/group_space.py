"""The action space of a setting per group: the groups' boxes, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.groups import TIERS, Devices, DeviceSetting, cluster_setting, members
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.core.space import KnobSpace


def tiers_of(devices: Devices) -> tuple[str, ...]:
    """Return the groups of the tiers that this network has, the lowest first."""
    return tuple(tier for tier in TIERS if members(tier, devices)[1])


class GroupSpace:
    """Which knobs an action sets in which group, and the maps between actions and settings.

    ``parts`` are (group, space of its knobs): first ``"cluster"`` with the knobs that some device
    takes from it, then every group with those of ``space`` that its devices have. Without groups
    an action and a setting are those of ``space`` itself. Raises :class:`ConfigError` for a group
    that is unknown, given twice or without a knob, and if ``devices`` are not known.
    """

    def __init__(
        self, space: KnobSpace, groups: Sequence[str] = (), devices: Devices | None = None
    ) -> None:
        self.groups = tuple(groups)
        self.whole = space
        if not groups:
            self.parts: tuple[tuple[str, KnobSpace], ...] = (("cluster", space),)
            return
        if devices is None:
            raise ConfigError("groups of devices need to know which devices there are")
        if len(set(groups)) != len(groups) or "cluster" in groups:
            raise ConfigError(
                f"groups = {quote(list(groups))}: expected groups beside 'cluster', none repeated"
            )
        covered = {group: members(group, devices) for group in groups}
        hosts = {h for own, _ in covered.values() for h in own}
        ports = {p for _, own in covered.values() for p in own}
        rest = (len(hosts) < devices.n_hosts, len(ports) < len(devices.port_names))
        parts = [("cluster", self._part(*rest))]
        parts += [(name, self._part(bool(h), bool(p))) for name, (h, p) in covered.items()]
        self.parts = tuple((name, own) for name, own in parts if own is not None)
        idle = [name for name, own in parts if own is None and name != "cluster"]
        if idle:
            raise ConfigError(
                f"group {quote(idle[0])} has no device with one of the knobs to turn "
                f"({', '.join(space.knobs)})"
            )

    def _part(self, nics: bool, ports: bool) -> KnobSpace | None:
        table = self.whole.table
        knobs = [k for k in self.whole.knobs if (ports if table[k].is_ecn else nics)]
        return self.whole.part(knobs) if knobs else None

    @property
    def names(self) -> tuple[str, ...]:
        """``GROUP/KNOB`` of every number of an action; without groups the knobs alone."""
        if not self.groups:
            return self.whole.knobs
        return tuple(f"{group}/{knob}" for group, own in self.parts for knob in own.knobs)

    @property
    def n(self) -> int:
        """Length of an action."""
        return len(self.names)

    def setting(self, unit: npt.ArrayLike, base: Setting) -> DeviceSetting:
        """Return what an action in -1..1 means: ``base`` with the knobs of every group changed.

        Raises :class:`ConfigError` for another shape, NaN or infinity.
        """
        if not self.groups:
            return self.whole.setting(unit, base)
        array = np.asarray(unit, dtype=np.float64)
        if array.shape != (self.n,):
            raise ConfigError(
                f"an action has shape {array.shape}; expected ({self.n},): {', '.join(self.names)}"
            )
        found: dict[str, Setting] = {"cluster": base}
        at = 0
        for group, own in self.parts:
            try:
                found[group] = own.setting(array[at : at + own.n], base)
            except ConfigError as error:
                raise ConfigError(f"group {quote(group)}: {error}") from None
            at += own.n
        return found

    def encode(self, setting: DeviceSetting) -> FloatArray:
        """Return the action that is nearest to a setting; a missing group is as the cluster."""
        parts = [own.encode(self.of(setting, group)) for group, own in self.parts]
        return np.concatenate(parts)

    def of(self, setting: DeviceSetting, group: str) -> Setting:
        """Return the setting of a group, that of the cluster if it has none of its own."""
        if isinstance(setting, Setting):
            return setting
        return setting.get(group, cluster_setting(setting))

    def joined(self, parts: Mapping[str, Setting], base: Setting) -> DeviceSetting:
        """Return the setting of the network from that of every part."""
        return {"cluster": base, **parts} if self.groups else parts["cluster"]
