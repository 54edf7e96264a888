"""The errors of a simulation process and of the connection to it; all are BackendErrors."""

from __future__ import annotations

from dcqcn_gym.core.errors import BackendError


class SimulationCrashedError(BackendError):
    """The simulation process ended on its own; the message says how, when and its last words.

    ``status`` is the exit status (negative: the signal number), ``phase`` what we were waiting
    for, ``time_ps`` the last simulated time that we know of.
    """

    def __init__(self, message: str, *, status: int, phase: str, time_ps: int) -> None:
        super().__init__(message)
        self.status = status
        self.phase = phase
        self.time_ps = time_ps


class SimulationTimeoutError(BackendError):
    """No answer within the deadline; the message says which one and what the process is doing."""


class SchemaMismatchError(BackendError):
    """The simulation was built for other observations, knobs or reports; names the first one."""


class ProtocolError(BackendError):
    """A message that the protocol does not allow: wrong type, wrong length, not a number."""
