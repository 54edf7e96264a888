"""How a guard's device stands, and who asks for a change: what is told to others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from dcqcn_gym.core.errors import DcqcnGymError, StateError, in_one_line


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
