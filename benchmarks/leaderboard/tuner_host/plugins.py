"""Which plug-ins a run would load: a tuner that is not built in, or those inside one that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcqcn_gym.tuners import TUNERS


def plugins_of(tuner: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tuners that are not built in: this one, or those that its arguments name.

    None of their code is loaded. A value that names no tuner counts for nothing; whoever takes it
    refuses it.
    """
    found: dict[str, None] = {}
    left = [(tuner, arguments)]
    while left:  # arguments of tuners inside tuners are as deep as somebody writes them
        name, given = left.pop(0)
        if name not in TUNERS.builtin:
            found[name] = None
            continue
        for setting, own in TUNERS.load(name).holds.items() if given else ():
            inside, theirs = given.get(setting), given.get(own)
            if isinstance(inside, str):
                left.append((inside, theirs if isinstance(theirs, Mapping) else {}))
    return tuple(found)
