"""An agent's file: which device, which driver, who may talk to it, where it keeps its journal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.files import read_file
from dcqcn_gym.core.knobs import DCQCN
from dcqcn_gym.hw.agent.privileges import CAPABILITIES
from dcqcn_gym.hw.drivers import Driver, Surroundings, make_driver
from dcqcn_gym.hw.limits import Range
from dcqcn_gym.hw.runner import RecordedRunner, SystemRunner
from dcqcn_gym.hw.tls import Address, Dscp, Tls

RELEASE = "Release"
"""``Stop`` with ``on`` false: it ends an emergency, so it is a change."""
READ = frozenset(
    {"Describe", "Plan", "Diff", "Change", "Status", "History", "Read", "Counters", "Load"}
)
STOP = READ | {"Stop", "Rollback", "StopLoad"}


class AgentConfig(StrictModel):
    """One agent has one device. Paths are relative to the folder of the file."""

    device: str = Field(
        pattern=r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$",
        description="its name in the fleet: small letters, digits, '-' and '.'",
    )
    driver: str = Field(description="a driver, as mlx5 or sonic, or path.py:Class")
    listen: Address = Field(
        default="127.0.0.1:7443", description="where it listens; only on loopback unless told"
    )
    journal: Path = Field(description="the file in which it remembers")
    controllers: tuple[str, ...] = Field(
        default=("controller",), min_length=1, description="names in certificates that may talk"
    )
    stoppers: tuple[str, ...] = Field(
        default=(), description="names that may read, stop, and take back what is on trial"
    )
    readers: tuple[str, ...] = Field(default=(), description="names that may only read")
    second_person: bool = Field(
        default=False, description="true: another controller confirms than the one that changes"
    )
    revoked: Path | None = Field(
        default=None, description="the authority's list of revoked certificates, revoked.pem"
    )
    stop_file: Path | None = Field(
        default=None, description="while this file exists, nothing may change"
    )
    root: Path = Field(default=Path("/"), description="the root of the device's files")
    commands: Literal["system", "recorded"] = Field(
        default="system", description="commands of this host, or outputs in ROOT/commands"
    )
    programs: tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")], ...] = Field(
        default=(), description="programs that a driver of your own may run here, as nv"
    )
    loads: tuple[str, ...] = Field(
        default=(), description="load that may be started here, as ib_write_bw; none unless told"
    )
    line_rate_gbps: float | None = Field(
        default=None, gt=0, description="of the device's ports, unless the device tells it"
    )
    limits: dict[str, Range] = Field(
        default={}, description="knob -> low and high, instead of the agent's own limits"
    )
    capabilities: tuple[str, ...] = Field(
        default=(), description="of the kernel that this agent keeps beside those of its kind"
    )
    metrics: Path | None = Field(
        default=None, description="a file for node_exporter's textfile collector, NAME.prom"
    )
    reflection: bool = Field(default=False, description="tell anybody's tools the protocol")
    dscp: Dscp = 0
    tls: Tls
    settings: dict[str, Any] = Field(default={}, description="what the driver wants to know")

    @field_validator("capabilities")
    @classmethod
    def _known_capabilities(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in CAPABILITIES:
                raise UnknownNameError("capability", name, CAPABILITIES)
        return names

    @field_validator("limits")
    @classmethod
    def _known(cls, limits: dict[str, Range]) -> dict[str, Range]:
        for name in limits:
            DCQCN[name]
        return limits

    def make_driver(self, folder: Path, source: str) -> Driver:
        """Return the driver; ``folder`` is that of the file, ``source`` its name in messages."""
        root = folder / self.root
        system = self.commands == "system"
        more = self.programs
        runner = SystemRunner(programs=more) if system else RecordedRunner(root / "commands", more)
        around = Surroundings(root, runner)
        return make_driver(self.driver, self.settings, around, f"{source}: [settings]")


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
