"""How a guard's device stands, and who asks for a change: what is told to others."""

from __future__ import annotations

import re
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from dcqcn_gym.core.errors import DcqcnGymError, StateError, in_one_line

if TYPE_CHECKING:  # commands import this before they need a driver
    from dcqcn_gym.hw.drivers.base import Driver, Values


def new_name() -> str:
    """Return a name for a transaction or a run: when it began (:func:`begun_ms`), and chance."""
    return f"{int(time.time() * 1e3):011x}{uuid.uuid4().hex[:5]}"


def begun_ms(name: str) -> int:
    """Return when a transaction, or its run, began, in Unix time; 0 if its name does not tell."""
    return int(name[:11], 16) if re.fullmatch(r"[0-9a-f]{16}(:\d+)?", name) else 0


def run_of(name: str) -> str:
    """Return the run of a step ``RUN:NUMBER``; empty for any other transaction."""
    run, _, number = name.rpartition(":")
    return run if number.isdecimal() else ""


def follows(name: str, before: str = "") -> bool:
    """Tell whether a transaction is a step of a run; a later one of the same, if after another."""
    run = run_of(name)
    if not run or not before:
        return bool(run)
    return run == run_of(before) and int(name[len(run) + 1 :]) > int(before[len(run) + 1 :])


State = Literal["idle", "staged", "applied", "broken", "stopped", "drifted"]
STATES: tuple[State, ...] = get_args(State)
DRIFT_S = 10.0
"""How often a device that nobody changes is held against its confirmed setting."""
Stopper = Literal["operator", "file"]
"""Who has stopped a device; each takes back only a stop of its own."""


@dataclass
class Stops:
    """Who has stopped a device: while anybody has, nothing may change."""

    by: set[Stopper] = field(default_factory=set)

    def refuse(self) -> None:
        """Raise StateError while there is anybody; it says what would end that."""
        if "file" in self.by:
            raise StateError(
                "this device was stopped by hand: its stop file exists; delete the file first"
            )
        if self.by:
            raise StateError("this device was stopped by hand; allow changes again first")


@dataclass(frozen=True)
class Who:
    """Who asks for a change and why; the journal keeps both."""

    name: str
    why: str = ""
    certificate: str = ""
    """The name in the certificate of the call, which nobody else can give; empty: the agent."""

    def record(self) -> dict[str, str]:
        """Return it as fields of a journal's event."""
        own = {"certificate": self.certificate} if self.certificate else {}
        return {"who": self.name, "why": self.why, **own}


def said(error: Exception) -> str:
    """Return an error as a sentence; a plug-in's own with its type."""
    return str(error) if isinstance(error, DcqcnGymError) else in_one_line(error)


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
    """Why the device is not at a confirmed setting, if it is broken or has drifted from it."""
    passed: tuple[str, ...] = ()
    """Changes that were confirmed here before, the newest last."""
    withdrawn: tuple[str, ...] = ()
    """Changes of which this agent knows that some devices are not to have them."""


@dataclass(frozen=True)
class KnownChange:
    """What an agent, or all of a fleet, knows of a change."""

    members: frozenset[str] = frozenset()
    """Its devices; empty if that is not known."""
    withdrawn_from: frozenset[str] = frozenset()
    """Devices that are not to have it any more: it was taken back, or undone."""
    predecessor: str = ""
    """What the device held before it; empty if that is not known."""


@dataclass
class Open:
    """A transaction that is staged or on trial."""

    name: str
    after: dict[str, str]
    who: Who
    since: float
    """When it was staged, by the guard's clock."""
    restores: str = ""
    """The transaction whose setting this is again, on the way back from a tuning run."""
    again: bool = False
    """True if the journal holds what that one confirmed."""
    members: tuple[str, ...] = ()
    """The devices of the change; none until it is applied, or if its controller did not tell."""
    deadline: float | None = None
    """None until it is applied."""
    next: tuple[str, dict[str, str]] | None = None
    """The step that follows in a run: its name and what it changes."""

    def refuse_the_same(self, who: Who) -> None:
        """Raise StateError if who confirms also staged this, unless it was confirmed before."""
        if who.certificate == self.who.certificate and not self.again:
            raise StateError(
                f"{self.name} was staged by {who.certificate!r}, and this device wants a second "
                "person (second_person of its agent's file): leave the change on trial (--hold), "
                "and let another controller's certificate confirm it"
            )


class Drift:
    """What somebody else changed on one device, in words; empty text if nothing is known of it.

    A reset or a hand changes a device without a word.
    """

    def __init__(self, driver: Driver, now_s: float) -> None:
        self._driver, self._looked_s = driver, now_s
        self.found = ""

    def look(self, wanted: Values, now_s: float) -> str:
        """Look if it is time to; return the event that is new: ``drifted`` or its end, or empty."""
        if now_s - self._looked_s < DRIFT_S and not self.found:
            return ""
        self._looked_s, before = now_s, self.found
        try:
            wrong = self._driver.read_back(wanted)
            self.found = f"somebody else changed it: it holds {wrong}" if wrong else ""
        except Exception as error:  # a plug-in's too
            self.found = f"it cannot be read: {said(error)}"
        if bool(self.found) == bool(before):
            return ""
        return "drifted" if self.found else "as confirmed again"
