"""The controller: one transaction over all devices of a fleet, and every way back.

Stage everywhere, apply everywhere on trial, confirm everywhere. If anything fails before the first
confirmation, or Ctrl-C comes, everything is rolled back; after it, those that confirmed go back
to the setting before. An agent that cannot be reached for that goes back by itself when its trial
ends.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import DcqcnGymError, DeviceError, StateError
from dcqcn_gym.core.files import parse_json
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.service import targets_of, wanted_targets
from dcqcn_gym.hw.audit import AuditLog
from dcqcn_gym.hw.client import AgentClient, UnreachableError
from dcqcn_gym.hw.connections import Connections, all_of, each_of
from dcqcn_gym.hw.drivers import Line, Targets
from dcqcn_gym.hw.fleet import Fleet
from dcqcn_gym.hw.freeze import frozen_by
from dcqcn_gym.hw.transaction import confirmed_before
from dcqcn_gym.hw.unbroken import unbroken

__all__ = ["Began", "Controller", "Dispatch"]


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


@dataclass(frozen=True)
class Began:
    """Where a fleet was when a tuning run began, for the way back."""

    targets: Mapping[str, Targets]
    run: str = ""
    """Its name in the audit log."""
    confirmed: Mapping[str, str] = field(default_factory=dict)
    """Device -> the transaction whose setting it held."""


class Controller(Connections):
    """Changes every device of a fleet at once: created -> open -> closed."""

    def __init__(
        self,
        fleet: Fleet,
        folder: Path,
        connect: Callable[..., AgentClient] = AgentClient,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``now`` tells the time of the day, for freeze windows; ``clock`` seconds, for the rest.

        ``connect`` makes the connection to an agent.
        """
        super().__init__(fleet, folder, connect, clock)
        self._now = now
        self._audit = AuditLog(folder / fleet.audit, fleet.operator)

    def plan(self, targets: Mapping[str, Targets]) -> dict[str, Any]:
        """Return device -> what would change; nothing changes."""
        return all_of(self._begin("Plan", self._wanted("plan", targets, "")))

    def carry_out(self, targets: Mapping[str, Targets], why: str) -> Dispatch:
        """Change devices, all or none; raise the first error after everything was taken back.

        In a freeze window StateError, before anything is staged.
        """
        self._refuse_in_a_freeze()
        done = self._try_out(targets, why, self._fleet.trial_s)
        self.confirm(done.transaction, done.changed, why)
        return done

    def begin_run(self, why: str) -> Began:
        """Note where the fleet is before a tuning run; :meth:`put_back` goes there again.

        Raises StateError if a device is not at its confirmed setting: it could not be left alone.
        """
        for device, plan in self.ask_all("Diff", pb.Nothing()).items():
            if plan.lines:
                raise StateError(
                    f"{device} is not at its confirmed setting (see `dcqcn-gym hw diff`); confirm "
                    "what is on trial, or take it back with `dcqcn-gym hw rollback --trial-only`"
                )
        read = self.ask_all("Read", pb.Nothing())
        states = self.ask_all("Status", pb.Nothing())
        began = Began(
            {device: targets_of(setting.targets) for device, setting in read.items()},
            uuid.uuid4().hex[:16],
            {device: status.confirmed for device, status in states.items()},
        )
        self._audit.write({"event": "run", "run": began.run, "why": why})
        return began

    def put_back(self, began: Began, why: str) -> None:
        """Give devices their setting before a run, at once or else one by one.

        What is still on trial goes back first. Devices that fail are passed over, and named by a
        DeviceError at the end.
        """
        self._end_trials(began.targets, why)
        if set(began.targets) <= set(self.descriptions):
            with contextlib.suppress(DcqcnGymError):
                self._restore(began, began.targets, why)
                self._audit.write({"event": "put back", "run": began.run, "why": why})
                return
        failed: list[str] = []
        for device, wanted in began.targets.items():
            try:
                if device not in self.descriptions:
                    raise UnreachableError(f"agent {device} does not answer")
                self._restore(began, {device: wanted}, why)
            except DcqcnGymError as error:
                failed.append(str(error))
        if failed:
            raise DeviceError(f"{len(failed)} devices could not be put back; first: {failed[0]}")
        self._audit.write({"event": "put back", "run": began.run, "why": why})

    def _end_trials(self, devices: Iterable[str], why: str) -> None:
        """Send back what a run that was interrupted left on trial; nothing else may be staged then.

        An agent that does not answer is passed over: it fails again where that is said.
        """
        known = [device for device in devices if device in self.descriptions]
        states, _ = each_of(self._begin("Status", dict.fromkeys(known, pb.Nothing())))
        trials = {d: s.transaction for d, s in states.items() if s.state == "applied"}
        each_of(self._begin("Rollback", {d: self._named(t, why) for d, t in trials.items()}))

    def _restore(self, began: Began, targets: Mapping[str, Targets], why: str) -> None:
        """Go back in one transaction, a freeze or not; no undo ever offers it."""
        done = self._try_out(targets, why, self._fleet.trial_s, began.confirmed)
        self.confirm(done.transaction, done.changed, why, event="restored")

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

    def _try_out(
        self,
        targets: Mapping[str, Targets],
        why: str,
        seconds: float,
        restores: Mapping[str, str] | None = None,
    ) -> Dispatch:
        name = uuid.uuid4().hex[:16]
        self._audit.write(
            {"event": "begin", "transaction": name, "why": why, "devices": len(targets)}
        )
        changing: list[str] = []
        try:
            staged = all_of(self._begin("Stage", self._wanted(name, targets, why, restores)))
            changing = [device for device, plan in staged.items() if plan.lines]
            changes = {d: {x.place: x.after for x in staged[d].lines} for d in changing}
            self._audit.write({"event": "apply", "transaction": name, "changes": changes})
            skew = self._apply(changing, pb.Trial(transaction=name, revert_after_s=seconds))
        except BaseException as error:  # Ctrl-C, too: what has been applied must not stay
            self.take_back(name, changing, _reason(error), confirmed=[])
            raise
        later = tuple(d for d in changing if any(x.needs_reset for x in staged[d].lines))
        return Dispatch(name, tuple(changing), skew, later)

    def devices_of(self, name: str) -> list[str]:
        """Return the devices that a transaction changed, as the audit log has it."""
        return self._audit.devices_of(name)

    def confirm(
        self, name: str, devices: Iterable[str], why: str, *, event: str = "confirmed"
    ) -> None:
        """Keep what is on trial on all these devices, or take it back everywhere and raise."""
        chosen, refused = list(devices), set[str]()
        try:
            self._confirm(chosen, self._named(name, why), refused)
        except BaseException as error:
            perhaps = [device for device in chosen if device not in refused]
            self.take_back(name, chosen, _reason(error), confirmed=perhaps)
            raise
        self._audit.write({"event": event, "transaction": name, "why": why, "devices": chosen})

    def _apply(self, names: list[str], trial: Any) -> float:
        """Apply everywhere, in the order of the fleet's file.

        Return the time between the first answer and the last; raise if it is beyond the bound.
        """
        answered: list[float] = []
        failed: list[DcqcnGymError] = []
        with unbroken():
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

    def _confirm(self, names: list[str], named: Any, refused: set[str]) -> None:
        """Confirm everywhere; ``refused`` gets those that surely did not, whatever ends this."""
        failed: list[DcqcnGymError] = []
        with unbroken():
            for name, call in self._begin("Confirm", dict.fromkeys(names, named)):
                try:
                    call.result()
                except DcqcnGymError as error:
                    if not isinstance(error, UnreachableError):
                        refused.add(name)  # no answer may mean that it confirmed: undone anyway
                    failed.append(error)
        if failed:
            raise failed[0]

    def take_back(self, name: str, applied: list[str], why: str, confirmed: list[str]) -> None:
        """Take everything back; an agent out of reach does so by itself when its trial ends.

        ``confirmed`` are those that may have confirmed: there the change is undone.
        """
        named = self._named(name, f"taken back: {why[:400]}")
        with unbroken():  # both, whatever comes
            _, kept = each_of(self._begin("Rollback", dict.fromkeys(applied, named)))
            _, held = each_of(self._begin("Undo", dict.fromkeys(confirmed, named)))
            left = [f"{device}: {error}" for device, error in (*kept.items(), *held.items())]
            self._audit.write({"event": "taken back", "transaction": name, "why": why,
                               "undone": confirmed, "left_to_their_timers": left})  # fmt: skip

    def rollback(self, why: str) -> None:
        """Send every device back to its confirmed setting."""
        self._audit.write({"event": "rollback", "why": why})
        self.ask_all("Rollback", self._named("", why))

    def undo(self, name: str, why: str) -> list[str]:
        """Undo a confirmed transaction on every device where it is the newest; name those.

        Raises DeviceError with those that are not back; the same again goes on with them.
        """
        chosen = self._where_newest(name)
        record = {"transaction": name, "why": why, "devices": chosen}
        self._audit.write({"event": "undoing", **record})
        calls = self._begin("Undo", dict.fromkeys(chosen, self._named(name, why)))
        _, failed = each_of(calls)
        if failed:
            said = {device: str(error) for device, error in failed.items()}
            self._audit.write({"event": "undo failed", **record, "left": said})
            raise DeviceError(
                f"{len(failed)} of {len(chosen)} devices are not back ({', '.join(failed)}); roll "
                f"back once more to go on with these; first: {next(iter(said.values()))}"
            )
        self._audit.write({"event": "undo", **record})
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

    def stop(self, on: bool, why: str) -> tuple[dict[str, Any], dict[str, DcqcnGymError]]:
        """Send every device back and have it refuse changes, or allow them again.

        Return the status of each device afterwards, and the error of each that did not answer: in
        an emergency one of them must not keep the others from stopping.
        """
        request = pb.Switch(on=on, who=self._fleet.operator, why=why)
        found = each_of(self._begin("Stop", dict.fromkeys(self._clients, request)))
        self._audit.write({"event": "stop", "on": on, "why": why, "left": list(found[1])})
        return found

    def _wanted(
        self,
        name: str,
        targets: Mapping[str, Targets],
        why: str,
        restores: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        who, former = self._fleet.operator, restores or {}
        return {
            device: pb.Wanted(
                transaction=name, targets=wanted_targets(t), who=who, why=why,
                restores=former.get(device, ""),
            )
            for device, t in targets.items()
        }  # fmt: skip

    def _named(self, name: str, why: str) -> Any:
        return pb.Named(transaction=name, who=self._fleet.operator, why=why)


def _reason(error: BaseException) -> str:
    """Return why a change ended, for journals and the audit log."""
    return str(error) if isinstance(error, DcqcnGymError) else "the controller was interrupted"
