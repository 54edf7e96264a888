"""A submission: a folder with a row's code, logs and result, listed file by file with their hashes.

``files.json`` lists everything but itself and a ``verification.json``, which counts for nothing.
Nothing of a submission is read before its list is checked: names that leave the folder, links,
files that are not listed, missing, too large or changed are refused with one sentence. So is a row
that no board has.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dcqcn_gym.benchmarks.board.row_text import check_asked
from dcqcn_gym.benchmarks.board.verification import FILES, VERIFICATION_FILE
from dcqcn_gym.core.config import StrictModel, load_json, validate
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import read_file, read_text
from dcqcn_gym.core.toml_text import parse_toml
from dcqcn_gym.runs.log import write_json
from dcqcn_gym.runs.rows import Row
from dcqcn_gym.tuners import TUNERS

__all__ = [
    "ABOUT",
    "CODE",
    "REQUIREMENTS",
    "RESULT",
    "SCHEMA",
    "About",
    "Submission",
    "Training",
    "compressed",
    "log_name",
    "open_submission",
    "write_list",
]

SCHEMA = 1
ABOUT = "submission.toml"
REQUIREMENTS = "requirements.txt"
RESULT = "results.json"
CODE = "plugin"

MOST_FILES = 20_000
MOST_BYTES = 2**31
"""Bytes of all files together; a row of test-v1 has about 100 million."""
MOST_CODE_BYTES = 2**28
MOST_LOG_BYTES = 2**28
"""Bytes of one log when it is unpacked."""
MOST_TEXT = 2**22

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_.+-]+)*")
_LOG = re.compile(r"logs/[a-z0-9-]+/(online|final)-\d{2,3}\.jsonl\.gz")


class Training(StrictModel):
    """What a policy learned on before it was submitted."""

    intervals: int = Field(0, ge=0, description="monitor intervals of training, 0 for none")
    data: str = Field("none", description="scenarios or traces that it learned from")


class About(StrictModel):
    """``submission.toml``: who, what, and what it ran on."""

    schema_version: int = Field(SCHEMA, alias="schema")
    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$", max_length=80)
    tuner: str = Field(description="as its logs name it")
    tuner_args: dict[str, Any] = Field(default_factory=dict)
    changes: dict[str, Any] = Field(
        default_factory=dict,
        description="fields of scenarios that the row replaces: its scheme or nothing",
    )
    authors: list[str] = Field(min_length=1)
    licence: str = Field(min_length=1)
    track: Literal["static", "online", "pre-trained", "oracle"]
    link: str = Field(
        "", description="where its code lives, https://...", pattern="^(https://.*)?$"
    )
    version: str = Field(description="version of dcqcn-gym that made the logs")
    suite: str = Field(pattern="^[a-z0-9][a-z0-9.-]*$", max_length=80)
    suite_digest: str
    repetitions: int = Field(ge=1, le=999)
    training: Training = Field(default_factory=lambda: Training(intervals=0, data="none"))

    @property
    def row(self) -> Row:
        """The row that was submitted."""
        return Row(self.tuner, self.tuner_args, self.changes, self.name)


class _Entry(StrictModel):
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)


class _List(StrictModel):
    schema_version: int = Field(alias="schema")
    files: dict[str, _Entry]


@dataclass(frozen=True)
class Submission:
    """A folder that was checked against its list; :func:`open_submission` makes it."""

    folder: Path
    about: About
    names: tuple[str, ...]
    entries: Mapping[str, _Entry]

    @property
    def logs(self) -> list[str]:
        """The names of its logs."""
        return [name for name in self.names if name.startswith("logs/")]

    def read(self, name: str) -> bytes:
        """Return a file's bytes; ConfigError if it has changed since it was checked."""
        return _read(self.folder, name, self.entries[name])

    def read_log(self, name: str) -> bytes:
        """Return a log, unpacked; ConfigError if it is no packed file or too long."""
        unpacker = zlib.decompressobj(wbits=31)
        try:
            data = unpacker.decompress(self.read(name), MOST_LOG_BYTES)
        except zlib.error as error:
            raise ConfigError(f"{self.folder / name}: cannot be unpacked: {error}") from None
        if unpacker.unconsumed_tail:
            raise ConfigError(
                f"{self.folder / name}: is larger than {MOST_LOG_BYTES} bytes when unpacked"
            )
        if not unpacker.eof or unpacker.unused_data:
            raise ConfigError(f"{self.folder / name}: cannot be unpacked: it is cut or extended")
        return data

    def copy_code(self, out: Path) -> Path:
        """Copy the plug-in's code into ``out``, as it was checked; return that folder."""
        out.mkdir(parents=True, exist_ok=True)
        for name in self.names:
            if name.startswith(f"{CODE}/"):
                path = out / name.removeprefix(f"{CODE}/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.read(name))
        return out


def log_name(scenario: str, log: Path) -> str:
    """Return the name that a log of a board has in a submission."""
    return f"logs/{scenario}/{log.name}.gz"


def compressed(data: bytes) -> bytes:
    """Return a gzip file without date or name: the same bytes for the same log."""
    packer = zlib.compressobj(level=9, wbits=31)
    return packer.compress(data) + packer.flush()


def write_list(folder: Path) -> None:
    """Write ``files.json`` for what lies in ``folder``."""
    files = {
        name: {"sha256": hashlib.sha256(data := (folder / name).read_bytes()).hexdigest(),
               "bytes": len(data)}
        for name in sorted(_walk(folder))
    }  # fmt: skip
    write_json(folder / FILES, {"schema": SCHEMA, "files": files})


def open_submission(folder: Path) -> Submission:
    """Check a submission's list, hashes and ``submission.toml``; raise ConfigError otherwise."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; expected what bench submit has written")
    listed = load_json(folder / FILES, _List, MOST_TEXT)
    _check_schema(folder / FILES, listed.schema_version)
    _check_names(folder, listed.files)
    there = set(_walk(folder))
    for name in (ABOUT, RESULT, REQUIREMENTS):
        if name not in listed.files:
            raise ConfigError(f"{folder / FILES}: {name} is not listed; every submission has it")
    for name in listed.files:
        if name not in there:
            raise ConfigError(f"{folder / name}: no such file, but {FILES} lists it")
    for name in sorted(there):
        if name not in listed.files:
            raise ConfigError(f"{folder / name}: {FILES} does not list this file; remove it")
    for name, entry in listed.files.items():
        _read(folder, name, entry)
    found = Submission(folder, _about(folder / ABOUT), tuple(sorted(listed.files)), listed.files)
    _check_row(found)
    return found


def _check_row(submission: Submission) -> None:
    """Raise ConfigError for a row that is none of a board, or code beside a built-in tuner."""
    tuner = submission.about.tuner
    check_asked(submission.about.row, str(submission.folder / ABOUT))
    for name in submission.names:
        if name.startswith(f"{CODE}/") and tuner in TUNERS.builtin:
            raise ConfigError(
                f"{submission.folder / name}: tuner {tuner!r} is built in, so its submission holds "
                "no code; remove it, or name the plug-in as the tuner"
            )


def _check_schema(path: Path, schema: int) -> None:
    if schema != SCHEMA:
        raise ConfigError(
            f"{path}: schema {schema}; this version of dcqcn-gym reads schema {SCHEMA}: "
            f"{'update dcqcn-gym' if schema > SCHEMA else 'submit the row again'}"
        )


def _about(path: Path) -> About:
    table = parse_toml(read_text(path, MOST_TEXT), str(path))
    if type(table.get("schema")) is int:
        _check_schema(path, table["schema"])
    return validate(table, About, source=str(path))


def _check_names(folder: Path, files: Mapping[str, _Entry]) -> None:
    if len(files) > MOST_FILES:
        raise ConfigError(f"{folder / FILES}: {len(files)} files; expected at most {MOST_FILES}")
    total = code = 0
    for name, entry in files.items():
        parts = name.split("/")
        if not _NAME.fullmatch(name) or len(name) > 240 or {".", ".."} & set(parts):
            raise ConfigError(
                f"{folder / FILES}: {quote(name)} is no name of a file inside the submission"
            )
        known = name in (ABOUT, RESULT, REQUIREMENTS) or (parts[0] == CODE and len(parts) > 1)
        if not known and not _LOG.fullmatch(name):
            raise ConfigError(
                f"{folder / FILES}: {quote(name)} has no place in a submission; expected {ABOUT}, "
                f"{REQUIREMENTS}, {RESULT}, {CODE}/... or logs/SCENARIO/online-00.jsonl.gz"
            )
        total += entry.bytes
        code += entry.bytes if parts[0] == CODE else 0
    if total > MOST_BYTES or code > MOST_CODE_BYTES:
        raise ConfigError(
            f"{folder}: too large: {total} bytes, {code} of them code; expected at most "
            f"{MOST_BYTES} and {MOST_CODE_BYTES}"
        )


def _walk(folder: Path, before: str = "") -> Iterator[str]:
    """Yield the names of all files; ConfigError for what is no file and no folder."""
    for number, entry in enumerate(os.scandir(folder)):
        name = before + entry.name
        if name in (FILES, VERIFICATION_FILE):
            if entry.is_symlink():
                raise ConfigError(f"{folder / entry.name}: is a link; expected a file")
            continue
        if number >= MOST_FILES:
            raise ConfigError(f"{folder}: more than {MOST_FILES} files")
        if entry.is_symlink():
            raise ConfigError(f"{folder / entry.name}: is a link; a submission holds none")
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(folder / entry.name, f"{name}/")
        elif entry.is_file(follow_symlinks=False):
            yield name
        else:
            raise ConfigError(f"{folder / entry.name}: is neither a file nor a folder")


def _read(folder: Path, name: str, entry: _Entry) -> bytes:
    path = folder / name
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{path}: is no file any more")
    if status.st_size != entry.bytes:
        raise ConfigError(f"{path}: has {status.st_size} bytes; {FILES} says {entry.bytes}")
    data = read_file(path, MOST_BYTES)
    digest = hashlib.sha256(data).hexdigest()
    if digest != entry.sha256:
        raise ConfigError(
            f"{path}: was changed: its SHA-256 begins with {digest[:12]}, {FILES} says "
            f"{entry.sha256[:12]}"
        )
    return data
