"""The controller's own record of a fleet: one JSON object a line, who did what, when and why."""

from __future__ import annotations

import getpass
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.files import parse_json, read_text

__all__ = ["AuditLog"]


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

    def newest(self) -> str:
        """Return the newest confirmed transaction that was not undone; or empty.

        Changes of a tuning run whose fleet was put back are over: none of them is offered.
        """
        found: list[tuple[str, str]] = []
        for record in self._records():
            event, name = record["event"], record.get("transaction", "")
            run = ("run", record.get("run", ""))
            if event == "confirmed" and record.get("devices"):
                found.append(("confirmed", name))
            elif event == "undo" and ("confirmed", name) in found:
                found.remove(("confirmed", name))
            elif event == "run":
                found.append(run)
            elif event == "put back" and run in found:
                del found[found.index(run) :]
        return next((name for kind, name in reversed(found) if kind == "confirmed"), "")

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
