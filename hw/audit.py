"""The controller's own record of a fleet: one JSON object a line, who did what, when and why."""

from __future__ import annotations

import getpass
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.files import parse_json, read_text

__all__ = ["AuditLog", "Expected"]


@dataclass
class Expected:
    """What devices are to hold, by a log: a change is decided before the first device keeps it."""

    stacks: dict[str, list[str]] = field(default_factory=dict)
    """Device -> its decided transactions that were not undone, the newest last."""
    begun: list[str] = field(default_factory=list)
    """Every transaction that was ever applied, in their order."""
    _runs: dict[str, dict[str, int]] = field(default_factory=dict)

    def follow(self, record: Mapping[str, Any]) -> None:
        """Take up the next line of the log."""
        event, name = record["event"], record.get("transaction", "")
        left, devices = record.get("left", ()), record.get("devices", ())
        if event == "apply":
            self.begun.append(name)
        elif event in ("confirming", "confirmed"):
            for device in devices:
                stack = self.stacks.setdefault(device, [])
                if name not in stack:
                    stack.append(name)
        elif event == "taken back":
            self._drop(name, list(self.stacks))
        elif event in ("undo", "undo failed"):
            self._drop(name, [device for device in devices if device not in left])
        elif event == "run":
            began = record.get("began", list(self.stacks))
            self._runs[record["run"]] = {d: len(self.stacks.get(d, [])) for d in began}
        elif event in ("put back", "not put back"):
            for device, depth in self._runs.get(record["run"], {}).items():
                if device not in left:
                    del self.stacks.get(device, [])[depth:]

    def _drop(self, name: str, devices: list[str]) -> None:
        for device in devices:
            stack = self.stacks.get(device, [])
            if name in stack:
                stack.remove(name)

    def of(self, device: str) -> str:
        """Return the transaction that a device is to hold; empty if the log has none."""
        return next(iter(reversed(self.stacks.get(device, []))), "")

    def newest(self, devices: Iterable[str]) -> str:
        """Return the newest transaction that one of these devices is to hold; or empty."""
        held = {self.of(device) for device in devices}
        return next((name for name in reversed(self.begun) if name in held), "")

    def astray(self, confirmed: Mapping[str, str]) -> dict[str, str]:
        """Return device -> what it is to hold, where ``confirmed`` says that it holds another.

        What was confirmed from elsewhere, of which this log knows nothing, is passed over.
        """
        return {
            device: self.of(device) or "what was before"
            for device, name in confirmed.items()
            if name != self.of(device) and (name in self.begun or self.of(device))
        }


class AuditLog:
    """The file is only ever added to; a line that a crash cut off is passed over."""

    def __init__(self, path: Path, operator: str) -> None:
        self._path, self._operator = path, operator

    def write(self, record: dict[str, Any]) -> None:
        """Add a line; raise DeviceError if it cannot be kept."""
        whose = {"who": self._operator, "account": _account()}
        line = json.dumps({"unix_s": time.time(), **whose, **record})
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            raise DeviceError(
                f"{self._path}: the audit log cannot be written ({error.strerror or error})"
            ) from None

    def expected(self) -> Expected:
        """Return what the devices are to hold by everything that this log tells."""
        found = Expected()
        for record in self._records():
            found.follow(record)
        return found

    def devices_of(self, name: str) -> list[str]:
        """Return the devices that a transaction changed; none if it is not known here."""
        for record in self._records():
            if (record["event"], record.get("transaction")) == ("apply", name):
                return list(record["changes"])
        return []

    def _records(self) -> Iterator[dict[str, Any]]:
        for line in read_text(self._path).splitlines() if self._path.exists() else []:
            try:
                record = parse_json(line)
            except ValueError:
                continue
            if isinstance(record, dict) and "event" in record:
                yield record


def _account() -> str:
    """Return the account that this process runs under: its name, or its number without one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
