"""A small fleet whose devices, agents, clocks and network have faults when a case says so.

Three NICs, and a switch where there is a ``redis-server``. `fault_cases.py` draws
the cases.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import grpc
from counting import Traffic

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.knobs import DCQCN, NIC_KNOBS, default_setting
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.hw.agent.server import AgentServer, load_agent
from dcqcn_gym.hw.certs import Authority, write_all
from dcqcn_gym.hw.client import AgentClient
from dcqcn_gym.hw.drivers import Driver, Targets, Values
from dcqcn_gym.hw.fabric.devices import QUEUE, PlayedNic, PlayedSwitch
from dcqcn_gym.hw.fleet import Fleet

__all__ = [
    "METHODS",
    "NAMES",
    "SPOILT",
    "STEP_S",
    "SWITCH",
    "TRIAL_S",
    "CrashError",
    "FaultyClient",
    "FaultyFleet",
    "LostError",
    "Outcome",
    "make_certificates",
]

SWITCH = "switch-0"
NAMES = ("nic-0", "nic-1", "nic-2", SWITCH)
"""Names in certificates; a machine without redis-server has no switch."""
SPOILT = ("expired", "foreign")
"""Folders, beside the good certificates, of some that must not serve."""
TRIAL_S = 5.0
STEP_S = 0.25
METHODS = ("Stage", "Apply", "Confirm", "Rollback", "Undo", "Counters")


@dataclass
class Outcome:
    """What a case did, and the longest time (s) that a device was not at a confirmed setting.

    ``reported`` intervals were held against the truth; ``refused`` ones could not be known.
    """

    seed: int
    faults: list[str] = field(default_factory=list)
    confirmed: int = 0
    reported: int = 0
    refused: int = 0
    longest_away_s: float = 0.0


class CrashError(Exception):
    """The controller dies here."""


class LostError(grpc.RpcError):  # type: ignore[misc]
    """No answer came: gRPC's future of a call whose network lost it."""

    def code(self) -> Any:
        """Say that nobody could be reached."""
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        """Say why."""
        return "lost on purpose"

    def result(self) -> Any:
        """Raise itself."""
        raise self

    def add_done_callback(self, tell: Callable[[Any], None]) -> None:
        """Be done at once."""
        tell(self)


class _Device(Driver):
    """A driver whose device has faults: it hands everything on but what a fault changes."""

    name, summary, kind = "mlx5", "with faults", "nic"

    def __init__(self, inner: Driver) -> None:
        self._inner = inner
        vars(self).update(name=inner.name, kind=inner.kind)  # it says what it stands for
        self.fails = self.lies = 0
        """Writes until one fails or does nothing; 0: none will."""

    @property
    def ports(self) -> tuple[str, ...]:
        return self._inner.ports

    def knobs(self) -> tuple[str, ...]:
        return self._inner.knobs()

    def read(self) -> dict[str, str]:
        return self._inner.read()

    def stage(self, targets: Targets) -> dict[str, str]:
        return self._inner.stage(targets)

    def diff(self, before: Values, after: Values) -> Any:
        return self._inner.diff(before, after)

    def setting(self) -> dict[str, dict[str, float]]:
        return self._inner.setting()

    def counters(self) -> dict[str, int]:
        return self._inner.counters()

    def apply(self, values: Values) -> None:
        # a NIC is written file by file, a switch in one transaction
        parts = [{p: t} for p, t in values.items()] if self.kind == "nic" else [dict(values)]
        for part in parts:
            self.fails, fails = max(self.fails - 1, 0), self.fails == 1
            self.lies, lies = max(self.lies - 1, 0), self.lies == 1
            if fails:
                raise DeviceError(f"{', '.join(part)}: a write failed on purpose")
            if not lies:
                self._inner.apply(part)


class FaultyFleet:
    """Devices with agents, a clock of their own, and what faults are armed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, Random(seed)
        self.delays = Random(f"delays {seed}")
        """Apart, so that the faults of a case follow from its seed alone."""
        self.names = NAMES if shutil.which("redis-server") else NAMES[:-1]
        self.switch: PlayedSwitch | None = None
        self.nics: dict[str, PlayedNic] = {}
        self.outcome = Outcome(seed)
        self.now = 1000.0
        self.files: dict[str, Path] = {}
        self.agents: dict[str, AgentServer] = {}
        self.devices: dict[str, _Device] = {}
        self.armed: dict[tuple[str, str], str] = {}  # (device, method) -> fault
        self.cut: set[str] = set()
        self.spoil: list[Callable[[], object]] = []
        """What happens to counters in the middle of the interval."""
        self.down: set[str] = set()
        self.unread: set[str] = set()
        """Agents that could not even be loaded, for want of their journal."""
        self.away = dict.fromkeys(self.names, 0.0)
        try:
            for name in self.names:
                self._lay_out(name)
            self.traffic = Traffic(self.nics, self.switch, seed)
            for name in self.names:
                self.start(name)
        except BaseException:
            self.close()
            raise
        found = [{"name": n, "address": self.agents[n].address} for n in self.names]
        tls = {"ca": "certs/ca.pem", "cert": "certs/controller.pem", "key": "certs/controller.key"}
        fleet = {
            "nics": found[:3],
            "switches": found[3:],
            "tls": tls,
            "attempts": 2,
            "trial_s": TRIAL_S,
            "timeout_s": 60.0,
        }
        self.fleet = validate(fleet, Fleet, source="fleet")

    def _lay_out(self, name: str) -> None:
        driver, settings = "mlx5", dict(PlayedNic.settings)
        if name == SWITCH:
            self.switch = PlayedSwitch(
                self.folder / name, 2, default_setting(), 1.0, shared_profile=False
            )
            ports = tuple(self.switch.ports)
            driver = "sonic"
            settings = {
                "socket": str(self.switch.socket),
                "queue": QUEUE,
                "ports": ports,
                "asic_wait_s": 0.0,
            }
        else:
            self.nics[name] = PlayedNic(self.folder / name / "root", default_setting())
        self.files[name] = self.folder / name / "agent.toml"
        tls = {
            key: f"../certs/{file}"
            for key, file in {"ca": "ca.pem", "cert": f"{name}.pem", "key": f"{name}.key"}.items()
        }
        text = {
            "device": name,
            "driver": driver,
            "listen": "127.0.0.1:0",
            "journal": "journal",
            "root": "root",
            "commands": "recorded",
            "tls": tls,
            "settings": settings,
            "line_rate_gbps": 100.0,
            "limits": {"rp_gd": {"low": 10.0, "high": 13.0}},
        }
        self.files[name].write_text(toml_text(text))

    def show_certificate(self, name: str, kind: str = "") -> None:
        """Start an agent with a certificate of this kind (:data:`SPOILT`), or its own again."""
        text = self.files[name].read_text()
        for other in SPOILT:
            text = text.replace(f"../certs/{other}/", "../certs/")
        if kind:
            for end in ("pem", "key"):
                text = text.replace(f"../certs/{name}.{end}", f"../certs/{kind}/{name}.{end}")
        self.files[name].write_text(text)
        self.start(name)

    def start(self, name: str) -> None:
        """Start an agent, again at the same address if it ran before."""
        if name in self.agents:
            self.agents[name].close()
            text = self.files[name].read_text()
            self.files[name].write_text(text.replace("127.0.0.1:0", self.agents[name].address))
        self.unread.add(name)
        self._begin(name)

    def _load(self, name: str) -> AgentServer:
        def wrap(inner: Driver) -> Driver:
            self.devices[name] = _Device(inner)
            return self.devices[name]

        return load_agent(self.files[name], clock=lambda: self.now, wrap=wrap)

    def _begin(self, name: str) -> None:
        """Start an agent; without its device or journal again later, as a service manager does."""
        self.down.discard(name)
        try:
            if name in self.unread:
                self.agents[name] = self._load(name)
                self.unread.discard(name)
            self.agents[name].start(keep_time=False)  # pass_time does
        except DeviceError:
            self.down.add(name)

    def cc_file(self, name: str, file: str) -> Path:
        """Return a parameter's file."""
        folder = f"root/sys/kernel/debug/mlx5/{PlayedNic.settings['pci']}/cc_params"
        return self.folder / name / folder / file

    def reboot(self, name: str) -> None:
        """Bring the device back with the vendor's values and new counters; its agent starts."""
        self.traffic.restart(name)
        if name == SWITCH:
            assert self.switch is not None
            if self.switch.runs:
                self.switch.fill(default_setting(), 1.0)
            self.start(name)
            return
        for knob, value in default_setting().items():
            if knob in NIC_KNOBS:
                file = self.cc_file(name, DCQCN[knob].debugfs or "")
                if file.is_dir():  # it cannot be read for now
                    file = file.with_name(f"{file.name}-away")
                elif not file.exists():
                    file = file.with_name("gone")
                file.write_text(f"{value:.0f}\n")
        self.start(name)

    def pass_time(self, seconds: float) -> None:
        """Let time pass in steps, and watch how long devices are away."""
        until = self.now + seconds
        while self.now < until:
            self.now += STEP_S
            for name in sorted(self.down):
                self._begin(name)
            for name in self.agents.keys() - self.unread:
                self.agents[name].guard.tick()
                at_home = self.held(name) == self.confirmed(name)
                self.away[name] = 0.0 if at_home else self.away[name] + STEP_S
                longest = max(self.outcome.longest_away_s, self.away[name])
                self.outcome.longest_away_s = longest

    def held(self, name: str) -> Values:
        """Return what a device holds; nothing while one of its files is gone."""
        try:
            return self.devices[name].read()
        except DeviceError:
            return {}

    def confirmed(self, name: str) -> Values:
        """Return the setting that its journal says was confirmed last."""
        record = self.agents[name].journal.last("confirmed")
        assert record is not None
        values: Values = record["values"]
        return values

    def close(self) -> None:
        """End the agents, and the switch's server."""
        for agent in self.agents.values():
            agent.close()
        if self.switch is not None:
            self.switch.close()


def _wait(future: Any) -> None:
    try:
        future.result()
    except grpc.RpcError:
        return


class FaultyClient(AgentClient):
    """A connection with the network's faults, and with others that strike at a certain call."""

    def __init__(self, fleet: FaultyFleet, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._fleet = fleet
        self._earlier: list[tuple[str, Any]] = []
        self._late: list[tuple[str, Any]] = []

    def send(self, method: str, request: Any) -> Any:
        """Send a request as the armed fault has it."""
        fleet = self._fleet
        fault = fleet.armed.pop((self.name, method), "")
        if fault == "controller-crash":
            raise CrashError
        if fault == "partition":
            fleet.cut.add(self.name)
        if self.name in fleet.cut or fault == "request-lost":
            return LostError()
        if fault == "request-late":
            self._late.append((method, request))
            return LostError()
        if fault == "agent-crash":
            fleet.start(self.name)
        if fault == "reboot":
            fleet.reboot(self.name)
        if fault == "duplicated":
            _wait(super().send(method, request))
        future = super().send(method, request)
        late, self._late = self._late, []
        for one in late:  # it arrives after all, behind a later one
            _wait(future)
            _wait(super().send(*one))
        if fault == "outdated":
            for earlier in self._earlier:
                _wait(super().send(*earlier))
        self._earlier.append((method, request))
        if fault == "reply-lost":
            _wait(future)
            return LostError()
        return future


def make_certificates(folder: Path) -> None:
    """Write a fleet's certificates, and beside them some that expired or are of another fleet."""
    write_all(folder, NAMES, ["controller"])
    write_all(folder / "foreign", NAMES, [])
    (folder / "expired").mkdir()
    for name in ("ca.key", "ca.pem"):
        shutil.copy(folder / name, folder / "expired" / name)
    ended = Authority(folder / "expired", days=-1)
    for name in NAMES:
        ended.agent(name)
