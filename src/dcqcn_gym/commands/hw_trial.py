"""Which transaction is on trial, and whether all of its devices still hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dcqcn_gym.core.errors import StateError

if TYPE_CHECKING:
    from dcqcn_gym.hw.controller import Controller


def whole_trial(
    controller: Controller, states: Mapping[str, Any], dry_run: bool
) -> tuple[str, list[str]]:
    """Return the one transaction that is on trial, and every device that it changed.

    Raises StateError if there is another number of them, or if a device no longer holds it: then
    all are taken back, but for a ``dry_run``.
    """
    name = _name(states)
    devices = controller.devices_of(name)
    if not devices:
        raise StateError(
            f"the audit log of this fleet does not know transaction {name}, nor so which devices "
            "it changed; confirm it where it was applied"
        )
    lost = [device for device in devices if not _holds(states[device], name)]
    if not lost:
        return name, devices
    why = f"no longer on trial: {', '.join(lost)}"
    if not dry_run:
        controller.take_back(name, devices, why, confirmed=devices)
    end = "to confirm would take all back" if dry_run else "all were taken back"
    raise StateError(
        f"{len(lost)} of {len(devices)} devices of transaction {name} are {why} (an agent that "
        f"starts again goes back by itself); {end}"
    )


def _name(states: Mapping[str, Any]) -> str:
    names = sorted({str(s.transaction) for s in states.values() if s.state == "applied"})
    if len(names) != 1:
        raise StateError(
            f"{len(names)} transactions are on trial ({', '.join(names)}); expected one: it "
            "may have ended already, see `dcqcn-gym hw history`"
        )
    return names[0]


def _holds(status: Any, name: str) -> bool:
    """Tell whether a change is on trial, or confirmed already by an attempt that was cut off."""
    on_trial = (status.state, status.transaction) == ("applied", name)
    return bool(on_trial or status.confirmed == name)
