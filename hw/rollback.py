"""Every way back of a fleet: of a change, of a trial, of a confirmed one, of a run, and the stop.

Each goes to all devices at once, passes over those that are dead, ill or strangers, and tells
device by device what is left. Nothing here depends on all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dcqcn_gym.core.errors import DcqcnGymError, DeviceError, StateError, quote
from dcqcn_gym.core.files import parse_json
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.audit import AuditLog
from dcqcn_gym.hw.connections import Connections, each_of
from dcqcn_gym.hw.device_state import new_name
from dcqcn_gym.hw.drivers import Edit, Targets
from dcqcn_gym.hw.fleet_state import FleetState, read_fleet_state
from dcqcn_gym.hw.journal import confirmed_before
from dcqcn_gym.hw.members import packed
from dcqcn_gym.hw.requests import Requests
from dcqcn_gym.hw.signals import signals_held

Failures = dict[str, DcqcnGymError]
"""Device -> why it was not done."""

BACK_S = 600.0
"""Trial of what leads back: slow agents must not end it, and where it leads does no harm."""


class Rollback:
    """What leads back over a fleet's connections; nothing of it depends on all devices."""

    def __init__(self, agents: Connections, log: AuditLog, requests: Requests) -> None:
        self._agents, self._log, self._requests = agents, log, requests
        self.not_back: Failures = {}
        """Devices that may hold a change that was taken back on all others, and why."""

    def take_back(self, name: str, applied: list[str], why: str, confirmed: list[str]) -> None:
        """Take everything back; an agent out of reach does so by itself when its trial ends.

        ``confirmed`` are those that may have confirmed: there the change is undone, and one that
        cannot be asked has no timer any more: :attr:`not_back` gets it.
        """
        named = self._requests.named(name, f"taken back: {why[:400]}", applied)
        with signals_held():  # both, whatever comes
            _, kept = each_of(self._agents.calls("Rollback", dict.fromkeys(applied, named)))
            undone, held = each_of(self._agents.calls("Undo", dict.fromkeys(confirmed, named)))
            self.not_back |= held
            timers = [f"{d}: {error}" for d, error in kept.items() if d not in confirmed]
            self._log.note({"event": "taken back", "transaction": name, "why": why,
                        "undone": list(undone), "left_to_their_timers": timers,
                        "left": {d: str(error) for d, error in held.items()}})  # fmt: skip

    def end_trials(
        self, why: str, name: str = "", devices: Iterable[str] | None = None
    ) -> tuple[dict[str, Any], Failures]:
        """Send devices (all, unless told) to their confirmed setting, or end the trial ``name``."""
        self._log.note({"event": "rollback", "transaction": name, "why": why})
        chosen = self._agents.clients if devices is None else devices
        return self._agents.ask_each(
            "Rollback", dict.fromkeys(chosen, self._requests.named(name, why))
        )

    def undo(
        self, name: str, why: str, devices: Iterable[str] | None = None
    ) -> tuple[list[str], Failures]:
        """Undo a confirmed transaction wherever it is the newest; return where, and what is left.

        Of ``devices`` alone, if told. The same again goes on with those that are left. Raises
        StateError, and nothing changes, if it is no device's newest one, or if another one is on
        trial there.
        """
        asked = list(self._agents.clients if devices is None else devices)
        state = self._state()
        chosen, left = self._where_newest(state, name, asked)
        record = {"transaction": name, "why": why, "devices": chosen}
        self._log.note({"event": "undoing", **record})
        members = [d for d in state.members(name) if d in asked and state.lacks(d, name)]
        members += [device for device in chosen if device not in members]
        request = self._requests.named(name, why, members)
        done, failed = self._agents.ask_each("Undo", dict.fromkeys(chosen, request))
        left |= failed
        left |= {d: DeviceError(s.problem) for d, s in done.items() if s.problem}
        said = {device: str(error) for device, error in failed.items()}
        expected = state.expected
        never = [d for d in asked if d not in chosen and expected.of(d) == name]
        record["devices"] = [*chosen, *never]
        self._log.note({"event": "undo failed" if left else "undo", **record, "left": said})
        return list(done), left

    def _state(self) -> FleetState:
        return read_fleet_state(self._agents, self._log)

    def newest(self, devices: Iterable[str] | None = None) -> str:
        """Return what `hw rollback` undoes on these devices; empty if there is nothing."""
        chosen = self._agents.clients if devices is None else devices
        return self._state().newest(chosen)

    def undoing(
        self, name: str, devices: Iterable[str] | None = None
    ) -> tuple[dict[str, list[Edit]], Failures]:
        """Return device -> what :meth:`undo` would change, and what it would leave."""
        asked = list(self._agents.clients if devices is None else devices)
        chosen, left = self._where_newest(self._state(), name, asked)
        answers, failed = self._agents.ask_each("History", dict.fromkeys(chosen, pb.Nothing()))
        found = {}
        for device, events in answers.items():
            records = [parse_json(event) for event in events.json]
            before = confirmed_before(records, name)["values"]
            held = next(r for r in reversed(records) if r["event"] == "confirmed")["values"]
            found[device] = [
                Edit(place, "", "", held[place], text)
                for place, text in before.items()
                if held[place] != text
            ]
        return found, left | failed

    def _where_newest(
        self, state: FleetState, name: str, asked: Collection[str]
    ) -> tuple[list[str], Failures]:
        """Return the devices whose newest confirmed transaction this is, and those that may."""
        states = {device: state.states[device] for device in asked if device in state.states}
        silent = {device: state.silent[device] for device in asked if device in state.silent}
        chosen = [device for device, status in states.items() if status.confirmed == name]
        changed = state.members(name) or list(silent)
        left = {device: error for device, error in silent.items() if device in changed}
        if not chosen and name != state.newest(asked):
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

    def stop(self, on: bool, why: str) -> tuple[dict[str, Any], Failures]:
        """Send every device back and have it refuse changes, or allow them again.

        It needs no :meth:`open`: nothing is asked first. Return the status of each device
        afterwards, and the error of each that did not answer.
        """
        request = pb.Switch(on=on, who=self._requests.operator, why=why)
        found = self._agents.ask_each("Stop", dict.fromkeys(self._agents.clients, request))
        self._log.note({"event": "stop", "on": on, "why": why, "left": list(found[1])})
        return found

    def restore(
        self,
        confirmed: Mapping[str, str],
        targets: Mapping[str, Targets],
        why: str,
        trial_s: float = BACK_S,
        members: Iterable[str] = (),
    ) -> Failures:
        """Stage, apply and confirm on each device that still follows; return the others.

        No undo ever offers this transaction. ``members`` are the devices of the change whose
        setting this is again, if it is one change's.
        """
        name = new_name()
        self._log.note({"event": "begin", "transaction": name, "why": why, "devices": len(targets)})
        wanted = self._requests.wanted(name, targets, why, confirmed)
        staged, left = self._agents.ask_each("Stage", wanted)
        trial = pb.Trial(transaction=name, revert_after_s=trial_s, members=packed(members))
        changing = {device: trial for device, plan in staged.items() if plan.lines}
        changes = {d: {x.place: x.after for x in staged[d].lines} for d in changing}
        self._log.note({"event": "apply", "transaction": name, "changes": changes})
        applied, failed = self._agents.ask_each("Apply", changing)
        left |= failed
        named = dict.fromkeys(applied, self._requests.named(name, why))
        done, failed = self._agents.ask_each("Confirm", named)
        left |= failed
        self._log.note(
            {"event": "restored", "transaction": name, "why": why, "devices": list(done)}
        )
        return left
