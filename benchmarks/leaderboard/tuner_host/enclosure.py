"""A sandbox for plug-in tuners: bubblewrap, without network, files, environment or neighbours.

Inside there is this Python with its packages, read-only, the plug-in's code in ``/plugin``, an
empty ``/tmp``, and the one socket. Names of runs and scenarios are nowhere in there: not in the
arguments, the environment, the working directory, or ``/proc``, which shows the sandbox alone. The
engine, the suites, and the rules by which seeds and scenarios are drawn are hidden, too. System
calls that lead out are denied (:mod:`.seccomp`), and there are no namespaces inside.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import dcqcn_gym
from dcqcn_gym.benchmarks.leaderboard.tuner_host.process import python_command
from dcqcn_gym.benchmarks.leaderboard.tuner_host.seccomp import filter_file, seccomp_problem
from dcqcn_gym.core.errors import in_one_line, printable
from dcqcn_gym.core.registry import is_file

PLUGIN = "/plugin"
MOST_MEMORY = 2**35
"""Address space of a plug-in, in bytes; libraries reserve far more than they use."""
MOST_SCRATCH = 2**30
"""Bytes of ``/tmp``, and of ``/dev/shm``; they lie in memory, and nothing else can be written."""

_LIMITS = (
    "import resource as r; r.setrlimit(r.RLIMIT_CORE, (0, 0)); "
    f"r.setrlimit(r.RLIMIT_AS, ({MOST_MEMORY}, {MOST_MEMORY}))\n"
)
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_FILES = ("/etc/ld.so.cache", "/etc/alternatives")
_SCRATCH = ("/tmp", "/dev/shm")
_FAR_END = "dcqcn_gym.benchmarks.leaderboard.tuner_host.server"
_CLOSED = ("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/")
"""After all mounts: what is left of them can be written no more. ``/proc/sys`` holds settings of
the machine; root without capabilities owns them still, and a verifier may be root, so a plug-in
could change them."""


@dataclass(frozen=True)
class Enclosure:
    """Where a plug-in runs: ``code`` is the folder that it sees as ``/plugin``."""

    code: Path

    def command(self) -> list[str]:
        """Return the command of a tuner's process in a fresh sandbox."""
        plugin = ["--ro-bind", str(self.code.absolute()), PLUGIN]
        path = [PLUGIN, *map(str, _packages())]
        return [*_sandbox(), *plugin, *_CLOSED, "--", *python_command(path, _LIMITS)]

    def name_inside(self, tuner: str) -> str:
        """Return a tuner's name in there: a file has another path."""
        if not is_file(tuner):
            return tuner
        path, _, attribute = tuner.rpartition(":")
        return f"{PLUGIN}/{Path(path).name}:{attribute}"


@cache
def sandbox_problem() -> str | None:
    """Return why there can be no sandbox on this machine, in one sentence; None if there can."""
    if shutil.which("bwrap") is None:
        return "there is no sandbox: bubblewrap is not installed (apt install bubblewrap)"
    if (problem := seccomp_problem()) is not None:
        return f"there is no sandbox: {problem}"
    try:
        done = subprocess.run(
            [*_sandbox(), *_CLOSED, "--", sys.executable, "-c", f"import {_FAR_END}"],
            capture_output=True, text=True, timeout=300, env={}, cwd="/",
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return f"there is no sandbox: bubblewrap does not start ({in_one_line(error)})"
    if done.returncode:
        said = printable((done.stderr.strip().splitlines() or ["no word"])[-1][:200])
        return f"there is no sandbox: bubblewrap cannot make one on this machine ({said})"
    return None


def _sandbox() -> list[str]:
    """Return the words that make a sandbox; mounts of the caller and a command follow."""
    # the filter is a file that bubblewrap reads from an open descriptor
    words = ["/bin/sh", "-c", 'file=$1; shift; exec "$@" 9<"$file"', "sh", filter_file()]
    words += [str(shutil.which("bwrap")), "--unshare-all", "--unshare-user", "--disable-userns"]
    words += ["--seccomp", "9", "--die-with-parent", "--cap-drop", "ALL"]
    words += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp"]
    words += ["--setenv", "LANG", "C.UTF-8", "--hostname", "sandbox"]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for place in _SCRATCH:
        words += ["--size", str(MOST_SCRATCH), "--tmpfs", place]
    for place in _SYSTEM:
        if os.path.islink(place):
            words += ["--symlink", os.readlink(place), place]
        elif os.path.isdir(place):
            words += ["--ro-bind", place, place]
    for place in _FILES:
        words += ["--ro-bind-try", place, place]
    bound = _outermost(_python_places())
    for path in bound:
        words += ["--ro-bind", str(path), str(path)]
    for hidden in _hidden():
        if any(hidden.is_relative_to(path) for path in (Path("/usr"), *bound)):
            if hidden.is_dir():
                words += ["--tmpfs", str(hidden)]
                for own in _far_end(hidden):
                    words += ["--ro-bind", str(own), str(own)]
                words += ["--remount-ro", str(hidden)]
            else:
                words += ["--ro-bind", "/dev/null", str(hidden)]
    return [*words, "--chdir", "/tmp"]


def _packages() -> list[Path]:
    """Return the places on the path that hold Python or packages; ours last if it lies alone.

    Others, such as the current directory, may hold anybody's files.
    """
    found = [Path(entry).absolute() for entry in sys.path if entry]
    holding = [place for place in found if _holds_packages(place)]
    own = [Path(part).parent for part in dcqcn_gym.__path__]
    return [*holding, *(place for place in own if place not in holding)]


def _holds_packages(place: Path) -> bool:
    if any(place.is_relative_to(home) for home in (sys.prefix, sys.base_prefix)):
        return True
    return next(place.glob("*.dist-info"), None) is not None


def _python_places() -> Iterable[Path]:
    """Yield every folder that this Python and its packages live in, by both names of it."""
    package = [Path(part) for part in dcqcn_gym.__path__ if os.path.isdir(part)]
    rooms = [room for part in package for room in part.iterdir() if room.is_dir()]
    python = [sys.prefix, sys.base_prefix, os.path.dirname(os.path.realpath(sys.executable))]
    installed = filter(_holds_packages, _packages())
    for place in (*map(Path, python), *installed, *package, *rooms):
        if place.exists():
            yield place.absolute()
            yield place.resolve()


def _outermost(places: Iterable[Path]) -> list[Path]:
    """Return the places that are in no other one, nor in what is there anyway."""
    found: list[Path] = []
    for place in sorted(set(places)):
        if not any(place.is_relative_to(outer) for outer in (Path("/usr"), *found)):
            found.append(place)
    return found


def _far_end(hidden: Path) -> list[Path]:
    """Return what the far end itself is made of below a hidden folder: it is seen all the same."""
    room = Path(__file__).resolve().parent
    if not room.is_relative_to(hidden):
        return []
    above = [one for one in room.parents if one.is_relative_to(hidden)]
    return [*(one / "__init__.py" for one in above), room]


def _hidden() -> list[Path]:
    """Return what would tell a plug-in its scenarios, or let it run them in advance."""
    places = ("configs/suites", "configs/scenarios", "benchmarks", "_sources")
    parts = [(Path(part) / place).resolve() for part in dcqcn_gym.__path__ for place in places]
    engines = [one.resolve() for part in dcqcn_gym.__path__ for one in Path(part).glob("_core*.so")]
    return [part for part in (*parts, *engines) if part.exists()]
