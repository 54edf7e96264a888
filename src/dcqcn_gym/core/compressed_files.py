"""Packed files: reproducible bytes when written, a bounded size when read."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import read_file, read_text

PACKED = ".gz"
"""What a packed file's name ends with."""
PACKED_SMALL = ".xz"
"""The same for one that is kept in a repository: a third smaller, slower to write."""
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
    others = (path.with_name(path.name + end) for end in (PACKED, PACKED_SMALL))
    return next((other for other in others if other.exists()), None)


def read_packed(path: Path) -> str:
    """Return the text of a file, or of the packed one beside it, ``.gz`` or ``.xz``."""
    other = packed_beside(path)
    if path.exists() or other is None:
        return read_text(path, MOST_BYTES)
    data = read_file(other, MOST_BYTES)
    if other.suffix == PACKED_SMALL:
        text = _unpacked_small(data, str(other))
    else:
        text = b"".join(unpacked(data, str(other)))
    try:
        return text.decode()
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
