"""Faults of a whole fleet that are no single call: files, disks, logs, clocks, other controllers.

Each is a function of a :class:`Campaign` and of what is to be mended later. A log that was harmed
is kept by the campaign, which judges by what was written and not by what is left.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from faulty_network import CrashError

from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.hw import device_state

if TYPE_CHECKING:
    from fleet_campaign import Campaign

__all__ = ["HARMS", "LOG_HARMS"]

Undo = list[Callable[[], object]]
FILES = ("rp_gd", "rp_ai_rate", "rp_time_reset", "rp_rate_to_set_on_first_cnp")
DAY_S = 86_400.0


def _file(c: Campaign, alone: str) -> Path:
    """Draw a parameter file; among several faults it is ``alone``, which no other fault takes."""
    rng = c.fleet.random
    drawn = rng.choice(c.fleet.names[:3]), rng.choice(FILES)
    return c.fleet.cc_file(drawn[0], alone if c.run.kind[0] == "random" else drawn[1])


def _blocked(place: Path, undo: Undo) -> None:
    """Have every read and write of a file fail until it is mended."""
    away = place.with_name(f"{place.name}-away")
    if place.is_dir():
        return
    there = place.exists()
    if there:
        place.rename(away)
    place.mkdir()

    def mend() -> None:
        place.rmdir()
        if there:
            away.rename(place)

    undo.append(mend)


def file_unreadable(c: Campaign, undo: Undo) -> None:
    _blocked(_file(c, "rp_rate_to_set_on_first_cnp"), undo)


def file_empty(c: Campaign, undo: Undo) -> None:
    place = _file(c, "rp_hai_rate")
    text = place.read_text()
    place.write_text("")
    undo.append(lambda: place.write_text(place.read_text() or text))


def journal_read_only(c: Campaign, undo: Undo) -> None:
    _blocked(c.fleet.folder / c.fleet.random.choice(c.fleet.names) / "journal", undo)


def log_full(c: Campaign, undo: Undo) -> None:
    _blocked(c.audit, undo)


def _log_harm(act: Callable[[Path, Campaign], None]) -> Callable[[Campaign, Undo], None]:
    """Strike the log before the operation, or after it."""

    def strike(c: Campaign) -> None:
        if not c.audit.is_file():
            return
        c.kept = c.written()
        act(c.audit, c)
        c.skipped = c.audit.stat().st_size if c.audit.exists() else 0
        c.lost = True

    def harm(c: Campaign, undo: Undo) -> None:
        if c.fleet.random.random() < 0.5:
            strike(c)
        else:
            undo.append(lambda: strike(c))

    return harm


def _cut(audit: Path, c: Campaign) -> None:
    text = audit.read_bytes()
    audit.write_bytes(text[: c.fleet.random.randrange(len(text) + 1)])


def _swap(audit: Path, c: Campaign) -> None:
    """Put there the log of another host, which had changes of devices of the same names."""
    apply = {
        "event": "apply",
        "transaction": "elsewhere",
        "changes": {n: {} for n in c.fleet.names},
    }
    decided = {"event": "confirmed", "transaction": "elsewhere", "devices": list(c.fleet.names)}
    audit.write_text("".join(json.dumps(line) + "\n" for line in (apply, decided)))


def second_controller(c: Campaign, undo: Undo) -> None:
    """Have another host, with a log of its own, change the fleet or undo a change, now or later."""

    from fleet_campaign import controller_of

    def act() -> None:
        before, controller = c.held(), controller_of(c.fleet, "second.jsonl")
        try:
            if c.fleet.random.random() < 0.6:
                controller.reconciler.catch_up()  # as a change does; an undo leads to here
                before = c.held()
                controller.carry_out(c.targets(), "by another host")
            else:
                states, _ = controller.agents.states()
                controller.rollback.undo(controller.rollback.newest(states), "by another host")
        except (DcqcnGymError, CrashError):
            c.fleet.pass_time(10.0)
        finally:
            controller.close()
        c.note(before)
        c.lost = True  # no log has all any more

    if c.fleet.random.random() < 0.5 and c.run.kind[0] != "random":  # files can be read now
        act()
    else:
        undo.append(act)


def clock_skew(c: Campaign, undo: Undo) -> None:
    """Let every name that is given meanwhile say a time up to a day off."""
    off = c.fleet.random.uniform(-DAY_S, DAY_S)
    world = vars(device_state)
    clock = world["time"]
    world["time"] = SimpleNamespace(time=lambda: time.time() + off)
    undo.append(lambda: world.update(time=clock))


LOG_HARMS: Mapping[str, Callable[[Campaign, Undo], None]] = {
    "log-lost": _log_harm(lambda audit, _: audit.unlink()),
    "log-truncated": _log_harm(_cut),
    "log-of-another-host": _log_harm(_swap),
}
HARMS: Mapping[str, Callable[[Campaign, Undo], None]] = {
    "file-unreadable": file_unreadable,
    "file-empty": file_empty,
    "journal-read-only": journal_read_only,
    "log-unwritable": log_full,
    **LOG_HARMS,
    "second-controller": second_controller,
    "clock-skew": clock_skew,
}
"""Name -> what is done to the fleet, and how it ends."""
