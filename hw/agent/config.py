"""An agent's file: which device, which driver, who may talk to it, where it keeps its journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.knobs import DCQCN
from dcqcn_gym.hw.agent.privileges import CAPABILITIES
from dcqcn_gym.hw.drivers import Driver, Surroundings, make_driver
from dcqcn_gym.hw.limits import Range
from dcqcn_gym.hw.runner import RecordedRunner, SystemRunner
from dcqcn_gym.hw.tls import Address, Dscp, Tls

__all__ = ["AgentConfig"]


class AgentConfig(StrictModel):
    """One agent has one device. Paths are relative to the folder of the file."""

    device: str = Field(
        pattern=r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$",
        description="its name in the fleet: small letters, digits, '-' and '.'",
    )
    driver: str = Field(description="a driver: mlx5, mlxconfig, sonic or path.py:Class")
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
        runner = SystemRunner() if system else RecordedRunner(root / "commands")
        around = Surroundings(root, runner)
        return make_driver(self.driver, self.settings, around, f"{source}: [settings]")
