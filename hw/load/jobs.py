"""Load that an agent may run: a fixed list of programs, options by name, no shell, one a time."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any

from dcqcn_gym.core.errors import ConfigError, DeviceError, StateError, UnknownNameError, quote
from dcqcn_gym.hw.load.outputs import bandwidths, collectives, latencies
from dcqcn_gym.hw.runner import FOLDERS

__all__ = ["PROGRAMS", "LoadJobs", "command", "results"]

_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,62}")
MOST_BYTES = 32 * 1024
"""Bytes of output that are kept, the last ones."""

_PERFTEST: Mapping[str, tuple[str, re.Pattern[str]]] = {
    "device": ("-d", _NAME), "bytes": ("-s", _NUMBER), "seconds": ("-D", _NUMBER),
    "iterations": ("-n", _NUMBER), "port": ("-p", _NUMBER), "service_level": ("-S", _NUMBER),
}  # fmt: skip
_NCCL = {"from_bytes": ("-b", _NUMBER), "to_bytes": ("-e", _NUMBER), "iterations": ("-n", _NUMBER),
         "gpus": ("-g", _NUMBER)}  # fmt: skip
PROGRAMS: Mapping[str, tuple[Mapping[str, tuple[str, re.Pattern[str]]], tuple[str, ...]]] = {
    "ib_write_bw": ({**_PERFTEST, "pairs": ("-q", _NUMBER)}, ("--report_gbits",)),
    "ib_write_lat": (_PERFTEST, ()),
    "all_reduce_perf": (_NCCL, ()),
    "alltoall_perf": (_NCCL, ()),
}
"""Program -> its options (name -> flag and what a value looks like), and what is always given."""

_READERS: Mapping[str, Callable[[str], list[Any]]] = {
    "ib_write_bw": bandwidths, "ib_write_lat": latencies, "all_reduce_perf": collectives,
    "alltoall_perf": collectives,
}  # fmt: skip


def results(program: str, text: str) -> list[Any]:
    """Return the rows that a program printed; raises DeviceError if there is none."""
    return _READERS[program](text)


def command(program: str, options: Mapping[str, str]) -> list[str]:
    """Return program and arguments; raise ConfigError for an option or value that is not known.

    ``peer``, of perftest, is the host that waits; without it this one waits.
    """
    if program not in PROGRAMS:
        raise UnknownNameError("load", program, PROGRAMS)
    known, always = PROGRAMS[program]
    words = [program, *always]
    peer = "peer" if program.startswith("ib_") else ""
    for name, value in options.items():
        if name not in (*known, peer):
            raise UnknownNameError(
                f"option of {program}", name, [*known, *([peer] if peer else [])]
            )
        flag, form = known.get(name, ("", _NAME))
        if not form.fullmatch(value):
            raise ConfigError(f"{program}: {name} = {quote(value)}; expected {_words(form)}")
        if flag:
            words += [flag, value]
    return [*words, options["peer"]] if "peer" in options else words


def _words(form: re.Pattern[str]) -> str:
    return "a whole number above 0" if form is _NUMBER else "a plain name or address"


class LoadJobs:
    """The load of one agent; thread-safe. ``allowed`` are the programs that its file permits."""

    def __init__(self, allowed: tuple[str, ...], folders: str = FOLDERS) -> None:
        self._allowed, self._folders = allowed, folders
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._lock = threading.RLock()
        self.program = ""

    def start(self, program: str, options: Mapping[str, str]) -> None:
        """Begin a job; StateError if one runs or this agent permits none."""
        words = command(program, options)
        if program not in self._allowed:
            raise StateError(
                f"this agent may not run {program}; its file permits "
                f"{', '.join(self._allowed) or 'no load'} (loads)"
            )
        with self._lock:
            self._begin(program, words)

    def _begin(self, program: str, words: list[str]) -> None:
        if self._process is not None and self._process.poll() is None:
            raise StateError(f"{self.program} still runs here; stop it first")
        if self._output is not None:
            self._output.close()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  (outlives this call)
        try:
            self._process = subprocess.Popen(
                words, stdout=self._output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env={"PATH": self._folders, "LC_ALL": "C"},
            )  # fmt: skip
        except OSError as error:
            raise DeviceError(f"{program} cannot be started here ({error.strerror})") from None
        self.program = program

    def state(self) -> tuple[bool, int, str]:
        """Return whether it runs, its exit status (0 while it does) and the last of its output."""
        with self._lock:
            if self._process is None or self._output is None:
                return False, 0, ""
            code = self._process.poll()
            handle = self._output.fileno()  # shared with the program, which writes at its end
            size = os.fstat(handle).st_size
            text = os.pread(handle, MOST_BYTES, max(size - MOST_BYTES, 0))
            return code is None, code or 0, text.decode("utf-8", "replace")

    def stop(self) -> None:
        """End the job, if there is one; its output is forgotten with the next."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                return
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
