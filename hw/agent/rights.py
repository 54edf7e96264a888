"""Who may ask an agent for what: roles by the names in certificates, and a list of revoked ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import read_file
from dcqcn_gym.hw.agent.config import AgentConfig

__all__ = ["RELEASE", "Rights"]

RELEASE = "Release"
"""``Stop`` with ``on`` false: it ends an emergency, so it is a change."""
READ = frozenset({"Describe", "Plan", "Diff", "Status", "History", "Read", "Counters", "Load"})
STOP = READ | {"Stop", "Rollback", "StopLoad"}


class Rights:
    """An agent's file says who is what; whoever is nothing may ask nothing."""

    def __init__(self, config: AgentConfig, folder: Path) -> None:
        self._config = config
        path = config.revoked
        self._revoked = None if path is None else _Revoked(folder / path, folder / config.tls.ca)

    def refuse(self, method: str, names: list[str], pem: bytes) -> str:
        """Return why a certificate may not make a call; empty if it may.

        While the list of revoked certificates cannot be read nothing may change, but everybody may
        still stop.
        """
        config = self._config
        if any(name in config.controllers for name in names):
            allowed: frozenset[str] | None = None
        elif any(name in config.stoppers for name in names):
            allowed = STOP
        elif any(name in config.readers for name in names):
            allowed = READ
        else:
            return f"this certificate may not talk to it; allowed: {', '.join(config.controllers)}"
        if allowed is not None and method not in allowed:
            return f"this certificate may only {'read and stop' if allowed is STOP else 'read'}"
        return "" if self._revoked is None else self._revoked.refuse(method, pem)


class _Revoked:
    """The authority's list; it is read again whenever its file has changed."""

    def __init__(self, path: Path, ca: Path) -> None:
        self._path, self._ca = path, ca
        self._read: tuple[tuple[int, int], frozenset[int]] | None = None

    def refuse(self, method: str, pem: bytes) -> str:
        from cryptography import x509

        try:
            serials = self._serials()
        except (ConfigError, OSError, ValueError) as error:
            said = f"the list of revoked certificates cannot be read ({error})"
            return "" if method in STOP else f"{said}, so nothing may change"
        revoked = x509.load_pem_x509_certificate(pem).serial_number in serials
        return "this certificate was revoked" if revoked else ""

    def _serials(self) -> frozenset[int]:
        from cryptography import x509

        status = self._path.stat()
        seen = (status.st_mtime_ns, status.st_size)
        if self._read is None or self._read[0] != seen:
            found = x509.load_pem_x509_crl(read_file(self._path, 1 << 24))
            key: Any = x509.load_pem_x509_certificate(read_file(self._ca, 1 << 16)).public_key()
            if not found.is_signature_valid(key):
                raise ConfigError(f"{self._path} is not signed by this fleet's authority")
            self._read = seen, frozenset(one.serial_number for one in found)
        return self._read[1]
