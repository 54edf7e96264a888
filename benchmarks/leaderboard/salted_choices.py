"""Choices that follow from a salt alone: the same on every machine and in every release.

No generator of a library is used, because its stream may change with its version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

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
