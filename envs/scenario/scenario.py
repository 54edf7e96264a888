"""Scenarios: one frozen, validated model of a network and of the task on it.

A scenario is a TOML file, one of the package (:func:`scenario_names`) or a person's own. Its JSON
dump holds everything, tables included: ``Scenario.model_validate(dump)`` restores it anywhere.
docs/scenarios.md explains every key.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field, ValidationInfo, field_validator, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import CONFIGS, ShortDumpModel, load_toml, validate
from dcqcn_gym.core.errors import ConfigError, UnknownNameError, quote
from dcqcn_gym.core.groups import check_group_names
from dcqcn_gym.core.guardrails import Guardrails
from dcqcn_gym.core.knob_names import by_knob_name, knob_name
from dcqcn_gym.core.knobs import DCQCN, KnobTable, Setting, default_setting
from dcqcn_gym.core.optional_knobs import OPTIONAL_KNOBS, with_optional
from dcqcn_gym.core.presets import PRESETS
from dcqcn_gym.core.space import KnobSpace
from dcqcn_gym.core.sums import total
from dcqcn_gym.core.utility import UtilityWeights
from dcqcn_gym.envs.scenario.calibration import Calibration
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.knob_selection import (
    KnobChoice,
    check_ranges,
    checked_choices,
    turned,
)
from dcqcn_gym.envs.scenario.limits import check_flow, check_sketches
from dcqcn_gym.envs.scenario.monitor import ExactMonitor, MonitorField
from dcqcn_gym.envs.scenario.names import Name
from dcqcn_gym.envs.scenario.network import (
    BUFFER_AT_100G,
    Cnp,
    Switch,
    TrafficClass,
    Transport,
    Wire,
)
from dcqcn_gym.envs.scenario.next_hops import check_next_hops
from dcqcn_gym.envs.scenario.nic import with_nic
from dcqcn_gym.envs.scenario.rates import us_to_ps
from dcqcn_gym.envs.scenario.scheme import Dcqcn, Scheme, SchemeModel
from dcqcn_gym.envs.scenario.servers import Servers
from dcqcn_gym.envs.scenario.topology import Topology, fabric
from dcqcn_gym.envs.scenario.workloads import Workload

W = TypeVar("W")

# PARALEON (ICNP'24) and HPCC fix alpha in advance, from topology and rates; DCQCN (SIGCOMM'15,
# section 4) says what it must be so that marking comes before PFC: with every one of a switch's n
# ports holding q bytes, no ingress may have reached its threshold, `n q < alpha (P - n q)`, where P
# is the buffer less headroom and reserve. (The paper has this for eight priorities and q = Kmin.)
_POWERS = (-7, 3)
"""Devices hold powers of two; SONiC's ``dynamic_th`` goes from 2^-7 to 2^3."""


def computed_alpha(network: Network) -> float:
    """Return the smallest power of two in 1/128..8 that holds for every switch; 8 if none does.

    q is ours: what a host link brings in one round trip across the fabric, its rate times the sum
    of delays of the longest path there and back, so that alpha does not depend on any knob.
    """
    net = network.fabric
    ports: dict[int, int] = {}
    taken: dict[int, int] = {}
    for link in net.links:
        headroom = network.headroom_bytes(link.ps_per_byte, link.delay_ps)
        for end in (link.a, link.b):
            ports[end] = ports.get(end, 0) + 1
            taken[end] = taken.get(end, 0) + headroom + network.switch.reserve_bytes
    hops = 2 * (1 + max(net.tier(node) for node in range(net.n_hosts, net.n_nodes)))
    trip_s = 2 * hops * max(link.delay_ps for link in net.links) * 1e-12
    queued = network.line_rate_bps / 8 * trip_s
    classes = max(1, len(network.switch.lossless))
    needs = [
        _needed(network.buffer_bytes - classes * taken[node], ports[node] * queued)
        for node in range(net.n_hosts, net.n_nodes)
    ]
    low, high = _POWERS
    power = max(math.ceil(math.log2(need)) if need < math.inf else high for need in needs)
    return float(2.0 ** min(max(power, low), high))


def _needed(pool: float, queued: float) -> float:
    """Return the alpha at which so many queued bytes just reach a threshold."""
    return queued / (pool - queued) if pool > queued else math.inf


class Network(ShortDumpModel):
    """A network and its traffic, without the task; a backend builds it."""

    later: ClassVar[Collection[str]] = ("nic", "servers", "classes")

    nic: str | None = Field(default=None, description="a profile that fills in what is not given")
    scheme: Scheme = Dcqcn()
    qp: Literal["flow", "pair"] = "flow"
    topology: Topology
    servers: Servers | None = None
    wire: Wire = Wire()
    switch: Switch = Switch()
    classes: tuple[TrafficClass, ...] = ()
    transport: Transport = Transport()
    cnp: Cnp = Cnp()
    monitor: MonitorField = ExactMonitor()
    workloads: tuple[Workload, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: Any) -> Any:
        return with_nic(given, cls.model_fields) if isinstance(given, Mapping) else given

    @field_validator("topology")
    @classmethod
    def _share_hosts(cls, value: Any, info: ValidationInfo) -> Any:
        # Tables are read after this and name the line of a row that the network does not fit.
        if info.context is not None:
            info.context["n_hosts"] = fabric(value).n_hosts
            info.context["fabric"] = fabric(value)
        return value

    @model_validator(mode="after")
    def _check_network(self) -> Self:
        net = self.fabric
        check_sketches(self.monitor, len(net.racks))
        self.scheme.groups_in(net)
        for i, workload in enumerate(self.workloads):
            try:
                workload.check(net, self.servers)
                check_flow(*workload.largest_flow(net), self.wire.payload_bytes)
            except ConfigError as error:
                raise ConfigError(f"workloads[{i}]: {error}") from None
        table = self.switch.ecmp_table
        check_next_hops(((f"switch.ecmp_table[{i}]", x) for i, x in enumerate(table)), net)
        self._check_classes()
        self._check_ack_class()
        self.transport.check(self.wire.payload_bytes)
        self._check_buffer(net)
        return self

    def _check_classes(self) -> None:
        seen: set[int] = set()
        for i, one in enumerate(self.classes):
            try:
                one.check(self.switch)
                if one.priority in seen:
                    raise ConfigError(f"a second one of priority {one.priority}; expected one")
            except ConfigError as error:
                raise ConfigError(f"classes[{i}]: {error}") from None
            seen.add(one.priority)

    def _check_ack_class(self) -> None:
        if self.switch.ack_class == "control":
            return
        tcp = {one.priority for one in self.classes if one.transport == "tcp"}
        for i, workload in enumerate(self.workloads):
            if workload.priority in tcp:
                continue
            if not self.switch.pfc or workload.priority not in self.switch.lossless:
                raise ConfigError(
                    f"switch.ack_class = {self.switch.ack_class!r} with workloads[{i}], whose "
                    "packets can be lost; expected 'pfc = true' and its priority in 'lossless', "
                    "because a completed message is not acknowledged again"
                )

    def _check_buffer(self, net: Fabric) -> None:
        if not self.switch.pfc:
            return
        buffer = self.buffer_bytes
        for node, (ports, need) in self._set_aside(net).items():
            if need >= buffer:
                raise ConfigError(
                    f"switch.buffer_bytes = {buffer} is too small: headroom and "
                    f"reserve of the {ports} ports of switch {node} take {need} "
                    "bytes; expected a larger buffer, shorter links or a smaller headroom_factor"
                )

    def _set_aside(self, net: Fabric) -> dict[int, tuple[int, int]]:
        """Return the ports of every switch, and the bytes of their headroom and reserve."""
        found = dict.fromkeys(range(net.n_hosts, net.n_nodes), (0, 0))
        headroom: dict[tuple[int, int], int] = {}  # many links, few kinds of them
        for link in net.links:
            kind = link.ps_per_byte, link.delay_ps
            if kind not in headroom:
                headroom[kind] = self.headroom_bytes(*kind)
            own = len(self.switch.lossless) * (headroom[kind] + self.switch.reserve_bytes)
            for end in (link.a, link.b):
                if end in found:
                    ports, need = found[end]
                    found[end] = ports + 1, need + own
        return found

    def headroom_bytes(self, ps_per_byte: int, delay_ps: int) -> int:
        """Return the headroom of a switch port on a link (docs/reference/model.md)."""
        if not self.switch.pfc:
            return 0
        sizes = self.wire.sizes()
        frame = self.wire.payload_bytes + sizes["data"]
        ahead = max(frame, sizes["ack"], sizes["cnp"]) + len(self.switch.lossless) * sizes["pfc"]
        enough = 2 * frame + ahead - (-2 * delay_ps // ps_per_byte)
        return max(math.ceil(self.switch.headroom_factor * delay_ps / ps_per_byte), enough)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of this network is known to be far from real ones, a sentence each."""
        tcp = {one.priority for one in self.classes if one.transport == "tcp"}
        lossless = set(self.switch.lossless) if self.switch.pfc else set()
        lossy = {w.priority for w in self.workloads} - tcp - lossless
        if not lossy or self.transport.loss == "cut":
            return ()
        return (
            f"packets of priority {min(lossy)} can be lost and their senders do not slow down, as "
            "those of real NICs do (docs/measured/distances.md); transport.loss = 'cut' makes them",
        )

    def only(self, kind: type[W]) -> tuple[W, ...]:
        """Return the workloads if all of them are of this kind, else none."""
        found = tuple(w for w in self.workloads if isinstance(w, kind))
        return found if len(found) == len(self.workloads) else ()

    @property
    def fabric(self) -> Fabric:
        """The expanded topology."""
        return fabric(self.topology)

    @property
    def rp(self) -> Literal["nic", "paper"]:
        """The reaction point of DCQCN, ``"nic"`` where it does not run."""
        return self.scheme.rp if isinstance(self.scheme, Dcqcn) else "nic"

    @property
    def table(self) -> KnobTable:
        """The knobs of a setting of this network."""
        return self.scheme.table

    def nic_knobs(self) -> tuple[tuple[str, ...], ...]:
        """Return the knobs of each host's NIC where schemes differ, else nothing."""
        rest, *groups = self.scheme.groups_in(self.fabric)
        if not groups:
            return ()
        knobs = [rest[0].table.nic] * self.n_hosts
        for scheme, hosts in groups:
            for host in hosts:
                knobs[host] = scheme.table.nic
        return tuple(knobs)

    @property
    def n_hosts(self) -> int:
        """Number of hosts."""
        return self.fabric.n_hosts

    @property
    def line_rate_bps(self) -> float:
        """Rate of the host links in bit/s (the fastest one if they differ)."""
        return max(link.rate_bps for link in self.fabric.host_link)

    @property
    def alpha(self) -> float:
        """Share of the free shared buffer at which an ingress port pauses its peer."""
        alpha = self.switch.alpha
        return computed_alpha(self) if isinstance(alpha, str) else alpha

    @property
    def set_aside_bytes(self) -> int:
        """Headroom and reserve of the switch whose ports need most; 0 without PFC."""
        if not self.switch.pfc:
            return 0
        return max(need for _, need in self._set_aside(self.fabric).values())

    @property
    def shared_bytes(self) -> int:
        """What the ports of the switch whose ports need most share, in bytes."""
        return self.buffer_bytes - self.set_aside_bytes

    @property
    def buffer_bytes(self) -> int:
        """Shared buffer of every switch in bytes."""
        if self.switch.buffer_bytes is not None:
            return self.switch.buffer_bytes
        usual = round(BUFFER_AT_100G * self.fabric.fastest_bps / 100e9)
        aside = self.set_aside_bytes
        return usual if aside < usual else usual + aside


# A flow takes memory from its start until it ends. Of an open loop that is at least what starts in
# one monitor interval, and what its hosts cannot send until the run is over; of a round all of it.
MAX_FLOWS = 10_000_000
_FLOW_BYTES = 400
"""Of one flow in the engine and in the reports."""


def _table(data: Mapping[str, Any]) -> KnobTable:
    """Return the knob table of the scheme beside a task, as far as it is read; else DCQCN's.

    Optional knobs that ``knobs`` names belong to it.
    """
    scheme = data.get("scheme")
    table = scheme.table if isinstance(scheme, SchemeModel) else DCQCN
    knobs = data.get("knobs")
    return with_optional(table, filter(_is_text, knobs if isinstance(knobs, _GROUPS) else ()))


_GROUPS = (dict, list, tuple)


def _is_text(name: object) -> bool:
    return isinstance(name, str)


def _tuned(data: Mapping[str, Any]) -> tuple[str, ...]:
    return _table(data).tuned


class Scenario(Network):
    """A :class:`Network` and the task of a tuner on it, in one file.

    ``knobs`` are those an action sets (the others stay as they start), as a list or as changes of
    the usual ones: :attr:`turned` and :attr:`ranges`. ``groups`` are the groups of devices that a
    tuner which sets groups apart turns beside ``"cluster"``
    (:data:`dcqcn_gym.core.groups.DeviceSetting`). Keys ending in ``_us`` are microseconds.
    """

    later: ClassVar[Collection[str]] = ("rtt_base", "guardrails", *Network.later, "calibration")

    monitor_interval_us: float = Field(default=1000.0, ge=1, le=1e9)
    intervals: int = Field(default=280, ge=1, description="budget in monitor intervals")
    warmup_us: float = Field(default=5000.0, ge=0, le=1e9)
    cadence: int = Field(default=1, ge=1, description="intervals per decision of a tuner")
    trigger: Literal["always", "kl"] = "always"
    active_share: float = Field(default=0.05, ge=0, le=1)
    pfc_over: Literal["all", "paused"] = "all"
    rtt_base: Literal["two-way", "one-way"] = "two-way"
    knobs: tuple[str, ...] | dict[str, KnobChoice] = Field(default_factory=_tuned)
    groups: tuple[str, ...] = ()
    initial: Annotated[str, Field(json_schema_extra={"enum": [*PRESETS]})] | dict[str, float] = (
        "default"
    )
    weights: UtilityWeights = UtilityWeights(tp=0.2, rtt=0.5, pfc=0.3)
    guardrails: Guardrails = Guardrails()
    name: Name = "scenario"
    description: str = ""
    calibration: Calibration | None = None

    @field_validator("knobs", mode="before")
    @classmethod
    def _check_knobs(cls, value: Any, info: ValidationInfo) -> Any:
        table = _table({**info.data, "knobs": value})
        if isinstance(value, dict):
            return checked_choices(value, table)
        if not isinstance(value, list | tuple) or not all(isinstance(n, str) for n in value):
            raise ConfigError(f"{quote(value)}; expected a list of knobs, or a table [knobs]")
        names = tuple(table[knob_name(name, table.knobs)].name for name in value)
        if not names or len(set(names)) != len(names):
            raise ConfigError(f"{quote(list(value))}; expected at least one knob, none repeated")
        return names

    @field_validator("groups")
    @classmethod
    def _check_groups(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value) or "cluster" in value:
            raise ConfigError(
                f"{quote(list(value))}; expected groups beside 'cluster', none repeated"
            )
        return value

    @field_validator("initial", mode="before")
    @classmethod
    def _check_initial(cls, value: Any, info: ValidationInfo) -> Any:
        table = _table(info.data)
        if isinstance(value, str) and value not in PRESETS:
            raise UnknownNameError("preset", value, PRESETS)
        if not isinstance(value, str | dict):
            raise ConfigError(f"{quote(value)}; expected a preset or a table of knobs")
        if isinstance(value, dict):
            value = by_knob_name(value, table.knobs)
        for name, number in value.items() if isinstance(value, dict) else ():
            row = table[name]
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ConfigError(f"{name} = {quote(number)}; expected a number ({row.unit})")
            if isinstance(number, int) and number.bit_length() > 63:
                raise ConfigError(f"{name} is {quote(number)}; expected a number ({row.unit})")
            if row.integer and math.isfinite(number) and number != int(number):
                raise ConfigError(f"{name} = {number:g}; expected a whole number ({row.unit})")
        return value

    @model_validator(mode="after")
    def _check_task_on_network(self) -> Self:
        self._check_flows_at_once()
        self.initial_setting()
        check_ranges(self.ranges, self.line_rate_bps, self.table)
        KnobSpace(self.turned, self.line_rate_bps, self.table, self.ranges)
        try:
            check_group_names(self.groups, self.fabric.devices)
        except ConfigError as error:
            raise ConfigError(f"groups: {error}") from None
        return self

    def _check_flows_at_once(self) -> None:
        """Raise ConfigError for traffic of too many flows at once, with the key that makes most."""
        run_us = self.warmup_us + self.intervals * self.monitor_interval_us
        each = self.monitor_interval_us
        found = [w.flows_at_once(self.fabric, each, run_us) for w in self.workloads]
        flows = total(found)
        if flows <= MAX_FLOWS:
            return
        most = max(range(len(found)), key=found.__getitem__)
        raise ConfigError(
            f"workloads[{most}]: {self.workloads[most].amount}: {flows:.3g} flows are there at "
            f"once and need about {flows * _FLOW_BYTES / 1e9:.3g} GB of memory; expected at most "
            f"{MAX_FLOWS}"
        )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy. One of another ``scheme`` is checked: its knobs are that scheme's.

        Raises ConfigError if what was given for the old scheme does not fit the new one.
        """
        if not update or "scheme" not in update:
            return super().model_copy(update=update, deep=deep)
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return validate({**given, **update}, type(self), source=f"scenario {self.name!r}")

    @property
    def turned(self) -> tuple[str, ...]:
        """The knobs that an action sets, in the order of the action."""
        return turned(self.knobs, self.table) if isinstance(self.knobs, dict) else self.knobs

    @property
    def table(self) -> KnobTable:
        """The knobs of a setting: those of the scheme, and the optional ones that ``knobs`` names.

        An optional knob starts as the key of ``switch`` of its kind says.
        """
        return with_optional(super().table, self.knobs)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The ranges (NVIDIA's units) that replace the tuned ones of the knob table."""
        choices = self.knobs if isinstance(self.knobs, dict) else {}
        return {name: choice for name, choice in choices.items() if isinstance(choice, tuple)}

    @property
    def monitor_interval_ps(self) -> int:
        """Length of a monitor interval in picoseconds."""
        return us_to_ps(self.monitor_interval_us)

    @property
    def warmup_ps(self) -> int:
        """Simulated time before the first step, in picoseconds."""
        return us_to_ps(self.warmup_us)

    @property
    def calibrated(self) -> str:
        """How far it is from the network that it was calibrated by; empty if it was not."""
        return "" if self.calibration is None else self.calibration.note

    def default_setting(self) -> Setting:
        """Return the default of the scheme's knobs at this line rate: the common baseline."""
        return self._with_switch(default_setting(self.line_rate_bps, self.table))

    def initial_setting(self) -> Setting:
        """Return the setting in force at time 0: a preset, or the default with some knobs changed.

        Knobs in the file are in NVIDIA's units; a value out of range raises ConfigError.
        """
        rate, table, given = self.line_rate_bps, self.table, self.initial
        if isinstance(given, str):
            return self._with_switch(PRESETS[given](rate, table))
        setting = default_setting(rate, table).replace(dict(given)).check(rate, "initial")
        return setting if OPTIONAL_KNOBS.keys() & given.keys() else self._with_switch(setting)

    def _with_switch(self, setting: Setting) -> Setting:
        """Return ``setting`` with the alpha of ``switch``, if it has one at all."""
        own = {"pfc_alpha": self.alpha} if "pfc_alpha" in setting.table.knobs else {}
        return setting.replace(own)


SCHEMAS = {"scenario": Scenario}
"""Models whose JSON Schemas are exported to configs/schema by :func:`export_schemas`."""

_FOLDER = CONFIGS / "scenarios"


def scenario_names() -> list[str]:
    """Return the names of the scenarios that come with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Return a scenario by name, or from the path of a TOML file.

    Paths in the file are relative to it; its name is the file's unless it gives one. Raises
    :class:`ConfigError` (one sentence with file, key, value, expectation) or
    :class:`UnknownNameError` with near matches.
    """
    text = str(name_or_path)
    if text in scenario_names():
        path = _FOLDER / f"{text}.toml"
    elif text.endswith(".toml") or "/" in text or Path(text).is_file():
        path = Path(name_or_path)
    else:
        raise UnknownNameError("scenario", text, scenario_names())
    return load_toml(path, Scenario, {"name": path.stem})


def scenario_digest(scenario: Scenario | Mapping[str, Any]) -> str:
    """Return the sha256 of a scenario's JSON with sorted keys and no spaces."""
    data = scenario.model_dump(mode="json") if isinstance(scenario, Scenario) else scenario
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
