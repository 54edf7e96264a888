"""What is simulated: topology, frames, switches, hosts, the scheme, the monitor and the traffic."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field, ValidationInfo, field_validator, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import ShortDumpModel, StrictModel
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.knobs import KnobTable
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.job import JobLoad
from dcqcn_gym.envs.scenario.limits import check_flow, check_sketches
from dcqcn_gym.envs.scenario.monitor import ExactMonitor, MonitorField
from dcqcn_gym.envs.scenario.next_hops import NextHopsField, check_next_hops
from dcqcn_gym.envs.scenario.nic import with_nic
from dcqcn_gym.envs.scenario.rates import us_to_ps
from dcqcn_gym.envs.scenario.scheme import Dcqcn, Scheme
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


BUFFER_AT_100G = 12 * 2**20
_Bytes = Annotated[int, Field(ge=0, le=2**40)]


class Wire(StrictModel):
    """Frame sizes. A profile sets them all; single sizes can be overridden.

    ``default``: RoCEv2 frames with all headers and FCS. ``hpcc``: the sizes of the public HPCC
    simulator, where the CNP rides in the ACK. ``gap_bytes`` is added to every frame (20 for
    preamble and inter-frame gap).
    """

    profile: Literal["default", "hpcc"] = "default"
    payload_bytes: int = Field(default=1000, ge=64, le=4096)
    gap_bytes: int = Field(default=0, ge=0, le=64)
    data_overhead_bytes: int | None = Field(default=None, ge=0, le=4096)
    ack_bytes: int | None = Field(default=None, ge=1, le=512)
    cnp_bytes: int | None = Field(default=None, ge=1, le=512)
    pfc_bytes: int | None = Field(default=None, ge=1, le=512)

    def sizes(self) -> dict[str, int]:
        """Return data (overhead), ack, cnp, pfc in bytes and cnp_in_ack (0 or 1)."""
        hpcc = self.profile == "hpcc"
        base = (48, 60, 60, 43) if hpcc else (62, 66, 78, 64)
        given = (self.data_overhead_bytes, self.ack_bytes, self.cnp_bytes, self.pfc_bytes)
        names = ("data", "ack", "cnp", "pfc")
        chosen = {
            name: (own if own is not None else size) + self.gap_bytes
            for name, own, size in zip(names, given, base, strict=True)
        }
        return {**chosen, "cnp_in_ack": int(hpcc)}


class Switch(StrictModel):
    """Shared buffer and PFC of every switch.

    ``buffer_bytes`` is 12 MiB x (fastest rate / 100 Gb/s) if it is not given; headroom and reserve
    come on top of that where they do not fit into it, as at a switch of 256 ports. The headroom of
    a port is ``headroom_factor`` x rate x one-way delay, or what a pause needs in order to act
    before a packet is lost if that is more, once per lossless priority. With
    ``pfc = false`` nothing is paused and packets are dropped at the dynamic threshold. ``alpha`` is
    the share of the free buffer at which that is; ``"computed"``: :func:`computed_alpha`.
    ``ecmp_salt`` draws other paths for all flows; ``ecmp_table`` chooses those of single flows.
    ``ack_class = "data"`` puts ACKs and CNPs into the class of their data at switches,
    ``"data-cnp-first"`` ACKs alone.
    """

    pfc: bool = True
    buffer_bytes: int | None = Field(default=None, ge=1000, le=2**40)
    lossless: tuple[Annotated[int, Field(ge=1, le=7)], ...] = (3,)
    alpha: Annotated[float, Field(gt=0, le=64)] | Literal["computed"] = 0.125
    reserve_bytes: int = Field(default=4096, ge=0)
    resume_offset_bytes: int = Field(default=3072, ge=0)
    headroom_factor: float = Field(default=3.0, ge=0, le=100)
    ecmp_salt: int = Field(default=0, ge=0, lt=2**32, description="another draw of all paths")
    ecmp_table: NextHopsField = ()
    ack_class: Literal["control", "data", "data-cnp-first"] = "control"

    @field_validator("lossless")
    @classmethod
    def _check_lossless(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) != len(value):
            raise ConfigError(f"{quote(list(value))} names a priority twice; expected each once")
        return value


class TrafficClass(StrictModel):
    """What switches do with the packets of one ``priority``, and who sends them.

    docs/reference/model.md has the rules.

    ``weight``: its part of a port under deficit weighted round robin. ``transport = "tcp"``: flows
    of a lossy class with NewReno's window, ACKs in their class, no marks. ``alpha``: its share of
    the free buffer; ``ecn``: its marking curve (kmin and kmax in bytes, pmax), instead of the
    ports'. ``dscp``: in captures; 26, or 0 with TCP.
    """

    priority: int = Field(ge=0, le=7)
    weight: int = Field(default=1, ge=1, le=100)
    transport: Literal["roce", "tcp"] = "roce"
    alpha: float | None = Field(default=None, gt=0, le=64)
    ecn: tuple[_Bytes, _Bytes, Annotated[float, Field(ge=0, le=1)]] | None = None
    dscp: int | None = Field(default=None, ge=0, le=63)

    def words(self) -> dict[str, object]:
        """Return the keys of its line in the compiled scenario."""
        dscp = self.dscp if self.dscp is not None else {"roce": 26, "tcp": 0}[self.transport]
        words: dict[str, object] = {"weight": self.weight, "transport": self.transport}
        words |= {"dscp": dscp, **({"alpha": repr(self.alpha)} if self.alpha else {})}
        return words | ({"ecn": ":".join(map(repr, self.ecn))} if self.ecn else {})

    def check(self, switch: Switch) -> None:
        """Raise :class:`ConfigError` for TCP without loss or with marks, and a curve that falls."""
        tcp = self.transport == "tcp"
        if tcp and switch.pfc and self.priority in switch.lossless:
            raise ConfigError("transport = 'tcp' in a lossless class; expected a lossy one")
        if self.ecn and (tcp or self.ecn[1] < self.ecn[0]):
            raise ConfigError(f"ecn = {list(self.ecn)}; expected kmin <= kmax, and none with TCP")


class Transport(ShortDumpModel):
    """Acknowledgement, window and recovery of the hosts. ``window_bytes = 0`` is no window.

    With ``rtt_probe_us`` round trips are those of probes: of the first data packet that a queue
    pair starts so long after its last probe; 0: of every acknowledged packet. ``message_us`` is
    what a NIC takes from the posting of a message at an idle queue pair to its first packet. With
    ``loss = "cut"`` a sender slows down at a NACK and at a timeout as at a CNP; where CNPs carry
    fields (DCQCN+, Dolce-RC) it does not. TCP has its own rules.
    """

    later: ClassVar[Collection[str]] = ("rtt_probe_us", "message_us", "loss")

    ack_every: int = Field(default=1, ge=1, le=1024)
    window_bytes: int = Field(default=0, ge=0, le=2**40)
    window_scaling: bool = False
    rto_us: float = Field(default=4000.0, gt=0, le=1e9)
    dispatch_delay_us: float = Field(default=0.0, ge=0, le=1e6)
    rtt_probe_us: float = Field(default=0.0, ge=0, le=1e9)
    message_us: float = Field(default=0.0, ge=0, le=1e6)
    loss: Literal["ignored", "cut"] = "ignored"

    def check(self, payload_bytes: int) -> None:
        """Raise :class:`ConfigError` if a window could wait for an ACK that never comes."""
        if self.window_bytes == 0 or self.ack_every == 1:
            return
        if self.window_scaling:
            raise ConfigError(
                f"transport: window_scaling with ack_every = {self.ack_every}; expected "
                "ack_every = 1, because a shrunken window could wait for an ACK that never comes"
            )
        need = self.ack_every * payload_bytes
        if self.window_bytes < need:
            raise ConfigError(
                f"transport.window_bytes = {self.window_bytes} is smaller than the "
                f"{self.ack_every} packets of one ACK; expected at least {need}, or 0 for no window"
            )


CNP_DELAYS_US: Mapping[str, float] = {"connectx": 55.0}
"""Delays with a name. 55 us is what a user suspects after tests of ConnectX NICs behind a Trident 3
switch (github.com/aliyun/ns-3-alibabacloud, issue 12, 2025); nobody confirmed it."""


class Cnp(StrictModel):
    """How NICs send CNPs: gap per queue pair or per port, a NIC-wide gap, an extra delay.

    ``delay_us`` may be a name of :data:`CNP_DELAYS_US`.
    """

    scope: Literal["qp", "port"] = "qp"
    port_gap_us: float = Field(default=0.0, ge=0, le=1e6)
    delay_us: Annotated[float, Field(ge=0, le=1e6)] | Literal["connectx"] = 0.0

    @property
    def delay_ps(self) -> int:
        """From a marked packet to its CNP."""
        us = self.delay_us
        return us_to_ps(CNP_DELAYS_US[us] if isinstance(us, str) else us)


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
                workload.check(net)
                if isinstance(workload, JobLoad):
                    workload.check_servers(net, self.servers)
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
    def buffer_bytes(self) -> int:
        """Shared buffer of every switch in bytes."""
        if self.switch.buffer_bytes is not None:
            return self.switch.buffer_bytes
        usual = round(BUFFER_AT_100G * self.fabric.fastest_bps / 100e9)
        aside = self.set_aside_bytes
        return usual if aside < usual else usual + aside
