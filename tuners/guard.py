"""Checks around a tuner: order of calls, legal proposals, errors as one sentence, CPU time."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from dcqcn_gym.core.capabilities import NEEDS, check_needs
from dcqcn_gym.core.errors import (
    ConfigError,
    DcqcnGymError,
    StateError,
    TunerError,
    in_one_line,
    line_in,
    quote,
)
from dcqcn_gym.core.groups import check_group_names, cluster_setting
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.tuners.base import Outcome, Proposal, Tuner, TunerContext

T = TypeVar("T")
C = TypeVar("C")

_SETTING = "dcqcn_gym.core.knobs.Setting, as self.context.base.replace(kmin=400) is"


class GuardedTuner:
    """Wraps a tuner for the loop; what reaches the network through it is a legal setting.

    Calls go created -> started -> (asked -> told)*; one out of order raises :class:`StateError`
    that names the missing call. An exception inside the tuner, NaN, a value out of range or
    something that is no setting raises :class:`TunerError`. ``cpu_s`` adds up the tuner's own
    CPU time in seconds.
    """

    def __init__(self, name: str, tuner: Tuner[Any]) -> None:
        self.name = name
        self.tuner = tuner
        self.cpu_s = 0.0
        self._context: TunerContext | None = None
        self._asked = False

    def start(self, context: TunerContext, offered: frozenset[str] = frozenset(NEEDS)) -> None:
        """Start the tuner; raise if it needs to see what this backend does not offer."""
        needs = self._call("needs", lambda: self.tuner.needs)
        check_needs(f"tuner {self.name!r}", "needs", needs)
        for need in sorted(needs):
            if need not in offered:
                raise ConfigError(
                    f"tuner {self.name!r} needs to see {NEEDS[need]}, "
                    "which this scenario and backend do not offer"
                )
        self._context = context
        self._call("start", lambda: self.tuner.start(context))

    def ask(self) -> Proposal | None:
        """Return the tuner's proposal, checked here and by nobody after the guard."""
        context = self._started()
        if self._asked:
            raise StateError(f"tuner {self.name!r}: ask() was called twice; call tell() first")
        proposal = self._proposed("ask", self.tuner.ask)
        legal = None if proposal is None else self._legal("ask", proposal, context)
        self._asked = True
        return legal

    def tell(self, outcome: Outcome) -> None:
        """Pass on what the proposal did."""
        self._started()
        if not self._asked:
            raise StateError(f"tuner {self.name!r}: tell() was called without calling ask()")
        if not math.isfinite(outcome.utility):
            raise StateError(f"tuner {self.name!r}: tell() got the utility {outcome.utility}")
        self._call("tell", lambda: self.tuner.tell(outcome))
        self._asked = False

    def recommend(self) -> Proposal:
        """Return the tuner's checked recommendation."""
        context = self._started()
        proposal = self._proposed("recommend", self.tuner.recommend)
        return self._legal("recommend", proposal, context)

    @property
    def tuning(self) -> bool:
        """Whether the tuner needs the utilities of the coming interval."""
        self._started()
        return bool(self._call("tuning", lambda: self.tuner.tuning))

    def state(self) -> dict[str, Any]:
        """Return the tuner's figures to show."""
        self._started()
        state = self._call("state", self.tuner.state)
        if not isinstance(state, dict):
            raise TunerError(self._wrong(state, "state", "dict of figures"))
        return state

    def decisions(self) -> list[str]:
        """Return the sentences about the tuner's decisions; TunerError if they are none."""
        self._started()
        said = self._call("decisions", lambda: list(self.tuner.decisions))
        if not all(isinstance(one, str) for one in said):
            raise TunerError(self._wrong(said, "decisions", "list of sentences"))
        return said

    def close(self) -> None:
        """End what the tuner runs in; the default runs here and has nothing to end."""

    def _started(self) -> TunerContext:
        if self._context is None:
            raise StateError(f"tuner {self.name!r} has not started; call start() first")
        return self._context

    def _proposed(self, call: str, function: Callable[[], T]) -> T:
        """Return what a tuner proposes; a setting that it could not even make is its mistake."""
        try:
            return self._call(call, lambda: _copied(function()))
        except ConfigError as error:
            place = place_of(error, type(self.tuner))
            raise TunerError(f"{place}tuner {self.name!r}: {error} (in {call}())") from error

    def _legal(self, call: str, proposal: object, context: TunerContext) -> Proposal:
        """Return a proposal; raise :class:`TunerError` if it is not legal."""
        groups = _groups(proposal)
        if groups is None:
            return self._checked(call, proposal, context, "")
        try:
            check_group_names(groups, context.devices)
            legal = {
                str(name): self._checked(call, setting, context, f", group {quote(name)}")
                for name, setting in groups.items()
            }
            cluster_setting(legal)
        except ConfigError as error:
            raise TunerError(f"tuner {self.name!r}: {call}() returned groups: {error}") from None
        return legal

    def _checked(self, call: str, setting: object, context: TunerContext, where: str) -> Setting:
        if not isinstance(setting, Setting):
            raise TunerError(self._wrong(setting, call, _SETTING))
        try:
            context.space.table.require(setting, f"tuner {self.name!r}{where}")
            return setting.check(context.space.line_rate_bps, f"tuner {self.name!r}{where}")
        except ConfigError as error:
            raise TunerError(f"{error} (a setting it proposed)") from None
        except (TypeError, ValueError, ArithmeticError) as error:
            raise TunerError(
                f"tuner {self.name!r}{where}: a setting it proposed holds something else than "
                f"numbers: {quote(setting.numbers)} ({in_one_line(error)})"
            ) from None

    def _wrong(self, value: object, call: str, expected: str) -> str:
        found = type(value).__name__
        return f"tuner {self.name!r}: {call}() returned {found}; expected a {expected}"

    def _call(self, what: str, function: Callable[[], T]) -> T:
        with self._clock():
            try:
                return function()
            except (DcqcnGymError, KeyboardInterrupt):
                raise
            except BaseException as error:  # plug-ins end in every way there is
                place = place_of(error, type(self.tuner))
                raise TunerError(
                    f"{place}tuner {self.name!r} failed in {what}(): {in_one_line(error)}"
                ) from error

    @contextmanager
    def _clock(self) -> Iterator[None]:
        begin = time.thread_time()
        try:
            yield
        finally:
            self.cpu_s += time.thread_time() - begin


def place_of(error: BaseException, tuner: type) -> str:
    """Return ``"FILE line N: "`` of the failing line in a plug-in's file; "" if it has none."""
    if tuner.__module__.partition(".")[0] == "dcqcn_gym":
        return ""
    try:
        file = inspect.getfile(tuner)
    except (OSError, TypeError):  # typed in, or made at run time
        return ""
    line = line_in(error, file)
    return "" if line is None else f"{Path(file).name} line {line}: "


def _groups(proposal: object) -> Mapping[object, object] | None:
    """Return the groups of a proposal, or None if it is no setting per group."""
    if isinstance(proposal, Setting) or not isinstance(proposal, Mapping):
        return None
    meant = "cluster" in proposal or any(isinstance(v, Setting) for v in proposal.values())
    return proposal if meant else None


def _copied(proposal: C) -> C:
    """Return a proposal that the tuner cannot change any more."""
    if isinstance(proposal, Mapping) and not isinstance(proposal, Setting):
        return dict(proposal)  # type: ignore[return-value]
    return proposal
