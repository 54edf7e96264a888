"""A change of one device is a transaction: plan, stage, apply with a revert timer, confirm.

The guard remembers the last *confirmed* setting. Until a change is confirmed it is on trial: if
its timer runs out, if a write fails, if the device does not hold what was written, if the journal
cannot be written or if the agent starts again, the device goes back to the confirmed setting, and
the guard tries again until it is there. Nobody has to ask for it.

Every call may come twice (a message was repeated) and says the same both times; one that comes
late, for a transaction that is over, is refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dcqcn_gym.core.errors import ConfigError, DeviceError, StateError
from dcqcn_gym.hw.drivers.base import Driver, Line, Targets
from dcqcn_gym.hw.journal import Journal, Record

__all__ = ["Guard", "GuardStatus", "Who", "confirmed_before"]

MOST_TRIAL_S = 3600.0

Clock = Callable[[], float]
"""Seconds that never jump; ``time.monotonic`` but for tests."""

State = Literal["idle", "staged", "applied", "broken", "stopped"]
Stopper = Literal["operator", "file"]
"""Who has stopped a device; each takes back only a stop of its own."""


@dataclass(frozen=True)
class Who:
    """Who asks for a change and why; the journal keeps both."""

    name: str
    why: str = ""


@dataclass(frozen=True)
class GuardStatus:
    """What a guard says about its device."""

    state: State
    transaction: str
    """The one that is staged or on trial; empty if none is."""
    left_s: float
    """Seconds until a change on trial is taken back; 0 if none is."""
    confirmed: str
    """The transaction whose setting the device is to hold: confirmed last, or restored since."""
    problem: str
    """Why the device is not at a confirmed setting, if it is broken."""


@dataclass
class _Open:
    """A transaction that is staged or on trial."""

    name: str
    after: dict[str, str]
    who: Who
    restores: str = ""
    """The transaction whose setting this is again, on the way back from a tuning run."""
    deadline: float | None = None
    """None until it is applied."""


class Guard:
    """The one that changes a device. Thread-safe; :meth:`tick` is called a few times a second."""

    def __init__(self, driver: Driver, journal: Journal, clock: Clock = time.monotonic) -> None:
        self._driver = driver
        self._journal = journal
        self._clock = clock
        self._lock = threading.RLock()
        self._open: _Open | None = None
        self._problem = ""
        self._stoppers: set[Stopper] = set()
        self._confirmed: Record = {}

    def start(self) -> None:
        """Take up the last confirmed setting: from the journal, or what the device holds now.

        After a crash or a reboot the device is put back to it. Raises DeviceError if the device
        cannot be read, or if a first journal cannot be written.
        """
        with self._lock:
            found = self._journal.last("confirmed")
            if found is None:
                self._confirm(
                    "start", self._driver.read(), Who("agent", "found at its first start")
                )
                return
            self._confirmed = found
            if self._stopped_by_operator():
                self._stoppers.add("operator")  # whether the file still exists, its reader tells
            wrong = self._driver.read_back(found["values"])
            if wrong:
                self._take_back("", Who("agent", "not at the confirmed setting when it started"))

    def _stopped_by_operator(self) -> bool:
        stops = (r for r in reversed(self._journal.records) if r.get("event") == "stopped")
        # journals of before this was kept apart tell the file by its name alone
        own = (r for r in stops if r.get("by", r.get("who")) not in ("file", "stop file"))
        last = next(own, None)
        return last is not None and bool(last["on"])

    @property
    def kind(self) -> str:
        """``"nic"`` or ``"switch"``."""
        return self._driver.kind

    @property
    def status(self) -> GuardStatus:
        """The state of now."""
        with self._lock:
            opened = self._open
            trial = opened.deadline if opened is not None else None
            state: State = "idle"
            if self._problem:
                state = "broken"
            elif self._stoppers:
                state = "stopped"
            elif opened is not None:
                state = "staged" if trial is None else "applied"
            left = max(trial - self._clock(), 0.0) if trial is not None else 0.0
            name = opened.name if opened is not None else ""
            confirmed = self._confirmed.get("restores") or self._confirmed.get("name")
            return GuardStatus(state, name, left, str(confirmed), self._problem)

    @property
    def history(self) -> list[Record]:
        """Every event that the journal still has, oldest first."""
        with self._lock:
            return list(self._journal.records)

    def plan(self, targets: Targets) -> list[Line]:
        """Return what ``targets`` would change; writes nothing and needs no transaction."""
        with self._lock:
            before = self._driver.read()
            return self._driver.diff(before, self._driver.stage(targets))

    def diff(self) -> list[Line]:
        """Return what the device holds against its confirmed setting: a trial, or a hand's work."""
        with self._lock:
            wanted, held = self._confirmed["values"], self._driver.read()
            return self._driver.diff(wanted, {p: held.get(p, "") for p in wanted})

    def stage(self, name: str, targets: Targets, who: Who, restores: str = "") -> list[Line]:
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
                raise StateError(
                    f"transaction {self._open.name} of {self._open.who.name} is on trial for "
                    f"{self.status.left_s:.1f} s more; confirm it or roll it back first"
                )
            before = self._driver.read()
            self._refuse_a_hands_work(before, name)
            after = self._confirmed_as(restores, before) if restores else None
            if after is None:
                after = self._driver.stage(targets)
            self._open = _Open(name, after, who, restores)
            return self._driver.diff(before, after)

    def _confirmed_as(self, name: str, held: dict[str, str]) -> dict[str, str] | None:
        """Return what must change to hold what a transaction confirmed; None if not known."""
        for record in reversed(self._journal.records):
            own = (record.get("name"), record.get("restores"))
            if record.get("event") == "confirmed" and name in own:
                return {p: text for p, text in record["values"].items() if held.get(p) != text}
        return None

    def apply(self, name: str, revert_after_s: float) -> None:
        """Write a staged change and start its timer; a failure takes everything back and raises."""
        if not 0.0 < revert_after_s <= MOST_TRIAL_S:
            raise ConfigError(
                f"revert_after_s = {revert_after_s:g}: expected above 0, at most {MOST_TRIAL_S:g}"
            )
        with self._lock:
            self._ready()
            opened = self._opened(name, "stage")
            if opened.deadline is not None:
                return
            self._refuse_a_hands_work(self._driver.read(), name)
            self._note("applying", name, opened.who, after=opened.after, trial_s=revert_after_s)
            opened.deadline = self._clock() + revert_after_s
            try:
                self._driver.apply(opened.after)
                wrong = self._driver.read_back(opened.after)
            except DeviceError as error:
                self._take_back(name, Who("agent", f"a write failed: {error}"))
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
            opened = self._opened(name, "apply")
            if opened.deadline is None:
                raise StateError(f"transaction {name} was not applied; apply it first")
            if self._clock() >= opened.deadline:
                self._take_back(name, Who("agent", "its time ran out"))
                raise StateError(f"the trial of {name} is over; the change was taken back")
            try:
                wrong = self._driver.read_back(opened.after)
                if wrong:
                    raise DeviceError(f"the device does not hold what was written: {wrong}")
                values = {**self._confirmed["values"], **opened.after}
                self._confirm(name, values, who, opened.restores)
            except DeviceError as error:
                self._take_back(name, Who("agent", str(error)))
                raise
            self._open = None

    def rollback(self, who: Who, name: str = "") -> None:
        """Go back to the confirmed setting; ``name``, if given, must be the one on trial."""
        with self._lock:
            if name and (self._open is None or self._open.name != name):
                return  # over already: the device is where it should be
            self._take_back(name or (self._open.name if self._open else ""), who)
            if self._problem:
                raise DeviceError(self._problem)

    def undo(self, name: str, who: Who) -> None:
        """Go back to the setting before the confirmed transaction ``name``.

        Nothing happens if another one is the confirmed one: it was undone already, or never came
        here. One whose setting was restored since counts as the confirmed one. Raises ConfigError
        if the journal no longer holds what was before.
        """
        with self._lock:
            if name not in (self._confirmed.get("name"), self._confirmed.get("restores")):
                return
            self._ready()
            if self._open is not None and self._open.deadline is not None:
                raise StateError(f"transaction {self._open.name} is on trial; roll it back first")
            before = confirmed_before(self._journal.records, name)
            restores = before.get("restores", "")
            self._confirm(before["name"], dict(before["values"]), who, restores)
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
                self._stoppers.add(by)
                self._take_back(self._open.name if self._open else "", who)
            else:
                self._stoppers.discard(by)
            self._note_or_go_on("stopped", "", who, on=on, by=by)

    def tick(self) -> None:
        """Do what time demands: take back what was not confirmed, try again what failed."""
        with self._lock:
            opened = self._open
            if opened is not None and opened.deadline is not None:
                if self._clock() >= opened.deadline:
                    self._take_back(opened.name, Who("agent", "its time ran out"))
            elif self._problem:
                self._take_back("", Who("agent", "tried again"))

    def refuse_if_stopped(self) -> None:
        """Raise StateError while the device is stopped; it says what would end that."""
        with self._lock:
            if "file" in self._stoppers:
                raise StateError(
                    "this device was stopped by hand: its stop file exists; delete the file first"
                )
            if self._stoppers:
                raise StateError("this device was stopped by hand; allow changes again first")

    def _ready(self) -> None:
        self.refuse_if_stopped()
        if self._problem:
            raise DeviceError(f"the device is not at its confirmed setting: {self._problem}")

    def _opened(self, name: str, missing: str) -> _Open:
        if self._open is None or self._open.name != name:
            raise StateError(f"transaction {name} is not open here; {missing} it first")
        return self._open

    def _confirm(self, name: str, values: dict[str, str], who: Who, restores: str = "") -> None:
        more = {"restores": restores} if restores else {}
        self._confirmed = self._note("confirmed", name, who, values=values, **more)

    def _take_back(self, name: str, who: Who) -> None:
        """Put the device at the confirmed setting; the device comes first, the journal after."""
        self._open = None
        try:
            self._driver.revert(self._confirmed["values"])
            wrong = self._driver.read_back(self._confirmed["values"])
            self._problem = f"holds {wrong}" if wrong else ""
        except DeviceError as error:
            again = self._problem
            self._problem = str(error)
            if again:
                return  # said already
        event = "broken" if self._problem else "reverted"
        self._note_or_go_on(event, name, who, problem=self._problem)

    def _note(self, event: str, name: str, who: Who, **more: Any) -> Record:
        record = {"event": event, "name": name, "who": who.name, "why": who.why, **more}
        record["unix_s"] = time.time()  # for people; nothing depends on it
        self._journal.append(record)
        return record

    def _note_or_go_on(self, event: str, name: str, who: Who, **more: Any) -> None:
        """Write an event that must not depend on the disk: the device is safe, which counts."""
        try:
            self._note(event, name, who, **more)
        except DeviceError:
            return


def confirmed_before(records: Sequence[Record], name: str) -> Record:
    """Return what was confirmed before the transaction ``name``, which ``records`` confirm.

    Raises ConfigError if a journal that was shortened no longer holds it.
    """
    known = [record for record in records if record.get("event") == "confirmed"]
    first = next((i for i, record in enumerate(known) if record["name"] == name), 0)
    if first == 0:
        raise ConfigError(f"the journal does not hold what was before transaction {name}")
    return known[first - 1]
