"""The files of NICs through FUSE, as a kernel's debugfs and sysfs behave: a process of its own.

``python -m dcqcn_gym.hw.fabric.kernel FOLDER MOUNT LOG`` shows FOLDER/DEVICE/root of every device
as MOUNT/DEVICE until its standard input ends. What the plain files of the fabric cannot do:

- every call on a device's parameters is one line of LOG, in the order in which it was carried out;
  the answer goes out after the line was written;
- only parameters can be written, one whole number at a time, decimal or with 0x, which is shown
  in decimal from then on; opening a file does not empty it (Linux: ``kstrtou32``, ``%u``);
- a write can be told to fail: ``setfattr -n user.fail-write -v 3 MOUNT/DEVICE`` lets the third from
  now on fail with EIO, once, and the file keeps what it held.

One request is answered after the other, so that there is one order, over all devices.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from stat import S_IFDIR, S_IFREG
from typing import IO, Any

from dcqcn_gym.hw.fabric.mounts import FSTYPE, unmount

FAIL_WRITE = "user.fail-write"
"""The extended attribute of a device's folder: how many writes from now on the failing one is."""

_NUMBER = re.compile(rb"(0|[1-9][0-9]*|0[xX][0-9a-fA-F]+)\n?")
_PARAMETER = re.compile(r"sys/kernel/debug/mlx5/[^/]+/cc_params/[^/]+|sys/.*/hw_counters/lifespan")


@dataclass(frozen=True)
class _Opened:
    """An open file; what is read of it is what it held when it was opened."""

    device: str
    file: str
    writes: bool
    held: bytes


class KernelFiles:
    """The operations that libfuse calls, named as it names them; OSError is what a caller sees."""

    use_ns = True
    """Times are whole nanoseconds."""

    def __init__(self, folder: Path, log: IO[str]) -> None:
        self._folder, self._log = folder, log
        self._opened: dict[int, _Opened] = {}
        self._handles = 0
        self._fails: dict[str, int] = {}

    def init_with_config(self, conn_info: object, config: object) -> None:
        """Say that the files are there."""
        print("ready", flush=True)

    def getattr(self, path: str, fh: int | None = None) -> Mapping[str, int]:
        """Return what `stat` shows: parameters have mode 0600, everything else only shows."""
        found = os.lstat(self._backing(path))
        folder = found.st_mode & S_IFDIR == S_IFDIR
        mode = S_IFDIR | 0o555 if folder else S_IFREG | (0o600 if _is_parameter(path) else 0o444)
        return {
            "st_mode": mode, "st_nlink": 2 if folder else 1, "st_size": found.st_size,
            "st_uid": os.getuid(), "st_gid": os.getgid(), "st_mtime": found.st_mtime_ns,
            "st_ctime": found.st_ctime_ns, "st_atime": found.st_atime_ns,
        }  # fmt: skip

    def readdir(self, path: str, fh: int) -> list[str]:
        """Return the names in a folder; above all devices, those that have files."""
        names = sorted(entry.name for entry in self._backing(path).iterdir())
        if path == "/":
            names = [name for name in names if (self._folder / name / "root").is_dir()]
        return [".", "..", *names]

    def open(self, path: str, flags: int) -> int:
        """Open for reading, or a parameter for writing."""
        device, file = _parts(path)
        writes = flags & os.O_ACCMODE != os.O_RDONLY
        if writes and not _is_parameter(path):
            self._note(device, file, "open", error="EACCES")
            raise OSError(errno.EACCES, "only parameters can be written")
        held = self._backing(path).read_bytes()
        if writes:
            self._note(device, file, "open")
        elif _is_parameter(path):
            self._note(device, file, "read", held.decode("ascii", "replace").strip())
        self._handles += 1
        self._opened[self._handles] = _Opened(device, file, writes, held)
        return self._handles

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        """Return a part of what the file held when it was opened."""
        return self._opened[fh].held[offset : offset + size]

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        """Take a whole number, or refuse and keep what was there."""
        opened = self._opened[fh]
        code = self._refusal(opened.device, data, offset)
        text = data.decode("ascii", "replace").strip()
        self._note(opened.device, opened.file, "write", text, errno.errorcode.get(code, ""))
        if code:
            raise OSError(code, os.strerror(code))
        file = self._backing(path)
        fresh = file.with_name(file.name + ".new")
        fresh.write_text(f"{int(text, 0)}\n", encoding="ascii")
        os.replace(fresh, file)
        return len(data)

    def _refusal(self, device: str, data: bytes, offset: int) -> int:
        """Return the error that a write gets, 0 for none."""
        left = self._fails.pop(device, 0)
        if left == 1:
            return errno.EIO
        if left:
            self._fails[device] = left - 1
        if offset or not _NUMBER.fullmatch(data):
            return errno.EINVAL
        return errno.ERANGE if int(data, 0) >= 2**32 else 0

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        """Do nothing: a parameter cannot be emptied."""
        return 0

    def flush(self, path: str, fh: int) -> int:
        """Be told of `close`."""
        opened = self._opened[fh]
        if opened.writes:
            self._note(opened.device, opened.file, "close")
        return 0

    def release(self, path: str, fh: int) -> int:
        """Forget an open file."""
        del self._opened[fh]
        return 0

    def setxattr(self, path: str, name: str, value: bytes, options: int, position: int = 0) -> int:
        """Let a write of a device fail: see the module."""
        device, file = _parts(path)
        if name != FAIL_WRITE or not device or file:
            raise OSError(errno.ENOTSUP, f"only {FAIL_WRITE} of a device's folder")
        if not re.fullmatch(rb"[1-9][0-9]{0,5}", value):
            raise OSError(errno.EINVAL, "expected a number of writes, from 1 on")
        self._fails[device] = int(value)
        return 0

    def _backing(self, path: str) -> Path:
        device, file = _parts(path)
        return self._folder / device / "root" / file if device else self._folder

    def _note(self, device: str, file: str, call: str, text: str = "", error: str = "") -> None:
        line = {"device": device, "file": file, "call": call, "text": text, "error": error}
        print(json.dumps(line), file=self._log, flush=True)


def _parts(path: str) -> tuple[str, str]:
    device, _, file = path.lstrip("/").partition("/")
    return device, file


def _is_parameter(path: str) -> bool:
    return _PARAMETER.fullmatch(_parts(path)[1]) is not None


def _end_with_input(mount: str) -> None:
    """Unmount when whoever started this closes its end or dies; libfuse's loop ends by that."""
    sys.stdin.buffer.read()
    unmount(Path(mount))


def main() -> None:
    """Serve until standard input ends; a mistake is one line on standard error."""
    folder, mount, log = sys.argv[1:]
    try:
        import mfusepy
    except OSError as error:
        sys.exit(f"{error}")
    threading.Thread(target=_end_with_input, args=(mount,), daemon=True).start()
    options: dict[str, Any] = {
        "foreground": True, "nothreads": True, "direct_io": True, "attr_timeout": 0,
        "entry_timeout": 0, "fsname": "dcqcn-gym", "subtype": FSTYPE.partition(".")[2],
    }  # fmt: skip
    with open(log, "a", encoding="utf-8") as lines:
        try:
            mfusepy.FUSE(KernelFiles(Path(folder), lines), mount, **options)
        except RuntimeError as error:
            sys.exit(f"libfuse ended with {error}")  # it has said why


if __name__ == "__main__":
    main()
