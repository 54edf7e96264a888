"""Round trips between hosts by ``ib_write_lat``, kept as growing sums in the file that agents read.

Each host waits for all others and asks them in turn. A peer that does not answer adds nothing.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.hw.load.outputs import latencies
from dcqcn_gym.hw.load.waiting import Waiting, begin

PROGRAM = "ib_write_lat"
FIRST_PORT = 19600
TIMEOUT_S = 5.0
"""Within which a peer answers."""


@dataclass
class _Sums:
    count: int = 0
    sum_ns: int = 0
    base_ns: int = 0


@dataclass
class Prober:
    """Host ``own`` of a fleet, and the addresses of others by their numbers."""

    own: int
    peers: Mapping[int, str]
    out: Path
    options: Sequence[str] = ()
    """Of perftest, as ``-d mlx5_0``; the same on all hosts."""
    iterations: int = 20
    first_port: int = FIRST_PORT
    _sums: dict[int, _Sums] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._waiting = Waiting([PROGRAM, *self.options], self.first_port, self.peers)

    def round(self) -> list[int]:
        """Ask every peer once and keep the sums; return those that did not answer."""
        silent = []
        for peer, address in self.peers.items():
            self._waiting.keep()
            if not self._ask(peer, address):
                silent.append(peer)
        self._write()
        return silent

    def _ask(self, peer: int, address: str) -> bool:
        words = [PROGRAM, *self.options, "-n", str(self.iterations)]
        process = begin([*words, "-p", str(self.first_port + self.own), address])
        try:
            said, _ = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return False
        try:
            row = latencies(said)[-1]
        except DeviceError:
            return False
        sums = self._sums.setdefault(peer, _Sums())
        sums.count += row.iterations
        sums.sum_ns += round(row.mean_s * 1e9 * row.iterations)
        least_ns = round(row.least_s * 1e9)
        sums.base_ns = least_ns if sums.base_ns == 0 else min(sums.base_ns, least_ns)
        return True

    def _write(self) -> None:
        """Put the file in its place whole."""
        rows = (f"{p} {s.count} {s.sum_ns} {s.base_ns}\n" for p, s in sorted(self._sums.items()))
        fresh = self.out.with_name(self.out.name + ".new")
        try:
            fresh.unlink(missing_ok=True)
            with fresh.open("x", encoding="ascii") as file:  # through no link that somebody laid
                file.write("".join(rows))
            os.replace(fresh, self.out)
        except OSError as error:
            raise DeviceError(f"{self.out} cannot be written ({error.strerror})") from None

    def close(self) -> None:
        """End everything that waits."""
        self._waiting.close()
