"""Load that an agent may run: a fixed list of programs, options by name, no shell, one a time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any

from dcqcn_gym.core.errors import ConfigError, DeviceError, StateError, UnknownNameError, quote
from dcqcn_gym.hw.load.outputs import bandwidths, collectives, flow_classes, latencies
from dcqcn_gym.hw.runner import FOLDERS

FLOWS = "rdma_write_flows"
"""The one program that is ours, and the one that is given a schedule: ``hw/load/flows.py``."""
_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,62}")
MOST_FLOW_BYTES = 2**40
MOST_PEERS = 256
"""Each has a process that waits for it."""
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
    FLOWS: ({
        "device": ("--device", _NAME), "first_port": ("--first-port", _NUMBER),
        "own": ("--own", re.compile(r"[0-9]{1,4}")),
    }, ()),
}  # fmt: skip
"""Program -> its options (name -> flag and what a value looks like), and what is always given."""

_READERS: Mapping[str, Callable[[str], list[Any]]] = {
    "ib_write_bw": bandwidths, "ib_write_lat": latencies, "all_reduce_perf": collectives,
    "alltoall_perf": collectives, FLOWS: flow_classes,
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


def check_schedule(schedule: Mapping[str, Any]) -> None:
    """Raise ConfigError if a schedule is not one that ``hw/load/flows.py`` can follow."""
    columns = [schedule[name] for name in ("to", "bytes", "at_us")]
    n_peers = len(schedule["peers"])
    bad = [peer for peer in schedule["peers"] if not _NAME.fullmatch(peer)]
    if bad:
        raise ConfigError(f"{FLOWS}: peer {quote(bad[0])}; expected a plain name or address")
    if not 2 <= n_peers <= MOST_PEERS or len({len(column) for column in columns}) != 1:
        raise ConfigError(
            f"{FLOWS}: {n_peers} peers; expected 2 to {MOST_PEERS}, and columns of one length"
        )
    if not 0 < schedule["seconds"] <= 86400 or any(not 0 <= to < n_peers for to in columns[0]):
        raise ConfigError(f"{FLOWS}: expected seconds up to a day, and flows to one of the peers")
    if any(not 1 <= size <= MOST_FLOW_BYTES for size in columns[1]):
        raise ConfigError(f"{FLOWS}: expected flows of 1 to {MOST_FLOW_BYTES} bytes")


def _words(form: re.Pattern[str]) -> str:
    return "a plain name or address" if form is _NAME else "a whole number"


class LoadJobs:
    """The load of one agent; thread-safe. ``allowed`` are the programs that its file permits."""

    def __init__(self, allowed: tuple[str, ...], folders: str = FOLDERS) -> None:
        self._allowed, self._folders = allowed, folders
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._lock = threading.RLock()
        self.program = ""

    def start(
        self, program: str, options: Mapping[str, str], schedule: Mapping[str, Any] | None = None
    ) -> None:
        """Begin a job; StateError if one runs or this agent permits none.

        :data:`FLOWS` needs a ``schedule``: its peers' addresses, seconds, and the flows' columns.
        """
        words = command(program, options)
        if (program == FLOWS) != (schedule is not None):
            raise ConfigError(f"{program}: a schedule is for {FLOWS} alone; see `hw load flows`")
        if schedule is not None:
            check_schedule(schedule)
        if program not in self._allowed:
            raise StateError(
                f"this agent may not run {program}; its file permits "
                f"{', '.join(self._allowed) or 'no load'} (loads)"
            )
        if schedule is not None:
            words = [sys.executable, "-I", "-m", "dcqcn_gym.hw.load.flows", *words[1:]]
        with self._lock:
            self._begin(program, words, "" if schedule is None else json.dumps(schedule))

    def _begin(self, program: str, words: list[str], told: str) -> None:
        if self._process is not None and self._process.poll() is None:
            raise StateError(f"{self.program} still runs here; stop it first")
        if self._output is not None:
            self._output.close()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  (outlives this call)
        try:
            with tempfile.TemporaryFile() as given:
                given.write(told.encode())
                given.seek(0)
                self._process = subprocess.Popen(
                    words, stdout=self._output, stderr=subprocess.STDOUT, stdin=given,
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
