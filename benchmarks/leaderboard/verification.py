"""Verdicts: what a maintainer's verifier says of a submission, in a folder of their own.

A verdict lies outside the submission, which its authors write: in ``VERDICTS/SUITE/ENTRY.json``. It
belongs to the files that were verified: it holds the digest of their list, and
:func:`read_verification` believes it for no others.
docs/leaderboard.md tells how an entry comes to each status.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from pydantic import Field

from dcqcn_gym.benchmarks.leaderboard.bootstrap import Score
from dcqcn_gym.core.config import StrictModel, load_json
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import read_file
from dcqcn_gym.runs.log import write_json

SCHEMA = 3
FILES = "files.json"
"""The list of a submission's files with their SHA-256; its own digest names the submission."""

STATUSES: Mapping[str, str] = {
    "verified": "every run was repeated, and the plug-in gave the same bytes in the sandbox",
    "self-reported": "its logs give its figures; without a sandbox it was not run again",
    "irreproducible": "the plug-in gave something else when it was run again",
}
"""What each status means."""

CONVICTING = "below-on-fresh-seeds"
"""The finding that takes the rank."""

MOST_BYTES = 2**20


class Finding(StrictModel):
    """Something that a reader of the entry should know: a ``name`` to show, and a sentence."""

    name: str = Field(max_length=80)
    text: str = Field(max_length=4000)


class Beside(Score):
    """An online R on the fresh seeds; ``gain`` is the online S, ``harm`` the share of scenarios."""

    gain: float
    harm: float


class Verification(StrictModel):
    """What was found, as its file holds it. ``status`` is one of :data:`STATUSES`.

    ``date`` is as the verifier gave it (YYYY-MM-DD), ``files_sha256`` the digest of the
    submission's list of files, ``salt`` what the fresh seeds were drawn from. ``checked`` counts
    what was done, ``risks`` holds the online R by name (``reported``, ``fresh``), ``beside`` what
    the entry and the reference entries have on the fresh seeds. Empty where it was not done.
    """

    schema_version: int = Field(default=SCHEMA, alias="schema", ge=SCHEMA, le=SCHEMA)
    status: str = Field(pattern=f"^({'|'.join(STATUSES)})$")
    date: str
    files_sha256: str
    salt: str = ""
    versions: dict[str, str] = Field(default={})
    platform: dict[str, str] = Field(default={})
    checked: dict[str, int] = Field(default={})
    risks: dict[str, Score] = Field(default={})
    beside: dict[str, Beside] = Field(default={}, max_length=100)
    findings: tuple[Finding, ...] = ()

    @property
    def convicted(self) -> bool:
        """True if what was found takes the rank: lower where its authors were not."""
        return any(one.name == CONVICTING for one in self.findings)


def checked_date(text: str) -> str:
    """Return a day as it was given; ConfigError unless it is one: YYYY-MM-DD."""
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return date.fromisoformat(text).isoformat()
    except ValueError:
        pass
    raise ConfigError(f"{quote(text)} is no day; expected YYYY-MM-DD")


def files_digest(folder: Path) -> str:
    """Return the SHA-256 of a submission's list of files."""
    return hashlib.sha256(read_file(folder / FILES, MOST_BYTES)).hexdigest()


def verdict_file(verdicts: Path, suite: str, entry: str) -> Path:
    """Return where the verdict on an entry of a suite lies."""
    return verdicts / suite / f"{entry}.json"


def write_verification(path: Path, found: Verification) -> Path:
    """Write a verdict to its file; return the path."""
    checked_date(found.date)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, found.model_dump(mode="json", by_alias=True))
    return path


def read_verification(path: Path, digest: str) -> Verification | None:
    """Return the verdict on a submission whose list has a digest; None if there is none.

    Raises ConfigError for a file that is no verdict.
    """
    found = load_json(path, Verification, MOST_BYTES) if path.exists() else None
    return None if found is None or found.files_sha256 != digest else found
