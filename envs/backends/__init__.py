"""The backends of the environment; a name here is what ``backend=`` and ``--backend`` take.

A built-in is one file and one line in :data:`BUILTIN`; other packages register theirs in the
entry-point group ``dcqcn_gym.backends``; ``path.py:Class`` names a file. A backend that takes an
argument is named with it after a colon: ``replay:FILE``, ``path.py:Class:ARGUMENT``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from dcqcn_gym.core.capabilities import check_figures, check_needs
from dcqcn_gym.core.errors import (
    BackendError,
    ConfigError,
    DcqcnGymError,
    UnknownNameError,
    in_one_line,
)
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.registry import Registry, is_file
from dcqcn_gym.envs.backends.base import Backend, TakesArgument

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario

__all__ = [
    "BACKENDS", "BUILTIN", "Backend", "DeviceSetting", "backend_names", "cautions_of",
    "make_backend",
]  # fmt: skip

BUILTIN = {
    "fake": "dcqcn_gym.envs.backends.fake:FakeBackend",
    "fluid": "dcqcn_gym.envs.backends.fluid:FluidBackend",
    "native": "dcqcn_gym.envs.backends.native:NativeBackend",
    "native-threads": "dcqcn_gym.envs.backends.native_threads:ThreadedNativeBackend",
    "replay": "dcqcn_gym.envs.backends.replay:ReplayBackend",
}

BACKENDS: Registry[Backend] = Registry(
    "backend",
    "dcqcn_gym.backends",
    Backend,  # type: ignore[type-abstract]  # only classes that fit it are made
    BUILTIN,
)


def backend_names() -> list[str]:
    """Return the names of all backends that need no argument."""
    return sorted(name for name in BACKENDS.names() if not _argument_of(name))


def make_backend(text: str) -> Backend:
    """Return a new, closed backend: ``NAME``, ``NAME:ARGUMENT`` or ``path.py:Class[:ARGUMENT]``.

    Raises :class:`UnknownNameError` with near matches, ConfigError for an argument that is missing,
    not wanted or wrong, BackendError if the class cannot be made.
    """
    name, argument = _split(text)
    try:
        found = BACKENDS.load(name)
    except UnknownNameError:
        known = [n + (f":{label}" if (label := _argument_of(n)) else "") for n in BACKENDS.names()]
        raise UnknownNameError("backend", name, known) from None
    taking = isinstance(found, TakesArgument)
    if taking and not argument:
        label = cast(TakesArgument, found).argument
        raise ConfigError(f"backend {name!r} needs an argument; expected {name}:{label}")
    if not taking and argument is not None:
        raise ConfigError(f"backend {name!r} takes no argument; got {argument!r}")
    try:
        backend = cast(TakesArgument, found).from_argument(argument or "") if taking else found()
    except DcqcnGymError:
        raise
    except (Exception, SystemExit) as error:
        raise BackendError(f"backend {name!r} cannot be made: {in_one_line(error)}") from error
    check_needs(f"backend {name!r}", "offers", backend.offers)
    check_figures(f"backend {name!r}", "unknown", backend.unknown)
    return backend


def cautions_of(backend: Backend, scenario: Scenario) -> Sequence[str]:
    """Return what a user of this backend on this scenario should know, a line each."""
    said: Sequence[str] = backend.cautions(scenario) if hasattr(backend, "cautions") else ()
    return said


def _split(text: str) -> tuple[str, str | None]:
    """Return the name and the argument, which may hold colons itself."""
    if is_file(text) and text.partition(":")[0] not in BACKENDS.names():
        path, _, rest = text.partition(".py:")
        attribute, colon, argument = rest.partition(":")
        return f"{path}.py:{attribute}", argument if colon else None
    name, colon, argument = text.partition(":")
    return name, argument if colon else None


def _argument_of(name: str) -> str:
    """Return what a backend calls its argument; empty if it takes none or cannot be loaded."""
    try:
        found = BACKENDS.load(name)
    except DcqcnGymError:  # its packages are missing, or it is broken: said when it is wanted
        return ""
    return found.argument if isinstance(found, TakesArgument) else ""
