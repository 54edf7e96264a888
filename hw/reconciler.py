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
from dcqcn_gym.hw.audit import AuditLog, Expected
from dcqcn_gym.hw.connections import Connections
from dcqcn_gym.hw.rollback import Failures, Rollback
from dcqcn_gym.hw.trials import Trials

Side = Literal["decided", "new", "old"]
"""Where a split fleet goes: to what the log decided, to the change, or to before it."""


class Reconciler:
    """Brings devices that missed a decision, or missed its end, to where the others are."""

    def __init__(
        self,
        agents: Connections,
        log: AuditLog,
        rollback: Rollback,
        trials: Trials,
        trial_s: float,
    ) -> None:
        self._agents, self._log, self._rollback = agents, log, rollback
        self._trials, self._trial_s = trials, trial_s

    def reconcile(self, why: str, to: Side = "decided") -> tuple[dict[str, list[str]], Failures]:
        """Bring a split fleet to one side; return change -> devices that moved, and what is left.

        A device that is ill or does not answer keeps no other from moving: typed again it follows.
        Raises StateError, and nothing moves, if a change is on trial, or if devices hold a later
        change than the one that is to come (``new``).
        """
        moved: dict[str, list[str]] = {}
        left: Failures = {}
        while True:
            states, silent = self._agents.states()
            _refuse_a_trial(states)
            name, lacking = _split_by(self._log.expected(), states, moved)
            if not name:
                return moved, {**silent, **left, **self._strangers(states)}
            forward = lacking if to == "decided" else to == "new"
            act = self._bring if forward else self._rollback.undo
            moved[name], failed = act(name, why)
            left |= failed

    def catch_up(self) -> dict[str, list[str]]:
        """Move devices that were out of reach at a decision to its side, now that they answer.

        Return change -> those; none moves while a change is on trial.
        """
        states, _ = self._agents.states()
        astray = self._log.expected().astray({d: s.confirmed for d, s in states.items()})
        if not astray or any(s.state == "applied" for s in states.values()):
            return {}
        return self.reconcile("out of reach when it was decided")[0]

    def _strangers(self, states: Mapping[str, Any]) -> Failures:
        """Return the devices that hold what this log knows nothing of, where it decided another."""
        expected = self._log.expected()
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

    def _bring(self, name: str, why: str) -> tuple[list[str], Failures]:
        """Give a change to those of its devices that lack it, from their own journals."""
        self._trials.refuse_in_a_freeze()  # forward is a change, back is not
        states, silent = self._agents.states()
        expected = self._log.expected()
        own = [device for device in self._log.devices_of(name) if device in self._agents.clients]
        devices = [d for d in own if not _settled(expected, d, name, states)]
        _refuse_a_later_one(expected, name, devices)
        self._log.write({"event": "confirming", "transaction": name, "why": why,
                           "devices": devices})  # fmt: skip
        asked = [d for d in devices if d in states and states[d].confirmed != name]
        read, left = self._agents.ask_each("Read", dict.fromkeys(asked, pb.Nothing()))
        targets = {device: targets_of(setting.targets) for device, setting in read.items()}
        former = dict.fromkeys(targets, name)
        left |= self._rollback.restore(former, targets, why, self._trial_s)
        after, _ = self._agents.states()
        for device in targets:
            if device not in left and device in after and after[device].confirmed != name:
                left[device] = StateError(
                    f"its journal does not have transaction {name}; `hw apply` changes it again"
                )
        left |= {device: silent[device] for device in devices if device in silent}
        return [device for device in asked if device not in left], left


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
