"""The backend's end of the connection: a REP socket with a deadline for every wait."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

import zmq
from google.protobuf.message import Message

from dcqcn_gym.core.errors import ConfigError, StateError, quote
from dcqcn_gym.extras.ns3.bridge.codec import decode, encode
from dcqcn_gym.extras.ns3.bridge.errors import (
    SimulationCrashedError,
    SimulationTimeoutError,
)
from dcqcn_gym.extras.ns3.bridge.process import SimulationProcess, describe_status

_Type = TypeVar("_Type", bound=Message)
_SLICE_MS = 50
_LONGEST_IPC_PATH = 100

Transport = Literal["ipc", "tcp"]


@dataclass(frozen=True)
class Deadlines:
    """How long to wait for the simulation, in seconds, before it is given up.

    ``connect``: process start to its first message; ``init``: network built; ``step``: one call
    of ``apply`` or ``advance``; ``close``: stop request to the end of the process.
    """

    connect_s: float = 30.0
    init_s: float = 120.0
    step_s: float = 1800.0
    close_s: float = 5.0


class Ns3Link:
    """The socket to one simulation process; belongs to the process and fork that made it."""

    def __init__(
        self,
        process: SimulationProcess,
        *,
        transport: Transport = "ipc",
        record: Path | None = None,
    ) -> None:
        self._process = process
        self._owner = os.getpid()
        self._record = _recording(record) if record else None
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        try:
            self._socket = self._context.socket(zmq.REP)
        except zmq.ZMQError as error:
            self._context.term()
            raise OSError(error.errno, error.strerror) from None
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, _SLICE_MS)
        self.endpoint = bind(self._socket, process.folder / "link.sock", transport)

    def receive(self, kind: type[_Type], phase: str, seconds: float, time_ps: int = 0) -> _Type:
        """Wait for a message of this type.

        Raises :class:`SimulationCrashedError` if the process ends first,
        :class:`SimulationTimeoutError` after ``seconds``, :class:`ProtocolError` for garbage.
        """
        self._check_owner()
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(zmq.Again):  # after _SLICE_MS
                data = self._socket.recv()
                break
            self._check(phase, seconds, end, time_ps)
        self._log(b"<", data)
        return decode(kind, data)

    def _check(self, phase: str, seconds: float, end: float, time_ps: int) -> None:
        """Raise if the process has ended, or the deadline is over."""
        status = self._process.status()
        # its last message may have come between the wait and its end
        if status is not None and not self._socket.poll(0):
            raise self._crash(status, phase, time_ps)
        if time.monotonic() > end:
            raise SimulationTimeoutError(
                f"no answer from the simulation within {seconds:g} s ({phase}, simulated "
                f"time {time_ps} ps); {self._process.activity()}{self._tail()}"
            )

    def send(self, message: Message) -> None:
        """Answer; only after :meth:`receive`."""
        self._check_owner()
        data = encode(message)
        self._log(b">", data)
        self._socket.send(data)

    def close(self) -> None:
        """Close the socket at once; safe to call twice and from a fork."""
        if os.getpid() != self._owner:
            return
        if self._record is not None:
            self._record.close()
        self._socket.close(0)
        self._context.term()

    def _crash(self, status: int, phase: str, time_ps: int) -> SimulationCrashedError:
        return SimulationCrashedError(
            f"the simulation process ended with {describe_status(status)} ({phase}, simulated "
            f"time {time_ps} ps, command {' '.join(self._process.command)}){self._tail()}",
            status=status,
            phase=phase,
            time_ps=time_ps,
        )

    def _tail(self) -> str:
        words = self._process.last_words()
        return f"; the end of its stderr:\n{words}" if words else "; its stderr is empty"

    def _log(self, direction: bytes, data: bytes) -> None:
        if self._record is not None:
            self._record.write(direction + struct.pack("<I", len(data)) + data)
            self._record.flush()

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise StateError(
                "this ns-3 backend was opened before a fork and belongs to the parent process; "
                "call open() in the process that uses it"
            )


def _recording(path: Path) -> BinaryIO:
    """Open the file of a recording; raise ConfigError for a place where none can be."""
    try:
        return open(path, "wb")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        raise ConfigError(
            f"record = {quote(str(path))}: {error.strerror}; expected a file that can be written, "
            "in a folder that is there"
        ) from None


def bind(socket_: zmq.Socket[bytes], path: Path, transport: Transport) -> str:
    """Bind to a private socket file, or to a port of 127.0.0.1 that the kernel chooses.

    Too long a path for a socket file means tcp. A dead socket file is replaced; raises
    :class:`ConfigError` if a live process listens there or the file is something else.
    """
    if transport == "tcp" or len(str(path)) > _LONGEST_IPC_PATH:
        socket_.bind("tcp://127.0.0.1:0")
        return socket_.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")
    if path.exists():
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise ConfigError(f"{path} exists and is no socket; name another one or remove it")
        if _listening(path):
            raise ConfigError(f"another process listens on {path}; name another socket file")
        path.unlink()
    endpoint = f"ipc://{path}"
    socket_.bind(endpoint)
    return endpoint


def _listening(path: Path) -> bool:
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
