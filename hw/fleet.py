"""A fleet's file: which agents there are, in the order of the scenario, and how to talk to them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import StrictModel, load_toml
from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.hw.maintenance_windows import window_of
from dcqcn_gym.hw.tls import Address, Dscp, Tls


class Member(StrictModel):
    """One agent."""

    name: str = Field(description="the device's name, as in the agent's file and certificate")
    address: Address


class SwitchMember(Member):
    """The agent of a switch."""

    tier: Literal["tor", "spine", "core"] | None = Field(
        default=None, description="where it stands; settings per tier need it"
    )


class Probe(StrictModel):
    """Two hosts whose agents may run ``ib_write_lat``: a transfer between them has to complete."""

    client: str = Field(description="the NIC whose host asks")
    server: str = Field(description="the NIC whose host waits")
    address: str = Field(
        default="", description="of the one that waits, unless it is that of its agent"
    )
    options: dict[str, str] = Field(default={}, description='of perftest, as device = "mlx5_0"')
    slower: float = Field(default=2.0, gt=1, description="times longer than before at most")


class Gate(StrictModel):
    """How long a wave is watched, and how much worse than before it no device may become."""

    seconds: float = Field(
        default=10.0, gt=0, le=600, description="before the first wave, and each"
    )
    paused: float = Field(
        default=0.05, ge=0, le=1, description="more of the time, of a NIC or port"
    )
    drops: int = Field(default=0, ge=0, description="more packets that a switch dropped")
    errors: int = Field(default=10, ge=0, description="more errors that a NIC counted")
    probe: Probe | None = Field(default=None, description="a transfer that has to complete")


class Fleet(StrictModel):
    """All agents of a network. Paths are relative to the folder of the file."""

    tls: Tls
    nics: tuple[Member, ...] = Field(
        min_length=1, description="one per host, in the order of the scenario's hosts"
    )
    switches: tuple[SwitchMember, ...] = Field(
        default=(), description="one per switch, in the order of the scenario's"
    )
    trial_s: float = Field(
        default=5.0, gt=0, le=3600, description="seconds after which an unconfirmed change goes"
    )
    most_skew_s: float | None = Field(
        default=None, gt=0, description="a change whose devices follow over longer is taken back"
    )
    timeout_s: float = Field(
        default=2.0, gt=0, le=600, description="seconds within which an agent answers"
    )
    attempts: int = Field(default=3, ge=1, le=10, description="how often a call is tried in all")
    late_share: float = Field(
        default=0.1, gt=0, le=1, description="share of an interval after whose end a report is late"
    )
    missing_intervals: int = Field(
        default=2, ge=0, le=100, description="intervals more that a missing report is waited for"
    )
    operator: str = Field(default="dcqcn-gym", max_length=100, description="who the journals name")
    audit: Path = Field(default=Path("audit.jsonl"), description="the controller's own record")
    syslog: str = Field(
        default="", pattern=r"^(/.*|[^:/]+:\d{1,5})?$",
        description="a socket, as /dev/log, or HOST:PORT that gets each audit line's digest",
    )  # fmt: skip
    dscp: Dscp = 0
    lossless_dscp: tuple[Dscp, ...] = Field(
        default=(), description="code points that switches put into a lossless queue"
    )
    gate: Gate = Field(default=Gate(), description="what ends a change that goes in waves")
    change_utc: tuple[str, ...] = Field(
        default=(), description="windows of maintenance: changes in these alone; none: at any time"
    )
    freeze_utc: tuple[str, ...] = Field(
        default=(), description="windows without changes, as 'Mon-Fri 08:00-18:00'"
    )
    fsd_file: Path | None = Field(
        default=None, description="where a collector keeps the flow-size distribution"
    )
    fsd_from_pairs: bool = Field(
        default=False, description="work it out from the bytes of NICs' queue pairs instead"
    )
    fabric: Address | None = Field(
        default=None, description="the digital fabric whose time the controller moves"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        members = (*self.nics, *self.switches)
        for what, values in (
            ("name", [m.name for m in members]),
            ("address", [m.address for m in members]),
        ):
            twice = sorted(value for value, n in Counter(values).items() if n > 1)
            if twice:
                raise ConfigError(
                    f"{what} {twice[0]!r} stands for two devices; expected every one once"
                )
        if self.fsd_from_pairs and self.fsd_file is not None:
            raise ConfigError(
                "fsd_file and fsd_from_pairs: flow sizes come from one of them; give one"
            )
        probe, nics = self.gate.probe, [m.name for m in self.nics]
        for name in (probe.client, probe.server) if probe else ():
            if name not in nics:
                raise UnknownNameError("NIC of [gate.probe]", name, nics)
        for text in (*self.freeze_utc, *self.change_utc):
            window_of(text)
        if self.dscp in self.lossless_dscp:
            raise ConfigError(
                f"dscp = {self.dscp} is one of lossless_dscp: the controller's own packets would "
                "share the queue that it tunes; choose another code point"
            )
        return self


def load_fleet(path: str | Path) -> Fleet:
    """Read a fleet's file; raise ConfigError in one sentence."""
    return load_toml(path, Fleet)
