"""Commands of a host, run without a shell: a fixed list of programs, a time limit, plain output."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from dcqcn_gym.core.errors import ConfigError, DeviceError, in_one_line, quote

PROGRAMS = ("cma_roce_tos", "config", "ethtool", "mlxconfig", "mstconfig", "nv", "rdma")
FOLDERS = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MOST_BYTES = 2**20
LIMITS_S = {"nv": 120.0}
"""Programs that may take longer than others."""


class NotInstalledError(DeviceError):
    """A program is not on this host."""


class Runner(Protocol):
    """What a driver asks for the output of a command."""

    def run(self, program: str, *arguments: str) -> str:
        """Return what the command printed; raise DeviceError if it fails or is not there."""


def _checked(program: str, more: Collection[str]) -> None:
    if program not in PROGRAMS and program not in more:
        raise ConfigError(
            f"program {quote(program)} may not be run here; known: "
            f"{', '.join([*PROGRAMS, *more])}; more by programs of the agent's file"
        )


class SystemRunner:
    """The commands of this host."""

    def __init__(self, timeout_s: float = 10.0, programs: Collection[str] = ()) -> None:
        """``programs``: those that the agent's file allows beside the known ones."""
        self._timeout_s, self._programs = timeout_s, programs

    def run(self, program: str, *arguments: str) -> str:
        """Return what the command printed; raise DeviceError if it fails or is not there."""
        _checked(program, self._programs)
        words = " ".join((program, *arguments))
        try:
            done = subprocess.run(
                [program, *arguments],
                capture_output=True,
                check=False,
                timeout=LIMITS_S.get(program, self._timeout_s),
                stdin=subprocess.DEVNULL,
                env={"PATH": FOLDERS, "LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise NotInstalledError(
                f"{program} is not installed on this host (in {FOLDERS})"
            ) from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DeviceError(f"`{words}` failed: {in_one_line(error)}") from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()[:200]
            raise DeviceError(f"`{words}` ended with {done.returncode}: {said!r}")
        return done.stdout[:MOST_BYTES].decode("utf-8", "replace")


def recorded_name(program: str, *arguments: str) -> str:
    """Return the name of the file that holds the output of a command."""
    return "_".join((program, *arguments)).replace("/", "%") + ".txt"


class RecordedRunner:
    """Commands whose output stands in files (:func:`recorded_name`): recordings and the fabric."""

    def __init__(self, folder: Path, programs: Collection[str] = ()) -> None:
        self._folder, self._programs = folder, programs

    def run(self, program: str, *arguments: str) -> str:
        """Return the recorded output; raise DeviceError if there is none."""
        _checked(program, self._programs)
        try:
            return (self._folder / recorded_name(program, *arguments)).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise NotInstalledError(
                f"{program} is not installed on this host (no recording)"
            ) from None
        except (OSError, ValueError) as error:
            raise DeviceError(f"{program}: {in_one_line(error)}") from None
