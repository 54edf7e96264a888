"""The state of a whole fleet, from what its agents know; the controller's log is evidence only.

Every agent keeps, of each change: its name, what the device held before, the devices of the change,
and which of them are not to have it any more. So any controller, on any host and without a log, can
tell a fleet that is split. The rules need no clock:

- a device is *behind* a change that another one holds if it is of the change's devices, never held
  it, and nobody knows that it is not to have it;
- a device is *ahead* if it holds a change of which somebody knows that it is not to have it;
- a change whose devices nobody knows is *unknown*, and a device that holds one is not healthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.audit import AuditLog, Expected
from dcqcn_gym.hw.connections import Connections
from dcqcn_gym.hw.device_state import KnownChange, begun_ms
from dcqcn_gym.hw.members import unpacked

FIRST = "start"
"""What a device holds that no controller ever changed."""
BEFORE = "what was before"
REMEDIES = {
    "applied": "dcqcn-gym hw confirm (keeps the trial) or hw rollback --trial-only (ends it)",
    "broken": "mend what is named, then dcqcn-gym hw rollback --trial-only --device {devices}",
    "drifted": "mend what is named, then dcqcn-gym hw rollback --trial-only --device {devices}",
    "split": "dcqcn-gym hw reconcile",
    "unknown": "dcqcn-gym hw rollback --transaction {names}, or hw apply what they are to hold",
    "silent": "start the agents of {devices}, then dcqcn-gym hw status",
    "audit": "keep the audit log for whoever looks into it; agents hold the state without it",
}
"""Condition -> the command that mends it."""
WORDS = {"applied": "on trial", "unknown": "unknown change"}
MOST_NAMED = 4


@dataclass(frozen=True)
class FleetState:
    """How a fleet stands; :meth:`problems` is the one definition of healthy."""

    states: Mapping[str, Any]
    """Device -> the answer of its agent."""
    silent: Mapping[str, DcqcnGymError]
    changes: Mapping[str, KnownChange]
    """What all agents together know of the changes that devices hold."""
    expected: Expected = field(default_factory=Expected)
    """What the log of this controller says."""
    log_broken: str = ""
    foreign: frozenset[str] = frozenset()
    """Changes that the log decided and no agent ever had: it is another fleet's."""

    @property
    def held(self) -> dict[str, str]:
        """Device -> the change whose setting it is to hold, by its own journal."""
        return {device: status.confirmed for device, status in self.states.items()}

    def members(self, name: str) -> list[str]:
        """Return the devices of a change, as agents know them, or else the log; or none."""
        known = self.changes.get(name, KnownChange()).members
        return sorted(known) or list(self.expected.members.get(name, ()))

    def behind(self) -> dict[str, str]:
        """Return device -> the newest change that it is to have and never had."""
        found: dict[str, str] = {}
        for name in sorted(self.changes, key=begun_ms):
            change = self.changes[name]
            for device in (change.members - change.withdrawn_from) & set(self.states):
                status = self.states[device]
                if status.confirmed != name and not _had(status, name):
                    found[device] = name
        return found

    def ahead(self) -> dict[str, str]:
        """Return device -> the change that it holds and is not to have."""
        return {
            device: name
            for device, name in self.held.items()
            if device in self.changes.get(name, KnownChange()).withdrawn_from
        }

    def lacks(self, device: str, name: str) -> bool:
        """Tell whether a device does not answer, or never had a change: it must not get it."""
        status = self.states.get(device)
        return status is None or name not in (status.confirmed, *status.passed)

    def unknown(self) -> dict[str, str]:
        """Return device -> the change that it holds and whose devices nobody knows."""
        return {d: name for d, name in self.held.items() if name != FIRST and not self.known(name)}

    def known(self, name: str) -> bool:
        """Tell whether an agent or the log knows the devices of a change."""
        return bool(self.members(name)) or name in self.expected.begun

    def split(self) -> dict[str, str]:
        """Return device -> what it is to hold, where it holds something else.

        The log adds what no agent can know: a decision that reached none of those it concerned.
        """
        found = dict.fromkeys(self.ahead(), BEFORE) | self.behind()
        for device, wanted in self.expected.astray(self.held).items():
            if wanted in self.foreign:
                continue
            held, stack = self.held[device], self.expected.stacks.get(device, [])
            ended = device in self.expected.ended.get(held, ())
            below = held == FIRST or held in stack
            # another controller may have confirmed, or undone, what this log leaves open
            undone = device in self.changes.get(wanted, KnownChange()).withdrawn_from
            if ended or (below and not undone):
                found.setdefault(device, wanted)
        return found

    def problems(self) -> dict[str, dict[str, str]]:
        """Return condition -> device -> why it is not healthy; empty for a healthy fleet."""
        states = self.states.items()
        found: dict[str, dict[str, str]] = {
            "silent": {d: str(error) for d, error in self.silent.items()},
            **{
                state: {d: s.problem or s.transaction for d, s in states if s.state == state}
                for state in ("applied", "broken", "drifted")
            },
            "split": {d: f"to hold {wanted}" for d, wanted in self.split().items()},
            "unknown": {d: f"holds {name}" for d, name in self.unknown().items()},
            "audit": {"this controller": self.log_broken} if self.log_broken else {},
        }
        return {condition: own for condition, own in found.items() if own}

    def remedies(self) -> list[str]:
        """Return, for each condition, the command that mends it."""
        names = {*self.unknown().values()}
        return [
            f"{WORDS.get(condition, condition)} ({_some(own)}): "
            + REMEDIES[condition].format(
                devices=" --device ".join(own) if "--device" in REMEDIES[condition] else _some(own),
                names=_some(sorted(names)),
            )
            for condition, own in self.problems().items()
        ]

    def newest(self, devices: Iterable[str]) -> str:
        """Return the change that `hw rollback` undoes on some devices; empty if there is none.

        One that devices hold and are not to have comes first.
        """
        chosen, begun = set(devices), self.expected.begun
        held = {device: name for device, name in self.held.items() if device in chosen}
        behind = {name for device, name in self.split().items() if device in chosen} - {BEFORE}
        ahead = {name for device, name in self.ahead().items() if device in chosen}
        ahead |= {n for device, n in held.items() if device in self.expected.ended.get(n, ())}
        known = ahead or {*held.values(), *behind} - {FIRST}
        order = begun.index if known <= set(begun) else begun_ms
        return max(known, key=order, default="")


def _had(status: Any, name: str) -> bool:
    """Tell whether a device went on from a change; one that went below it did not."""
    before = list(status.passed)
    if name not in before:  # nor if the journal had to forget it
        return len(before) > 1 and 0 < begun_ms(name) < begun_ms(before[0])
    below = status.confirmed in before[: before.index(name)]
    return not below


def _some(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return ", ".join(known[:MOST_NAMED]) + more


def read_fleet_state(agents: Connections, log: AuditLog) -> FleetState:
    """Ask all agents, and read the log, which may be lost, cut off or another fleet's."""
    states, silent = agents.states()
    held = {device: status.confirmed for device, status in states.items()}
    changes = {n: ask_change(agents, states, n) for n in sorted({*held.values()} - {FIRST})}
    try:
        expected, broken = log.expected(), log.broken()
    except DcqcnGymError as error:  # a disk that fails must not hide what agents know
        return FleetState(states, silent, changes, Expected(), str(error))
    wanted = {*expected.astray(held).values()} - {FIRST, BEFORE, *changes}
    withdrawn = {name for status in states.values() for name in status.withdrawn}
    for name in sorted(wanted & withdrawn):  # whom it was withdrawn from, any agent may know
        changes[name] = ask_change(agents, states, name)
    foreign = frozenset(n for n in wanted - withdrawn if not _had_by_any(agents, states, n))
    if foreign and not broken:
        broken = (
            f"it decided {_some(sorted(foreign))}, which no agent ever had: another fleet's log"
        )
    return FleetState(states, silent, changes, expected, broken, foreign)


def _had_by_any(agents: Connections, states: Mapping[str, Any], name: str) -> bool:
    """Tell whether an agent ever had a change on trial, as every decided one was before."""
    found, failed = agents.ask_each("Change", dict.fromkeys(states, pb.Named(transaction=name)))
    return bool(failed) or any(answer.members for answer in found.values())


def ask_change(agents: Connections, states: Mapping[str, Any], name: str) -> KnownChange:
    """Return what all agents together know of a change.

    One that holds it tells its devices, and those that know of an end tell that.
    """
    holders = [d for d, s in states.items() if name in (s.confirmed, s.transaction)]
    ended = [d for d, s in states.items() if name in s.withdrawn]
    request = pb.Named(transaction=name)
    found, _ = agents.ask_each("Change", dict.fromkeys([*ended, *holders[:1]], request))
    if not any(answer.members for answer in found.values()):
        rest, _ = agents.ask_each("Change", dict.fromkeys(holders[1:], request))
        found |= rest
    members: set[str] = set()
    withdrawn: set[str] = set()
    before = ""
    for answer in found.values():
        members |= set(unpacked(answer.members))
        withdrawn |= set(unpacked(answer.withdrawn_from))
        before = before or answer.predecessor
    return KnownChange(frozenset(members), frozenset(withdrawn), before)
