"""What drivers of switches share: ports in the order of the scenario's, and profiles of marking."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from pydantic import Field

from dcqcn_gym.core.device_units import device_unit
from dcqcn_gym.core.errors import DeviceError, quote
from dcqcn_gym.core.knobs import DCQCN, ECN_KNOBS
from dcqcn_gym.hw.drivers.base import (
    Driver,
    DriverSettings,
    Edit,
    Targets,
    Values,
    raw_values,
)

PORTS = Field(min_length=1, description="names of ports in the order of the scenario's")


class SwitchSettings(DriverSettings):
    """The ports of one switch."""

    ports: tuple[str, ...] = PORTS
    skip: tuple[str, ...] = Field(default=(), description="knobs that this switch may lack")


class SwitchDriver(Driver):
    """One switch; a subclass keeps its settings."""

    kind = "switch"
    _settings: SwitchSettings

    @property
    def ports(self) -> tuple[str, ...]:
        """Names of the ports, in the order of the scenario's."""
        return self._settings.ports

    @abstractmethod
    def _of_place(self, place: str) -> tuple[str, str]:
        """Return the profile of a place, and its knob; empty if it is none's."""

    @abstractmethod
    def _users_of(self) -> Mapping[str, Sequence[str]]:
        """Return profile -> what uses it."""

    def diff(self, before: Values, after: Values) -> list[Edit]:
        """Return one line per field; ``shared_by`` are all that use its profile."""
        users, lines = self._users_of(), []
        for place in (p for p in sorted(after) if after[p] != before.get(p)):
            profile, knob = self._of_place(place)
            shared = tuple(users.get(profile, ()))
            unit = device_unit(DCQCN[knob]) if knob else ""
            lines.append(
                Edit(place, knob, unit, before.get(place, ""), after[place],
                     shared if len(shared) > 1 else ())
            )  # fmt: skip
        return lines


def wanted_of_profiles(
    profiles: Mapping[str, str], targets: Targets, skip: tuple[str, ...], driver: str
) -> dict[str, dict[str, int]]:
    """Return profile -> knob -> the device's number, of port -> knobs; ``profiles`` is by port.

    Raises DeviceError for a port that is not there, or if ports that share a profile differ.
    """
    wanted: dict[str, tuple[str, dict[str, int]]] = {}
    own = {name: DCQCN[name] for name in ECN_KNOBS}
    for port in targets:
        if port and port not in profiles:
            raise DeviceError(f"port {quote(port)} is not one of {', '.join(profiles)}")
    for port, profile in profiles.items():
        given = targets.get(port, targets.get(""))
        if given is None:
            continue
        raw = raw_values(given, own, DCQCN, skip, driver)
        first, before = wanted.setdefault(profile, (port, raw))
        if before != raw:
            raise DeviceError(
                f"ports {first} and {port} share the profile {profile} and cannot differ "
                f"({before} and {raw}); bind their queues to profiles of their own first"
            )
    return {profile: raw for profile, (_, raw) in wanted.items()}
