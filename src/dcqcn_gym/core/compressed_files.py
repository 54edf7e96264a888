"""Packed files: reproducible bytes when written, a bounded size when read."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import read_file, read_text

PACKED_SMALL = ".xz"
"""What the name of a packed file that is kept in a repository ends with."""
MOST_BYTES = 2**28
"""Bytes of one file when it is unpacked."""
_PIECE_BYTES = 2**20
_MOST_XZ_MEMORY = 2**28


def pack(data: bytes) -> bytes:
    """Return a gzip file without date or name."""
    packer = zlib.compressobj(level=9, wbits=31)
    return packer.compress(data) + packer.flush()


def unpacked(data: bytes, source: str, most: int = MOST_BYTES) -> Iterator[bytes]:
    """Yield what packed data hold, piece by piece.

    Raises ConfigError, which begins with ``source``, if they are damaged or hold more than ``most``
    bytes.
    """
    unpacker = zlib.decompressobj(wbits=31)
    left, size = data, 0
    while not unpacker.eof:
        try:
            piece = unpacker.decompress(left, _PIECE_BYTES)
        except zlib.error as error:
            raise ConfigError(f"{source}: cannot be unpacked: {error}") from None
        if not piece and not unpacker.unconsumed_tail:
            break
        size += len(piece)
        if size > most:
            raise ConfigError(f"{source}: is larger than {most} bytes when unpacked")
        yield piece
        left = unpacker.unconsumed_tail
    if not unpacker.eof or unpacker.unused_data:
        raise ConfigError(f"{source}: cannot be unpacked: it is cut or extended")


def pack_small(data: bytes) -> bytes:
    """Return an xz file; the same bytes from every liblzma of one version."""
    return lzma.compress(data, preset=9)


def packed_beside(path: Path) -> Path | None:
    """Return the packed file that stands beside a path, or for it; None without one."""
    other = path.with_name(path.name + PACKED_SMALL)
    return other if other.exists() else None


def read_packed(path: Path) -> str:
    """Return the text of a file, or of the packed one beside it."""
    other = packed_beside(path)
    if path.exists() or other is None:
        return read_text(path, MOST_BYTES)
    try:
        return _unpacked_small(read_file(other, MOST_BYTES), str(other)).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{other}: is no text in UTF-8") from None


def _unpacked_small(data: bytes, source: str) -> bytes:
    """Return what an xz file holds; ConfigError as :func:`unpacked` for what is none."""
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_XZ_MEMORY)
    try:
        text = unpacker.decompress(data, MOST_BYTES)
    except lzma.LZMAError as error:
        raise ConfigError(f"{source}: cannot be unpacked: {error}") from None
    if not unpacker.eof or unpacker.unused_data:
        raise ConfigError(
            f"{source}: cannot be unpacked: it is cut, extended, or holds over {MOST_BYTES} bytes"
        )
    return text
