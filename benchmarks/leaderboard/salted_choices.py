"""Choices that follow from a salt alone: the same on every machine and in every release.

No generator of a library is used, because its stream may change with its version.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.files import read_text

T = TypeVar("T")


def number(*words: str | int) -> int:
    """Return a number in 0..2**64-1 that looks random: SHA-256 of the words."""
    text = "\x1f".join(map(str, words))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def seed(*words: str | int) -> int:
    """Return a seed in 0..2**63-1, too many to try."""
    return number("wide-seed", *words) >> 1


def choose(options: Sequence[T], *words: str | int) -> T:
    """Return one of ``options``."""
    return options[number(*words) % len(options)]


def shuffled(options: Sequence[T], *words: str | int) -> list[T]:
    """Return ``options`` in an order that follows from the words."""
    order = sorted(range(len(options)), key=lambda i: number(i, *words))
    return [options[i] for i in order]


def check_salt(salt: str) -> str:
    """Return a salt; ConfigError unless it has 128 bits or more: 32 hexadecimal digits."""
    if not re.fullmatch("[0-9a-f]{32,256}", salt):
        raise ConfigError(
            "a salt is at least 32 hexadecimal digits (128 bits), so that nobody can try them all; "
            "leave it out, and one is drawn"
        )
    return salt


def salt_in(path: Path) -> str:
    """Return the salt of a file; a new one of 256 bits, that only its owner may read, if none is.

    Raises ConfigError for a salt that can be guessed, or RunError.
    """
    if path.exists():
        return check_salt(read_text(path, 2**12).strip())
    salt = secrets.token_hex(32)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}") from error
    with os.fdopen(handle, "w") as file:
        file.write(salt + "\n")
    return salt
