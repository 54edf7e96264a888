"""The controller: one transaction over all devices of a fleet, and the figures of all of them.

Stage everywhere, apply everywhere on trial, confirm everywhere. If anything fails before the first
confirmation, everything is rolled back; after it, those that confirmed go back to the setting
before. An agent that cannot be reached for that goes back by itself when its trial ends.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, DeviceError
from dcqcn_gym.core.sums import count
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.service import METHODS, PROTOCOL, SERVICE, wanted_targets
from dcqcn_gym.hw.client import AgentClient, Call, UnreachableError, channel_credentials
from dcqcn_gym.hw.drivers import Targets
from dcqcn_gym.hw.fleet import Fleet

__all__ = ["Controller", "Dispatch"]


@dataclass(frozen=True)
class Dispatch:
    """What became of a change."""

    transaction: str
    changed: tuple[str, ...]
    """Devices that hold another setting now."""
    skew_s: float
    """Time between the first and the last device that had applied it, as the controller saw it."""


class Controller:
    """Talks to every agent of a fleet at once: created -> open -> closed."""

    def __init__(
        self, fleet: Fleet, folder: Path, connect: Callable[..., AgentClient] = AgentClient
    ) -> None:
        """``connect`` makes the connection to an agent; tests put a network's faults there."""
        self._fleet, self._folder = fleet, folder
        self._connect = connect
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
    def message_bytes(self) -> tuple[int, int]:
        """Bytes of messages sent and received so far."""
        clients = self._clients.values()
        return count(c.sent for c in clients), count(c.received for c in clients)

    def open(self) -> None:
        """Connect to all agents and ask who they are; raise if one is not what the file says."""
        credentials = channel_credentials(self._fleet.tls, self._folder)
        for member in (*self._fleet.nics, *self._fleet.switches):
            self._clients[member.name] = self._connect(
                member, SERVICE, METHODS, credentials, dscp=self._fleet.dscp,
                timeout_s=self._fleet.timeout_s, attempts=self._fleet.attempts,
            )  # fmt: skip
        self.descriptions = self.ask_all("Describe", pb.Nothing())
        for name, found in self.descriptions.items():
            self._check(name, found, "nic" if name in set(self.nics) else "switch")

    def _check(self, name: str, found: Any, kind: str) -> None:
        if found.protocol != PROTOCOL:
            raise ConfigError(
                f"agent {name} speaks version {found.protocol} of the protocol (package "
                f"{found.version}), this controller version {PROTOCOL}; install the same package"
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
        """Change devices, all or none; raise the first error after everything was taken back."""
        name = uuid.uuid4().hex[:16]
        self._write({"event": "begin", "transaction": name, "why": why, "devices": len(targets)})
        applied: list[str] = []
        confirmed: list[str] = []
        try:
            staged = _all(self._begin("Stage", self._wanted(name, targets, why)))
            changing = [device for device, plan in staged.items() if plan.lines]
            applied = changing
            trial = pb.Trial(transaction=name, revert_after_s=self._fleet.trial_s)
            skew = self._apply(changing, trial)
            self._confirm(changing, self._named(name, why), confirmed)
        except DcqcnGymError as error:
            self._undo(name, applied, confirmed, str(error))
            raise
        changes = {d: {x.place: x.after for x in staged[d].lines} for d in changing}
        self._write({"event": "confirmed", "transaction": name, "why": why, "changes": changes})
        return Dispatch(name, tuple(changing), skew)

    def _apply(self, names: list[str], trial: Any) -> float:
        """Apply everywhere; return the time between the first answer and the last."""
        first = last = 0.0
        failed: list[DcqcnGymError] = []
        for call in self._begin("Apply", dict.fromkeys(names, trial)).values():
            try:
                call.result()
            except DcqcnGymError as error:
                failed.append(error)
            last = time.monotonic()
            first = first or last
        if failed:
            raise failed[0]
        return last - first

    def _confirm(self, names: list[str], named: Any, confirmed: list[str]) -> None:
        failed: list[DcqcnGymError] = []
        for name, call in self._begin("Confirm", dict.fromkeys(names, named)).items():
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

    def _undo(self, name: str, applied: list[str], confirmed: list[str], why: str) -> None:
        """Take everything back; an agent out of reach does so by itself when its trial ends."""
        named = self._named(name, f"taken back: {why[:400]}")
        back = pb.Steps(back=1, confirmed=name, who=named.who, why=named.why)
        rest = [device for device in applied if device not in confirmed]
        calls = [
            *self._begin("Rollback", dict.fromkeys(applied, named)).items(),
            *self._begin("Restore", dict.fromkeys(confirmed, back)).items(),
        ]
        left = []
        for device, call in calls:
            try:
                call.result()
            except DcqcnGymError as error:
                left.append(f"{device}: {error}")
        self._write({"event": "undone", "transaction": name, "why": why, "rolled_back": rest,
                     "restored": confirmed, "left_to_their_timers": left})  # fmt: skip

    def rollback(self, why: str) -> None:
        """Send every device back to its confirmed setting."""
        self._write({"event": "rollback", "why": why})
        self.ask_all("Rollback", self._named("", why))

    def restore(self, back: int, why: str) -> None:
        """Send every device to the setting that it had ``back`` confirmed changes ago."""
        self._write({"event": "restore", "why": why, "back": back})
        steps = pb.Steps(back=back, who=self._fleet.operator, why=why)
        self.ask_all("Restore", steps)

    def stop(self, on: bool, why: str) -> None:
        """Send every device back and have it refuse changes, or allow them again."""
        self._write({"event": "stop", "on": on, "why": why})
        self.ask_all("Stop", pb.Switch(on=on, who=self._fleet.operator, why=why))

    def counters(self) -> dict[str, dict[str, int]]:
        """Return device -> figures of now."""
        return {n: dict(f.values) for n, f in self.ask_all("Counters", pb.Nothing()).items()}

    def close(self) -> None:
        """Close every connection; allowed in every state."""
        for client in self._clients.values():
            client.close()
        self._clients = {}

    def _begin(self, method: str, requests: Mapping[str, Any]) -> dict[str, Call]:
        return {name: self._clients[name].call(method, r) for name, r in requests.items()}

    def _wanted(self, name: str, targets: Mapping[str, Targets], why: str) -> dict[str, Any]:
        who = self._fleet.operator
        return {
            device: pb.Wanted(transaction=name, targets=wanted_targets(t), who=who, why=why)
            for device, t in targets.items()
        }

    def _named(self, name: str, why: str) -> Any:
        return pb.Named(transaction=name, who=self._fleet.operator, why=why)

    def _write(self, record: dict[str, Any]) -> None:
        """Add a line to the audit log; raise DeviceError if it cannot be kept."""
        line = json.dumps({"unix_s": time.time(), "who": self._fleet.operator, **record})
        path = self._folder / self._fleet.audit
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            raise DeviceError(
                f"{path}: the audit log cannot be written ({error.strerror or error})"
            ) from None


def _all(calls: Mapping[str, Call]) -> dict[str, Any]:
    """Wait for all; raise the first error, once none is under way any more."""
    found: dict[str, Any] = {}
    failed: list[DcqcnGymError] = []
    for name, call in calls.items():
        try:
            found[name] = call.result()
        except DcqcnGymError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    return found
