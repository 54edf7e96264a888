"""The congestion control that NICs and switches run: the key ``scheme`` and its options.

A scheme is one model here with its ``name`` and its options, and its place in the union below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.knobs import KnobTable
from dcqcn_gym.core.scheme_tables import table_of_schemes
from dcqcn_gym.envs.scenario.hosts import HostSet, select_hosts

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.fabric import Fabric


class SchemeModel(StrictModel):
    """What every scheme offers, beside its ``name`` and its options."""

    name: str

    def options(self) -> dict[str, object]:
        """Return its options as the engine calls them; the reaction point is its ``mode``."""
        own = {name: value for name, value in self if name != "name"}
        return {"mode" if name == "rp" else name: value for name, value in own.items()}

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes that run in NICs: its own, or those of a mix."""
        return (self.name,)

    @property
    def table(self) -> KnobTable:
        """The knobs that a setting of this network has."""
        return table_of_schemes(self.schemes)

    def groups_in(self, net: Fabric) -> Sequence[tuple[SchemeModel, tuple[int, ...]]]:
        """Return (scheme, hosts): the first one is that of all hosts that no other names."""
        return [(self, ())]


class Dcqcn(SchemeModel):
    """DCQCN. ``rp``: the reaction point as in NICs, or as published in the paper."""

    name: Literal["dcqcn"] = "dcqcn"
    rp: Literal["nic", "paper"] = "nic"


class DcqcnPlus(SchemeModel):
    """DCQCN+ (ICNP'18): timers and steps follow the number of congested queue pairs."""

    name: Literal["dcqcn-plus"] = "dcqcn-plus"


class Timely(SchemeModel):
    """TIMELY (SIGCOMM'15): the rate follows the gradient of round trips; no CNPs.

    ``pacing``: packets one by one, or, as the paper has it, segments of ``timely_segment`` packets
    that leave at line rate.
    """

    name: Literal["timely"] = "timely"
    pacing: Literal["packet", "segment"] = "packet"


class DolceRc(SchemeModel):
    """Dolce-RC: a bandit chooses how much a CNP cuts and how far the rate recovers.

    ``ratio``: what a reward is made of, CNPs over microseconds in which data left (``"slots"``) or
    marked packets, reported in the CNP, over packets (``"count"``). ``memory``: what learns as one
    connection, a pair of hosts or a queue pair. ``arithmetic``: doubles, or a NIC's whole numbers.
    """

    name: Literal["dolce-rc"] = "dolce-rc"
    ratio: Literal["slots", "count"] = "slots"
    memory: Literal["pair", "qp"] = "pair"
    arithmetic: Literal["float", "fixed"] = "float"


class DolceRcPlus(SchemeModel):
    """Dolce-RC+: a bandit chooses the rate of each message. ``memory`` as in Dolce-RC."""

    name: Literal["dolce-rc-plus"] = "dolce-rc-plus"
    memory: Literal["pair", "qp"] = "pair"


def _by_name(value: Any) -> Any:
    """Read ``scheme = "NAME"`` as the table with that name alone; refuse unknown names."""
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping):
        return table
    name = table.get("name", "dcqcn")
    if isinstance(name, str) and name not in SCHEMES:
        raise UnknownNameError("scheme", name, SCHEMES)
    return {**table, "name": name}


def _not_mixed(value: Any) -> Any:
    name = value.get("name") if isinstance(value, Mapping) else value
    if name == "mix":
        raise ConfigError("a mix inside a mix; expected one scheme for each group")
    return _by_name(value)


def _named(models: Sequence[type[SchemeModel]]) -> dict[str, type[SchemeModel]]:
    return {model.model_fields["name"].default: model for model in models}


_One = Dcqcn | DcqcnPlus | Timely | DolceRc | DolceRcPlus
_OneName: Any = Literal.__getitem__(tuple(_named(get_args(_One))))
OneScheme = Annotated[
    Annotated[_One, Field(discriminator="name")],
    BeforeValidator(_not_mixed, json_schema_input_type=_OneName | _One),
    Field(description="the name of a scheme, or a table with its name and options"),
]


class SchemeGroup(StrictModel):
    """Hosts whose NICs run another scheme than the rest."""

    hosts: HostSet
    scheme: OneScheme


class Mix(SchemeModel):
    """Several schemes side by side: ``rest`` in every NIC that no group names."""

    name: Literal["mix"] = "mix"
    rest: OneScheme = Dcqcn()
    groups: tuple[SchemeGroup, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_tables(self) -> Self:
        _ = self.table  # raises for schemes that cannot run side by side
        return self

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes of all groups, that of the rest first."""
        return tuple(dict.fromkeys((self.rest.name, *(g.scheme.name for g in self.groups))))

    def groups_in(self, net: Fabric) -> Sequence[tuple[SchemeModel, tuple[int, ...]]]:
        """Return (scheme, hosts) of every group; raise ConfigError for hosts that do not fit."""
        found: list[tuple[SchemeModel, tuple[int, ...]]] = [(self.rest, ())]
        owner: dict[int, int] = {}
        for i, group in enumerate(self.groups):
            try:
                hosts = tuple(sorted(select_hosts(net, group.hosts, placement="packed")))
            except ConfigError as error:
                raise ConfigError(f"scheme.groups[{i}]: {error}") from None
            if not hosts:
                raise ConfigError(f"scheme.groups[{i}].hosts is empty; expected at least one host")
            for host in hosts:
                if host in owner:
                    raise ConfigError(
                        f"scheme.groups[{i}] and scheme.groups[{owner[host]}] both name host "
                        f"{host}; expected every host in one group"
                    )
                owner[host] = i
            found.append((group.scheme, hosts))
        if len(owner) == net.n_hosts:
            raise ConfigError(
                f"scheme.groups name all {net.n_hosts} hosts, so no NIC runs scheme.rest "
                f"({self.rest.name!r}); expected 'rest' to be the scheme of one of the groups, "
                "and that group left out"
            )
        return found


SCHEMES: Mapping[str, type[SchemeModel]] = _named((*get_args(_One), Mix))
"""Every scheme by the name that a scenario gives."""

_Any = _One | Mix
Scheme = Annotated[
    Annotated[_Any, Field(discriminator="name")],
    BeforeValidator(_by_name, json_schema_input_type=_OneName | _Any),
    Field(description='the name of a scheme, or a table such as { name = "dcqcn", rp = "paper" }'),
]
