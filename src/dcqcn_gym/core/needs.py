"""What a tuner may need to see, what a world offers, and which figures a world cannot know."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields

from dcqcn_gym.core.errors import ConfigError, did_you_mean
from dcqcn_gym.core.interval import FinishedFlows, FlowSizeDistribution, IntervalReport

__all__ = ["NEEDS", "REPORT_FIGURES", "check_figures", "check_needs"]

NEEDS: Mapping[str, str] = {
    "fsd": "the flow-size distribution of the interval",
    "per_switch": "queue and ECN figures of every switch port",
    "reset": "the same traffic again from its start, between two settings",
}
"""What a tuner may declare in ``needs`` and a backend in ``offers``."""

_PARTS = {"fsd": FlowSizeDistribution, "finished": FinishedFlows}

REPORT_FIGURES: frozenset[str] = frozenset(
    name
    for part, kind in (("", IntervalReport), *_PARTS.items())
    for name in (f"{part}.{f.name}".lstrip(".") for f in fields(kind))
    if name != "unknown"
)
"""The figures of a report, those of its parts as ``"fsd.kl"`` or ``"finished.fct_ps"``."""


def check_needs(owner: str, word: str, names: object) -> None:
    """Raise :class:`ConfigError` unless ``names``, the ``word`` of ``owner``, is a set of NEEDS."""
    _check_set(owner, word, names, NEEDS)


def check_figures(owner: str, word: str, names: object) -> None:
    """Raise :class:`ConfigError` unless ``names`` is a set of :data:`REPORT_FIGURES`."""
    _check_set(owner, word, names, REPORT_FIGURES)


def _check_set(owner: str, word: str, names: object, known: Collection[str]) -> None:
    if not isinstance(names, set | frozenset):
        raise ConfigError(
            f"{owner}: its {word} = {names!r}; expected a set of names"
            f" (known: {', '.join(sorted(known))})"
        )
    for name in sorted(names, key=repr):
        if name not in known:
            hint = did_you_mean(name, known) if isinstance(name, str) else "; expected names"
            raise ConfigError(f"{owner}: its {word} hold the unknown name {name!r}{hint}")
