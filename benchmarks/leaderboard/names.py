"""Names that people can tell from each other."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from dcqcn_gym.core.errors import ConfigError, quote

_ALIKE = str.maketrans(
    {"0": "o", "1": "l", "i": "l", "|": "l", "5": "s"} | dict.fromkeys("_.+", "-")
)


def skeleton(name: str) -> str:
    """Return what is left of a name for the eye: case, and characters that look alike, are gone."""
    return unicodedata.normalize("NFKC", name).casefold().translate(_ALIKE)


def refuse_look_alikes(names: Sequence[str]) -> None:
    """Raise ConfigError for two names that cannot be told apart by eye."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(skeleton(name), name)
        if other is not name:
            raise ConfigError(
                f"entry {quote(name)} looks like entry {quote(other)}; give it another name"
            )


def _visible(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds characters that cannot be seen, or that turn the text around")
    return text


Line = Annotated[str, Field(max_length=200), AfterValidator(_visible)]
"""One line that a stranger wrote and that pages show."""
