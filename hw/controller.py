"""The controller: one transaction over all devices of a fleet, and the figures of all of them.

Stage everywhere, apply everywhere on trial, confirm everywhere. If anything fails before the first
confirmation, everything is rolled back; after it, those that confirmed go back to the setting
before. An agent that cannot be reached for that goes back by itself when its trial ends.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, DeviceError, StateError
from dcqcn_gym.core.files import parse_json
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.service import METHODS, PROTOCOL, SERVICE, wanted_targets
from dcqcn_gym.hw.audit import AuditLog
from dcqcn_gym.hw.client import AgentClient, Call, UnreachableError, channel_credentials
from dcqcn_gym.hw.drivers import Line, Targets
from dcqcn_gym.hw.fleet import Fleet
from dcqcn_gym.hw.freeze import frozen_by
from dcqcn_gym.hw.gather import Gathered, Gatherer
from dcqcn_gym.hw.transaction import confirmed_before

__all__ = ["AT_ONCE", "Controller", "Dispatch"]

AT_ONCE = 128
"""Calls that are under way at a time; every one has threads of its own."""


@dataclass(frozen=True)
class Dispatch:
    """What became of a change."""

    transaction: str
    changed: tuple[str, ...]
    """Devices that hold another setting now."""
    skew_s: float
    """Time between the first and the last device that had applied it, as the controller saw it."""
    needs_reset: tuple[str, ...]
    """Those of them that take it only at their next reset."""


class Controller:
    """Talks to every agent of a fleet at once: created -> open -> closed."""

    def __init__(
        self,
        fleet: Fleet,
        folder: Path,
        connect: Callable[..., AgentClient] = AgentClient,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``connect`` makes the connection to an agent; tests put a network's faults there.

        ``now`` tells the time of the day, for freeze windows; ``clock`` seconds, for everything
        else.
        """
        self._fleet, self._folder, self._now = fleet, folder, now
        self._connect, self._clock = connect, clock
        self._audit = AuditLog(folder / fleet.audit, fleet.operator)
        self._gatherer = Gatherer(self._begin)
        self._clients: dict[str, AgentClient] = {}
        self.descriptions: dict[str, Any] = {}

    @property
    def nics(self) -> list[str]:
        """Names of the NICs, in the order of the scenario's hosts."""
        return [member.name for member in self._fleet.nics]

    @property
    def switches(self) -> list[str]:
        """Names of the switches, in the order of the scenario's."""
        return [member.name for member in self._fleet.switches]

    @property
    def addresses(self) -> dict[str, str]:
        """Device -> where its agent listens."""
        return {m.name: m.address for m in (*self._fleet.nics, *self._fleet.switches)}

    @property
    def message_bytes(self) -> dict[str, tuple[int, int]]:
        """Device -> bytes of messages sent and received so far."""
        return {name: (c.sent, c.received) for name, c in self._clients.items()}

    def open(self, *, lenient: bool = False) -> None:
        """Connect to all agents and ask who they are; raise if one is not what the file says.

        ``lenient`` goes on without those that do not answer; ``descriptions`` has the others.
        """
        credentials = channel_credentials(self._fleet.tls, self._folder)
        for member in (*self._fleet.nics, *self._fleet.switches):
            self._clients[member.name] = self._connect(
                member, SERVICE, METHODS, credentials, dscp=self._fleet.dscp,
                timeout_s=self._fleet.timeout_s, attempts=self._fleet.attempts, clock=self._clock,
            )  # fmt: skip
        calls = self._begin("Describe", dict.fromkeys(self._clients, pb.Nothing()))
        self.descriptions, failed = _each(calls)
        for error in failed.values():
            if not (lenient and isinstance(error, UnreachableError)):
                raise error
        for name, found in self.descriptions.items():
            self._check(name, found, "nic" if name in set(self.nics) else "switch")

    def _check(self, name: str, found: Any, kind: str) -> None:
        if found.protocol != PROTOCOL:
            raise ConfigError(
                f"agent {name} speaks version {found.protocol} of the protocol (package "
                f"{found.version}), this controller version {PROTOCOL}; install the same package"
            )
        if found.dscp in self._fleet.lossless_dscp:
            raise ConfigError(
                f"agent {name} sends with dscp = {found.dscp}, one of lossless_dscp: its packets "
                "would share the queue that is tuned; give it another one in its file"
            )
        if (found.device, found.kind) != (name, kind):
            raise ConfigError(
                f"agent {name} has the {found.kind} {found.device!r}; expected the {kind} {name!r}"
            )

    def ask_all(
        self, method: str, request: Any, names: Iterable[str] | None = None
    ) -> dict[str, Any]:
        """Make a call to all agents (or ``names``) at once; raise the first error if one fails."""
        chosen = list(self._clients) if names is None else list(names)
        return _all(self._begin(method, dict.fromkeys(chosen, request)))

    def plan(self, targets: Mapping[str, Targets]) -> dict[str, Any]:
        """Return device -> what would change; nothing changes."""
        return _all(self._begin("Plan", self._wanted("plan", targets, "")))

    def carry_out(self, targets: Mapping[str, Targets], why: str) -> Dispatch:
        """Change devices, all or none; raise the first error after everything was taken back.

        In a freeze window StateError, before anything is staged.
        """
        self._refuse_in_a_freeze()
        return self._carry_out(targets, why)

    def _carry_out(self, targets: Mapping[str, Targets], why: str) -> Dispatch:
        done = self._try_out(targets, why, self._fleet.trial_s)
        self.confirm(done.transaction, done.changed, why)
        return done

    def put_back(self, targets: Mapping[str, Targets], why: str) -> None:
        """Give devices a setting, at once or else one by one, past those that fail.

        Raises DeviceError for these at the end.
        """
        if set(targets) <= set(self.descriptions):
            with contextlib.suppress(DcqcnGymError):
                self._carry_out(targets, why)
                return
        failed: list[str] = []
        for device, wanted in targets.items():
            try:
                if device not in self.descriptions:
                    raise UnreachableError(f"agent {device} does not answer")
                self._carry_out({device: wanted}, why)
            except DcqcnGymError as error:
                failed.append(str(error))
        if failed:
            raise DeviceError(f"{len(failed)} devices could not be put back; first: {failed[0]}")

    def try_out(
        self, targets: Mapping[str, Targets], why: str, trial_s: float | None = None
    ) -> Dispatch:
        """Put a change on trial everywhere; it ends by itself unless :meth:`confirm` follows."""
        self._refuse_in_a_freeze()
        return self._try_out(targets, why, self._fleet.trial_s if trial_s is None else trial_s)

    def _refuse_in_a_freeze(self) -> None:
        window = frozen_by(self._fleet.freeze_utc, self._now())
        if window:
            raise StateError(
                f"the fleet is frozen ({window} UTC, freeze_utc of its file): nothing may change; "
                "what was changed before may still be taken back"
            )

    def _try_out(self, targets: Mapping[str, Targets], why: str, seconds: float) -> Dispatch:
        name = uuid.uuid4().hex[:16]
        self._audit.write(
            {"event": "begin", "transaction": name, "why": why, "devices": len(targets)}
        )
        changing: list[str] = []
        try:
            staged = _all(self._begin("Stage", self._wanted(name, targets, why)))
            changing = [device for device, plan in staged.items() if plan.lines]
            changes = {d: {x.place: x.after for x in staged[d].lines} for d in changing}
            self._audit.write({"event": "apply", "transaction": name, "changes": changes})
            skew = self._apply(changing, pb.Trial(transaction=name, revert_after_s=seconds))
        except DcqcnGymError as error:
            self._take_back(name, changing, [], str(error))
            raise
        later = tuple(d for d in changing if any(x.needs_reset for x in staged[d].lines))
        return Dispatch(name, tuple(changing), skew, later)

    def confirm(self, name: str, devices: Iterable[str], why: str) -> None:
        """Keep what is on trial on all these devices, or take it back everywhere and raise."""
        confirmed: list[str] = []
        chosen = list(devices)
        try:
            self._confirm(chosen, self._named(name, why), confirmed)
        except DcqcnGymError as error:
            self._take_back(name, chosen, confirmed, str(error))
            raise
        self._audit.write(
            {"event": "confirmed", "transaction": name, "why": why, "devices": chosen}
        )

    def _apply(self, names: list[str], trial: Any) -> float:
        """Apply everywhere, in the order of the fleet's file.

        Return the time between the first answer and the last; raise if it is beyond the bound.
        """
        answered: list[float] = []
        failed: list[DcqcnGymError] = []
        for _, call in self._begin("Apply", dict.fromkeys(names, trial)):
            try:
                call.result()
                answered.append(call.answered_s)
            except DcqcnGymError as error:
                failed.append(error)
        if failed:
            raise failed[0]
        skew, most = (
            max(answered, default=0.0) - min(answered, default=0.0),
            self._fleet.most_skew_s,
        )
        if most is not None and skew > most:
            raise DeviceError(
                f"the devices followed over {skew:.3g} s, more than most_skew_s = {most:g} of the "
                "fleet's file; all were taken back"
            )
        return skew

    def _confirm(self, names: list[str], named: Any, confirmed: list[str]) -> None:
        failed: list[DcqcnGymError] = []
        for name, call in self._begin("Confirm", dict.fromkeys(names, named)):
            try:
                call.result()
                confirmed.append(name)
            except UnreachableError as error:
                confirmed.append(name)  # perhaps: to undo it is safe either way
                failed.append(error)
            except DcqcnGymError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def _take_back(self, name: str, applied: list[str], confirmed: list[str], why: str) -> None:
        """Take everything back; an agent out of reach does so by itself when its trial ends."""
        named = self._named(name, f"taken back: {why[:400]}")
        calls = chain(
            self._begin("Rollback", dict.fromkeys(applied, named)),
            self._begin("Undo", dict.fromkeys(confirmed, named)),
        )
        left = []
        for device, call in calls:
            try:
                call.result()
            except DcqcnGymError as error:
                left.append(f"{device}: {error}")
        self._audit.write({"event": "taken back", "transaction": name, "why": why,
                           "undone": confirmed, "left_to_their_timers": left})  # fmt: skip

    def rollback(self, why: str) -> None:
        """Send every device back to its confirmed setting."""
        self._audit.write({"event": "rollback", "why": why})
        self.ask_all("Rollback", self._named("", why))

    def undo(self, name: str, why: str) -> list[str]:
        """Undo a confirmed transaction on every device where it is the newest; name those."""
        chosen = self._where_newest(name)
        self._audit.write({"event": "undo", "transaction": name, "why": why, "devices": chosen})
        self.ask_all("Undo", self._named(name, why), chosen)
        return chosen

    def newest(self) -> str:
        """Return the newest confirmed transaction of this fleet that was not undone; or empty."""
        return self._audit.newest()

    def undoing(self, name: str) -> dict[str, list[Line]]:
        """Return device -> what :meth:`undo` would change; nothing changes."""
        found = {}
        chosen = self._where_newest(name)
        for device, events in self.ask_all("History", pb.Nothing(), chosen).items():
            records = [parse_json(event) for event in events.json]
            before = confirmed_before(records, name)["values"]
            held = next(r for r in reversed(records) if r["event"] == "confirmed")["values"]
            found[device] = [
                Line(place, "", "", held[place], text)
                for place, text in before.items()
                if held[place] != text
            ]
        return found

    def _where_newest(self, name: str) -> list[str]:
        """Return the devices whose newest confirmed transaction this is."""
        states = self.ask_all("Status", pb.Nothing())
        return [device for device, status in states.items() if status.confirmed == name]

    def stop(self, on: bool, why: str) -> None:
        """Send every device back and have it refuse changes, or allow them again."""
        self._audit.write({"event": "stop", "on": on, "why": why})
        self.ask_all("Stop", pb.Switch(on=on, who=self._fleet.operator, why=why))

    def start_loads(self, jobs: Mapping[str, Any]) -> None:
        """Begin load on devices, on all or on none; raise the first error."""
        started, failed = _each(self._begin("StartLoad", jobs))
        for error in failed.values():
            _each(self._begin("StopLoad", dict.fromkeys(started, pb.Nothing())))
            raise error

    def gather(self, interval: int = 0) -> Gathered:
        """Return the figures of now; ``interval`` is the number of the one that ends."""
        return self._gatherer.gather(self._clients, interval)

    def close(self) -> None:
        """Close every connection; allowed in every state."""
        for client in self._clients.values():
            client.close()
        self._clients = {}

    def _begin(self, method: str, requests: Mapping[str, Any]) -> Iterator[tuple[str, Call]]:
        """Yield every device and its call, :data:`AT_ONCE` of them under way at a time.

        Whoever takes one waits for its answer before the next.
        """
        names = list(requests)
        begun: list[Call] = []
        for i, name in enumerate(names):
            for ahead in names[len(begun) : i + AT_ONCE]:
                begun.append(self._clients[ahead].call(method, requests[ahead]))
            yield name, begun[i]

    def _wanted(self, name: str, targets: Mapping[str, Targets], why: str) -> dict[str, Any]:
        who = self._fleet.operator
        return {
            device: pb.Wanted(transaction=name, targets=wanted_targets(t), who=who, why=why)
            for device, t in targets.items()
        }

    def _named(self, name: str, why: str) -> Any:
        return pb.Named(transaction=name, who=self._fleet.operator, why=why)


def _all(calls: Iterable[tuple[str, Call]]) -> dict[str, Any]:
    """Wait for all; raise the first error, once none is under way any more."""
    found, failed = _each(calls)
    for error in failed.values():
        raise error
    return found


def _each(calls: Iterable[tuple[str, Call]]) -> tuple[dict[str, Any], dict[str, DcqcnGymError]]:
    """Wait for all; return the answers and the errors."""
    found: dict[str, Any] = {}
    failed: dict[str, DcqcnGymError] = {}
    for name, call in calls:
        try:
            found[name] = call.result()
        except DcqcnGymError as error:
            failed[name] = error
    return found, failed
