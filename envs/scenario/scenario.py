"""Scenarios: one frozen, validated model of a network, its traffic and the tuning task.

A scenario is a TOML file, one of the package (:func:`scenario_names`) or a person's own. Its JSON
dump holds everything, tables included: ``Scenario.model_validate(dump)`` restores it anywhere.
docs/scenarios.md explains every key.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from typing_extensions import Self

from dcqcn_gym.core.config import CONFIGS, StrictModel, load_toml
from dcqcn_gym.core.errors import ConfigError, UnknownNameError, quote
from dcqcn_gym.core.knob_names import by_knob_name
from dcqcn_gym.core.knobs import (
    Setting,
    dcqcn_paper_setting,
    default_setting,
    expert_setting,
    knob,
)
from dcqcn_gym.envs.scenario.limits import check_sketches
from dcqcn_gym.envs.scenario.names import Name
from dcqcn_gym.envs.scenario.tables import CdfField
from dcqcn_gym.envs.scenario.topology import Network, Topology, network, us_to_ps
from dcqcn_gym.envs.scenario.workloads import Poisson, Workload, mean_gap_ps

__all__ = [
    "SCHEMAS",
    "Cnp",
    "Monitor",
    "Scenario",
    "Switch",
    "Transport",
    "UtilityWeights",
    "Wire",
    "load_scenario",
    "scenario_names",
]

BUFFER_AT_100G = 12 * 2**20
SKETCH_BUCKET_BYTES = 64


class UtilityWeights(StrictModel):
    """Weights of throughput, round trip and pause in the utility (PARALEON eq. 1); sum 1."""

    tp: float = Field(ge=0, le=1)
    rtt: float = Field(ge=0, le=1)
    pfc: float = Field(ge=0, le=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        total = self.tp + self.rtt + self.pfc
        if abs(total - 1.0) > 1e-9:
            raise ConfigError(f"tp + rtt + pfc = {total:g}; expected weights that add up to 1")
        return self


class Wire(StrictModel):
    """Frame sizes. A profile sets them all; single sizes can be overridden.

    ``default``: RoCEv2 frames with all headers and FCS. ``hpcc``: the sizes of the public HPCC
    simulator, where the CNP rides in the ACK. ``gap_bytes`` is added to every frame (20 for
    preamble and inter-frame gap).
    """

    profile: Literal["default", "hpcc"] = "default"
    payload_bytes: int = Field(default=1000, ge=64, le=4096)
    gap_bytes: int = Field(default=0, ge=0, le=64)
    data_overhead_bytes: int | None = Field(default=None, ge=0, le=512)
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

    ``buffer_bytes`` is 12 MiB x (fastest rate / 100 Gb/s) if it is not given. The headroom of a
    port is ``headroom_factor`` x rate x one-way delay, once per lossless priority. With
    ``pfc = false`` nothing is paused and packets are dropped at the dynamic threshold.
    """

    pfc: bool = True
    buffer_bytes: int | None = Field(default=None, ge=1000, le=2**40)
    lossless: tuple[Annotated[int, Field(ge=1, le=7)], ...] = (3,)
    alpha: float = Field(default=0.125, gt=0, le=64)
    reserve_bytes: int = Field(default=4096, ge=0)
    resume_offset_bytes: int = Field(default=3072, ge=0)
    headroom_factor: float = Field(default=3.0, ge=0, le=100)

    @field_validator("lossless")
    @classmethod
    def _check_lossless(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) != len(value):
            raise ConfigError(f"{quote(list(value))} names a priority twice; expected each once")
        return value


class Transport(StrictModel):
    """Acknowledgement, window and recovery of the hosts. ``window_bytes = 0`` is no window."""

    ack_every: int = Field(default=1, ge=1, le=1024)
    window_bytes: int = Field(default=0, ge=0, le=2**40)
    window_scaling: bool = False
    rto_us: float = Field(default=4000.0, gt=0, le=1e9)
    dispatch_delay_us: float = Field(default=0.0, ge=0, le=1e6)

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


class Cnp(StrictModel):
    """How NICs send CNPs: gap per queue pair or per port, a NIC-wide gap, an extra delay."""

    scope: Literal["qp", "port"] = "qp"
    port_gap_us: float = Field(default=0.0, ge=0, le=1e6)
    delay_us: float = Field(default=0.0, ge=0, le=1e6)


class Monitor(StrictModel):
    """How flow sizes are measured at the ToRs (PARALEON section III-B).

    ``tau_bytes``: an elephant has sent this much; ``delta``: intervals of activity that make a
    potential elephant; ``theta``: KL divergence that triggers tuning; ``pe_weight``: how a
    potential elephant counts, by bytes/tau, by age, or by the chance that a flow of the
    distribution ``sizes_cdf`` that got so far reaches tau. ``heavy_bytes``, ``light_bytes`` and
    ``unit`` (what a counter counts) concern the sketches, ``sample_one_in`` and ``export_us``
    NetFlow, ``local_us`` and ``upload_us`` CHAMELEON.
    """

    kind: Literal["exact", "elastic", "elastic-naive", "netflow", "none", "chameleon"] = "exact"
    tau_bytes: int = Field(default=1_000_000, ge=1, le=2**50)
    delta: int = Field(default=3, ge=1, le=1000)
    theta: float = Field(default=0.01, ge=0)
    pe_weight: Literal["ratio", "logistic", "survival"] = "ratio"
    sizes_cdf: CdfField | None = None
    max_flows: int = Field(default=65_536, ge=1, le=2**30, description="bound on the history")
    heavy_bytes: int = Field(default=153_600, ge=1, le=2**26)
    light_bytes: int = Field(default=460_800, ge=1, le=2**26)
    unit: Literal["bytes", "packets"] = "bytes"
    sample_one_in: int = Field(default=100, ge=1, le=1_000_000)
    export_us: float = Field(default=1e6, ge=1, le=1e9)
    local_us: float = Field(default=10_000.0, ge=1, le=1e9)
    upload_us: float = Field(default=100_000.0, ge=1, le=1e9)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.heavy_bytes < SKETCH_BUCKET_BYTES:
            raise ConfigError(
                f"heavy_bytes = {self.heavy_bytes} is too small for one bucket; expected at least "
                f"{SKETCH_BUCKET_BYTES}"
            )
        counter = 1 if self.unit == "packets" else 4
        if self.light_bytes < counter:
            raise ConfigError(
                f"light_bytes = {self.light_bytes} is too small for one counter of {self.unit}; "
                f"expected at least {counter}"
            )
        if self.pe_weight == "survival" and self.sizes_cdf is None:
            raise ConfigError(
                "pe_weight = 'survival' needs 'sizes_cdf'; expected the distribution of the flow "
                'sizes, such as sizes_cdf = "FB_Hadoop"'
            )
        return self


class Scenario(StrictModel):
    """A network, its traffic and the task. Keys ending in ``_us`` are microseconds."""

    name: Name = "scenario"
    description: str = ""
    monitor_interval_us: float = Field(default=1000.0, ge=1, le=1e9)
    intervals: int = Field(default=280, ge=1, description="budget in monitor intervals")
    warmup_us: float = Field(default=5000.0, ge=0, le=1e9)
    cadence: int = Field(default=1, ge=1, description="intervals per decision of a tuner")
    trigger: Literal["always", "kl"] = "always"
    active_share: float = Field(default=0.05, ge=0, le=1)
    pfc_over: Literal["all", "paused"] = "all"
    rp: Literal["nic", "paper"] = "nic"
    qp: Literal["flow", "pair"] = "flow"
    initial: Literal["default", "expert", "dcqcn-paper"] | dict[str, float] = "default"
    weights: UtilityWeights = UtilityWeights(tp=0.2, rtt=0.5, pfc=0.3)
    topology: Topology
    wire: Wire = Wire()
    switch: Switch = Switch()
    transport: Transport = Transport()
    cnp: Cnp = Cnp()
    monitor: Monitor = Monitor()
    workloads: tuple[Workload, ...] = Field(min_length=1)

    @field_validator("topology")
    @classmethod
    def _share_hosts(cls, value: Any, info: ValidationInfo) -> Any:
        # Flow lists are read after this and name the line of a flow to a host that is not there.
        if info.context is not None:
            info.context["n_hosts"] = network(value).n_hosts
        return value

    @field_validator("initial", mode="before")
    @classmethod
    def _check_initial(cls, value: Any) -> Any:
        presets = ("default", "expert", "dcqcn-paper")
        if isinstance(value, str) and value not in presets:
            raise UnknownNameError("preset", value, presets)
        if not isinstance(value, str | dict):
            raise ConfigError(f"{quote(value)}; expected a preset or a table of knobs")
        if isinstance(value, dict):
            value = by_knob_name(value)
        for name, number in value.items() if isinstance(value, dict) else ():
            row = knob(name)
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise ConfigError(f"{name} = {quote(number)}; expected a number ({row.unit})")
            if isinstance(number, int) and number.bit_length() > 63:
                raise ConfigError(f"{name} is {quote(number)}; expected a number ({row.unit})")
            if row.integer and math.isfinite(number) and number != int(number):
                raise ConfigError(f"{name} = {number:g}; expected a whole number ({row.unit})")
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        net = self.network
        check_sketches(self.monitor, len(net.racks))
        for i, workload in enumerate(self.workloads):
            try:
                workload.resolve(net)
                if isinstance(workload, Poisson):
                    mean_gap_ps(workload, net)
            except ConfigError as error:
                raise ConfigError(f"workloads[{i}]: {error}") from None
        self.transport.check(self.wire.payload_bytes)
        self._check_buffer(net)
        self.initial_setting()
        return self

    def _check_buffer(self, net: Network) -> None:
        if not self.switch.pfc:
            return
        classes = len(self.switch.lossless)
        need = [0] * net.n_nodes
        ports = [0] * net.n_nodes
        for link in net.links:
            for end in (link.a, link.b):
                room = self.headroom_bytes(link.ps_per_byte, link.delay_ps)
                need[end] += classes * (room + self.switch.reserve_bytes)
                ports[end] += 1
        for node in range(net.n_hosts, net.n_nodes):
            if need[node] >= self.buffer_bytes:
                raise ConfigError(
                    f"switch.buffer_bytes = {self.buffer_bytes} is too small: headroom and "
                    f"reserve of the {ports[node]} ports of switch {node} take {need[node]} "
                    "bytes; expected a larger buffer, shorter links or a smaller headroom_factor"
                )

    def headroom_bytes(self, ps_per_byte: int, delay_ps: int) -> int:
        """Return the headroom of a switch port on a link: factor x rate x one-way delay."""
        if not self.switch.pfc:
            return 0
        return math.ceil(self.switch.headroom_factor * delay_ps / ps_per_byte)

    @property
    def network(self) -> Network:
        """The expanded topology."""
        return network(self.topology)

    @property
    def n_hosts(self) -> int:
        """Number of hosts."""
        return self.network.n_hosts

    @property
    def line_rate_bps(self) -> float:
        """Rate of the host links in bit/s (the fastest one if they differ)."""
        return max(link.rate_bps for link in self.network.host_link)

    @property
    def monitor_interval_ps(self) -> int:
        """Length of a monitor interval in picoseconds."""
        return us_to_ps(self.monitor_interval_us)

    @property
    def warmup_ps(self) -> int:
        """Simulated time before the first step, in picoseconds."""
        return us_to_ps(self.warmup_us)

    @property
    def buffer_bytes(self) -> int:
        """Shared buffer of every switch in bytes."""
        if self.switch.buffer_bytes is not None:
            return self.switch.buffer_bytes
        return round(BUFFER_AT_100G * self.network.fastest_bps / 100e9)

    def default_setting(self) -> Setting:
        """Return NVIDIA's default at this line rate: the baseline of every comparison."""
        return default_setting(self.line_rate_bps)

    def initial_setting(self) -> Setting:
        """Return the setting in force at time 0: a preset, or the default with some knobs changed.

        Knobs in the file are in NVIDIA's units; a value out of range raises ConfigError.
        """
        rate = self.line_rate_bps
        if self.initial == "expert":
            return expert_setting(rate)
        if self.initial == "dcqcn-paper":
            return dcqcn_paper_setting(rate)
        if self.initial == "default":
            return default_setting(rate)
        return default_setting(rate).replace_nvidia(dict(self.initial)).check(rate, "initial")


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
