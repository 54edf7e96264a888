"""Names of a change's devices, as messages carry them: one a line, compressed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from dcqcn_gym.core.errors import ConfigError

MOST_BYTES = 1 << 20
"""Of the names of one change; a fleet of 10,000 has a tenth of it."""


def packed(names: Iterable[str]) -> bytes:
    """Return the bytes of some names; empty for none."""
    text = "\n".join(sorted(names))
    return zlib.compress(text.encode(), 9) if text else b""


def unpacked(data: bytes) -> tuple[str, ...]:
    """Return the names again; ConfigError if they are not what :func:`packed` makes."""
    if not data:
        return ()
    try:
        found = zlib.decompressobj()
        text = found.decompress(data, MOST_BYTES)
        if found.unconsumed_tail or not found.eof:
            raise ConfigError(f"the devices of a change: more than {MOST_BYTES} bytes of names")
        return tuple(text.decode().split("\n"))
    except (zlib.error, ValueError) as error:
        raise ConfigError(f"the devices of a change cannot be read ({error})") from None
