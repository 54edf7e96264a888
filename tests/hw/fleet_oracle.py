"""What is true of a fleet, by files alone: devices, journals and the audit log, read without `hw`.

The rule (docs/hardware.md, "Agents hold the truth"): every device is at the last confirmed setting
of its own journal; the audit log says which change each device is to have, and where any device
keeps that a change was withdrawn from some, that counts instead of the log. A device that has
another change is *split*, and whoever asks is told so. Nothing here imports the project.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "Decided", "confirmed_of", "decided_by", "held_by", "split", "withdraw", "withdrawn_by",
    "wrong_places",
]  # fmt: skip


def held_by(folder: Path, socket: Path | None = None) -> dict[str, str]:
    """Return place -> text of a NIC's files, or of a switch's Redis; nothing while it is away."""
    if socket is None:
        files = sorted(folder.glob("root/sys/kernel/debug/mlx5/*/cc_params/*"))
        away = "-away"  # what a file holds that cannot be read for now
        found = {f.name: f for f in files if f.is_file() and not f.name.endswith(away)}
        found |= {f.name.removesuffix(away): f for f in files if f.name.endswith(away)}
        return {name: file.read_text().strip() for name, file in found.items()}
    import redis

    told: dict[str, str] = {}
    client: Any = redis.Redis(unix_socket_path=str(socket), db=4, decode_responses=True)
    for key in client.keys("WRED_PROFILE|*"):
        for name, text in client.hgetall(key).items():
            told[f"{key}/{name}"] = text
    client.close()
    return told


def confirmed_of(journal: Path) -> tuple[str, dict[str, str]]:
    """Return what a journal confirmed last: whose setting it is, and its places."""
    last: dict[str, Any] = {}
    for line in journal.read_bytes().split(b"\n"):
        check, _, text = line.partition(b" ")
        if text and int(check, 16) == zlib.crc32(text):
            record = json.loads(text)
            last = record if record["event"] == "confirmed" else last
    return str(last.get("restores") or last["name"]), last["values"]


def withdrawn_by(journal: Path) -> dict[str, set[str]]:
    """Return change -> devices that are not to have it, by one journal, until it is confirmed."""
    found: dict[str, set[str]] = {}
    for line in journal.read_bytes().split(b"\n"):
        check, _, text = line.partition(b" ")
        if not text or int(check, 16) != zlib.crc32(text):
            continue
        record = json.loads(text)
        name = str(record.get("restores") or record.get("name"))
        if record["event"] == "withdrawn":
            found.setdefault(name, set()).update(record["devices"])
        elif record["event"] == "confirmed":
            found.pop(name, None)
    return found


@dataclass
class Decided:
    """The log's last word: device -> its changes, newest last; and what each change writes."""

    changes: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    stacks: dict[str, list[str]] = field(default_factory=dict)


def decided_by(lines: Iterable[str]) -> Decided:
    """Read the lines of an audit log as its rule has it."""
    found = Decided()
    for record in map(json.loads, lines):
        event, name = record["event"], record.get("transaction", "")
        if event == "apply":
            found.changes[name] = record["changes"]
        elif event in ("confirming", "confirmed"):
            for device in record["devices"]:
                stack = found.stacks.setdefault(device, [])
                stack.extend([name] if name not in stack else [])
        elif event in ("taken back", "undo", "undo failed"):
            all_of_them = list(found.stacks) if event == "taken back" else record["devices"]
            for device in all_of_them:
                if name in found.stacks.get(device, []) and device not in (
                    record["left"] if event != "taken back" else ()
                ):
                    found.stacks[device].remove(name)
    return found


def withdraw(decided: Decided, withdrawn: dict[str, set[str]]) -> None:
    """Take changes away from devices that, by a journal, are not to have them."""
    for name, devices in withdrawn.items():
        for device in devices:
            if name in decided.stacks.get(device, []):
                decided.stacks[device].remove(name)


def split(decided: Decided, confirmed: dict[str, str]) -> dict[str, str]:
    """Return device -> the change that it is to have, where its journal confirmed another."""
    found = {}
    for device, name in confirmed.items():
        wanted = next(iter(reversed(decided.stacks.get(device, []))), "")
        if name != wanted and (wanted or name in decided.changes):
            found[device] = wanted
    return found


def wrong_places(
    held: dict[str, str], confirmed: dict[str, str], change: dict[str, str]
) -> dict[str, str]:
    """Return the places of a device that hold neither what was confirmed nor what a log wrote."""
    wanted = {**confirmed, **change}
    found = {place.rpartition("|")[2]: text for place, text in held.items()}
    wanted = {place.rpartition("|")[2]: text for place, text in wanted.items()}
    return {p: found.get(p, "nothing") for p, text in wanted.items() if found.get(p) != text}
