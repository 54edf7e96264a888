"""The controller's own record of a fleet: one JSON object a line, who did what, when and why.

Every line has the SHA-256 of the line before it (``chain``): one that was changed, taken out or put
in later shows. Whoever may write the file can write all of it anew, or cut its end off; the digests
in the system's log, best on another host, show that.
"""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from logging.handlers import SysLogHandler
from pathlib import Path
from typing import Any, BinaryIO

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.hw.private_files import private


@dataclass
class Expected:
    """What devices are to hold, by a log: a change is decided before the first device keeps it."""

    stacks: dict[str, list[str]] = field(default_factory=dict)
    """Device -> its decided transactions that were not undone, the newest last."""
    begun: list[str] = field(default_factory=list)
    """Every transaction that was ever applied, in their order."""
    members: dict[str, list[str]] = field(default_factory=dict)
    """Transaction -> the devices that it changed."""
    ended: dict[str, set[str]] = field(default_factory=dict)
    """Transaction -> devices that are not to have it any more, by a line of this log."""
    _runs: dict[str, dict[str, int]] = field(default_factory=dict)

    def follow(self, record: Mapping[str, Any]) -> None:
        """Take up the next line of the log."""
        event, name = record["event"], record.get("transaction", "")
        left, devices = record.get("left", ()), record.get("devices", ())
        if event == "apply":
            self.begun.append(name)
            self.members[name] = list(record.get("changes", ()))
        elif event in ("confirming", "confirmed"):
            for device in devices:
                stack = self.stacks.setdefault(device, [])
                self.ended.get(name, set()).discard(device)
                if name not in stack:
                    stack.append(name)
        elif event == "taken back":
            self._drop(name, [*self.stacks, *self.members.get(name, ())])
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
        self.ended.setdefault(name, set()).update(devices)
        for device in devices:
            stack = self.stacks.get(device, [])
            if name in stack:
                stack.remove(name)

    def of(self, device: str) -> str:
        """Return the transaction that a device is to hold; empty if the log has none."""
        return next(iter(reversed(self.stacks.get(device, []))), "")

    def astray(self, confirmed: Mapping[str, str]) -> dict[str, str]:
        """Return device -> what it is to hold, where ``confirmed`` says that it holds another.

        What was confirmed from elsewhere, of which this log knows nothing, is passed over.
        """
        known = set(self.begun)
        return {
            device: self.of(device) or "what was before"
            for device, name in confirmed.items()
            if name != self.of(device) and (name in known or self.of(device))
        }


class AuditLog:
    """The file is only ever added to; a line that a crash cut off is passed over."""

    def __init__(self, path: Path, operator: str, syslog: str = "") -> None:
        """``syslog``: a socket, or HOST:PORT, that gets every line's digest."""
        self._path, self._operator, self._syslog = path, operator, syslog
        self.unwritten = ""
        """Why the log lacks a way back; empty if it does not."""

    def note(self, record: dict[str, Any]) -> None:
        """Add a line of a way back, which goes on where that cannot be done."""
        try:
            self.write(record)
        except DeviceError as error:
            self.unwritten = str(error)

    def write(self, record: dict[str, Any]) -> None:
        """Add a line; it is on the disk when this returns. Raises DeviceError if it is not."""
        whose = {"who": self._operator, "account": _account()}
        try:
            with open(self._path, "a+b", opener=private) as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # another command may write, too
                last, torn = _last_line(file)
                line = json.dumps(
                    {"unix_s": time.time(), **whose, **record, "chain": _digest(last)}
                )
                file.write(b"\n" * torn + line.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DeviceError(
                f"{self._path}: the audit log cannot be written ({error.strerror or error})"
            ) from None
        if self._syslog:
            said = (record["event"], record.get("transaction", ""), "by", self._operator)
            _send(self._syslog, f"{' '.join(said)}: {_digest(line.encode())}")

    def broken(self) -> str:
        """Return where the chain is broken, in words; empty if every line follows from the last."""
        before, chained = b"", False
        for number, line in enumerate(self._lines(), 1):
            record = _parsed(line)
            found = record.get("chain") if record else None
            if found is not None and found != _digest(before):
                return f"{self._path}: line {number} does not follow from the one before it"
            if chained and record and found is None:
                return f"{self._path}: line {number} is not of this log"
            chained, before = chained or found is not None, line
        return ""

    def expected(self) -> Expected:
        """Return what the devices are to hold by everything that this log tells."""
        found = Expected()
        for record in self._records():
            found.follow(record)
        return found

    def devices_of(self, name: str) -> list[str]:
        """Return the devices that a transaction changed; none if it is not known here."""
        return list(self._applied(name).get("changes", ()))

    def trial_of(self, name: str) -> float:
        """Return how long a transaction was put on trial for, in seconds."""
        return float(self._applied(name).get("trial_s", math.inf))

    def begun_run(self) -> str:
        """Return the run that began last, if nothing was done in it, nor afterwards; or empty."""
        last: dict[str, Any] = {}
        for record in self._records():
            last = record
        return str(last["run"]) if last.get("event") == "run" else ""

    def kept_of(self, run: str) -> str | None:
        """Return the change that kept a run's setting; empty without one, None without the run."""
        own = [r for r in self._records() if r.get("run") == run]
        kept = [str(r["transaction"]) for r in own if r["event"] == "kept"]
        return next(iter(kept), "") if own else None

    def _applied(self, name: str) -> dict[str, Any]:
        own = (r for r in self._records() if r["event"] == "apply")
        return next((r for r in own if r.get("transaction") == name), {})

    def _lines(self) -> list[bytes]:
        found = read_file(self._path) if self._path.exists() else b""
        return found.removesuffix(b"\n").split(b"\n") if found else []

    def _records(self) -> Iterator[dict[str, Any]]:
        return filter(None, map(_parsed, self._lines()))


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = parse_json(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "event" in record else None


def _last_line(file: BinaryIO) -> tuple[bytes, bool]:
    """Return the last line of a file, and whether a crash cut it off."""
    size = file.seek(0, os.SEEK_END)
    length = 4096
    while True:
        file.seek(max(size - length, 0))
        data = file.read()
        whole = data.removesuffix(b"\n")
        if b"\n" in whole or length >= size:
            return whole.rpartition(b"\n")[2], bool(data) and whole == data
        length *= 16


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _send(where: str, text: str) -> None:
    """Tell the system's log; one that is away keeps nobody from a change or a way back."""
    host, colon, port = where.rpartition(":")
    with suppress(OSError):
        handler = SysLogHandler((host, int(port)) if colon else where)
        handler.ident = "dcqcn-gym: "
        vars(handler)["handleError"] = lambda record: None
        handler.emit(logging.makeLogRecord({"msg": text, "levelno": logging.INFO}))
        handler.close()


def _account() -> str:
    """Return the account that this process runs under: its name, or its number without one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
