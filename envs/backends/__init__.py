"""The worlds behind the environment; a name here is what ``backend=`` and ``--backend`` take."""

from __future__ import annotations

import importlib

from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.envs.backends.base import Backend, DeviceSetting

__all__ = ["Backend", "DeviceSetting", "backend_names", "make_backend"]

_BACKENDS = {
    "fake": "dcqcn_gym.envs.backends.fake:FakeBackend",
    "native": "dcqcn_gym.envs.backends.native:NativeBackend",
    "ns3": "dcqcn_gym.envs.backends.ns3:Ns3Backend",
}


def backend_names() -> list[str]:
    """Return the names of all backends that need no arguments."""
    return sorted(_BACKENDS)


def make_backend(name: str) -> Backend:
    """Return a new, closed backend; raise :class:`UnknownNameError` with near matches.

    ``"replay:FILE"`` plays the reports of a file (:mod:`dcqcn_gym.envs.backends.replay`).
    """
    if name.startswith("replay:"):
        from dcqcn_gym.envs.backends.replay import ReplayBackend, read_reports

        return ReplayBackend(read_reports(name.removeprefix("replay:")))
    if name not in _BACKENDS:
        raise UnknownNameError("backend", name, (*_BACKENDS, "replay:FILE"))
    module, _, attribute = _BACKENDS[name].partition(":")
    backend = getattr(importlib.import_module(module), attribute)()
    assert isinstance(backend, Backend)
    return backend
