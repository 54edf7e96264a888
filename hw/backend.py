"""The hardware backend: a fleet of agents behind the environment (``backend="hardware:FLEET"``).

Settings go out as transactions over all devices, figures come back as counters of devices. What no
device counts is unknown (``UNKNOWN`` of ``hw/device_counters.py``), and so is the
flow-size distribution unless a collector keeps one. On the digital fabric the controller moves the
time.

A report that is missing makes its interval longer: counters only grow, so the next ones have
everything, and no figure is made up. :data:`MARKS` are the counters of a report that count it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcqcn_gym.core.abort_rules import NIC_ERRORS
from dcqcn_gym.core.errors import BackendError, ConfigError, DeviceError, StateError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import FlowSizeDistribution, IntervalReport
from dcqcn_gym.core.knobs import KnobTable
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.backends.base import Opens
from dcqcn_gym.envs.backends.report_dict import fsd_from_dict
from dcqcn_gym.envs.scenario.scenario import scenario_digest
from dcqcn_gym.hw.dependencies import require_grpc
from dcqcn_gym.hw.device_counters import NO_FSD, UNKNOWN, Counted, Shape, report_of, shape_of
from dcqcn_gym.hw.drivers.mlx5_counters import ERRORS
from dcqcn_gym.hw.fleet import Fleet, load_fleet
from dcqcn_gym.hw.queue_pair_sizes import QueuePairSizes
from dcqcn_gym.hw.targets import ports_of, targets_of_groups
from dcqcn_gym.hw.transaction import MOST_TRIAL_S

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario
    from dcqcn_gym.hw.client import AgentClient
    from dcqcn_gym.hw.controller import Controller
    from dcqcn_gym.hw.gather import Gathered

PS_PER_MS = 10**9
FABRIC_S = 600.0
"""The longest that the digital fabric may work on a call."""

MARKS = {
    "missing_reports": "reports that did not come, for which the interval went on",
    "late_reports": "agents that read later after the end than late_share of the fleet's file",
    "clock_jumps": "agents whose clock has jumped since the report before",
}
"""Names among a report's ``scheme_counters``; one that is 0 is left out."""


@dataclass
class _Open:
    """A fleet that is being tuned."""

    controller: Controller
    fabric: AgentClient | None
    shape: Shape
    table: KnobTable
    interval_ps: int
    before: Counted
    ports: dict[str, list[str]]
    """Switch -> names of its ports, in the order of the scenario's."""
    run: str
    """Its name in journals and the audit log."""
    now_ps: int = 0
    index: int = 0
    lease_s: float = 0.0
    """An agent that hears nothing for so long goes back to before the run."""
    steps: int = 0
    step: str = ""
    """The step in force; empty before the first."""
    stale: bool = False
    """True if a change went out since ``before`` was read."""
    read_s: float = 0.0
    """When ``before`` was read, by the controller's clock."""
    done: bool = False
    fsd_sequence: int = -1
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    """Of the last reading, per device."""
    pairs: QueuePairSizes | None = None


class HardwareBackend(Opens[_Open]):
    """A :class:`~dcqcn_gym.envs.backends.base.Backend` over the agents of a fleet's file."""

    argument = "FLEET.toml"

    @classmethod
    def from_argument(cls, text: str) -> HardwareBackend:
        """Return one for the fleet that a file describes; raise ConfigError if it is wrong."""
        return cls(load_fleet(text), Path(text).parent)

    def __init__(
        self,
        fleet: Fleet,
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        connect: Callable[..., AgentClient] | None = None,
    ) -> None:
        """Tests give it a time of theirs, and connections with faults."""
        self.fleet, self._folder = fleet, folder
        self._clock, self._sleep, self._connect = clock, sleep, connect

    @property
    def offers(self) -> frozenset[str]:
        """Every switch's figures, and flow sizes where a collector keeps them."""
        return frozenset({"per_switch", *(["fsd"] if self._tells_fsd else [])})

    @property
    def unknown(self) -> frozenset[str]:
        """What no device counts."""
        return UNKNOWN if self._tells_fsd else UNKNOWN | NO_FSD

    @property
    def message_bytes(self) -> dict[str, tuple[int, int]]:
        """Device -> bytes of messages sent to its agent and received so far; none while closed."""
        return {} if self._open is None else self._open.controller.agents.message_bytes

    @property
    def _tells_fsd(self) -> bool:
        return self.fleet.fsd_file is not None or self.fleet.fsd_from_pairs

    @property
    def done(self) -> bool:
        """True once a fabric's finite scenario has delivered everything; False while closed."""
        return self._open is not None and self._open.done

    def open(self, scenario: Scenario, seed: int) -> None:
        """Connect to all agents and look at every counter; a fabric begins with this seed.

        The scenario says what the network is and how long an interval lasts. Raises ConfigError
        if the fleet is another network, or if a counter is slower than the interval.
        """
        self._check_closed()
        require_grpc()
        from dcqcn_gym.hw.client import AgentClient
        from dcqcn_gym.hw.controller import Controller

        controller = Controller(
            self.fleet, self._folder, self._connect or AgentClient, clock=self._clock
        )
        fabric: AgentClient | None = None
        try:
            controller.agents.open()
            shape = shape_of(scenario)
            ports = ports_of(controller.agents, shape.devices)
            fabric = self._fabric(scenario, seed)
            self._prepare(controller, scenario.monitor_interval_ps / PS_PER_MS)
            first = _complete(controller.agents.gather())
            before = reading_of(controller, ports, first.figures)
        except BaseException:
            controller.close()
            if fabric is not None:
                fabric.close()
            raise
        table = scenario.initial_setting().table
        self._open = _Open(
            controller, fabric, shape, table, scenario.monitor_interval_ps, before, ports,
            controller.runs.begun() or uuid.uuid4().hex[:16],
            read_s=first.instant_s, lease_s=self._lease_s(scenario.monitor_interval_ps),
        )  # fmt: skip
        self._open.fsd_sequence = self._sequence()
        if self.fleet.fsd_from_pairs:
            monitor = scenario.monitor
            self._open.pairs = QueuePairSizes(monitor.tau_bytes, monitor.theta, first.figures)

    def _lease_s(self, interval_ps: int) -> float:
        """Return the longest silence of a controller that lives: an interval and a lost answer."""
        silence = 2 * self.fleet.timeout_s + 2e-12 * interval_ps
        silence += 0.0 if self.fleet.fabric is None else FABRIC_S  # it works on an interval so long
        return min(self.fleet.trial_s + silence, MOST_TRIAL_S / 2)

    def _fabric(self, scenario: Scenario, seed: int) -> AgentClient | None:
        """Return the connection to the digital fabric, begun anew; None for a real fleet."""
        if self.fleet.fabric is None:
            return None
        from dcqcn_gym.hw.agent import agent_pb2 as pb
        from dcqcn_gym.hw.client import AgentClient, channel_credentials
        from dcqcn_gym.hw.fabric.fabric import FABRIC_METHODS, FABRIC_SERVICE
        from dcqcn_gym.hw.fleet import Member

        client = AgentClient(
            Member(name="fabric", address=self.fleet.fabric), FABRIC_SERVICE, FABRIC_METHODS,
            channel_credentials(self.fleet.tls, self._folder), dscp=0, timeout_s=FABRIC_S,
            attempts=1,
        )  # fmt: skip
        client.ask("Reset", pb.Begin(seed=seed, scenario=scenario_digest(scenario)))
        return client

    def _prepare(self, controller: Controller, interval_ms: float) -> None:
        from dcqcn_gym.hw.agent import agent_pb2 as pb

        controller.agents.ask_all("Prepare", pb.Interval(ms=interval_ms))

    def apply(self, setting: DeviceSetting) -> None:
        """Put a setting in force on every device: the next step of a run that is never confirmed.

        The first one begins the run. A failure ends it, and every device goes back to before it.
        """
        opened = self._opened("apply")
        targets = targets_of_groups(opened.controller.agents, setting, opened.shape.devices)
        opened.steps += 1
        opened.step = opened.controller.runs.step(opened.run, opened.steps, targets, opened.lease_s)
        opened.stale = True

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        """Wait for one monitor interval (or ``duration_ps``) and report what was counted.

        What devices counted while settings changed belongs to no interval. Raises DeviceError if
        an agent still reports nothing after ``missing_intervals`` more.
        """
        opened = self._opened("advance")
        if not opened.step:
            raise StateError("advance() without a setting; call apply() first")
        if opened.stale and opened.fabric is None:  # a fabric's time stood still meanwhile
            self._read_anew(opened)
        opened.stale = False
        start = opened.now_ps
        found, marks = self._pass_until_all(
            opened, opened.interval_ps if duration_ps is None else duration_ps
        )
        opened.counters = dict(found.figures)
        after = reading_of(opened.controller, opened.ports, opened.counters)
        if opened.fabric is None:
            opened.now_ps = start + round((found.instant_s - opened.read_s) * 1e12)
        interval = (opened.index, start, opened.now_ps)
        report = report_of(opened.shape, opened.before, after, interval, self._fsd(opened))
        opened.before, opened.read_s, opened.index = after, found.instant_s, opened.index + 1
        seen = {name: n for name, n in marks.items() if n}
        return replace(report, scheme_counters={**report.scheme_counters, **seen})

    def _read_anew(self, opened: _Open) -> None:
        found = _complete(opened.controller.agents.gather(opened.index))
        opened.before = reading_of(opened.controller, opened.ports, found.figures)
        opened.read_s = found.instant_s

    def _pass_until_all(self, opened: _Open, span_ps: int) -> tuple[Gathered, dict[str, int]]:
        """Let the time pass until every agent has reported; return its figures, and the marks."""
        marks = dict.fromkeys(MARKS, 0)
        for _ in range(self.fleet.missing_intervals + 1):
            opened.controller.runs.keep_alive(opened.step, opened.lease_s + span_ps * 1e-12)
            self._pass(opened, span_ps)
            allowed_s = self._clock() + self.fleet.late_share * span_ps * 1e-12
            found = opened.controller.agents.gather(opened.index)
            marks["missing_reports"] += len(found.missing)
            marks["clock_jumps"] += len(found.jumped)
            if not found.missing:
                break
        if opened.fabric is None:
            marks["late_reports"] = len(found.later_than(allowed_s))
        return _complete(found), marks

    def _pass(self, opened: _Open, span_ps: int) -> None:
        """Let the time pass: the fabric's if there is one, else that of the clock."""
        if opened.fabric is None:
            self._sleep(span_ps * 1e-12)
            return
        from dcqcn_gym.hw.agent import agent_pb2 as pb

        instant = opened.fabric.ask("Advance", pb.Span(ps=span_ps))
        opened.now_ps, opened.done = instant.ps, instant.done

    def _sequence(self) -> int:
        return -1 if self.fleet.fsd_file is None else self._collected()[0]

    def _fsd(self, opened: _Open) -> FlowSizeDistribution | None:
        """Return what the collector says of this interval; raise if it says nothing new."""
        if opened.pairs is not None:
            return opened.pairs.close(opened.counters)
        if self.fleet.fsd_file is None:
            return None
        sequence, values = self._collected()
        if sequence <= opened.fsd_sequence:
            raise BackendError(
                f"{self._folder / self.fleet.fsd_file}: the collector has said nothing since the "
                "last interval; is it running?"
            )
        opened.fsd_sequence = sequence
        return fsd_from_dict(values)

    def _collected(self) -> tuple[int, Mapping[str, Any]]:
        assert self.fleet.fsd_file is not None
        path = self._folder / self.fleet.fsd_file
        if not path.exists():
            return -1, {}
        try:
            found = parse_json(read_file(path, 1 << 20))
            return int(found["sequence"]), found["fsd"]
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"{path}: not a collector's file ({error})") from None

    def close(self) -> None:
        """End the run: every device goes back to its setting before it; allowed in every state."""
        if self._open is not None:
            if self._open.step:
                self._open.controller.runs.end(self._open.run, "the end of a run")
            self._open.controller.close()
            if self._open.fabric is not None:
                self._open.fabric.close()
        self._open = None


def _complete(found: Gathered) -> Gathered:
    """Return it if no report is missing; DeviceError names the first that is."""
    for why in found.missing.values():
        raise DeviceError(
            f"{len(found.missing)} reports are missing, so this interval is not known; first: {why}"
        )
    return found


def reading_of(
    controller: Controller,
    ports: Mapping[str, list[str]],
    counters: Mapping[str, Mapping[str, int]],
) -> Counted:
    """Return all counters of one instant, in the order of the scenario's devices."""
    switch_ports = []
    for switch, names in ports.items():
        for name in names:
            prefix = f"{name}/"
            own = {k[len(prefix) :]: v for k, v in counters[switch].items() if k.startswith(prefix)}
            switch_ports.append(own)
    return Counted([_nic_counters(counters[name]) for name in controller.agents.nics], switch_ports)


def _nic_counters(values: Mapping[str, int]) -> dict[str, int]:
    """Return the figures that a report is made of; errors of all kinds as one."""
    known = ("tx_bytes", "tx_packets", "pfc_received", "pfc_sent", "pause_us", "cnps_sent")
    found = {n: v for n, v in values.items() if n in known or n.startswith("rtt/")}
    return {**found, NIC_ERRORS: count(values.get(name, 0) for name in ERRORS)}
