"""Mounts of the fabric that outlived their process, and how a mount is taken away."""

from __future__ import annotations

import errno
import re
import shutil
import subprocess
from pathlib import Path

FSTYPE = "fuse.dcqcn-gym"
"""What the system's table of mounts calls those of the fabric."""

_TABLE = Path("/proc/self/mountinfo")
_WAYS = (("fusermount3", "-u", "-z"), ("fusermount", "-u", "-z"), ("umount", "-l"))


def dead_mounts() -> list[Path]:
    """Return where a fabric's mount has no process behind it any more."""
    found = []
    for line in _TABLE.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        fields, _, kind = line.partition(" - ")
        where = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), fields.split(" ")[4])
        if kind.split(" ")[0] == FSTYPE and _is_dead(Path(where)):
            found.append(Path(where))
    return found


def _is_dead(mount: Path) -> bool:
    try:
        mount.stat()
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False


def unmount(mount: Path) -> bool:
    """Take a mount away, at once from its place and for good when nobody uses it any more.

    Returns False if nobody here may, or nothing is mounted there.
    """
    for program, *words in _WAYS:
        if shutil.which(program) is None:
            continue
        done = subprocess.run([program, *words, str(mount)], capture_output=True, check=False)
        if done.returncode == 0:
            return True
    return False
