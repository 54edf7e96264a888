"""What commands on a fleet print: tables in which devices that are alike share a row, or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dcqcn_gym.hw.controller import Controller
    from dcqcn_gym.hw.fleet_state import FleetState
    from dcqcn_gym.hw.rollback import Failures

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, device by device.")]
PLACES = ("device", "place", "now", "then", "unit", "note")
_REASON = re.compile(r"\S+:\d+|[0-9a-f]{16}")
"""Addresses and transactions, which differ in reasons that are the same."""
APART = 4
"""Devices that are alike, up to which each has a row of its own."""
SAME_PLACES = 2
"""Places of a device at which one field changes alike, up to which each has a row of its own."""


class Output:
    """Says things at once, as text, or collects the facts for one JSON object."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.facts: dict[str, Any] = {}

    def say(self, text: str, **facts: Any) -> None:
        """Print a sentence; ``facts`` are what it says."""
        self.facts |= facts
        if not self.as_json:
            typer.echo(text)

    def left(self, left: Mapping[str, Exception], what: str) -> None:
        """Say device by device what was not done, and why; on standard error in any case."""
        self.facts["left"] = {device: str(error) for device, error in left.items()}
        show_left(left, what)

    def moved(self, moved: Mapping[str, list[str]]) -> None:
        """Say which devices went to a decision that they had missed, change by change."""
        self.facts["moved"] = dict(moved)
        for name, devices in moved.items():
            self.say(f"{len(devices)} devices moved (transaction {name}): {', '.join(devices)}")

    def table(
        self, columns: Sequence[str], rows: Mapping[str, Sequence[tuple[str, ...]]], title: str
    ) -> None:
        """Print a table of devices' rows; more than :data:`APART` that are alike are one."""
        from dcqcn_gym.runs.table import Table, print_tables

        if self.as_json:
            return
        alike: dict[tuple[str, ...], list[str]] = {}
        for device, own in rows.items():
            for row in own:
                alike.setdefault(row, []).append(device)
        few = {row for row, devices in alike.items() if len(devices) <= APART}
        cells, seen = [], set[tuple[str, ...]]()
        for device, own in rows.items():
            for row in own:
                if row in few:
                    cells.append((device, *row))
                elif row not in seen:
                    seen.add(row)
                    devices = alike[row]
                    cells.append((f"{len(devices)}: {devices[0]} to {devices[-1]}", *row))
        print_tables([Table(columns, cells, title)])

    def plans(self, plans: Mapping[str, Any], columns: tuple[str, ...], none: str) -> int:
        """Print a table of places, or ``none``; return how many there are."""
        rows, facts = {}, {}
        for device, lines in plans.items():
            rows[device] = [_row(line) for line in lines]
            facts[device] = [dict(zip(("place", "before", "after", "unit", "note"), row,
                                      strict=True)) for row in rows[device]]  # fmt: skip
        found = [row for own in rows.values() for row in own]
        self.facts["places"] = {device: own for device, own in facts.items() if own}
        if found:
            self.table(columns, {d: _grouped(own) for d, own in rows.items()}, "what differs")
        else:
            self.say(none)
        return len(found)


@contextmanager
def output(as_json: bool) -> Iterator[Output]:
    """Yield what a command prints by; JSON comes at the end, also of one that exits with 1."""
    out = Output(as_json)
    try:
        yield out
    except typer.Exit:
        _end(out)
        raise
    _end(out)


def _end(out: Output) -> None:
    if out.as_json:
        typer.echo(json.dumps(out.facts, indent=2))


def _grouped(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the rows of a device; a field that changes alike at several places is one.

    A switch has a place for each port and colour. JSON has them all.
    """
    alike: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for row in rows:
        field = row[0].rpartition("/")[2]
        alike.setdefault((field, *row[1:4], "reset" * ("reset" in row[4])), []).append(row)
    found = []
    for (field, *change, _), own in alike.items():
        notes = {row[4] for row in own}
        note = notes.pop() if len(notes) == 1 else "other notes at each: --json"
        few = len(own) <= SAME_PLACES
        found += own if few else [(f"{field}, {len(own)} places", *change, note)]
    return found


def _row(line: Any) -> tuple[str, ...]:
    notes = ["at the next reset"] if line.needs_reset else []
    notes += [f"shared by {', '.join(line.shared_by)}"] if line.shared_by else []
    return (line.place, line.before, line.after, line.unit, "; ".join(notes))


def show_left(left: Mapping[str, Exception], what: str) -> None:
    """Say device by device what was not done, and why; many with the same reason in one line."""
    alike: dict[str, list[str]] = {}
    for device, error in left.items():
        alike.setdefault(_REASON.sub("...", str(error).replace(device, "...")), []).append(device)
    for devices in alike.values():
        for device in devices if len(devices) <= APART else devices[:1]:
            typer.echo(f"{device} {what}: {left[device]}", err=True)
        if len(devices) > APART:
            typer.echo(f"and so {len(devices) - 1} more: {', '.join(devices[1:])}", err=True)


def show_differences(
    out: Output, controller: Controller, devices: Iterable[str], words: tuple[str, str]
) -> tuple[int, Failures]:
    """Print what devices hold against their confirmed setting, under the names ``words``.

    Return how many places differ, and why devices did not answer.
    """
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    plans, left = controller.agents.ask_each("Diff", dict.fromkeys(devices, pb.Nothing()))
    found = {device: plan.lines for device, plan in plans.items()}
    columns = ("device", "place", *words, "unit", "note")
    silent = left or len(plans) < len(controller.agents.addresses)
    whole = "every device that answered" if silent else "every device"
    return out.plans(found, columns, f"{whole} holds its confirmed setting"), left


def show_remedies(out: Output, state: FleetState) -> list[str]:
    """Say by which command each condition of a fleet ends; none for a healthy one."""
    found = state.remedies()
    out.facts["healthy"], out.facts["remedies"] = not found, found
    for line in found:
        typer.echo(f"to mend {line}", err=True)
    return found
