"""NICs' files behind FUSE, from the fabric's side: started, asked what was called, taken away."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError, MissingExtraError, in_one_line
from dcqcn_gym.hw.fabric.kernel import FAIL_WRITE
from dcqcn_gym.hw.fabric.mounts import dead_mounts, unmount

START_S = 120.0
END_S = 30.0


@dataclass(frozen=True)
class FileCall:
    """One call on a parameter of a device, as the kernel carried it out."""

    device: str
    file: str
    """Its path below the device's root."""
    call: str
    """``open`` (for writing), ``write``, ``close``, or ``read`` with its open."""
    text: str
    """What was written, or was held."""
    error: str
    """The name of the error that the caller got, as ``EIO``; empty if none."""


class MountedFiles:
    """FOLDER/DEVICE/root of every device as FOLDER/kernel/DEVICE: created -> started -> closed.

    The server is a process of its own, and unmounts by itself if this one dies.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.mount = folder / "kernel"
        self.log = folder / "calls.jsonl"
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Mount; raises ConfigError or MissingExtraError where that cannot be.

        Takes away what a killed server of earlier days left mounted.
        """
        if importlib.util.find_spec("mfusepy") is None:
            raise MissingExtraError("files of NICs through FUSE", "fuse")
        for left in dead_mounts():
            unmount(left)
        self.mount.mkdir(parents=True)
        said = self._folder / "kernel.log"
        paths = [str(path) for path in (self._folder, self.mount, self.log)]
        with said.open("wb") as errors:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "dcqcn_gym.hw.fabric.kernel", *paths],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C ends it through its input, when agents are done
            )
        if not self._is_ready(self._server):
            self.close()
            lines = said.read_text(encoding="utf-8", errors="replace").splitlines()
            raise ConfigError(
                f"FUSE cannot be used here ({lines[0].rstrip('.') if lines else 'no answer'}): it "
                "needs /dev/fuse, libfuse with fusermount3 (Debian: fuse3) and the right to mount; "
                "without --fuse files are plain ones"
            )

    @staticmethod
    def _is_ready(server: subprocess.Popen[bytes]) -> bool:
        assert server.stdout is not None
        ready, _, _ = select.select([server.stdout], [], [], START_S)
        return bool(ready) and server.stdout.readline() == b"ready\n"

    def calls(self) -> list[FileCall]:
        """Return every call on parameters so far, of all devices, in the order of carrying out."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [FileCall(**json.loads(line)) for line in lines]

    def fail_write(self, device: str, which: int) -> None:
        """Let a write of a device fail, once: the next one (1), the one after (2), ..."""
        try:
            os.setxattr(self.mount / device, FAIL_WRITE, str(which).encode())
        except OSError as error:
            what = in_one_line(error)
            raise ConfigError(f"{device}: no write can be let fail ({what})") from None

    def close(self) -> None:
        """Unmount; plain files and the list of calls stay."""
        if self._server is None:
            return
        server, self._server = self._server, None
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.close()
        try:
            server.wait(END_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()
        if os.path.ismount(self.mount) or self.mount in dead_mounts():
            unmount(self.mount)
