"""What the main path sees of a hosted tuner: the near end of :mod:`dcqcn_gym.runs.plugin_host`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.tuner_host.process import HostProcess
from dcqcn_gym.benchmarks.leaderboard.tuner_host.protocol import VERSION
from dcqcn_gym.benchmarks.leaderboard.tuner_host.values import (
    context_plain,
    outcome_plain,
    proposal_from,
)
from dcqcn_gym.core.capabilities import NEEDS
from dcqcn_gym.core.errors import ConfigError, TunerError, quote
from dcqcn_gym.runs.plugin_host import HostedTuner, Hosting, plugins_of
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext
from dcqcn_gym.tuners.guard import GuardedTuner

_MOST_DECISIONS = 2**20
"""Characters of all decisions of a run, which its log holds."""


class _Remote(Tuner[Proposal]):
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


class ProcessTuner(HostedTuner):
    """Supervises a hosted tuner; the CPU time is that of the other process.

    Counted is what it says or what the kernel says of it since it was loaded, whichever is more.
    """

    tuner: _Remote
    _loaded_s = 0.0

    def __init__(self, name: str, arguments: Mapping[str, Any], hosting: Hosting) -> None:
        GuardedTuner.__init__(self, name, _Remote(name, arguments, hosting))

    @property
    def arguments(self) -> dict[str, Any]:
        """What the tuner's own side made of the given arguments."""
        return self.tuner.arguments

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
