"""What TCP connections carried so far, as the kernel counts it (``ss``, of iproute2)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection
from dataclasses import astuple, dataclass

from dcqcn_gym.core.errors import BackendError
from dcqcn_gym.core.sums import count

__all__ = ["HEADER_BYTES", "Carried", "carried", "read_ss"]

HEADER_BYTES = 66
"""Of a segment: Ethernet 14, IPv4 20, TCP 32 (20, and timestamps, which Linux adds)."""

_FIELDS = ("bytes_sent", "bytes_received", "segs_out", "segs_in")


@dataclass(frozen=True)
class Carried:
    """Of one end: bytes of the stream (TLS and HTTP/2 included) and segments (bare ACKs too)."""

    bytes_sent: int = 0
    bytes_received: int = 0
    segs_out: int = 0
    segs_in: int = 0

    def since(self, before: Carried) -> Carried:
        """Return what came after ``before``."""
        return Carried(*(a - b for a, b in zip(astuple(self), astuple(before), strict=True)))

    @property
    def wire_sent(self) -> int:
        """Bytes sent with the headers of every segment."""
        return self.bytes_sent + HEADER_BYTES * self.segs_out

    @property
    def wire_received(self) -> int:
        """Bytes received with the headers of every segment."""
        return self.bytes_received + HEADER_BYTES * self.segs_in


def carried(peers: Collection[str]) -> dict[str, Carried]:
    """Return peer's address -> what connections to it carried; 0 where there is none.

    Raises BackendError if ``ss`` cannot be asked.
    """
    try:
        done = subprocess.run(["ss", "-tinHO"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BackendError(f"`ss` cannot be asked ({error}); install iproute2") from None
    found = read_ss(done.stdout)
    return {peer: found.get(peer, Carried()) for peer in peers}


def read_ss(text: str) -> dict[str, Carried]:
    """Return peer's address -> the sum over its connections, of the output of ``ss -tinHO``.

    A field that ``ss`` leaves out is 0: it prints none for an end that sent or received nothing.
    """
    rows: dict[str, list[Carried]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) < 5:
            continue
        figures = dict(re.findall(r"\b(\w+):(\d+)\b", " ".join(words[5:])))
        one = Carried(*(int(figures.get(name, 0)) for name in _FIELDS))
        peer = re.sub(r"^\[::ffff:([0-9.]+)\]", r"\1", words[4])  # IPv4 on a socket of IPv6
        rows.setdefault(peer, []).append(one)
    return {
        peer: Carried(*(count(column) for column in zip(*map(astuple, ends), strict=True)))
        for peer, ends in rows.items()
    }
