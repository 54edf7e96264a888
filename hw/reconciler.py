"""A fleet that is split over two settings: which change split it, and the way to either side.

Agents know which devices a change is of, and where it ended (:mod:`dcqcn_gym.hw.fleet_state`); the
log adds decisions that reached nobody. A device that could not be asked then is on the other side
until it is moved here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from dcqcn_gym.core.errors import StateError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.service import targets_of
from dcqcn_gym.hw.audit import AuditLog
from dcqcn_gym.hw.connections import Connections
from dcqcn_gym.hw.device_state import begun_ms
from dcqcn_gym.hw.fleet_state import FIRST, FleetState, read_fleet_state
from dcqcn_gym.hw.rollback import Failures, Rollback
from dcqcn_gym.hw.trials import Trials

Side = Literal["decided", "new", "old"]
"""Where a split fleet goes: to what was decided, to the change, or to before it."""


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
            state = read_fleet_state(self._agents, self._log)
            _refuse_a_trial(state)
            name, lacking = _split_by(state, moved)
            if not name:
                return moved, {**state.silent, **left}
            if lacking if to == "decided" else to == "new":
                moved[name], failed = self._bring(state, name, why, strict=to == "new")
            else:
                moved[name], failed = self._rollback.undo(name, why)
            left |= failed

    def catch_up(self) -> dict[str, list[str]]:
        """Move devices that were out of reach at a decision to its side, now that they answer.

        Return change -> those; none moves while a change is on trial.
        """
        state = read_fleet_state(self._agents, self._log)
        if not state.split() or any(s.state == "applied" for s in state.states.values()):
            return {}
        return self.reconcile("out of reach when it was decided")[0]

    def _bring(
        self, state: FleetState, name: str, why: str, *, strict: bool
    ) -> tuple[list[str], Failures]:
        """Give a change to those of its devices that lack it, from their own journals.

        One that holds a later change is left, or with ``strict`` ends all of it.
        """
        self._trials.refuse_in_a_freeze()  # forward is a change, back is not
        members = [device for device in state.members(name) if device in self._agents.clients]
        devices = [device for device in members if not _settled(state, device, name)]
        later = _later(state, name, devices)
        for error in later.values():
            if strict:
                raise error
        self._log.note({"event": "confirming", "transaction": name, "why": why,
                        "devices": devices})  # fmt: skip
        asked = [d for d in devices if d not in later and state.held.get(d, name) != name]
        read, left = self._agents.ask_each("Read", dict.fromkeys(asked, pb.Nothing()))
        targets = {device: targets_of(setting.targets) for device, setting in read.items()}
        former = dict.fromkeys(targets, name)
        left |= self._rollback.restore(former, targets, why, self._trial_s, members)
        after, _ = self._agents.states()
        for device in targets:
            if device not in left and device in after and after[device].confirmed != name:
                left[device] = StateError(
                    f"its journal does not have transaction {name}; `hw apply` changes it again"
                )
        left |= {device: state.silent[device] for device in devices if device in state.silent}
        return [device for device in asked if device not in left], {**later, **left}


def _split_by(state: FleetState, done: Collection[str]) -> tuple[str, bool]:
    """Return the newest change that splits the fleet, and whether devices are to have it.

    Without one an empty name; those of ``done`` are passed over.
    """
    found = dict.fromkeys(state.ahead().values(), False)
    for name in state.behind().values():
        found.setdefault(name, True)
    known = {*state.ahead(), *state.behind()}
    for device in state.split():
        if device not in known:  # by the log alone
            held, stack = state.held[device], state.expected.stacks.get(device, [])
            lacks = bool(stack) and (held == FIRST or held in stack)
            found.setdefault(stack[-1] if lacks else held, lacks)
    newest = max((name for name in found if name not in done), key=begun_ms, default="")
    return newest, found.get(newest, False)


def _settled(state: FleetState, device: str, name: str) -> bool:
    """Tell whether a device has a change, or a later one upon it."""
    held = state.held.get(device)
    if held is None:
        return False
    if name in state.expected.begun:  # of one that has it, the log is to say so, too
        decided = name in state.expected.stacks.get(device, [])
        return decided and held == state.expected.of(device)
    if held == name:
        return True
    change = state.changes.get(name)
    ended = change is not None and device in change.withdrawn_from
    return name in state.states[device].passed and not ended


def _refuse_a_trial(state: FleetState) -> None:
    for device, status in state.states.items():
        if status.state == "applied":
            raise StateError(
                f"transaction {status.transaction} is on trial on {device}, so nothing was moved; "
                "confirm it, or take it back with `dcqcn-gym hw rollback`"
            )


def _later(state: FleetState, name: str, devices: Collection[str]) -> Failures:
    return {
        device: StateError(
            f"{device} has the later change {state.held[device]}, so it cannot go to {name}; "
            "`dcqcn-gym hw reconcile --to old` goes to before that"
        )
        for device in devices
        if begun_ms(state.held.get(device, "")) > begun_ms(name)
    }
