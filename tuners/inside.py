"""Tuners inside a tuner: who holds which, and how they are made.

A wrapper says by ``holds`` which of its settings name tuners, because whoever decides where a tuner
runs has to know whether a plug-in is inside without loading its code.
"""

from __future__ import annotations

import importlib
from typing import Any

from dcqcn_gym.tuners.base import Tuner

__all__ = ["tuner_inside"]


def tuner_inside(owner: Tuner[Any], setting: str = "tuner") -> Tuner[Any]:
    """Return a fresh tuner that a setting of ``owner`` names; ``owner.holds`` has to list it.

    Raises as :func:`dcqcn_gym.tuners.make_tuner` does.
    """
    make = importlib.import_module("dcqcn_gym.tuners").make_tuner  # which knows its owner, too
    arguments = getattr(owner.settings, owner.holds[setting])
    found: Tuner[Any] = make(getattr(owner.settings, setting), dict(arguments))
    return found
