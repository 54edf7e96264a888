"""A season: entries are frozen, then all run on traffic that nobody could know.

``season.json`` binds the entries, with the digests of their code, and the SHA-256 of a salt before
anything runs. The salt opens the season: all entries, built-in ones included, run on what it draws,
plug-ins of others in the sandbox. It stands in ``season.json`` and the results afterwards.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pydantic import Field

from dcqcn_gym.benchmarks.leaderboard.entry_text import asked_entries
from dcqcn_gym.benchmarks.leaderboard.leaderboard_file import EntryTable
from dcqcn_gym.benchmarks.leaderboard.protocol import (
    BASELINE,
    LEADERBOARD_FILE,
    Guest,
    Leaderboard,
)
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.benchmarks.leaderboard.submission import open_submission
from dcqcn_gym.benchmarks.leaderboard.suite import Digest, Suite, load_suite
from dcqcn_gym.benchmarks.leaderboard.tuner_host import Enclosure, sandbox_problem
from dcqcn_gym.benchmarks.leaderboard.verification import files_digest
from dcqcn_gym.core.config import StrictModel, load_json
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.files import read_file, read_text
from dcqcn_gym.core.version import RELEASE
from dcqcn_gym.runs.entries import unique
from dcqcn_gym.runs.log import write_json
from dcqcn_gym.runs.plugin_host import Hosting
from dcqcn_gym.runs.table import Table
from dcqcn_gym.tuners import TUNERS

SCHEMA = 1
SEASON_FILE = "season.json"
CODE_FOLDER = "code"
DEADLINE_S = 60.0
"""The longest that a call of a submitted tuner may take."""
RUN_S = 600.0
"""The longest that all its calls in one run may take: it could stop just short of every one."""


class SeasonEntry(EntryTable):
    """A frozen entry; the fields from ``files_sha256`` on are those of a submission."""

    files_sha256: Digest | None = None
    code_sha256: Digest | None = None
    category: str = ""
    authors: str = ""
    licence: str = ""
    link: str = ""


class SeasonFile(StrictModel):
    """``season.json``; ``salt`` is there once the season was run to its end."""

    schema_version: int = Field(alias="schema", ge=1, le=SCHEMA)
    suite: str
    suite_digest: Digest
    version: str
    repetitions: int = Field(ge=1, le=999)
    salt_sha256: Digest
    entries: tuple[SeasonEntry, ...] = Field(min_length=1, max_length=1000)
    salt: str | None = None


def check_salt(salt: str) -> str:
    """Return a salt; ConfigError unless it has 128 bits or more: 32 hexadecimal digits."""
    if not re.fullmatch("[0-9a-f]{32,256}", salt):
        raise ConfigError(
            "a salt is at least 32 hexadecimal digits (128 bits), so that nobody can try them all; "
            "leave it out, and one is drawn"
        )
    return salt


def new_salt_file(path: Path) -> str:
    """Write a new salt that only its owner may read; return its SHA-256. RunError if it exists."""
    salt = secrets.token_hex(32)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise RunError(f"{path} is there already; a salt is used once: give another name") from None
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}") from error
    with os.fdopen(handle, "w") as file:
        file.write(salt + "\n")
    return digest_of(salt)


def digest_of(salt: str) -> str:
    """Return the SHA-256 of a salt, by which it is committed."""
    return hashlib.sha256(salt.encode()).hexdigest()


def freeze(
    suite: str, tuners: Sequence[str], submissions: Sequence[Path], out: Path, salt_file: Path, *,
    slow: Sequence[str] = (), repetitions: int | None = None,
) -> SeasonFile:  # fmt: skip
    """Freeze the entries of a season in the new folder ``out``; draw its salt.

    Raises ConfigError, UnknownNameError or RunError; then nothing is written.
    """
    found = load_suite(suite)
    if out.exists() and any(out.iterdir()):
        raise RunError(f"{out} already holds something; give another --out")
    own = [
        SeasonEntry(tuner=one.entry.tuner, tuner_args=dict(one.entry.tuner_args),
                    changes=dict(one.entry.changes), name=one.entry.name, slow=one.slow)
        for one in asked_entries([BASELINE, *tuners], slow)
    ]  # fmt: skip
    for one in own:
        if one.tuner not in TUNERS.builtin:
            raise ConfigError(f"{one.tuner!r} is not built in; hand it in: bench submit")
    others = [_submitted(folder, found) for folder in submissions]
    entries = [*own, *others]
    unique("entries", [(one.tuner, one.name, one) for one in entries])
    digest = new_salt_file(salt_file)
    for entry, folder in zip(others, submissions, strict=True):
        open_submission(folder).copy_code(out / CODE_FOLDER / entry.name)
    entries = [_with_code(entry, out) for entry in entries]
    file = SeasonFile(
        schema=SCHEMA, suite=found.given, suite_digest=found.digest,
        version=RELEASE, repetitions=repetitions or found.file.repetitions,
        salt_sha256=digest, entries=tuple(entries),
    )  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    _write(out, file)
    return file


def _with_code(entry: SeasonEntry, out: Path) -> SeasonEntry:
    """Return a submission's entry with the digest of its copied code; others as they are."""
    if not entry.files_sha256:
        return entry
    digest = code_digest(out / CODE_FOLDER / entry.name)
    return entry.model_copy(update={"code_sha256": digest})


def _submitted(folder: Path, suite: Suite) -> SeasonEntry:
    """Return the entry of a submission; ConfigError if it has no place in this season."""
    about = open_submission(folder).about
    if about.version != RELEASE or about.suite_digest != suite.digest:
        raise ConfigError(
            f"{folder}: made with dcqcn-gym {about.version} on {about.suite!r}; this season is of "
            f"dcqcn-gym {RELEASE} on {suite.file.name!r}: run and submit it again"
        )
    if about.tuner in TUNERS.builtin:
        raise ConfigError(f"{folder}: tuner {about.tuner!r} is built in, so it is nobody else's")
    return SeasonEntry(
        tuner=about.tuner, tuner_args=about.tuner_args, changes=about.changes, name=about.name,
        files_sha256=files_digest(folder), category=about.category,
        authors=", ".join(about.authors), licence=about.licence, link=about.link,
    )  # fmt: skip


def code_digest(folder: Path) -> str:
    """Return one SHA-256 over all files below a folder and their names."""
    whole = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        own = hashlib.sha256(read_file(path, 2**28)).hexdigest()
        whole.update(f"{path.relative_to(folder).as_posix()} {own}\n".encode())
    return whole.hexdigest()


def open_season(out: Path) -> SeasonFile:
    """Return a frozen season; ConfigError if its suite or its code is not what was frozen."""
    file = load_json(out / SEASON_FILE, SeasonFile)
    if file.version != RELEASE:
        _refuse(out, f"was frozen with dcqcn-gym {file.version}, this is {RELEASE}")
    if load_suite(file.suite).digest != file.suite_digest:
        _refuse(out, f"suite {file.suite!r} is another one than when it was frozen")
    for entry in file.entries:
        if entry.code_sha256 and code_digest(out / CODE_FOLDER / entry.name) != entry.code_sha256:
            _refuse(out, f"the code of entry {entry.name!r} was changed after it was frozen")
    return file


def _refuse(out: Path, why: str) -> NoReturn:
    raise ConfigError(f"{out / SEASON_FILE}: {why}")


def season_leaderboard(out: Path, file: SeasonFile, salt: str) -> Leaderboard:
    """Return the leaderboard of a season on the traffic of its salt."""
    guests = {
        entry.name: Guest(
            Enclosure(out / CODE_FOLDER / entry.name), entry.category, entry.authors,
            entry.licence, entry.link, entry.files_sha256,
        )
        for entry in file.entries
        if entry.files_sha256
    }  # fmt: skip
    return Leaderboard(
        load_suite(file.suite), [entry.entry for entry in file.entries], out, file.repetitions,
        frozenset(entry.name for entry in file.entries if entry.slow), salt=salt,
        hosting=Hosting(DEADLINE_S, run_s=RUN_S), guests=guests,
    ).check()  # fmt: skip


def run_season(
    out: Path, salt_file: Path, workers: int | None = None, **how: Any
) -> tuple[list[Table], list[str]]:
    """Open a season with its salt, run what is missing, and write its results; tables and remarks.

    A run that fails leaves its entry incomplete, without a rank. ``how`` goes to
    :meth:`Leaderboard.carry_out`. Raises ConfigError or RunError before anything runs for another
    salt, changed code, or where entries of others have no sandbox.
    """
    file = open_season(out)
    salt = read_text(salt_file, 2**12).strip()
    if digest_of(check_salt(salt)) != file.salt_sha256:
        raise ConfigError(f"{salt_file}: is not the salt that {out / SEASON_FILE} is bound to")
    board = season_leaderboard(out, file, salt)
    if board.guests and (problem := sandbox_problem()) is not None:
        raise RunError(f"{problem}; a season runs entries of others in it alone")
    failed = board.carry_out(workers=workers, **how)
    remarks = [f"{path.parent.parent.name} on {path.parent.name}: {why}"
               for path, why in failed.items()]  # fmt: skip
    write_json(out / LEADERBOARD_FILE, board.header())
    told = file.model_copy(update={"salt": salt})
    tables, more = write_results(board, workers, figures={"season": season_figures(told)})
    _write(out, told)
    return tables, [*remarks, *more]


def season_figures(file: SeasonFile) -> Mapping[str, Any]:
    """Return what results say of their season: its salt, and whose the entries of others are."""
    return {
        "salt": file.salt,
        "salt_sha256": file.salt_sha256,
        "entries": {
            entry.name: {
                "authors": entry.authors, "licence": entry.licence, "link": entry.link,
                "files_sha256": entry.files_sha256,
            }
            for entry in file.entries
            if entry.files_sha256
        },
    }  # fmt: skip


def _write(out: Path, file: SeasonFile) -> None:
    write_json(out / SEASON_FILE, file.model_dump(mode="json", by_alias=True))
