"""What drivers of switches share: settings that name ports, in the order of the scenario's."""

from __future__ import annotations

from pydantic import Field

from dcqcn_gym.hw.drivers.base import Driver, DriverSettings

PORTS = Field(min_length=1, description="names of ports in the order of the scenario's")


class SwitchSettings(DriverSettings):
    """The ports of one switch."""

    ports: tuple[str, ...] = PORTS
    skip: tuple[str, ...] = Field(default=(), description="knobs that this switch may lack")


class SwitchDriver(Driver):
    """One switch; a subclass keeps its settings."""

    kind = "switch"
    _settings: SwitchSettings

    @property
    def ports(self) -> tuple[str, ...]:
        """Names of the ports, in the order of the scenario's."""
        return self._settings.ports
