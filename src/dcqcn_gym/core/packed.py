"""Gzip files: reproducible bytes when written, a bounded size when read."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import read_file, read_text

PACKED = ".gz"
"""What a packed file's name ends with."""
MOST_BYTES = 2**28
"""Bytes of one file when it is unpacked."""
_PIECE_BYTES = 2**20


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


def read_packed(path: Path) -> str:
    """Return the text of a file, or of the packed one beside it, whose name ends with ``.gz``."""
    other = path.with_name(path.name + PACKED)
    if path.exists() or not other.exists():
        return read_text(path, MOST_BYTES)
    data = b"".join(unpacked(read_file(other, MOST_BYTES), str(other)))
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{other}: is no text in UTF-8") from None
