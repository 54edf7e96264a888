"""Certificates for a fleet: one authority, one certificate per agent and per controller.

An agent's certificate serves only as a server's, a controller's only as a client's, and both carry
the name that the other side checks: an agent cannot stand for another one, nor for a controller.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcqcn_gym.core.errors import ConfigError, MissingExtraError, quote
from dcqcn_gym.core.files import read_file

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


class Authority:
    """The authority of one fleet, in a folder: ``ca.pem`` for everybody, ``ca.key`` for nobody."""

    def __init__(self, folder: Path, days: int = 365, passphrase: bytes | None = None) -> None:
        """Open the authority in ``folder``, or make one there; certificates last for ``days``.

        Its key is encrypted with ``passphrase``, if there is one. Raises ConfigError if that is not
        the one that the key has.
        """
        try:
            from cryptography import x509  # noqa: F401
        except ImportError:
            raise MissingExtraError("making certificates", "hw") from None
        self._folder, self._days, self._passphrase = folder, days, passphrase
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "ca.key").exists():
            self._key, self._cert = self._load()
        else:
            self._key, self._cert = self._make()

    def agent(self, name: str) -> None:
        """Write ``NAME.pem`` and ``NAME.key`` for an agent."""
        self._issue(name, server=True)

    def controller(self, name: str) -> None:
        """Write ``NAME.pem`` and ``NAME.key`` for a controller."""
        self._issue(name, server=False)

    def revoke(self, names: Sequence[str]) -> Path:
        """Add certificates to the list ``revoked.pem``, which agents read; return its path."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.serialization import Encoding

        path, now = self._folder / "revoked.pem", datetime.datetime.now(datetime.timezone.utc)
        builder = x509.CertificateRevocationListBuilder(
            self._cert.subject, now, now + datetime.timedelta(days=3650)
        )
        if path.exists():
            for one in x509.load_pem_x509_crl(read_file(path, 1 << 24)):
                builder = builder.add_revoked_certificate(one)
        for name in names:
            cert = x509.load_pem_x509_certificate(read_file(self._folder / f"{name}.pem", 1 << 16))
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder(cert.serial_number, now).build()
            )
        data = builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        _keep(path, data, 0o644)
        return path

    def _load(self) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        file = self._folder / "ca.key"
        try:
            if (owner := file.lstat().st_uid) != os.geteuid():
                raise ConfigError(
                    f"{file} belongs to the account {owner}, not to yours: whoever wrote it could "
                    "sign for this fleet; choose another folder"
                )
            key = load_pem_private_key(file.read_bytes(), self._passphrase)
            cert = x509.load_pem_x509_certificate((self._folder / "ca.pem").read_bytes())
        except TypeError:  # encrypted, and no passphrase; or the other way round
            word = "is not" if self._passphrase else "is"
            raise ConfigError(f"{file} {word} encrypted; see --passphrase-file") from None
        except (ValueError, OSError) as error:
            raise ConfigError(
                f"{self._folder}: not an authority, or not its passphrase ({error})"
            ) from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ConfigError(f"{self._folder}/ca.key: expected a key on an elliptic curve")
        return key, cert

    def _make(self) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        name = _named("dcqcn-gym fleet")
        builder = self._dated(x509.CertificateBuilder(), key.public_key(), name, name)
        cert = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        ).sign(key, hashes.SHA256())
        self._write("ca", key, cert)
        return key, cert

    def _issue(self, name: str, *, server: bool) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        if name == "ca" or not _NAME.fullmatch(name):
            raise ConfigError(
                f"name {quote(name)}: expected small letters, digits, '-' and '.', not 'ca'"
            )
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._dated(
            x509.CertificateBuilder(), key.public_key(), _named(name), self._cert.subject
        )
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        cert = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self._write(name, key, cert)

    def _dated(self, builder: Any, key: Any, subject: Any, issuer: Any) -> Any:
        from cryptography import x509

        now = datetime.datetime.now(datetime.timezone.utc)
        end = now + datetime.timedelta(days=self._days)
        start = min(now, end) - datetime.timedelta(hours=1)  # clocks of hosts differ
        return (
            builder.subject_name(subject)
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(end)
        )

    def _write(self, name: str, key: Any, cert: Any) -> None:
        from cryptography.hazmat.primitives import serialization

        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(self._passphrase)
            if name == "ca" and self._passphrase
            else serialization.NoEncryption(),
        )
        _keep(self._folder / f"{name}.key", private, 0o600)
        _keep(self._folder / f"{name}.pem", cert.public_bytes(serialization.Encoding.PEM), 0o644)


def _named(text: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _keep(path: Path, data: bytes, mode: int) -> None:
    """Write a file that nobody else could read at any moment."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)


def write_all(
    folder: Path,
    agents: Sequence[str],
    controllers: Sequence[str],
    days: int = 365,
    passphrase: bytes | None = None,
) -> None:
    """Write the certificates of a whole fleet into ``folder``, with its authority if need be."""
    authority = Authority(folder, days, passphrase)
    for name in agents:
        authority.agent(name)
    for name in controllers:
        authority.controller(name)
