"""Who a process is on the network, and where: keys, addresses, the limits of every message."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import read_file

ENDS = "certificate-ends"
"""The trailing metadata of an answer that say when the agent's certificate ends, in Unix time."""

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


class TlsFiles:
    """The three files of a process: what they were when they were read last."""

    def __init__(self, tls: Tls, folder: Path) -> None:
        self._tls, self._folder = tls, folder
        self._seen: list[int] = []
        self.ends_s = math.inf
        """When the own certificate ends, in Unix time."""

    def read(self) -> tuple[bytes, bytes, bytes]:
        """Return authority, certificate and key; ConfigError if they are none."""
        from cryptography import x509

        seen, found = self._times(), self._tls.read(self._folder)
        try:
            ends = x509.load_pem_x509_certificate(found[1]).not_valid_after_utc
        except ValueError as error:
            raise ConfigError(f"{self._tls.cert}: not a certificate ({error})") from None
        self._seen, self.ends_s = seen, ends.timestamp()
        return found

    def changed(self) -> bool:
        """Return whether a file changed since."""
        return self._times() != self._seen

    def _times(self) -> list[int]:
        paths = (self._tls.ca, self._tls.cert, self._tls.key)
        return [(self._folder / path).stat().st_mtime_ns for path in paths]


def channel_options(dscp: int) -> list[tuple[str, Any]]:
    """Return the options of every channel and server: limits, no proxy, the DSCP of its packets."""
    return [
        ("grpc.max_metadata_size", 8192),
        ("grpc.enable_http_proxy", 0),
        ("grpc.dscp", dscp),
    ]
