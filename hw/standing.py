"""How a guard's device stands, and who asks for a change: what is told to others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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
    """Why the device is not at a confirmed setting, if it is broken or has drifted from it."""


@dataclass
class Open:
    """A transaction that is staged or on trial."""

    name: str
    after: dict[str, str]
    who: Who
    restores: str = ""
    """The transaction whose setting this is again, on the way back from a tuning run."""
    deadline: float | None = None
    """None until it is applied."""
    next: tuple[str, dict[str, str]] | None = None
    """The step that follows in a run: its name and what it changes."""
