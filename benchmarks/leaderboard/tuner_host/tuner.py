"""What the main path sees of a hosted tuner, and who is hosted: whoever is not built in.

A built-in tuner with a plug-in inside it is hosted as a whole, so that its log has the same bytes.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.tuner_host.enclosure import Enclosure
from dcqcn_gym.benchmarks.leaderboard.tuner_host.plugins import plugins_of
from dcqcn_gym.benchmarks.leaderboard.tuner_host.process import HostProcess
from dcqcn_gym.benchmarks.leaderboard.tuner_host.protocol import VERSION
from dcqcn_gym.benchmarks.leaderboard.tuner_host.values import (
    context_plain,
    outcome_plain,
    proposal_from,
)
from dcqcn_gym.core.capabilities import NEEDS
from dcqcn_gym.core.errors import ConfigError, TunerError, quote
from dcqcn_gym.tuners import TUNERS, make_tuner, parse_settings
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext
from dcqcn_gym.tuners.guard import GuardedTuner

DEADLINE_VARIABLE = "DCQCN_GYM_TUNER_DEADLINE"
"""Environment variable with the seconds of a decision; ``--tuner-deadline`` comes before it."""

_DEADLINE_S = 300.0
_MOST_DECISIONS = 2**20
"""Characters of all decisions of a run, which its log holds."""


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
    enclosure: Enclosure | None = None
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


def guarded_tuner(name: str, arguments: Mapping[str, Any], hosting: Hosting) -> GuardedTuner:
    """Return a fresh tuner under supervision, in a process of its own where ``hosting`` says so."""
    if not hosting.hosts(name, arguments):
        return GuardedTuner(name, make_tuner(name, dict(arguments)))
    return _HostedGuard(name, _HostedTuner(name, arguments, hosting))


def described(name: str, arguments: Mapping[str, Any], hosting: Hosting) -> dict[str, Any]:
    """Return a tuner's given arguments as its log holds them: checked, typed, plain.

    Raises ConfigError as :func:`~dcqcn_gym.tuners.parse_settings` does.
    """
    if not hosting.hosts(name, arguments):
        typed = parse_settings(name, TUNERS.load(name), arguments)
        return dict(typed.model_dump(mode="json", exclude_unset=True))
    with closing(_HostedTuner(name, arguments, hosting)) as tuner:
        return tuner.arguments


class _HostedTuner(Tuner[Proposal]):
    """A tuner at the other end of a pipe. It trusts nothing that comes from there."""

    def __init__(self, name: str, arguments: Mapping[str, Any], hosting: Hosting) -> None:
        super().__init__()
        inner = [plugin for plugin in plugins_of(name, arguments) if plugin != name]
        self._title = f"{name} ({', '.join(inner)})" if inner else name
        self.offers: frozenset[str] = frozenset(NEEDS)
        box = hosting.enclosure
        inside = name if box is None else box.name_inside(name)
        command = None if box is None else box.command()
        self.process = HostProcess(
            self._title, hosting.deadline_s, command, bare=box is not None, run_s=hosting.run_s
        )
        try:
            found = self.process.call(
                "open", version=VERSION, tuner=inside, arguments=dict(arguments)
            )
            if not isinstance(found, dict):
                raise self._wrong("open", found, "its arguments")
        except BaseException:
            self.close()
            raise
        self.arguments: dict[str, Any] = found

    def start(self, context: TunerContext) -> None:
        self.context = context
        plain = context_plain(context)
        self.process.call("start", context=plain, offers=sorted(self.offers))

    def ask(self) -> Proposal | None:
        return self._proposal("ask")

    def tell(self, outcome: Outcome) -> None:
        self.process.call("tell", outcome=outcome_plain(outcome))

    @property
    def tuning(self) -> bool:
        found = self.process.call("tuning")
        if not isinstance(found, bool):
            raise self._wrong("tuning", found, "true or false")
        return found

    def recommend(self) -> Proposal:
        found = self._proposal("recommend")
        if found is None:
            raise self._wrong("recommend", found, "a setting")
        return found

    def state(self) -> dict[str, Any]:
        found = self.process.call("state")
        if not isinstance(found, dict):
            raise self._wrong("state", found, "figures")
        return found

    @property
    def decisions(self) -> Sequence[str]:
        found = self.process.call("decisions")
        if not isinstance(found, list):
            raise self._wrong("decisions", found, "a list of sentences")
        if len(json.dumps(found)) > _MOST_DECISIONS:
            raise TunerError(f"tuner {self._title!r} says more than {_MOST_DECISIONS} characters")
        return found

    def close(self) -> None:
        """End the process."""
        self.process.close()

    def _proposal(self, call: str) -> Proposal | None:
        found = self.process.call(call)
        try:
            return proposal_from(found)
        except ConfigError as error:
            raise self._wrong(call, found, "a setting") from error

    def _wrong(self, call: str, found: object, expected: str) -> TunerError:
        return TunerError(
            f"tuner {self._title!r} answered {call}() with {quote(found)}; expected {expected}"
        )


class _HostedGuard(GuardedTuner):
    """Supervises a hosted tuner; the CPU time is that of the other process.

    Counted is what it says or what the kernel says of it since it was loaded, whichever is more.
    """

    tuner: _HostedTuner
    _loaded_s = 0.0

    def start(self, context: TunerContext, offered: frozenset[str] = frozenset(NEEDS)) -> None:
        """Start the tuner, whose own side checks what it needs to see."""
        self.tuner.offers = offered
        self._loaded_s = self.tuner.process.used_cpu_s()
        super().start(context, offered)

    def close(self) -> None:
        """End the tuner's process."""
        self.tuner.close()

    @contextmanager
    def _clock(self) -> Iterator[None]:
        try:
            yield
        finally:
            outside = self.tuner.process.used_cpu_s() - self._loaded_s
            self.cpu_s = max(self.tuner.process.cpu_s, outside, self.cpu_s)
