"""perftest's other side: a process for each host that may come, started again after each visit."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence

from dcqcn_gym.core.errors import DeviceError

__all__ = ["Waiting", "begin"]


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

    def keep(self) -> None:
        """See to it that somebody waits for every peer."""
        for peer, process in self._processes.items():
            if process is None or process.poll() is not None:
                if process is not None:
                    process.communicate()
                    self._processes[peer] = None
                port = str(self._first_port + peer)
                self._processes[peer] = begin([*self._words, "-p", port])

    def close(self) -> None:
        """End all."""
        for peer, process in self._processes.items():
            if process is not None:
                process.kill()
                process.communicate()
                self._processes[peer] = None
