"""perftest's other side: a process for each host that may come, started again after each visit."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Sequence

from dcqcn_gym.core.errors import DeviceError

PAUSE_S = 0.5


def begin(words: Sequence[str]) -> subprocess.Popen[str]:
    """Start a program whose output is kept; raise DeviceError if it is not there."""
    try:
        return subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
    except OSError as error:
        raise DeviceError(f"{words[0]} cannot be started here ({error.strerror})") from None


class Waiting:
    """``words`` begin every command; a peer's is told its port, ``first_port`` and its number."""

    def __init__(self, words: Sequence[str], first_port: int, peers: Iterable[int]) -> None:
        self._words, self._first_port = list(words), first_port
        self._processes: dict[int, subprocess.Popen[str] | None] = dict.fromkeys(peers)
        self._not_before = dict.fromkeys(self._processes, 0.0)
        self.visited_s = float("-inf")
        """When the last visit had been served, in seconds of the monotonic clock."""

    def keep(self) -> None:
        """See to it that somebody waits for every peer.

        After a visit at once; after a failure (a port that is taken) with a pause.
        """
        for peer, process in self._processes.items():
            if process is not None and process.poll() is not None:
                process.communicate()
                now, pause = time.monotonic(), PAUSE_S
                if process.returncode == 0:
                    self.visited_s, pause = now, 0.0
                self._not_before[peer] = now + pause
                self._processes[peer] = process = None
            if process is None and time.monotonic() >= self._not_before[peer]:
                port = str(self._first_port + peer)
                self._processes[peer] = begin([*self._words, "-p", port])

    def close(self) -> None:
        """End all."""
        for peer, process in self._processes.items():
            if process is not None:
                process.kill()
                process.communicate()
                self._processes[peer] = None
