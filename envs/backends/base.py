"""The interface of a backend: open, apply, advance, close. One conformance kit tests them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from dcqcn_gym.core.errors import StateError
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import IntervalReport, LiveFlows

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario

SIMULATED = frozenset({"fsd", "per_switch"})
"""What a backend offers whose reports have every figure."""


@runtime_checkable
class Backend(Protocol):
    """A network in which DCQCN runs: created -> open -> (apply | advance)* -> closed.

    ``open`` may be called again after ``close`` (a reset). A call out of order raises
    :class:`~dcqcn_gym.core.errors.StateError` that names the missing call.
    """

    @property
    def offers(self) -> frozenset[str]:
        """What it shows to tuners, of :data:`dcqcn_gym.core.capabilities.NEEDS`."""

    @property
    def unknown(self) -> frozenset[str]:
        """Figures that its reports name in ``unknown``, of :data:`~core.interval.REPORT_FIELDS`."""

    def open(self, scenario: Scenario, seed: int) -> None:
        """Build the network of ``scenario`` at time 0 with this seed; no packet moves yet."""

    def apply(self, setting: DeviceSetting) -> None:
        """Put a setting in force from the current instant on."""

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        """Run one monitor interval (or ``duration_ps``) and report it."""

    def close(self) -> None:
        """Release everything; allowed in every state."""

    @property
    def done(self) -> bool:
        """True once a finite scenario has delivered everything; False while closed."""


State = TypeVar("State")


class Opens(Generic[State]):
    """Base class of a backend that holds ``_open`` while it is open; checks the order of calls."""

    _open: State | None = None

    def _check_closed(self) -> None:
        if self._open is not None:
            raise StateError("open() on an open backend; call close() first")

    def _opened(self, call: str) -> State:
        if self._open is None:
            raise StateError(f"{call}() on a closed backend; call open() first")
        return self._open


@runtime_checkable
class TakesArgument(Protocol):
    """A class of backends that are named with an argument, as in ``replay:FILE``.

    ``argument`` is what messages call it (``"FILE"``).
    """

    argument: str

    @classmethod
    def from_argument(cls, text: str) -> Backend:
        """Return a new, closed backend; raise ConfigError if the text says nothing to it."""


Look = Callable[[int, Mapping[str, Any], Mapping[str, Any]], None]
"""What a watcher calls: time in ps, figures of ports, figures of flows (arrays)."""


@runtime_checkable
class Watchable(Protocol):
    """A backend that can be looked into within an interval, for time series."""

    def watch(self, every_ps: int, ports: Sequence[int], look: Look) -> None:
        """Call ``look`` at every multiple of ``every_ps`` from now on, until close."""


@runtime_checkable
class Eventful(Protocol):
    """A backend whose NICs can report what the scheme of each queue pair does, event by event."""

    def trace_schemes(self) -> None:
        """Keep events from now on, until close."""

    def take_scheme_trace(self) -> Sequence[Mapping[str, Any]]:
        """Return, for each scheme, the events since the last call, by time and source.

        ``scheme`` is its name, ``events`` names what ``event`` counts; ``time_ps``, ``src``,
        ``dst`` and ``event`` are columns, ``values`` holds further columns by name.
        """


@runtime_checkable
class ShowsLive(Protocol):
    """A backend that knows the flows which have not finished yet."""

    def live_flows(self) -> LiveFlows | None:
        """Return them as of now, by source and ordinal; None if this backend cannot know."""


def live_flows_of(backend: Backend) -> LiveFlows | None:
    """Return the flows that have not finished, or None: the backend does not know them."""
    return backend.live_flows() if isinstance(backend, ShowsLive) else None


def is_over(backend: Backend, last: IntervalReport) -> bool:
    """Return whether an episode is over: all was delivered, and no flow goes on without an end."""
    return bool(backend.done) and not last.unlimited_flows
