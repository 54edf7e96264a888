"""Where a tuner runs: the built-in ones in this process, plug-ins in a process of their own.

Somebody else's code may hang, crash or take all the memory; in a process of its own it can be
stopped with a sentence that names it. That process is an add-on, found by :data:`HOSTS` when the
first plug-in runs; no byte of a log depends on it. A built-in tuner with a plug-in inside it is
hosted as a whole.
"""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.registry import Registry
from dcqcn_gym.tuners import TUNERS, make_tuner, parse_settings
from dcqcn_gym.tuners.guard import GuardedTuner

DEADLINE_VARIABLE = "DCQCN_GYM_TUNER_DEADLINE"
"""Environment variable with the seconds of a decision; ``--tuner-deadline`` comes before it."""

_DEADLINE_S = 300.0


class Sandbox(Protocol):
    """What keeps a plug-in's process from everything else of the machine."""

    def command(self) -> list[str]:
        """Return the command of a tuner's process in a fresh sandbox."""

    def name_inside(self, tuner: str) -> str:
        """Return a tuner's name in there: a file has another path."""


def _deadline() -> float:
    text = os.environ.get(DEADLINE_VARIABLE)
    if text is None:
        return _DEADLINE_S
    try:
        return float(text)
    except ValueError:
        raise ConfigError(
            f"{DEADLINE_VARIABLE} = {quote(text)}: expected a number of seconds"
        ) from None


@dataclass(frozen=True)
class Hosting:
    """Where a tuner runs; no byte of a result depends on it.

    ``deadline_s`` is the longest that one call of a hosted tuner may take (default: 300 s, or the
    environment variable), ``run_s`` that of all its calls in a run together. ``apart`` True gives
    every tuner a process of its own, False none; None hosts those that are not built in or have
    such a one inside. ``enclosure`` is the sandbox for those, and holds their code.
    """

    deadline_s: float = field(default_factory=_deadline)
    apart: bool | None = None
    enclosure: Sandbox | None = None
    run_s: float = math.inf

    def __post_init__(self) -> None:
        if not 0 < self.deadline_s < math.inf:
            raise ConfigError(
                f"a deadline of {self.deadline_s:g} s per decision; expected a positive number"
            )

    def hosts(self, tuner: str, arguments: Mapping[str, Any] | None = None) -> bool:
        """Return whether a tuner runs in a process of its own.

        Raises ConfigError for an unknown name, also of a tuner that its arguments name.
        """
        if self.apart is False:
            return False
        found = plugins_of(tuner, arguments or {})
        if self.enclosure is None:
            for name in found:
                TUNERS.check_name(name)
        return bool(found) or self.apart is True


class HostedTuner(GuardedTuner):
    """A tuner under supervision in another process, which it is made with."""

    @abstractmethod
    def __init__(self, name: str, arguments: Mapping[str, Any], hosting: Hosting) -> None:
        """Start the process and load the tuner there; raise ConfigError or TunerError."""

    @property
    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """The tuner's given arguments as its log holds them: checked, typed, plain."""


HOSTS: Registry[HostedTuner] = Registry(
    "plug-in host",
    "dcqcn_gym.plugin_hosts",
    HostedTuner,  # type: ignore[type-abstract]  # only its subclasses are made
    {},
)
"""Ways to host a plug-in; ``process`` is the one that runs use."""


def guarded_tuner(name: str, arguments: Mapping[str, Any], hosting: Hosting) -> GuardedTuner:
    """Return a fresh tuner under supervision, in a process of its own where ``hosting`` says so."""
    if not hosting.hosts(name, arguments):
        return GuardedTuner(name, make_tuner(name, dict(arguments)))
    return HOSTS.load("process")(name, arguments, hosting)


def described(name: str, arguments: Mapping[str, Any], hosting: Hosting) -> dict[str, Any]:
    """Return a tuner's given arguments as its log holds them: checked, typed, plain.

    Raises ConfigError as :func:`~dcqcn_gym.tuners.parse_settings` does.
    """
    if not hosting.hosts(name, arguments):
        typed = parse_settings(name, TUNERS.load(name), arguments)
        return dict(typed.model_dump(mode="json", exclude_unset=True))
    with closing(HOSTS.load("process")(name, arguments, hosting)) as tuner:
        return tuner.arguments


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
