"""The final draw by commit and reveal: its salt is chosen and bound before anybody submits.

The commitment holds the SHA-256 of the salt and the digest of the suite that follows from it, so
neither the salt nor the generator can be changed afterwards. docs/leaderboard.md says who keeps the
salt.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import tempfile
from pathlib import Path

from pydantic import Field

from dcqcn_gym.benchmarks.leaderboard.blind import blind_scenarios
from dcqcn_gym.benchmarks.leaderboard.generator import Drawn
from dcqcn_gym.benchmarks.leaderboard.kinds import INTERVALS, draw
from dcqcn_gym.benchmarks.leaderboard.make_suites import final_recipe, second_recipe, write_suite
from dcqcn_gym.benchmarks.leaderboard.suite import load_suite
from dcqcn_gym.core.config import StrictModel, load_json
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.files import read_text
from dcqcn_gym.core.version import RELEASE
from dcqcn_gym.runs.log import write_json

SCHEMA = 1
SALT_FILE = "salt.txt"
BLIND_SCENARIOS = 24
"""Scenarios drawn from a salt of which only the SHA-256 is known."""
MOST_SALTS = 300
"""Salts that are tried: about one in twelve draws no scenario that tells no settings apart."""


class Commitment(StrictModel):
    """What is published before the salt is."""

    schema_version: int = Field(alias="schema", ge=1, le=SCHEMA)
    suite: str
    version: str
    salt_sha256: str = Field(pattern="^[0-9a-f]{64}$")
    suite_digest: str = Field(pattern="^[0-9a-f]{64}$")


def commit(salt_file: Path, out: Path) -> Commitment:
    """Write a new salt, which only its owner may read, and the commitment to it.

    Salts that draw a scenario on which no entry can win or lose are left out. Raises RunError if
    one of the files is there already: a salt is used once.
    """
    for path in (salt_file, out):
        if path.exists():
            raise RunError(f"{path} is there already; a salt is for one draw: give another name")
    salt = _new_salt()
    found = Commitment(
        schema=SCHEMA, suite=final_recipe(salt).name, version=RELEASE,
        salt_sha256=hashlib.sha256(salt.encode()).hexdigest(), suite_digest=_suite_digest(salt),
    )  # fmt: skip
    handle = os.open(salt_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(salt + "\n")
    write_json(out, found.model_dump(mode="json", by_alias=True))
    return found


def _new_salt() -> str:
    """Return a salt all of whose scenarios tell settings apart."""
    for _ in range(MOST_SALTS):
        salt = secrets.token_hex(32)
        if not blind_scenarios(final_recipe(salt).scenarios()):
            return salt
    raise RunError(
        f"{MOST_SALTS} salts drew a scenario that tells no settings apart; the generator needs "
        "another look"
    )


def reveal(commitment: Path, salt_file: Path, out: Path) -> Path:
    """Draw the suite into the new folder ``out``, its salt beside it, and check the commitment.

    Raises ConfigError, and writes nothing, for another salt, or where another generator draws
    another suite.
    """
    given = load_json(commitment, Commitment)
    salt = read_text(salt_file, 2**12).strip()
    if not re.fullmatch("[0-9a-f]{64}", salt):
        raise ConfigError(f"{salt_file}: is no salt; expected the 64 hexadecimal digits of commit")
    if hashlib.sha256(salt.encode()).hexdigest() != given.salt_sha256:
        raise ConfigError(f"{salt_file}: is not the salt that {commitment} is bound to")
    if _suite_digest(salt) != given.suite_digest:
        raise ConfigError(
            f"{commitment}: this generator draws another suite from the salt; use dcqcn-gym "
            f"{given.version}, which made the commitment"
        )
    if out.exists():
        raise RunError(f"{out} is there already; give another --out")
    write_suite(final_recipe(salt), out)
    (out / SALT_FILE).write_text(salt + "\n")
    return out


def reveal_by_digest(digest: str, salt_file: Path, out: Path) -> Path:
    """Draw 24 scenarios from a salt of which only the SHA-256 was published; see ``reveal``.

    Nobody chose the salt by what it draws: a scenario on which no setting can win or lose is drawn
    again in its place, :func:`~.kinds.draw` with the next ``attempt``.
    """
    salt = read_text(salt_file, 2**12).strip()
    if hashlib.sha256(salt.encode()).hexdigest() != digest:
        raise ConfigError(f"{salt_file}: is not the salt whose SHA-256 begins with {digest[:12]}")
    if out.exists():
        raise RunError(f"{out} is there already; give another --out")
    drawn = tuple(_alive(salt, index) for index in range(BLIND_SCENARIOS))
    write_suite(second_recipe("final-v2", "drawn from a salt that was secret", drawn), out)
    (out / SALT_FILE).write_text(salt + "\n")
    return out


def _alive(salt: str, index: int) -> Drawn:
    for attempt in range(MOST_SALTS):
        drawn = draw(salt, index, INTERVALS, attempt)
        if not blind_scenarios([drawn]):
            return drawn
    raise RunError(f"{MOST_SALTS} draws of scenario {index} tell no settings apart")


def _suite_digest(salt: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        write_suite(final_recipe(salt), Path(folder))
        return load_suite(folder).digest
