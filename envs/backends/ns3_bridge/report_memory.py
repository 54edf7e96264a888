"""Memory that both ends see: reports go through it, and only their sizes through the socket.

A report of a busy fabric has half a megabyte; through a socket it is copied five times, mostly
into pages that the kernel has to find first. The memory has no name: the parent makes it, the
child inherits it, and it goes when both are gone, however that comes about.
"""

from __future__ import annotations

import contextlib
import mmap
import os

from dcqcn_gym.core.errors import BackendError
from dcqcn_gym.envs.backends.ns3_bridge.errors import ProtocolError

__all__ = ["REPORT_FD_VARIABLE", "ReportMemory"]

REPORT_FD_VARIABLE = "DCQCN_GYM_REPORT_FD"
"""Environment variable of the child: the descriptor of the memory."""

_LEAST = 1 << 20
_KEPT_BUFFERS = 3


class ReportMemory:
    """One report at a time: the child writes it, and the parent reads it before the next request.

    It grows to the largest report. ``descriptor`` is -1 after :meth:`close`.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._view = memoryview(b"")
        self._buffers: list[bytearray] = []

    @classmethod
    def create(cls) -> ReportMemory | None:
        """Make one; None where the system has no such memory (reports then take the socket)."""
        try:
            return cls(os.memfd_create("dcqcn-gym-report"))
        except (AttributeError, OSError):
            return None

    @classmethod
    def inherited(cls) -> ReportMemory | None:
        """Return the one that the parent made, or None."""
        text = os.environ.get(REPORT_FD_VARIABLE, "")
        return cls(int(text)) if text.isdecimal() else None

    def room(self, size: int) -> memoryview:
        """Return the first bytes, to be written; raise BackendError if memory is full."""
        if len(self._view) < size:
            self._remap(max(_LEAST, 2 * size))
        return self._view[:size]

    def read(self, size: int) -> memoryview:
        """Return a copy of the first bytes; raise :class:`ProtocolError` if there are fewer."""
        if len(self._view) < size:
            have = os.fstat(self.descriptor).st_size
            if have < size:
                raise ProtocolError(f"a report of {size} bytes is said to be in {have} bytes")
            self._remap()
        copy = memoryview(self._free_buffer(size))[:size]
        copy[:] = self._view[:size]
        return copy

    def _free_buffer(self, size: int) -> bytearray:
        """Return a buffer that no report lies in any more: fresh pages cost more than the copy."""
        for buffer in self._buffers:
            try:
                buffer.append(0)  # refused while somebody has a view of it
                buffer.pop()
            except BufferError:
                continue
            if len(buffer) >= size:
                return buffer
            self._buffers.remove(buffer)
            break
        fresh = bytearray(size + size // 4)
        self._buffers = [*self._buffers, fresh][-_KEPT_BUFFERS:]
        return fresh

    def close(self) -> None:
        """Let go of it; safe to call twice."""
        self._view = memoryview(b"")  # the map goes with its last view
        descriptor, self.descriptor = self.descriptor, -1
        with contextlib.suppress(OSError):
            os.close(descriptor)

    def _remap(self, grow_to: int = 0) -> None:
        try:
            if grow_to:
                os.ftruncate(self.descriptor, grow_to)
            size = os.fstat(self.descriptor).st_size
            self._view = memoryview(mmap.mmap(self.descriptor, size))
        except OSError as error:
            raise BackendError(
                f"the memory for reports of {grow_to or 'some'} bytes cannot be had: "
                f"{error.strerror}; free memory, or run fewer environments at once"
            ) from None
