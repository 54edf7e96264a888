"""Tuners: what proposes the next setting. One file per tuner; ``base.py`` tells the life cycle.

A built-in is one file and one line in :data:`BUILTIN`; other packages register theirs in the
entry-point group ``dcqcn_gym.tuners``; ``path.py:Class`` names a file. docs/tuners.md is the guide.
"""

from __future__ import annotations

from dcqcn_gym.registry import Registry
from dcqcn_gym.tuners.base import Outcome, Tuner, TunerContext, TunerSettings, parse_settings

__all__ = [
    "BUILTIN",
    "TUNERS",
    "Outcome",
    "Tuner",
    "TunerContext",
    "TunerSettings",
    "make_tuner",
    "parse_settings",
]

BUILTIN = {
    "default": "dcqcn_gym.tuners.fixed:DefaultTuner",
    "expert": "dcqcn_gym.tuners.fixed:ExpertTuner",
    "do-nothing": "dcqcn_gym.tuners.fixed:DoNothingTuner",
    "fixed": "dcqcn_gym.tuners.fixed:FixedTuner",
    "random": "dcqcn_gym.tuners.random_search:RandomTuner",
    "paraleon": "dcqcn_gym.tuners.paraleon:ParaleonTuner",
    "paraleon-rescaled": "dcqcn_gym.tuners.paraleon:ParaleonRescaledTuner",
}

TUNERS: Registry[Tuner] = Registry(
    "tuner",
    "dcqcn_gym.tuners",
    Tuner,  # type: ignore[type-abstract]  # only its subclasses are made
    BUILTIN,
)


def make_tuner(name: str, arguments: dict[str, object] | None = None) -> Tuner:
    """Return a tuner by registered name or ``path.py:Class`` with these settings.

    Raises ConfigError for an unknown name, an unknown argument or a bad value.
    """
    tuner_class = TUNERS.load(name)
    return tuner_class(parse_settings(name, tuner_class, arguments or {}))
