"""An agent's memory on disk: one line per event, bounded, and whole after any crash.

A line is the CRC-32 of its text in 8 hexadecimal digits, a blank, and a JSON object, whose
``chain`` is the digest of the line before it: a damaged line shows, and so does a missing one.
Lines are appended and flushed to the disk before the call returns; a last line that a crash cut off
is left out. A file that grew too long is written again with its newest lines and moved into place,
so there is an old or a new one, never half of either. The last confirmed setting is kept a second
time, in a file of its own beside it: if the journal is damaged or gone, that one still says where
to go back.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError, DeviceError
from dcqcn_gym.core.files import parse_json
from dcqcn_gym.core.sums import count
from dcqcn_gym.hw.device_state import KnownChange, begun_ms, run_of
from dcqcn_gym.hw.private_files import private

Record = dict[str, Any]

MOST_BYTES = 1 << 20
KEPT = 200
"""Lines that are kept when a journal is shortened, beside the last confirmed settings."""
KEPT_CONFIRMED = 20


class Journal:
    """The events of one device, oldest first.

    ``bad_lines`` counts those that were damaged or missing when it was read.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        """Read the journal, or begin one; raise DeviceError if neither can be done."""
        self._path = path
        self._copy = path.with_name(path.name + ".confirmed")
        self._most_bytes = most_bytes
        self.records: list[Record] = []
        self.bad_lines = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise self._failed("read", error) from None
        *whole, torn = data.split(b"\n")
        self._read(whole)
        self._size = len(data) - len(torn)
        """Where the next line goes: over one that a crash cut off. Damaged ones stay there."""
        self._last = whole[-1] if whole else b""
        self._use_copy()

    def _read(self, lines: Sequence[bytes]) -> None:
        """Take up the events of these lines; count those that are damaged or missing."""
        before: bytes | None = b""  # None: damaged, so that it says nothing about the next
        for line in lines:
            record = _parsed(line)
            chain = record.get("chain") if record else None
            chained = any("chain" in other for other in self.records[-1:])
            if record is not None:
                follows = before is None or chain == _digest(before)
                self.bad_lines += not follows and (chain is not None or chained)
                self.records.append(record)
            else:
                self.bad_lines += 1
            before = line if record is not None else None

    def _use_copy(self) -> None:
        """Take up the copy of the last confirmed setting where it is newer than the lines."""
        found, copy = self.last("confirmed"), None
        with suppress(OSError):
            copy = _parsed(self._copy.read_bytes().rstrip(b"\n"))
        if copy is not None and (found is None or _number(copy) > _number(found)):
            self.bad_lines = max(self.bad_lines, 1)
            with suppress(DeviceError):
                self.append(copy)
                return
            self.records.append(copy)  # a disk that cannot be written must not hide it
        elif found is not None and copy != found:
            self._keep_copy(found)

    def _keep_copy(self, record: Record) -> None:
        """Keep a confirmed setting a second time, if the disk lets it; the journal has it."""
        fresh = self._copy.with_name(self._copy.name + ".new")
        with suppress(OSError):
            with open(fresh, "wb", opener=private) as file:
                file.write(_line(record))
                _flushed(file)
            os.replace(fresh, self._copy)

    def append(self, record: Record) -> Record:
        """Add an event; it is on the disk when this returns. Raises DeviceError if it is not.

        Return what was written: confirmed settings are numbered, so that a missing one is noticed.
        A journal that cannot be shortened then stays long until the next event: to raise would
        deny an event that is on the disk.
        """
        last = self.last("confirmed")
        confirmed = record.get("event") == "confirmed"
        if confirmed and "number" not in record:
            record = {**record, "number": _number(last) + 1 if last else 1}
        record = {**record, "chain": _digest(self._last)}
        line = _line(record)
        try:
            there = self._path.exists()
            with open(self._path, "r+b" if there else "xb", opener=private) as file:
                try:
                    file.seek(self._size)
                    file.write(line)
                    file.truncate()
                    _flushed(file)
                except OSError:
                    file.truncate(self._size)  # half a line would spoil the next one
                    raise
        except OSError as error:
            raise self._failed("written", error) from None
        self._size, self._last = self._size + len(line), line.rstrip(b"\n")
        self.records.append(record)
        if self._size > self._most_bytes:
            with suppress(DeviceError):
                self._rewrite()
        if confirmed:
            self._keep_copy(record)
        return record

    def last(self, event: str) -> Record | None:
        """Return the newest event of a kind."""
        return next((r for r in reversed(self.records) if r.get("event") == event), None)

    def stopped_by_operator(self) -> bool:
        """Tell whether the operator's last word was to stop."""
        stops = (r for r in reversed(self.records) if r.get("event") == "stopped")
        own = (r for r in stops if r["by"] != "file")
        last = next(own, None)
        return last is not None and bool(last["on"])

    def confirmed_as(self, name: str, held: Mapping[str, str]) -> dict[str, str] | None:
        """Return what must change to hold what a transaction set here; None if not known.

        That is what it confirmed; else what it had on trial, if it went back before.
        """
        for event, values in (("confirmed", "values"), ("applying", "after")):
            for record in reversed(self.records):
                own = (record.get("name"), record.get("restores"))
                if record.get("event") == event and name in own:
                    return {p: text for p, text in record[values].items() if held.get(p) != text}
        return None

    def passed(self) -> tuple[str, ...]:
        """Return the changes that were confirmed, oldest first; the last is in force."""
        found = [str(r.get("restores") or r["name"]) for r in self._of("confirmed")]
        return tuple(found[-KEPT_CONFIRMED:])

    def withdrawn(self) -> dict[str, frozenset[str]]:
        """Return change -> devices that are not to have it, but for one that came again since."""
        found: dict[str, frozenset[str]] = {}
        for record in self.records:
            name = str(record.get("restores") or record.get("name"))
            if record.get("event") == "withdrawn":
                found[name] = found.get(name, frozenset()) | set(record["devices"])
            elif record.get("event") == "confirmed":
                found.pop(name, None)
        return dict(list(found.items())[-KEPT_CONFIRMED:])

    def change(self, name: str) -> KnownChange:
        """Return what is known here of a change."""
        known = self._of("confirmed")
        own = [i for i, r in enumerate(known) if name in (r["name"], r.get("restores"))]
        named = [r for r in self.records if r.get("name") == name and r.get("members")]
        members = next((r["members"] for r in reversed(named)), ())
        before = known[own[0] - 1] if own and own[0] else {}
        return KnownChange(
            frozenset(members),
            self.withdrawn().get(name, frozenset()),
            str(before.get("restores") or before.get("name", "")),
        )

    def _of(self, event: str) -> list[Record]:
        return [record for record in self.records if record.get("event") == event]

    def over(self, name: str) -> bool:
        """Tell whether a transaction, or a run, was on trial here before.

        Of one that the journal had to forget its own name tells when it began.
        """
        if 0 < begun_ms(name) <= self._forgotten_ms:
            return True
        run = run_of(name)
        known = {str(r.get("name")) for r in self.records if r.get("event") == "applying"}
        return name in known or bool(run and run in {run_of(other) for other in known})

    @property
    def _forgotten_ms(self) -> float:
        """When the newest of the transactions began that were on trial and are no longer here."""
        return float((self.last("forgot") or {"until_ms": 0})["until_ms"])

    def refuse_a_second_start(self) -> None:
        """Raise DeviceError if there was an earlier start, of which a damaged journal is left."""
        if self.records or self.bad_lines:
            raise DeviceError(
                f"the journal {self._path} is damaged and holds no confirmed setting, and what the "
                "device holds may be a trial; put the device where it should be, move the journal "
                "away and start the agent again"
            )

    def _rewrite(self) -> None:
        """Write the newest lines, and the last confirmed settings, into a new file."""
        confirmed = self._of("confirmed")[-KEPT_CONFIRMED:]
        confirmed += self._of("withdrawn")[-KEPT_CONFIRMED:]
        kept = self.records[-KEPT:]
        while len(kept) > 1 and count(len(_line(r)) for r in kept) > self._most_bytes // 2:
            kept = kept[len(kept) // 2 :]
        own = {id(record) for record in kept}
        older = [record for record in confirmed if id(record) not in own]
        while len(older) > 1 and count(len(_line(r)) for r in older) > self._most_bytes // 4:
            older = older[1:]
        own |= {id(record) for record in older}
        gone = [r for r in self.records if id(r) not in own and r.get("event") == "applying"]
        # a name says what its maker likes: never later than it came here
        ended = [min(begun_ms(str(r["name"])), r.get("unix_s", 0) * 1e3) for r in gone]
        until = {"event": "forgot", "name": "", "until_ms": max([self._forgotten_ms, *ended])}
        kept, lines = [until, *(r for r in older + kept if r.get("event") != "forgot")], [b""]
        for i, record in enumerate(kept):
            kept[i] = {**record, "chain": _digest(lines[-1])}
            lines.append(_line(kept[i]).rstrip(b"\n"))
        data = b"\n".join([*lines[1:], b""])
        fresh = self._path.with_name(self._path.name + ".new")
        try:
            with open(fresh, "wb", opener=private) as file:
                file.write(data)
                _flushed(file)
            os.replace(fresh, self._path)
            # from here on this is the file
            self.records, self._size, self._last = kept, len(data), lines[-1]
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink()  # a full disk needs the room
            raise self._failed("written", error) from None

    def _failed(self, word: str, error: OSError) -> DeviceError:
        return DeviceError(
            f"the journal {self._path} cannot be {word} ({error.strerror or error}); an agent "
            "changes nothing that it cannot remember"
        )


def confirmed_before(records: Sequence[Record], name: str) -> Record:
    """Return what was confirmed before the transaction ``name``, which ``records`` confirm.

    Raises ConfigError if a journal that was shortened, or damaged, no longer holds it.
    """
    known = [record for record in records if record.get("event") == "confirmed"]
    own = [i for i, record in enumerate(known) if record["name"] == name]
    brought = [i for i, record in enumerate(known) if record.get("restores") == name]
    first = next(iter(own or brought), 0)  # brought: to a device that had lost it
    if first > 0:
        before, after = known[first - 1], known[first]
        if after["number"] == before["number"] + 1:
            return before
    raise ConfigError(f"the journal does not hold what was before transaction {name}")


def _number(confirmed: Record) -> int:
    number = confirmed["number"]
    return number if isinstance(number, int) else 0


def _flushed(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _line(record: Record) -> bytes:
    text = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parsed(line: bytes) -> Record | None:
    crc, blank, text = line.partition(b" ")
    try:
        if not blank or crc != b"%08x" % zlib.crc32(text):
            return None
        record = parse_json(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:16]
