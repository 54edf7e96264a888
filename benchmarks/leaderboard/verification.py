"""Verdicts: what a maintainer's verifier says of a submission, in a folder of their own.

A verdict lies outside the submission, which its authors write: in ``VERDICTS/SUITE/ROW.json``. It
belongs to the files that were verified: it holds the digest of their list, and
:func:`read_verification` believes it for no others. Without one an entry is ``self-reported``.
docs/leaderboard.md tells how an entry comes to each status.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from pydantic import Field

from dcqcn_gym.core.config import StrictModel, load_json
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import read_file
from dcqcn_gym.runs.log import write_json

__all__ = [
    "FILES",
    "STATUSES",
    "VERIFICATION_FILE",
    "Finding",
    "Verification",
    "checked_date",
    "files_digest",
    "read_verification",
    "verdict_file",
    "write_verification",
]

SCHEMA = 2
VERIFICATION_FILE = "verification.json"
"""What earlier versions wrote into a submission; its authors could as well, so it says nothing."""
FILES = "files.json"
"""The list of a submission's files with their SHA-256; its own digest names the submission."""

STATUSES: Mapping[str, str] = {
    "verified": "every run was repeated, and the plug-in gave the same bytes in the sandbox",
    "self-reported": "as its authors say; not repeated",
    "irreproducible": "the plug-in gave something else when it was run again",
    "withdrawn": "taken back",
}
"""What each status means."""

CONVICTING = ("below-on-fresh-seeds", "below-on-final")
"""Findings that take the rank, beside safety flags where its authors have not been."""

MOST_BYTES = 2**20


@dataclass(frozen=True)
class Finding:
    """Something that a reader of the entry should know: a ``name`` to show, and a sentence."""

    name: str
    text: str


@dataclass(frozen=True)
class Verification:
    """What was found. ``status`` is one of :data:`STATUSES`.

    ``day`` is as the verifier gave it (YYYY-MM-DD), ``files_sha256`` the digest of the submission's
    list of files, ``salt`` what the fresh seeds were drawn from. ``checked`` counts what was done,
    ``scores`` holds S by name (``reported``, ``fresh``, ``final``), each with ``value``, ``low``
    and ``high``, ``flags`` by the same names the safety flags that are up on a scenario. Empty
    where it was not done.
    """

    status: str
    day: str = ""
    files_sha256: str = ""
    salt: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    platform: Mapping[str, str] = field(default_factory=dict)
    checked: Mapping[str, int] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    flags: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    findings: Sequence[Finding] = ()

    @property
    def convicted(self) -> bool:
        """True if what was found takes the rank: lower or harmful where its authors were not."""
        return any(self.flags.values()) or any(one.name in CONVICTING for one in self.findings)


class _Finding(StrictModel):
    name: str = Field(max_length=80)
    text: str = Field(max_length=4000)


class _File(StrictModel):
    """The file; its fields are those of :class:`Verification`."""

    schema_version: int = Field(alias="schema", ge=SCHEMA, le=SCHEMA)
    status: str = Field(pattern=f"^({'|'.join(STATUSES)})$")
    date: str
    files_sha256: str
    salt: str
    versions: dict[str, str]
    platform: dict[str, str]
    checked: dict[str, int]
    scores: dict[str, dict[str, float]]
    flags: dict[str, dict[str, list[str]]]
    findings: list[_Finding]


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
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(
        path,
        {
            "schema": SCHEMA,
            "status": found.status,
            "date": checked_date(found.day),
            "files_sha256": found.files_sha256,
            "salt": found.salt,
            "versions": dict(found.versions),
            "platform": dict(found.platform),
            "checked": dict(found.checked),
            "scores": {name: dict(score) for name, score in found.scores.items()},
            "flags": {
                name: {scenario: list(flags) for scenario, flags in up.items()}
                for name, up in found.flags.items()
            },
            "findings": [{"name": one.name, "text": one.text} for one in found.findings],
        },
    )
    return path


def read_verification(path: Path, digest: str) -> Verification:
    """Return the verdict on a submission whose list has a digest; ``self-reported`` without one.

    The same with the finding ``changed`` if the submission is not the one that was verified.
    Raises ConfigError for a file that is none.
    """
    if not path.exists():
        return Verification("self-reported")
    found = load_json(path, _File, MOST_BYTES)
    if found.status != "withdrawn" and found.files_sha256 != digest:
        text = f"the files are not those that were found {found.status} on {found.date}"
        return Verification("self-reported", findings=(Finding("changed", text),))
    return Verification(
        found.status, found.date, found.files_sha256, found.salt, found.versions, found.platform,
        found.checked, found.scores, found.flags,
        tuple(Finding(one.name, one.text) for one in found.findings),
    )  # fmt: skip
