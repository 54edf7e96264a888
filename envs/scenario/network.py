"""The tables of a network: frames, switches, traffic classes, transport and CNPs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from dcqcn_gym.core.config import ShortDumpModel, StrictModel
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.envs.scenario.next_hops import NextHopsField
from dcqcn_gym.envs.scenario.rates import us_to_ps

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
