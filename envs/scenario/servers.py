"""Servers of several GPUs: what joins them inside, and fabrics built around them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.rates import DelayUs, Gbps, Link, PsPerByte, Rated, us_to_ps


class Servers(StrictModel):
    """Hosts 0 to ``gpus`` - 1 are the GPUs of a server, each with its NIC, and so on.

    A link of ``nvlink_gbps`` and ``nvlink_latency_us`` joins each GPU to the others of its server;
    what it carries is not on the fabric. NVLink 4 has 3,600 Gb/s a direction.
    """

    gpus: int = Field(default=8, ge=1, le=65_535, description="GPUs, and NICs, of a server")
    nvlink_gbps: float = Field(default=3600.0, ge=1, le=100_000, description="of each GPU")
    nvlink_latency_us: float = Field(default=1.0, ge=0.001, le=1000)

    def line(self) -> str:
        """Return the line of the compiled text."""
        rate, delay = round(self.nvlink_gbps * 1e9), us_to_ps(self.nvlink_latency_us)
        return f"servers gpus={self.gpus} rate_bps={rate} delay_ps={delay}"


class ServerFabric(Rated):
    """Two tiers around servers: hosts are numbered server by server.

    A unit of ``servers_per_unit`` servers (default: all) has one switch for each rail, on which
    the NICs of one number hang (``attach = "rails"``), or one for all of them (``"tor"``). Every
    such switch has ``links_per_spine`` links to each of the ``spines``.
    """

    kind: Literal["servers"] = "servers"
    servers: int = Field(ge=1, le=65_535, description="the number of servers")
    gpus: int = Field(default=8, ge=1, le=1024, description="GPUs, and NICs, of a server")
    attach: Literal["rails", "tor"] = "rails"
    servers_per_unit: int | None = Field(default=None, ge=1, le=65_535)
    spines: int = Field(ge=1, le=65_535, description="the number of spine switches")
    links_per_spine: int = Field(default=1, ge=1, le=64, description="parallel links to a spine")
    host_gbps: Gbps = 400.0
    host_ps_per_byte: PsPerByte = None
    uplink_gbps: Gbps = 400.0
    uplink_ps_per_byte: PsPerByte = None
    host_delay_us: DelayUs = 1.0
    uplink_delay_us: DelayUs = 1.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.servers % self.per_unit:
            raise ConfigError(
                f"servers_per_unit = {self.per_unit}; expected a divisor of servers = "
                f"{self.servers}"
            )
        if self.servers * self.gpus < 2:
            raise ConfigError("a network needs at least 2 hosts; raise 'servers' or 'gpus'")
        return self

    @property
    def per_unit(self) -> int:
        """Servers of a unit."""
        return self.servers if self.servers_per_unit is None else self.servers_per_unit

    @property
    def _leaves(self) -> tuple[int, int]:
        """Leaf switches of a unit, and in all."""
        one = self.gpus if self.attach == "rails" else 1
        return one, one * (self.servers // self.per_unit)

    def size(self) -> tuple[int, int, int]:
        """Return the numbers of hosts, switches and links."""
        hosts, (_, leaves) = self.servers * self.gpus, self._leaves
        return hosts, leaves + self.spines, hosts + leaves * self.spines * self.links_per_spine

    def expand(self) -> Fabric:
        """Return the plain network."""
        n, (of_unit, leaves) = self.servers * self.gpus, self._leaves
        down, up = self.step_of("host_"), self.step_of("uplink_")
        near, far = us_to_ps(self.host_delay_us), us_to_ps(self.uplink_delay_us)
        links = []
        for host in range(n):
            server, rail = divmod(host, self.gpus)
            leaf = server // self.per_unit * of_unit + rail % of_unit
            links.append(Link(host, n + leaf, down, near))
        links += [
            Link(n + leaf, n + leaves + spine, up, far)
            for leaf in range(leaves)
            for spine in range(self.spines)
            for _ in range(self.links_per_spine)
        ]
        return Fabric(n, (0,) * leaves + (1,) * self.spines, tuple(links))
