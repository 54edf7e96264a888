"""The digital fabric: files, Redis servers and agents for every device, moved by one simulation.

The simulation stands still while settings are changed and figures are read; ``advance`` reads what
the devices hold, runs it, and lets the devices show what they have counted. A controller moves the
time through the fabric's own service, with the fleet's certificates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.groups import TIERS, DeviceSetting
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import DCQCN, Setting
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.server import AgentServer, handlers, load_agent, secure_server
from dcqcn_gym.hw.certs import write_all
from dcqcn_gym.hw.device_counters import Ledger, Shape
from dcqcn_gym.hw.fabric.devices import QUEUE, PlayedNic, PlayedSwitch
from dcqcn_gym.hw.fabric.mounted import MountedFiles
from dcqcn_gym.hw.tls import Tls, TlsFiles
from dcqcn_gym.hw.transaction import Clock

FABRIC_SERVICE = "dcqcn_gym.hw.v1.Fabric"
FABRIC_METHODS: Mapping[str, tuple[Any, Any]] = {
    "Reset": (pb.Begin, pb.Instant),
    "Advance": (pb.Span, pb.Instant),
}


class Simulation(Protocol):
    """The simulation that plays the devices."""

    @property
    def done(self) -> bool:
        """True once a finite scenario has delivered everything."""

    def apply(self, setting: DeviceSetting) -> None:
        """Put a setting in force."""

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        """Run and report."""

    def close(self) -> None:
        """Release everything."""


@dataclass(frozen=True)
class FabricSpec:
    """What is played: network, first setting, how a simulation of it begins."""

    scenario: str
    """A digest; a controller with another scenario is refused."""
    shape: Shape
    initial: Setting
    interval_ps: int
    begin: Callable[[int], Simulation]
    """Return a new simulation with this seed."""


class DigitalFabric:
    """Created -> started -> closed. ``fleet`` is the file that a controller reads."""

    def __init__(
        self,
        folder: Path,
        spec: FabricSpec,
        *,
        shared_profiles: bool = False,
        fuse: bool = False,
        listen: str = "127.0.0.1",
        clock: Clock | None = None,
    ) -> None:
        """``clock`` is that of all agents; tests let it jump.

        With ``fuse`` agents see NICs' files through a mount that keeps the order of calls.
        """
        folder = folder.resolve()  # servers of switches have folders of their own
        self.fleet = folder / "fleet.toml"
        self._folder, self._spec = folder, spec
        self._shared, self._listen, self._clock = shared_profiles, listen, clock
        self.mounted = MountedFiles(folder) if fuse else None
        self._nics: list[PlayedNic] = []
        self._switches: list[PlayedSwitch] = []
        self.agents: list[AgentServer] = []
        self._simulation: Simulation | None = None
        self._ledger = Ledger(spec.shape)
        self._now_ps = self._sequence = 0
        self._server: Any = None

    def start(self) -> None:
        """Lay out every device, run its agent, and wait for a controller."""
        for path in (self.fleet, self._folder / "certs"):  # keys of others are not ours
            if path.exists():
                raise ConfigError(f"{path} exists already; choose a new folder")
        devices = self._spec.shape.devices
        nics = [f"nic-{host}" for host in range(devices.n_hosts)]
        switches = [f"switch-{node}" for node in sorted(devices.tiers)]
        write_all(self._folder / "certs", [*nics, *switches, "fabric"], ["controller"])
        try:
            for name in nics:
                self._nics.append(PlayedNic(self._folder / name / "root", self._spec.initial))
            for name, node in zip(switches, sorted(devices.tiers), strict=True):
                self._switches.append(
                    PlayedSwitch(
                        self._folder / name, devices.port_node.count(node), self._spec.initial,
                        self._spec.interval_ps / 1e9, shared_profile=self._shared,
                    )
                )  # fmt: skip
            self._show()
            if self.mounted is not None:
                self.mounted.start()
            members = [self._agent(name, "mlx5", PlayedNic.settings) for name in nics]
            tiers = [TIERS[min(t, len(TIERS) - 1)] for _, t in sorted(devices.tiers.items())]
            uplinks = [
                self._agent(
                    name,
                    "sonic",
                    {"socket": str(s.socket), "queue": QUEUE, "ports": s.ports, "asic_wait_s": 0.0},
                )
                | {"tier": tier}
                for name, s, tier in zip(switches, self._switches, tiers, strict=True)
            ]
            self._write_fleet(members, uplinks, self._serve())
        except BaseException:
            self.close()
            raise

    def _agent(self, name: str, driver: str, settings: Mapping[str, object]) -> dict[str, str]:
        """Write an agent's file and run it; return its line of the fleet's file."""
        file = self._folder / name / "agent.toml"
        root = "root" if self.mounted is None else f"../{self.mounted.mount.name}/{name}"
        text = {
            "device": name, "driver": driver, "listen": f"{self._listen}:0", "journal": "journal",
            "root": root, "commands": "recorded", "tls": _tls(name, "../certs"),
            "settings": dict(settings),
            "limits": {row.name: dict(zip(("low", "high"), row.legal, strict=True))
                       for row in DCQCN.rows},  # the fabric takes what the model takes
        }  # fmt: skip
        file.write_text(toml_text(text), encoding="utf-8")
        agent = load_agent(file, clock=self._clock)
        agent.start()
        self.agents.append(agent)
        return {"name": name, "address": agent.address}

    def _serve(self) -> str:
        tls = TlsFiles(Tls.model_validate(_tls("fabric", "certs")), self._folder)
        own = handlers(FABRIC_SERVICE, self, FABRIC_METHODS, _refuse, tls)
        self._server, address = secure_server(
            tls, f"{self._listen}:0", 0, lambda server: server.add_generic_rpc_handlers((own,))
        )
        return str(address)

    def _write_fleet(
        self, nics: list[dict[str, str]], switches: list[dict[str, str]], address: str
    ) -> None:
        text = {
            "fabric": address, "fsd_file": "fsd.json", "timeout_s": 30.0, "trial_s": 60.0,
            "tls": _tls("controller", "certs"), "nics": nics, "switches": switches,
        }  # fmt: skip
        self.fleet.write_text(toml_text(text), encoding="utf-8")

    def Reset(self, request: pb.Begin) -> pb.Instant:  # noqa: N802
        """Begin the scenario again, with a seed; every counter starts at zero."""
        if request.scenario != self._spec.scenario:
            raise ConfigError(
                "this fabric plays another scenario than the controller was given; start "
                "`dcqcn-gym hw fabric` with the same one"
            )
        if self._simulation is not None:
            self._simulation.close()
        self._simulation = self._spec.begin(request.seed)
        self._ledger, self._now_ps = Ledger(self._spec.shape), 0
        self._show()
        return pb.Instant(ps=0, done=self._simulation.done)

    def Advance(self, request: pb.Span) -> pb.Instant:  # noqa: N802
        """Run with the settings that the devices hold now, and show what they count."""
        if self._simulation is None:
            raise ConfigError("the fabric was not reset; a controller does that first")
        if not 0 < request.ps <= 10**15:
            raise ConfigError(f"a span of {request.ps} ps: expected above 0, at most 1000 s")
        self._simulation.apply(self._held())
        report = self._simulation.advance(request.ps)
        self._ledger.add(report)
        self._now_ps += request.ps
        self._sequence += 1
        self._show()
        self._show_fsd(report)
        return pb.Instant(ps=self._now_ps, done=self._simulation.done)

    def _held(self) -> DeviceSetting:
        """Return the setting of every device, from its files and databases."""
        initial, devices = self._spec.initial, self._spec.shape.devices
        groups = {"cluster": initial}
        for host, nic in enumerate(self._nics):
            groups[f"nic:{host}"] = initial.replace(nic.knobs())
        for node, switch in zip(sorted(devices.tiers), self._switches, strict=True):
            for index, knobs in enumerate(switch.knobs()):
                groups[f"port:{node}:{index}"] = initial.replace(knobs)
        return groups

    def _show(self) -> None:
        reading, devices = self._ledger.reading(), self._spec.shape.devices
        for nic, counters in zip(self._nics, reading.nics, strict=True):
            nic.show(counters)
        owners = [devices.port_node[number] for number in self._spec.shape.switch_ports]
        for node, switch in zip(sorted(devices.tiers), self._switches, strict=True):
            switch.show([p for p, o in zip(reading.ports, owners, strict=True) if o == node])

    def _show_fsd(self, report: IntervalReport) -> None:
        fsd = {**asdict(report.fsd), "bins": report.fsd.bins.tolist()}
        text = json.dumps({"sequence": self._sequence, "fsd": fsd})
        (self._folder / "fsd.json").write_text(text, encoding="utf-8")

    def wait(self) -> None:
        """Return when somebody else ends the fabric's own service."""
        self._server.wait_for_termination()

    def close(self) -> None:
        """End agents, servers and the simulation; files stay."""
        if self._server is not None:
            self._server.stop(0.2).wait()
        for agent in self.agents:
            agent.close()
        if self.mounted is not None:
            self.mounted.close()
        for switch in self._switches:
            switch.close()
        if self._simulation is not None:
            self._simulation.close()
        self._server, self._simulation = None, None
        self.agents, self._switches = [], []


def _tls(name: str, folder: str) -> dict[str, str]:
    return {"ca": f"{folder}/ca.pem", "cert": f"{folder}/{name}.pem", "key": f"{folder}/{name}.key"}


def _refuse(method: str, names: list[str], pem: bytes) -> str:
    return "" if "controller" in names else "only the controller moves the fabric's time"
