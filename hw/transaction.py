"""A change of one device is a transaction: plan, stage, apply with a revert timer, confirm.

The guard remembers the last *confirmed* setting. Until a change is confirmed it is on trial: if
its timer runs out, if a write fails, if the device does not hold what was written, if the journal
cannot be written or if the agent starts again, the device goes back to the confirmed setting, and
the guard tries again until it is there. Nobody has to ask for it.

A tuning run is one trial, whose setting changes step by step: its timer is the run's heartbeat.
Every call may come twice (a message was repeated) and says the same both times; one that comes
late, for a transaction that is over, is refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from dcqcn_gym.core.errors import ConfigError, DeviceError, StateError
from dcqcn_gym.hw.cadence import Cadence
from dcqcn_gym.hw.device_state import (
    Drift,
    GuardStatus,
    KnownChange,
    Open,
    State,
    Stopper,
    Stops,
    Who,
    follows,
    run_of,
    said,
)
from dcqcn_gym.hw.drivers.base import Driver, Edit, Targets, Values
from dcqcn_gym.hw.journal import Journal, Record, confirmed_before

MOST_TRIAL_S = 3600.0

Clock = Callable[[], float]
"""Seconds that never jump; ``time.monotonic`` but for tests."""

STAGED_S = MOST_TRIAL_S
"""How long a staged change is kept in mind that nobody applies; waves may be watched so long."""


class Guard:
    """The one that changes a device. Thread-safe; :meth:`tick` is called a few times a second."""

    def __init__(
        self,
        driver: Driver,
        journal: Journal,
        clock: Clock = time.monotonic,
        room: Callable[[], AbstractContextManager[None]] = nullcontext,
        check: Callable[[Targets], None] = lambda targets: None,
        second: bool = False,
    ) -> None:
        """``room`` makes some for files of a way back; ``check`` raises for what may not be set.

        ``second``: a change is confirmed by another certificate than the one that staged it.
        """
        self._room, self._check, self._second = room, check, second
        self._driver = driver
        self._journal = journal
        self._clock = clock
        self._lock = threading.RLock()
        self.cadence = Cadence(driver, journal, self._lock)
        self._open: Open | None = None
        self._problem = ""
        self._drift = Drift(driver, self._clock())
        self._stops = Stops()
        self._confirmed: Record = {}

    def start(self) -> None:
        """Take up the last confirmed setting: from the journal, or what the device holds now.

        After a crash or a reboot the device is put back to it, and if that fails it is tried
        again. Raises DeviceError at a first start if the device cannot be read or the journal not
        be written, and if a damaged journal holds no confirmed setting: what the device holds then
        may be a trial.
        """
        with self._lock:
            found = self._journal.last("confirmed")
            if found is None:
                self._journal.refuse_a_second_start()
                self._confirm(
                    "start", self._driver.read(), Who("agent", "found at its first start")
                )
                return
            self._confirmed = found
            if self._journal.stopped_by_operator():
                self._stops.by.add("operator")  # whether the file still exists, its reader tells
            if self._journal.bad_lines:
                why = f"{self._journal.bad_lines} lines of the journal are damaged or missing"
                self._note_or_go_on("damaged", "", Who("agent", why))
            self.cadence.release()
            if not self._holds(found["values"]):
                self._take_back("", Who("agent", "not at the confirmed setting when it started"))

    def _holds(self, values: Values) -> bool:
        """Tell whether the device surely holds these values."""
        try:
            return not self._driver.read_back(values)
        except Exception:  # a plug-in's too: not known, so no
            return False

    @property
    def status(self) -> GuardStatus:
        """The state of now."""
        with self._lock:
            opened = self._open
            trial = opened.deadline if opened is not None else None
            state: State = "idle"
            if self._problem:
                state = "broken"
            elif self._stops.by:
                state = "stopped"
            elif self._drift.found:
                state = "drifted"
            elif opened is not None:
                state = "staged" if trial is None else "applied"
            left = max(trial - self._clock(), 0.0) if trial is not None else 0.0
            name = opened.name if opened is not None else ""
            confirmed = self._confirmed.get("restores") or self._confirmed.get("name")
            return GuardStatus(
                state, name, left, str(confirmed), self._problem or self._drift.found,
                self._journal.passed()[:-1], tuple(self._journal.withdrawn()),
            )  # fmt: skip

    def change(self, name: str) -> KnownChange:
        """Return what is known here of a change: of a trial, too."""
        with self._lock:
            known, opened = self._journal.change(name), self._open
            if opened is not None and opened.name == name and opened.members:
                known = replace(known, members=frozenset(opened.members))
            return known

    @property
    def history(self) -> list[Record]:
        """Every event that the journal still has, oldest first."""
        with self._lock:
            return list(self._journal.records)

    def plan(self, targets: Targets) -> list[Edit]:
        """Return what ``targets`` would change; writes nothing and needs no transaction."""
        with self._lock:
            before, after = self._driver.read(), self._driver.stage(targets)
            self._check(targets)
            return self._driver.diff(before, after)

    def diff(self) -> list[Edit]:
        """Return what the device holds against its confirmed setting: a trial, or a hand's work."""
        with self._lock:
            wanted, held = self._confirmed["values"], self._driver.read()
            return self._driver.diff(wanted, {p: held.get(p, "") for p in wanted})

    def stage(self, name: str, targets: Targets, who: Who, restores: str = "") -> list[Edit]:
        """Begin the transaction ``name``; a staged one that was not applied is forgotten.

        ``restores`` names the earlier one whose setting this is again. If the journal still holds
        it, every place goes to exactly what was confirmed then, also one that ``targets`` cannot
        say (colours of a profile that differ); to undo that one is possible afterwards.

        Raises StateError if somebody else changed the device: what it holds by chance, as wanted
        or not, was never confirmed.
        """
        with self._lock:
            self._ready()
            if self._open is not None and self._open.deadline is not None:
                if self._open.name == name:
                    return self._driver.diff(self._confirmed["values"], self._open.after)
                if follows(name, self._open.name):
                    return self._stage_step(self._open, name, targets)
                raise StateError(
                    f"transaction {self._open.name} of {self._open.who.name} is on trial for "
                    f"{self.status.left_s:.1f} s more; confirm it or roll it back first"
                )
            if self._journal.over(name):
                raise StateError(f"transaction {name} is over here, or too old; begin a new one")
            before = self._driver.read()
            self._refuse_a_hands_work(before, name)
            again = self._journal.confirmed_as(restores, before) if restores else None
            after = self._legal(targets) if again is None else again
            lines = self._driver.diff(before, after)
            # what changes nothing is not kept in mind, but for a run: later steps may
            keep = lines or follows(name)
            self._open = (
                Open(name, after, who, self._clock(), restores, again is not None) if keep else None
            )
            return lines

    def _legal(self, targets: Targets) -> dict[str, str]:
        after = self._driver.stage(targets)
        self._check(targets)
        return after

    def _stage_step(self, opened: Open, name: str, targets: Targets) -> list[Edit]:
        """Keep in mind the next setting of a run, whose trial goes on."""
        wrong = self._driver.read_back({**self._confirmed["values"], **opened.after})
        if wrong:
            raise StateError(f"somebody changed the device beside the agent in a run ({wrong})")
        opened.next = (name, self._legal(targets))
        return self._driver.diff(self._driver.read(), opened.next[1])

    def apply(self, name: str, revert_after_s: float, members: Sequence[str] = ()) -> None:
        """Write a staged change and start its timer; a failure takes everything back and raises.

        For a step of a run (``RUN:NUMBER``) the timer starts anew, also if it comes again: the
        run's controller is still there. ``members`` are the devices of the whole change; the
        journal keeps them, so that any controller can learn them here.
        """
        if not 0.0 < revert_after_s <= MOST_TRIAL_S:
            raise ConfigError(
                f"revert_after_s = {revert_after_s:g}: expected above 0, at most {MOST_TRIAL_S:g}"
            )
        with self._lock:
            self._ready()
            opened = self._open
            if opened is not None and opened.next is not None and opened.next[0] == name:
                changes = opened.next[1]
                opened.name, opened.next, opened.after = name, None, {**opened.after, **changes}
            else:
                opened = self._opened(name, "stage")
                changes = opened.after
                if opened.deadline is not None:
                    if follows(name):
                        self._driver.begin_trial(name, revert_after_s)
                        opened.deadline = self._clock() + revert_after_s
                    return
                self._refuse_a_hands_work(self._driver.read(), name)
                opened.members = tuple(members)
                self._note("applying", name, opened.who, after=changes, trial_s=revert_after_s,
                           members=list(members))  # fmt: skip
            opened.deadline = self._clock() + revert_after_s
            self._write(name, changes, revert_after_s)

    def _write(self, name: str, values: Values, seconds: float) -> None:
        """Write what is on trial from now on; a failure takes everything back and raises."""
        try:
            self._driver.begin_trial(name, seconds)
            self._driver.apply(values)
            wrong = self._driver.read_back(values)
        except Exception as error:  # a plug-in's too
            self._take_back(name, Who("agent", f"a write failed: {said(error)}"))
            raise
        if wrong:
            self._take_back(name, Who("agent", f"read back {wrong}"))
            raise DeviceError(f"the device does not hold what was written: {wrong}")

    def _refuse_a_hands_work(self, held: dict[str, str], name: str) -> None:
        """Refuse a device that somebody else changed meanwhile; say what differs."""
        wanted = self._confirmed["values"]
        differ = [f"{p} = {held.get(p)!r}" for p, text in wanted.items() if held.get(p) != text]
        if differ:
            self._open = None
            raise StateError(
                f"somebody changed the device beside the agent ({', '.join(differ[:3])}); roll "
                f"back to the confirmed setting before {name} is applied"
            )

    def confirm(self, name: str, who: Who) -> None:
        """Keep a change for good; if the device no longer holds it, take it back and raise."""
        with self._lock:
            if self._confirmed.get("name") == name and self._open is None:
                return
            self._ready()
            if follows(name):
                raise StateError(f"{name} is of a tuning run, whose settings are never confirmed")
            opened = self._opened(name, "apply")
            if opened.deadline is None:
                raise StateError(f"transaction {name} was not applied; apply it first")
            if self._second:
                opened.refuse_the_same(who)
            if self._clock() >= opened.deadline:
                self._take_back(name, Who("agent", "its time ran out"))
                raise StateError(f"the trial of {name} is over; the change was taken back")
            try:
                wrong = self._driver.read_back(opened.after)
                if wrong:
                    raise DeviceError(f"the device does not hold what was written: {wrong}")
                values = {**self._confirmed["values"], **opened.after}
                self._driver.end_trial()
                self._confirm(name, values, who, opened.restores, opened.members)
            except Exception as error:  # a plug-in's too
                self._take_back(name, Who("agent", said(error)))
                raise
            self._open = None

    def rollback(self, who: Who, name: str = "", withdrawn: Sequence[str] = ()) -> None:
        """Go back to the confirmed setting; ``name``, if given, is the one on trial, or its run.

        ``withdrawn``: devices that are not to have the change; kept for whoever asks later.
        """
        with self._lock:
            self._withdraw(name, who, withdrawn)
            held = self._open.name if self._open is not None else ""
            if name and name not in (held, run_of(held)):
                return  # over already: the device is where it should be
            if not (held or self._problem) and self._holds(self._confirmed["values"]):
                return  # nothing to take back, so nothing to remember
            self._take_back(held, who)
            if self._problem:
                raise DeviceError(self._problem)

    def _withdraw(self, name: str, who: Who, devices: Sequence[str]) -> None:
        if devices and not self._journal.withdrawn().get(name, frozenset()) >= set(devices):
            self._note_or_go_on("withdrawn", name, who, devices=list(devices))

    def undo(self, name: str, who: Who, withdrawn: Sequence[str] = ()) -> None:
        """Go back to the setting before the confirmed transaction ``name``.

        Nothing happens if another one is the confirmed one: it was undone already, or never came
        here. One whose setting was restored since counts as the confirmed one. Raises ConfigError
        if the journal no longer holds what was before. A device that is broken goes as far as it
        can: each place that can be written, and the rest is tried again. ``withdrawn`` are the
        devices that are not to have the change.
        """
        with self._lock:
            if name not in (self._confirmed.get("name"), self._confirmed.get("restores")):
                self._withdraw(name, who, withdrawn)
                return
            self.refuse_if_stopped()
            if self._open is not None and self._open.deadline is not None:
                raise StateError(f"transaction {self._open.name} is on trial; roll it back first")
            before = confirmed_before(self._journal.records, name)
            restores = before.get("restores", "")
            self._confirm(before["name"], dict(before["values"]), who, restores)
            self._withdraw(name, who, withdrawn)
            self._take_back("", who)
            if self._problem:
                raise DeviceError(self._problem)

    def stop(self, on: bool, who: Who, by: Stopper = "operator") -> None:
        """Go back to the confirmed setting and refuse every change, or allow changes again.

        Changes are refused until every stopper allows them. A device that cannot go back is
        ``broken`` in :attr:`status`, and is tried again.
        """
        with self._lock:
            if on:
                self._stops.by.add(by)
                self._take_back(self._open.name if self._open else "", who)
            else:
                self._stops.by.discard(by)
            self._note_or_go_on("stopped", "", who, on=on, by=by)

    def tick(self) -> None:
        """Do what time demands: take back what was not confirmed, try again what failed, look.

        A device that a reset or a hand has changed is left alone; :attr:`status` tells of it.
        """
        with self._lock:
            opened = self._open
            if self._problem:
                self._take_back(opened.name if opened else "", Who("agent", "tried again"))
            elif opened and opened.deadline is not None and self._clock() >= opened.deadline:
                self._take_back(opened.name, Who("agent", "its time ran out"))
            elif opened is None or opened.deadline is None:
                if opened and self._clock() > opened.since + STAGED_S:
                    self._open = None  # whoever staged it does not come back
                event = self._drift.look(self._confirmed["values"], self._clock())
                if event:
                    self._note_or_go_on(event, "", Who("agent", self._drift.found[:400]))

    def refuse_if_stopped(self) -> None:
        """Raise StateError while the device is stopped; it says what would end that."""
        with self._lock:
            self._stops.refuse()

    def _ready(self) -> None:
        self.refuse_if_stopped()
        if self._problem:
            raise DeviceError(f"the device is not at its confirmed setting: {self._problem}")

    def _opened(self, name: str, missing: str) -> Open:
        if self._open is None or self._open.name != name:
            raise StateError(f"transaction {name} is not open here; {missing} it first")
        return self._open

    def _confirm(
        self,
        name: str,
        values: dict[str, str],
        who: Who,
        restores: str = "",
        members: Sequence[str] = (),
    ) -> None:
        more: dict[str, Any] = {"restores": restores} if restores else {}
        if members:
            more["members"] = list(members)
        self._confirmed = self._note("confirmed", name, who, values=values, **more)
        try:
            self._driver.keep()
        except Exception as error:  # a plug-in's too; after a reboot the agent restores it
            self._note_or_go_on("not saved", name, Who("agent", said(error)[:400]))

    def _take_back(self, name: str, who: Who) -> None:
        """Put the device at the confirmed setting; the device comes first, the journal after.

        Whatever a driver raises, the transaction stays open, and is over, until this succeeded.
        """
        if self._open is not None:
            self._open.deadline = self._clock()
        with self._room():
            self._put_back(name, who)

    def _put_back(self, name: str, who: Who) -> None:
        again = self._problem
        if run_of(name):
            self.cadence.release()
        try:
            self._driver.revert(self._confirmed["values"])
            wrong = self._driver.read_back(self._confirmed["values"])
            self._problem = f"holds {wrong}" if wrong else ""
        except Exception as error:  # a plug-in's too
            self._problem = said(error)
        if not self._problem:
            self._open, self._drift.found = None, ""
        elif again:
            return  # said already
        event = "broken" if self._problem else "reverted"
        self._note_or_go_on(event, name, who, problem=self._problem)

    def _note(self, event: str, name: str, who: Who, **more: Any) -> Record:
        record = {"event": event, "name": name, **who.record(), **more}
        return self._journal.append({**record, "unix_s": time.time()})  # for people alone

    def _note_or_go_on(self, event: str, name: str, who: Who, **more: Any) -> None:
        """Write an event that must not depend on the disk: the device is safe, which counts."""
        try:
            self._note(event, name, who, **more)
        except DeviceError:
            return
