"""What ports that share a profile of marking are to get: one thing each, or nothing is staged."""

from __future__ import annotations

from collections.abc import Mapping

from dcqcn_gym.core.errors import DeviceError, quote
from dcqcn_gym.core.knobs import DCQCN, ECN_KNOBS
from dcqcn_gym.hw.drivers.base import Targets, raw_values


def wanted_of_profiles(
    profiles: Mapping[str, str], targets: Targets, skip: tuple[str, ...]
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
        raw = raw_values(given, own, DCQCN, skip)
        first, before = wanted.setdefault(profile, (port, raw))
        if before != raw:
            raise DeviceError(
                f"ports {first} and {port} share the profile {profile} and cannot differ "
                f"({before} and {raw}); bind their queues to profiles of their own first"
            )
    return {profile: raw for profile, (_, raw) in wanted.items()}
