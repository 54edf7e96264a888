"""A submission: a folder with an entry's code, logs and result, all listed with their hashes.

``files.json`` lists everything but itself. Nothing of a submission is read before its list is
checked: names that leave the folder, links, files that are not listed, missing, too large or
changed are refused with one sentence. So is an entry that no leaderboard has.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import Self

from dcqcn_gym.benchmarks.leaderboard.entry_text import check_asked
from dcqcn_gym.benchmarks.leaderboard.verification import FILES
from dcqcn_gym.core.compressed_files import unpacked
from dcqcn_gym.core.config import StrictModel, load_json, validate
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import read_file, read_text
from dcqcn_gym.core.toml_text import parse_toml
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.runs.log import write_json
from dcqcn_gym.tuners import TUNERS

SCHEMA = 2
ABOUT = "submission.toml"
REQUIREMENTS = "requirements.txt"
RESULT = "results.json"
CODE = "plugin"

MOST_FILES = 20_000
MOST_BYTES = 2**31
"""Bytes of all files together."""
MOST_CODE_BYTES = 2**28
MOST_LOG_BYTES = 2**28
"""Bytes of one log when it is unpacked."""
MOST_UNPACKED_BYTES = 2**31
"""Bytes of all logs together when they are unpacked."""
MOST_TEXT = 2**22
_MOST_NAME = 240

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_.+-]+)*")
_COMPILED = (".so", ".pyd", ".dll", ".dylib", ".wasm", ".o", ".a")
_MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\0asm")
"""How compiled files end, or begin: ELF, Mach-O, WebAssembly."""
_LOG = re.compile(r"logs/[a-z0-9-]+/(online|final)-\d{2,3}\.jsonl\.gz")


def _visible(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds characters that cannot be seen, or that turn the text around")
    return text


Line = Annotated[str, Field(max_length=200), AfterValidator(_visible)]
"""One line that a stranger wrote and that pages and terminals show."""


def looks_like(one: str, other: str) -> bool:
    """Tell whether two names of entries can be taken for each other: Keeper, keeper_."""
    return _skeleton(one) == _skeleton(other)


def _skeleton(name: str) -> str:
    """Return a name as it is seen at a glance; names of entries have ASCII characters alone."""
    found = name.lower().translate(_ALIKE)
    return found.replace("rn", "m").replace("vv", "w")


_ALIKE = str.maketrans("01i5", "olls", "-_.+")


class Trained(StrictModel):
    """What a policy learned on before it was submitted."""

    intervals: int = Field(0, ge=0, description="monitor intervals of training, 0 for none")
    data: Line = Field("none", description="scenarios or traces that it learned from")


class About(StrictModel):
    """``submission.toml``: who, what, and what it ran on."""

    schema_version: int = Field(SCHEMA, alias="schema")
    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$", max_length=80)
    tuner: Line = Field(description="as its logs name it")
    tuner_args: dict[str, Any] = Field(default_factory=dict)
    changes: dict[str, Any] = Field(
        default_factory=dict,
        description="fields of scenarios that the entry replaces: its scheme or nothing",
    )
    authors: list[Line] = Field(min_length=1, max_length=50)
    licence: Line = Field(min_length=1)
    category: Literal["static", "online", "pre-trained", "simulating", "oracle"]
    link: Line = Field(
        "", description="where its code lives, https://...", pattern="^(https://.*)?$"
    )
    version: str = Field(description="version of dcqcn-gym that made the logs")
    suite: str = Field(pattern="^[a-z0-9][a-z0-9.-]*$", max_length=80)
    suite_digest: str
    repetitions: int = Field(ge=1, le=999)
    training: Trained = Field(default_factory=lambda: Trained(intervals=0, data="none"))

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        for known in TUNERS.builtin:
            if self.tuner != known and looks_like(self.name, known):
                raise ValueError(
                    f"name: {self.name!r} reads like {known!r}, which is built in; take another one"
                )
        return self

    @property
    def entry(self) -> Entry:
        """The entry that was submitted."""
        return Entry(self.tuner, self.tuner_args, self.changes, self.name)


class _File(StrictModel):
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)


class _List(StrictModel):
    schema_version: int = Field(alias="schema")
    files: dict[str, _File]


@dataclass(frozen=True)
class Submission:
    """A folder that was checked against its list; :func:`open_submission` makes it."""

    folder: Path
    about: About
    names: tuple[str, ...]
    files: Mapping[str, _File]

    @property
    def logs(self) -> list[str]:
        """The names of its logs."""
        return [name for name in self.names if name.startswith("logs/")]

    def read(self, name: str) -> bytes:
        """Return a file's bytes; ConfigError if it has changed since it was checked."""
        return _read(self.folder, name, self.files[name])

    def read_log(self, name: str) -> bytes:
        """Return a log, unpacked; ConfigError if it is no packed file or too long."""
        return b"".join(self._pieces(name))

    def check_unpacked(self, names: Iterable[str]) -> None:
        """Raise ConfigError if logs are too large together when unpacked; nothing is written."""
        size = 0
        for name in names:
            for piece in self._pieces(name):
                size += len(piece)
                if size > MOST_UNPACKED_BYTES:
                    raise ConfigError(
                        f"{self.folder}: its logs are larger than {MOST_UNPACKED_BYTES} bytes "
                        "together when unpacked"
                    )

    def _pieces(self, name: str) -> Iterator[bytes]:
        """Yield what a log unpacks to, piece by piece; ConfigError as :meth:`read_log`."""
        return unpacked(self.read(name), str(self.folder / name), MOST_LOG_BYTES)

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
    """Return the name that a log of a leaderboard has in a submission."""
    return f"logs/{scenario}/{log.name}.gz"


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
    for name, file in listed.files.items():
        _read(folder, name, file)
    found = Submission(folder, _about(folder / ABOUT), tuple(sorted(listed.files)), listed.files)
    _check_entry(found)
    return found


def _check_entry(submission: Submission) -> None:
    """Raise ConfigError for an entry that nobody can run, or code beside a built-in tuner."""
    tuner = submission.about.tuner
    check_asked(submission.about.entry, str(submission.folder / ABOUT))
    for name in submission.names:
        if name.startswith(f"{CODE}/") and tuner in TUNERS.builtin:
            raise ConfigError(
                f"{submission.folder / name}: tuner {tuner!r} is built in, so its submission holds "
                "no code; remove it, or name the plug-in as the tuner"
            )
        if name.startswith(f"{CODE}/") and submission.about.category != "simulating":
            _check_source(submission, name)


def _check_source(submission: Submission, name: str) -> None:
    """Raise ConfigError for a program or a library: tuners that simulate may bring an engine."""
    compiled = Path(name).suffix in _COMPILED or submission.read(name)[:4] in _MAGIC
    if compiled:
        raise ConfigError(
            f"{submission.folder / name}: is compiled; only tuners of the category 'simulating' "
            "bring an engine of their own"
        )


def _check_schema(path: Path, schema: int) -> None:
    if schema != SCHEMA:
        raise ConfigError(
            f"{path}: schema {schema}; this version of dcqcn-gym reads schema {SCHEMA}: "
            f"{'update dcqcn-gym' if schema > SCHEMA else 'submit the entry again'}"
        )


def _about(path: Path) -> About:
    table = parse_toml(read_text(path, MOST_TEXT), str(path))
    if type(table.get("schema")) is int:
        _check_schema(path, table["schema"])
    return validate(table, About, source=str(path))


def check_name(name: str, source: str) -> None:
    """Raise ConfigError, which begins with ``source``, for a name that could leave its folder."""
    if not _NAME.fullmatch(name) or len(name) > _MOST_NAME or {".", ".."} & set(name.split("/")):
        raise ConfigError(f"{source}: {quote(name)} is no name of a file inside the submission")


def _check_names(folder: Path, files: Mapping[str, _File]) -> None:
    if len(files) > MOST_FILES:
        raise ConfigError(f"{folder / FILES}: {len(files)} files; expected at most {MOST_FILES}")
    total = code = 0
    for name, file in files.items():
        parts = name.split("/")
        check_name(name, str(folder / FILES))
        known = name in (ABOUT, RESULT, REQUIREMENTS) or (parts[0] == CODE and len(parts) > 1)
        if not known and not _LOG.fullmatch(name):
            raise ConfigError(
                f"{folder / FILES}: {quote(name)} has no place in a submission; expected {ABOUT}, "
                f"{REQUIREMENTS}, {RESULT}, {CODE}/... or logs/SCENARIO/online-00.jsonl.gz"
            )
        total += file.bytes
        code += file.bytes if parts[0] == CODE else 0
    if total > MOST_BYTES or code > MOST_CODE_BYTES:
        raise ConfigError(
            f"{folder}: too large: {total} bytes, {code} of them code; expected at most "
            f"{MOST_BYTES} and {MOST_CODE_BYTES}"
        )


def _walk(folder: Path, before: str = "") -> Iterator[str]:
    """Yield the names of all files; ConfigError for what is no file and no folder."""
    for number, file in enumerate(os.scandir(folder)):
        name = before + file.name
        if name == FILES:
            if file.is_symlink():
                raise ConfigError(f"{folder / file.name}: is a link; expected a file")
            continue
        if number >= MOST_FILES:
            raise ConfigError(f"{folder}: more than {MOST_FILES} files")
        if file.is_symlink():
            raise ConfigError(f"{folder / file.name}: is a link; a submission holds none")
        if len(name) > _MOST_NAME:
            raise ConfigError(f"{folder}: has names of more than {_MOST_NAME} characters")
        if file.is_dir(follow_symlinks=False):
            yield from _walk(folder / file.name, f"{name}/")
        elif file.is_file(follow_symlinks=False):
            yield name
        else:
            raise ConfigError(f"{folder / file.name}: is neither a file nor a folder")


def _read(folder: Path, name: str, file: _File) -> bytes:
    path = folder / name
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{path}: is no file any more")
    if status.st_size != file.bytes:
        raise ConfigError(f"{path}: has {status.st_size} bytes; {FILES} says {file.bytes}")
    data = read_file(path, MOST_BYTES)
    digest = hashlib.sha256(data).hexdigest()
    if digest != file.sha256:
        raise ConfigError(
            f"{path}: was changed: its SHA-256 begins with {digest[:12]}, {FILES} says "
            f"{file.sha256[:12]}"
        )
    return data
