"""Who a process is on the network, and where: keys, addresses, the limits of every message."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import read_file

__all__ = ["Address", "Dscp", "Tls", "channel_options"]

MOST_REQUEST = 64 * 1024
MOST_REPLY = 4 * 1024 * 1024
_ADDRESS = re.compile(r"(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):(?P<port>\d{1,5})")


def _address(text: str) -> str:
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 <= int(match["port"]) <= 65535:
        raise ConfigError(f"{quote(text)}: expected HOST:PORT, such as '127.0.0.1:7443'")
    return text


Address = Annotated[str, AfterValidator(_address)]
Dscp = Annotated[int, Field(ge=0, le=63)]


class Tls(StrictModel):
    """Three files in PEM: the fleet's authority, the own certificate and its key."""

    ca: Path = Field(description="the certificate of the fleet's authority")
    cert: Path = Field(description="the own certificate")
    key: Path = Field(description="the own key")

    def read(self, folder: Path) -> tuple[bytes, bytes, bytes]:
        """Return authority, certificate and key; paths are relative to ``folder``."""
        ca, cert, key = (
            read_file(folder / path, 1 << 16) for path in (self.ca, self.cert, self.key)
        )
        return ca, cert, key


def channel_options(dscp: int) -> list[tuple[str, Any]]:
    """Return the options of every channel and server: limits, no proxy, the DSCP of its packets."""
    return [
        ("grpc.max_metadata_size", 8192),
        ("grpc.enable_http_proxy", 0),
        ("grpc.dscp", dscp),
    ]
