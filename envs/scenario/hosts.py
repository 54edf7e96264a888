"""Which hosts take part in a workload and when: the keys that every workload shares."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, WrapValidator, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import Self

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.workload import BaseWorkload


def _host_set(value: Any, handler: Any, info: ValidationInfo) -> Any:
    try:
        return handler(value)
    except ValueError:
        raise PydanticCustomError(
            "host_set", 'expected "all", a number of hosts (at least 1), or a list of host numbers'
        ) from None


HostNumber = Annotated[int, Field(ge=0)]
HostSet = Annotated[
    Literal["all"] | Annotated[int, Field(ge=1)] | tuple[HostNumber, ...],
    WrapValidator(_host_set),
    Field(description='"all", a number of hosts, or a list of host numbers'),
]
Bytes = Annotated[int, Field(ge=1, le=2**50, description="payload bytes of a flow")]
Priority = Annotated[int, Field(ge=0, le=7, description="priority class of the data")]
Connections = Annotated[
    int, Field(ge=1, le=65536, description="connections of each pair of hosts, used in turn")
]
TimeUs = Annotated[float, Field(ge=0, le=1e12, description="a time in us")]


def select_hosts(
    net: Fabric,
    hosts: Literal["all"] | int | tuple[int, ...],
    *,
    placement: str = "round-robin",
    without: int | None = None,
) -> tuple[int, ...]:
    """Return host numbers: all, the first N round robin over racks (or packed), or as listed.

    ``without`` leaves one host out of "all" and of a number. Raises :class:`ConfigError`.
    """
    order = net.round_robin() if placement == "round-robin" else tuple(range(net.n_hosts))
    if hosts == "all":
        return tuple(h for h in range(net.n_hosts) if h != without)
    if isinstance(hosts, int):
        usable = [h for h in order if h != without]
        if hosts > len(usable):
            raise ConfigError(f"hosts = {hosts}; expected at most {len(usable)} in this topology")
        return tuple(usable[:hosts])
    for host in hosts:
        if host >= net.n_hosts:
            raise ConfigError(
                f"host {host} does not exist in this topology; expected 0 to {net.n_hosts - 1}"
            )
    if len(set(hosts)) != len(hosts):
        raise ConfigError(f"hosts = {list(hosts)} names a host twice; expected each once")
    return tuple(hosts)


class Timed(BaseWorkload):
    """Common keys: when new flows may start, and their priority."""

    start_us: TimeUs = 0.0
    stop_us: TimeUs | None = None
    priority: Priority = 3

    @model_validator(mode="after")
    def _check_stop(self) -> Self:
        if self.stop_us is not None and self.stop_us <= self.start_us:
            raise ConfigError(
                f"stop_us = {self.stop_us:g} is not after start_us = {self.start_us:g}"
            )
        return self
