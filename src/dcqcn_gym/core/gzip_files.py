"""Opens a file of traffic, unpacked on the way if it is one of gzip, whatever its name."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dcqcn_gym.core.errors import ConfigError, in_one_line

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAGIC = b"\x1f\x8b"
MOST_TIMES = 200
"""A file that unpacks to more times its size is made to fill a reader; traffic does to 5 to 30."""
FREE_BYTES = 1 << 24
"""So much any file may unpack to."""


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading. What is read of it later raises :class:`ConfigError` if damaged."""
    file = open(path, "rb")  # noqa: SIM115 (the caller closes it)
    packed = file.read(len(MAGIC)) == MAGIC
    file.seek(0)
    return io.BufferedReader(_Unpacked(file, path)) if packed else file


def open_text(path: Path, encoding: str = "utf-8", newline: str | None = None) -> IO[str]:
    """Open a file as text; what is no text in it becomes a mark of replacement.

    A file that begins with UTF-16's mark, as PowerShell writes them, is read so.
    """
    with open_bytes(path) as file:
        if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            encoding = "utf-16"
    return io.TextIOWrapper(open_bytes(path), encoding, errors="replace", newline=newline)


class _Unpacked(io.RawIOBase):
    """The content of a gzip file, up to as much as traffic can be packed."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._path = file, path
        self._content = gzip.GzipFile(fileobj=file)
        self._most = max(FREE_BYTES, MOST_TIMES * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._content.seek(offset, whence)

    def readinto(self, buffer: WriteableBuffer) -> int:
        try:
            found = self._content.read(len(memoryview(buffer)))
        except (OSError, EOFError, zlib.error) as error:
            raise ConfigError(
                f"{self._path}: is damaged or breaks off (gzip: {in_one_line(error)}); unpack it "
                "yourself to use what is whole"
            ) from None
        if self._content.tell() > self._most:
            raise ConfigError(
                f"{self._path}: unpacks to more than {self._most} bytes, {MOST_TIMES} times its "
                "size; expected traffic, so unpack it yourself if it is"
            )
        memoryview(buffer)[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._file.close()
        super().close()
