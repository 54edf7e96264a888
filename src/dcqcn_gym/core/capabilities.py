"""What a tuner may need to see, what a backend offers, and which figures it cannot know."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dcqcn_gym.core.errors import ConfigError, did_you_mean, quote
from dcqcn_gym.core.interval import REPORT_FIELDS, check_unknown

NEEDS: Mapping[str, str] = {
    "fsd": "the flow-size distribution of the interval",
    "per_switch": "queue and ECN figures of every switch port",
    "reset": "the same traffic again from its start, between two settings",
}
"""What a tuner may declare in ``needs`` and a backend in ``offers``."""


def check_needs(owner: str, word: str, names: object) -> None:
    """Raise :class:`ConfigError` unless ``names``, the ``word`` of ``owner``, is a set of NEEDS."""
    _set_of(owner, word, names, NEEDS)


def check_figures(owner: str, word: str, names: object) -> None:
    """Raise :class:`ConfigError` unless ``names`` is a set that a report can have as ``unknown``.

    The names are of :data:`~dcqcn_gym.core.interval.REPORT_FIELDS`.
    """
    found = _set_of(owner, word, names, REPORT_FIELDS)
    try:
        check_unknown(found)
    except ConfigError as error:
        raise ConfigError(f"{owner}: its {word}: {error}") from None


def _set_of(owner: str, word: str, names: object, known: Collection[str]) -> frozenset[str]:
    if not isinstance(names, set | frozenset):
        raise ConfigError(
            f"{owner}: its {word} = {quote(names)}; expected a set of names"
            f" (known: {', '.join(sorted(known))})"
        )
    for name in sorted(names, key=quote):
        if name not in known:
            hint = did_you_mean(name, known) if isinstance(name, str) else "; expected names"
            raise ConfigError(f"{owner}: its {word} hold the unknown name {quote(name)}{hint}")
    return frozenset(names)
