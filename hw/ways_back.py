"""Every way back of a fleet: of a change, of a trial, of a confirmed one, of a run, and the stop.

Each goes to all devices at once, passes over those that are dead, ill or strangers, and tells
device by device what is left. Nothing here depends on all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, DeviceError, StateError, quote
from dcqcn_gym.core.files import parse_json
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.service import targets_of, wanted_targets
from dcqcn_gym.hw.audit import AuditLog, Expected
from dcqcn_gym.hw.client import AgentClient
from dcqcn_gym.hw.connections import Connections, each_of
from dcqcn_gym.hw.drivers import Line, Targets
from dcqcn_gym.hw.fleet import Fleet
from dcqcn_gym.hw.journal import confirmed_before
from dcqcn_gym.hw.standing import new_name
from dcqcn_gym.hw.unbroken import unbroken

Left = dict[str, DcqcnGymError]
"""Device -> why it was not done."""

BACK_S = 600.0
"""Trial of what leads back: slow agents must not end it, and where it leads does no harm."""


@dataclass(frozen=True)
class Began:
    """Where a fleet was when a tuning run began, for the way back."""

    targets: Mapping[str, Targets]
    run: str = ""
    """Its name in the audit log."""
    confirmed: Mapping[str, str] = field(default_factory=dict)
    """Device -> the transaction whose setting it held."""


class WaysBack(Connections):
    """A fleet's connections, and what leads back: created -> open -> closed."""

    def __init__(
        self,
        fleet: Fleet,
        folder: Path,
        connect: Callable[..., AgentClient] = AgentClient,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``connect`` makes the connection to an agent; ``clock`` tells seconds."""
        super().__init__(fleet, folder, connect, clock)
        self._audit = AuditLog(folder / fleet.audit, fleet.operator, fleet.syslog)
        self.unwritten = ""
        """Why the audit log lacks a way back; empty if it does not."""
        self.not_back: Left = {}
        """Devices that may hold a change that was taken back on all others, and why."""

    def _note(self, record: dict[str, Any]) -> None:
        """Write into the audit log; a way back goes on where that cannot be done."""
        try:
            self._audit.write(record)
        except DeviceError as error:
            self.unwritten = str(error)

    def states(self) -> tuple[dict[str, Any], Left]:
        """Return how every device stands, and why each of the others does not tell."""
        return self.ask_each("Status", dict.fromkeys(self._clients, pb.Nothing()))

    def take_back(self, name: str, applied: list[str], why: str, confirmed: list[str]) -> None:
        """Take everything back; an agent out of reach does so by itself when its trial ends.

        ``confirmed`` are those that may have confirmed: there the change is undone, and one that
        cannot be asked has no timer any more: :attr:`not_back` gets it.
        """
        named = self._named(name, f"taken back: {why[:400]}")
        with unbroken():  # both, whatever comes
            _, kept = each_of(self._begin("Rollback", dict.fromkeys(applied, named)))
            undone, held = each_of(self._begin("Undo", dict.fromkeys(confirmed, named)))
            self.not_back |= held
            timers = [f"{d}: {error}" for d, error in kept.items() if d not in confirmed]
            self._note({"event": "taken back", "transaction": name, "why": why,
                        "undone": list(undone), "left_to_their_timers": timers,
                        "left": {d: str(error) for d, error in held.items()}})  # fmt: skip

    def rollback(
        self, why: str, name: str = "", devices: Iterable[str] | None = None
    ) -> tuple[dict[str, Any], Left]:
        """Send devices (all, unless told) to their confirmed setting, or end the trial ``name``."""
        self._note({"event": "rollback", "transaction": name, "why": why})
        chosen = self._clients if devices is None else devices
        return self.ask_each("Rollback", dict.fromkeys(chosen, self._named(name, why)))

    def end_run(self, run: str, why: str) -> Left:
        """Send every device back to before a run; return those that may need its lease for that."""
        return self.rollback(why, run)[1]

    def undo(
        self, name: str, why: str, devices: Iterable[str] | None = None
    ) -> tuple[list[str], Left]:
        """Undo a confirmed transaction wherever it is the newest; return where, and what is left.

        Of ``devices`` alone, if told. The same again goes on with those that are left. Raises
        StateError, and nothing changes, if it is no device's newest one, or if another one is on
        trial there.
        """
        asked = list(self._clients if devices is None else devices)
        chosen, left = self._where_newest(name, asked)
        record = {"transaction": name, "why": why, "devices": chosen}
        self._note({"event": "undoing", **record})
        done, failed = self.ask_each("Undo", dict.fromkeys(chosen, self._named(name, why)))
        left |= failed
        said = {device: str(error) for device, error in left.items()}
        expected = self.expected()
        never = [d for d in asked if d not in chosen and expected.of(d) == name]
        record["devices"] = [*chosen, *never]
        self._note({"event": "undo failed" if left else "undo", **record, "left": said})
        return list(done), left

    def audit_broken(self) -> str:
        """Return where somebody changed the audit log, in words; empty if nobody did."""
        return self._audit.broken()

    def expected(self) -> Expected:
        """Return what the audit log says that devices are to hold."""
        return self._audit.expected()

    def newest(
        self, states: Mapping[str, Any] | None = None, devices: Iterable[str] | None = None
    ) -> str:
        """Return what `hw rollback` undoes: the newest confirmed transaction of these devices.

        Before it comes one that was taken back, or undone, and that a device of ``states`` holds
        all the same. Empty if there is none.
        """
        expected, chosen = self.expected(), list(self._clients if devices is None else devices)
        held = {s.confirmed for s in (states or {}).values()}
        decided = {expected.of(device) for device in chosen}
        astray = [n for n in reversed(expected.begun) if n in held and n not in decided]
        return next(iter(astray), "") or expected.newest(chosen)

    def undoing(
        self, name: str, devices: Iterable[str] | None = None
    ) -> tuple[dict[str, list[Line]], Left]:
        """Return device -> what :meth:`undo` would change, and what it would leave."""
        chosen, left = self._where_newest(name, list(self._clients if devices is None else devices))
        answers, failed = self.ask_each("History", dict.fromkeys(chosen, pb.Nothing()))
        found = {}
        for device, events in answers.items():
            records = [parse_json(event) for event in events.json]
            before = confirmed_before(records, name)["values"]
            held = next(r for r in reversed(records) if r["event"] == "confirmed")["values"]
            found[device] = [
                Line(place, "", "", held[place], text)
                for place, text in before.items()
                if held[place] != text
            ]
        return found, left | failed

    def _where_newest(self, name: str, asked: Collection[str]) -> tuple[list[str], Left]:
        """Return the devices whose newest confirmed transaction this is, and those that may."""
        states, silent = self.ask_each("Status", dict.fromkeys(asked, pb.Nothing()))
        chosen = [device for device, status in states.items() if status.confirmed == name]
        changed = self._audit.devices_of(name) or list(silent)
        left = {device: error for device, error in silent.items() if device in changed}
        if not chosen and name != self.newest(devices=asked):
            newest = sorted({status.confirmed for status in states.values()})
            raise StateError(
                f"transaction {quote(name)} is no device's newest confirmed change, so nothing was "
                f"changed; newest: {', '.join(newest) or 'not known, as no device answers'}"
            )
        for device in chosen:
            if states[device].state == "applied":
                raise StateError(
                    f"transaction {states[device].transaction} is on trial on {device}, so nothing "
                    "was changed; confirm it, or take it back with `dcqcn-gym hw rollback`"
                )
        return chosen, left

    def stop(self, on: bool, why: str) -> tuple[dict[str, Any], Left]:
        """Send every device back and have it refuse changes, or allow them again.

        It needs no :meth:`open`: nothing is asked first. Return the status of each device
        afterwards, and the error of each that did not answer.
        """
        request = pb.Switch(on=on, who=self._fleet.operator, why=why)
        found = self.ask_each("Stop", dict.fromkeys(self._clients, request))
        self._note({"event": "stop", "on": on, "why": why, "left": list(found[1])})
        return found

    def begin_run(self, why: str) -> Began:
        """Note where the fleet is before a tuning run; :meth:`put_back` goes there again.

        Raises StateError if a device is not at its confirmed setting: it could not be left alone.
        """
        for device, plan in self.ask_all("Diff", pb.Nothing()).items():
            if plan.lines:
                raise StateError(
                    f"{device} is not at its confirmed setting (see `dcqcn-gym hw status`); "
                    "confirm what is on trial, or take it back with "
                    "`dcqcn-gym hw rollback --trial-only`"
                )
        read = self.ask_all("Read", pb.Nothing())
        states = self.ask_all("Status", pb.Nothing())
        began = Began(
            {device: targets_of(setting.targets) for device, setting in read.items()},
            new_name(),
            {device: status.confirmed for device, status in states.items()},
        )
        record = {"event": "run", "run": began.run, "why": why, "began": list(began.targets)}
        self._audit.write(record)
        return began

    def begun_run(self) -> str:
        """Return the run that :meth:`begin_run` began last and that no step is of yet; or empty."""
        return self._audit.begun_run()

    def keep_of_run(self, run: str, name: str) -> None:
        """Note that the change ``name`` is what a run found; :meth:`kept_of` tells it later."""
        self._note({"event": "kept", "run": run, "transaction": name})

    def kept_of(self, run: str) -> str:
        """Return the change that kept a run's setting, or empty; ConfigError if none is known."""
        found = self._audit.kept_of(run)
        if found is None:
            raise ConfigError(f"run {quote(run)} is not in this fleet's audit log; see best.json")
        return found

    def put_back(self, began: Began, why: str) -> Left:
        """Give devices their setting before a run, all at once; return those that did not take it.

        What is still on trial goes back first. A device that fails keeps no other from going, is
        tried once more, and a freeze does not matter.
        """
        targets, left = dict(began.targets), Left()
        for _ in range(2):
            self._end_trials(targets, why)
            left = self._restore(began, targets, why)
            targets = {device: began.targets[device] for device in left}
            if not left:
                break
        said = {device: str(error) for device, error in left.items()}
        event = "not put back" if left else "put back"
        self._note({"event": event, "run": began.run, "why": why, "left": said})
        return left

    def _end_trials(self, devices: Mapping[str, Any], why: str) -> None:
        """Send back what a run that was interrupted left on trial; nothing else may be staged then.

        An agent that does not answer is passed over: it fails again where that is said.
        """
        states, _ = self.ask_each("Status", dict.fromkeys(devices, pb.Nothing()))
        trials = {d: s.transaction for d, s in states.items() if s.state in ("applied", "broken")}
        self.ask_each("Rollback", {d: self._named(t, why) for d, t in trials.items()})

    def _restore(
        self, began: Began, targets: Mapping[str, Targets], why: str, trial_s: float = BACK_S
    ) -> Left:
        """Stage, apply and confirm on each device that still follows; return the others.

        No undo ever offers this transaction.
        """
        name = new_name()
        self._note({"event": "begin", "transaction": name, "why": why, "devices": len(targets)})
        wanted = self._wanted(name, targets, why, began.confirmed)
        staged, left = self.ask_each("Stage", wanted)
        trial = pb.Trial(transaction=name, revert_after_s=trial_s)
        changing = {device: trial for device, plan in staged.items() if plan.lines}
        changes = {d: {x.place: x.after for x in staged[d].lines} for d in changing}
        self._note({"event": "apply", "transaction": name, "changes": changes})
        applied, failed = self.ask_each("Apply", changing)
        left |= failed
        named = dict.fromkeys(applied, self._named(name, why))
        done, failed = self.ask_each("Confirm", named)
        left |= failed
        self._note({"event": "restored", "transaction": name, "why": why, "devices": list(done)})
        return left

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
