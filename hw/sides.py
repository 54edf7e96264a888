"""A fleet that is split over two settings: which change split it, and the way to either side.

The audit log decides: ``confirming`` keeps a change, ``taken back`` and ``undo`` end it. A device
that could not be asked then is on the other side until it is moved here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dcqcn_gym.core.errors import StateError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.service import targets_of
from dcqcn_gym.hw.audit import Expected
from dcqcn_gym.hw.ways_back import Began, Left, WaysBack

Side = Literal["decided", "new", "old"]
"""Where a split fleet goes: to what the log decided, to the change, or to before it."""


class Sides(WaysBack):
    """A fleet's connections and ways back; whether all of it is on one trial, or split."""

    def reconcile(self, why: str, to: Side = "decided") -> tuple[dict[str, list[str]], Left]:
        """Bring a split fleet to one side; return change -> devices that moved, and what is left.

        A device that is ill or does not answer keeps no other from moving: typed again it follows.
        Raises StateError, and nothing moves, if a change is on trial, or if devices hold a later
        change than the one that is to come (``new``).
        """
        moved: dict[str, list[str]] = {}
        left: Left = {}
        while True:
            states, silent = self.states()
            _refuse_a_trial(states)
            name, lacking = _split_by(self.expected(), states, moved)
            if not name:
                return moved, {**silent, **left, **self._strangers(states)}
            forward = lacking if to == "decided" else to == "new"
            act = self._bring if forward else self.undo
            moved[name], failed = act(name, why)
            left |= failed

    def catch_up(self) -> dict[str, list[str]]:
        """Move devices that were out of reach at a decision to its side, now that they answer.

        Return change -> those; none moves while a change is on trial.
        """
        states, _ = self.states()
        astray = self.expected().astray({d: s.confirmed for d, s in states.items()})
        if not astray or any(s.state == "applied" for s in states.values()):
            return {}
        return self.reconcile("out of reach when it was decided")[0]

    def _strangers(self, states: Mapping[str, Any]) -> Left:
        """Return the devices that hold what this log knows nothing of, where it decided another."""
        expected = self.expected()
        astray = expected.astray({d: s.confirmed for d, s in states.items()})
        return {
            device: StateError(
                f"it holds transaction {states[device].confirmed}, of which this audit log knows "
                f"nothing, and is to hold {wanted}; `hw rollback --transaction` or `hw apply` ends "
                "that"
            )
            for device, wanted in astray.items()
            if not _known(expected, states[device].confirmed)
        }

    def _bring(self, name: str, why: str) -> tuple[list[str], Left]:
        """Give a change to those of its devices that lack it, from their own journals."""
        states, silent = self.states()
        expected = self.expected()
        own = [device for device in self.devices_of(name) if device in self._clients]
        devices = [d for d in own if not _settled(expected, d, name, states)]
        _refuse_a_later_one(expected, name, devices)
        self._audit.write({"event": "confirming", "transaction": name, "why": why,
                           "devices": devices})  # fmt: skip
        asked = [d for d in devices if d in states and states[d].confirmed != name]
        read, left = self.ask_each("Read", dict.fromkeys(asked, pb.Nothing()))
        targets = {device: targets_of(setting.targets) for device, setting in read.items()}
        began = Began(targets, confirmed=dict.fromkeys(targets, name))
        left |= self._restore(began, targets, why, self._fleet.trial_s)
        after, _ = self.states()
        for device in targets:
            if device not in left and device in after and after[device].confirmed != name:
                left[device] = StateError(
                    f"its journal does not have transaction {name}; `hw apply` changes it again"
                )
        left |= {device: silent[device] for device in devices if device in silent}
        return [device for device in asked if device not in left], left

    def whole_trial(self, states: Mapping[str, Any], dry_run: bool) -> tuple[str, list[str]]:
        """Return the one transaction that is on trial, and every device that it changed.

        Raises StateError if there is another number of them, or if a device no longer holds it:
        then all are taken back, but for a ``dry_run``.
        """
        name = _one_trial(states)
        devices = self.devices_of(name)
        if not devices:
            raise StateError(
                f"the audit log of this fleet does not know transaction {name}, nor so which "
                "devices it changed; confirm it where it was applied"
            )
        lost = [device for device in devices if not _holds(states[device], name)]
        if not lost:
            return name, devices
        why = f"no longer on trial: {', '.join(lost)}"
        if not dry_run:
            self.take_back(name, devices, why, confirmed=devices)
        end = "to confirm would take all back" if dry_run else "all were taken back"
        raise StateError(
            f"{len(lost)} of {len(devices)} devices of transaction {name} are {why} (an agent that "
            f"starts again goes back by itself); {end}"
        )

    def devices_of(self, name: str) -> list[str]:
        """Return the devices that a transaction changed, as the audit log has it."""
        return self._audit.devices_of(name)


def _one_trial(states: Mapping[str, Any]) -> str:
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


def _known(expected: Expected, confirmed: str) -> bool:
    return confirmed == "start" or confirmed in expected.begun


def _split_by(
    expected: Expected, states: Mapping[str, Any], done: Mapping[str, Any]
) -> tuple[str, bool]:
    """Return the newest change that splits the fleet, and whether devices are to have it.

    Without one an empty name; those of ``done`` are passed over.
    """
    held = {device: status.confirmed for device, status in states.items()}
    found: dict[str, bool] = {}
    for device in expected.astray(held):
        if not _known(expected, held[device]):
            continue
        stack = expected.stacks.get(device, [])
        lacks = bool(stack) and (held[device] == "start" or held[device] in stack)
        found[stack[-1] if lacks else held[device]] = lacks
    names = [name for name in reversed(expected.begun) if name in found and name not in done]
    return (names[0], found[names[0]]) if names else ("", False)


def _settled(expected: Expected, device: str, name: str, states: Mapping[str, Any]) -> bool:
    """Tell whether a device has a change, or a later one upon it, as the log says."""
    if name not in expected.stacks.get(device, []):
        return False
    return device in states and states[device].confirmed == expected.of(device)


def _refuse_a_trial(states: Mapping[str, Any]) -> None:
    for device, status in states.items():
        if status.state == "applied":
            raise StateError(
                f"transaction {status.transaction} is on trial on {device}, so nothing was moved; "
                "confirm it, or take it back with `dcqcn-gym hw rollback`"
            )


def _refuse_a_later_one(expected: Expected, name: str, devices: list[str]) -> None:
    later = expected.begun[expected.begun.index(name) + 1 :]
    for device in devices:
        if name not in expected.stacks.get(device, []) and expected.of(device) in later:
            raise StateError(
                f"{device} has the later change {expected.of(device)}, so the fleet cannot go to "
                f"{name}; `dcqcn-gym hw reconcile --to old` goes to before it"
            )
