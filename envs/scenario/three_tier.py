"""Three tiers in short: pods of ToRs and aggregation switches, and cores above them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.rates import DelayUs, Gbps, Link, PsPerByte, Rated, us_to_ps

Count = Annotated[int, Field(ge=1, le=65_536)]


class ThreeTier(Rated):
    """``pods`` pods, in each of which every ToR has a link to every aggregation switch.

    The first aggregation switches of all pods share ``cores_per_agg`` cores, the second ones the
    next, and so on.
    """

    kind: Literal["three-tier"] = "three-tier"
    pods: Count = Field(description="the number of pods")
    tors_per_pod: Count = Field(description="ToR switches of a pod")
    hosts_per_tor: Count = Field(description="the number of hosts of each rack")
    aggs_per_pod: Count = Field(description="aggregation switches of a pod")
    cores_per_agg: Count = Field(description="cores above each aggregation switch")
    host_gbps: Gbps = 100.0
    host_ps_per_byte: PsPerByte = None
    tor_gbps: Gbps = 100.0
    tor_ps_per_byte: PsPerByte = None
    core_gbps: Gbps = 100.0
    core_ps_per_byte: PsPerByte = None
    delay_us: DelayUs = 5.0

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.pods * self.tors_per_pod * self.hosts_per_tor < 2:
            raise ConfigError("a network needs at least 2 hosts; raise 'pods' or 'hosts_per_tor'")
        return self

    def size(self) -> tuple[int, int, int]:
        """Return the numbers of hosts, switches and links."""
        tors, aggs = self.pods * self.tors_per_pod, self.pods * self.aggs_per_pod
        hosts, cores = tors * self.hosts_per_tor, self.aggs_per_pod * self.cores_per_agg
        return (
            hosts, tors + aggs + cores,
            hosts + tors * self.aggs_per_pod + aggs * self.cores_per_agg,
        )  # fmt: skip

    def expand(self) -> Fabric:
        """Return the plain network."""
        tors, aggs = self.pods * self.tors_per_pod, self.pods * self.aggs_per_pod
        hosts = tors * self.hosts_per_tor
        delay = us_to_ps(self.delay_us)
        down, middle, top = (self.step_of(name) for name in ("host_", "tor_", "core_"))
        links = [Link(h, hosts + h // self.hosts_per_tor, down, delay) for h in range(hosts)]
        for tor in range(tors):
            first = hosts + tors + tor // self.tors_per_pod * self.aggs_per_pod
            links += [Link(hosts + tor, first + i, middle, delay) for i in range(self.aggs_per_pod)]
        for agg in range(aggs):
            first = hosts + tors + aggs + agg % self.aggs_per_pod * self.cores_per_agg
            links += [
                Link(hosts + tors + agg, first + i, top, delay) for i in range(self.cores_per_agg)
            ]
        cores = self.aggs_per_pod * self.cores_per_agg
        return Fabric(hosts, (0,) * tors + (1,) * aggs + (2,) * cores, tuple(links))
