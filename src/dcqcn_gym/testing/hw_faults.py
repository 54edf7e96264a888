"""Faults by name on a small fleet: whatever happens, every device ends at a confirmed setting.

A case draws changes and faults from its seed: on the network (a lost, late, repeated or outdated
message, a partition), in processes (a crash of an agent or of the controller, a full disk, a clock
that jumps) and in devices (a write that fails half-way, a read-back that lies, a reboot, a file
that is gone). Agents, gRPC, TLS and journals are real; timers run on the case's clock.

    python -m dcqcn_gym.testing.hw_faults --cases 300
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import DcqcnGymError, DeviceError
from dcqcn_gym.core.knobs import DCQCN, NIC_KNOBS, default_setting
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.hw.agent.server import Agent, load_agent
from dcqcn_gym.hw.certs import write_all
from dcqcn_gym.hw.client import AgentClient
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.drivers import Driver, Targets, Values
from dcqcn_gym.hw.fabric.nic import PlayedNic
from dcqcn_gym.hw.fleet import Fleet

__all__ = ["FAULTS", "Outcome", "run_case"]

FAULTS: Mapping[str, str] = {
    "request-lost": "a request never arrives",
    "reply-lost": "a call is carried out and its answer lost",
    "duplicated": "a request arrives twice",
    "outdated": "an earlier request arrives again, after a later one",
    "partition": "an agent is out of reach from some call on",
    "agent-crash": "an agent dies and starts again",
    "controller-crash": "the controller dies between two steps",
    "write-fails": "a write fails half-way",
    "read-back-lies": "a write changes nothing and reports no error",
    "reboot": "a device comes back with the vendor's values",
    "file-gone": "a kernel file is gone for a while",
    "disk-full": "the journal cannot be written for a while",
    "clock-jump": "an agent's clock jumps ahead",
}
NAMES = ("nic-0", "nic-1", "nic-2")
TRIAL_S = 5.0
STEP_S = 0.25
METHODS = ("Stage", "Apply", "Confirm", "Rollback", "Undo")


@dataclass
class Outcome:
    """What a case did, and the longest time (s) that a device was not at a confirmed setting."""

    seed: int
    faults: list[str] = field(default_factory=list)
    confirmed: int = 0
    longest_away_s: float = 0.0


class _CrashError(Exception):
    """The controller dies here."""


class _Lost(grpc.RpcError):  # type: ignore[misc]
    """No answer came."""

    def code(self) -> Any:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "lost on purpose"

    def result(self) -> Any:
        raise self


class _Device(Driver):
    """A driver whose device has faults: it hands everything on but what a fault changes."""

    name, summary, kind = "mlx5", "with faults", "nic"

    def __init__(self, inner: Driver, root: Path) -> None:
        self._inner, self._root = inner, root
        self.fails = self.lies = 0
        """Writes until one fails or does nothing; 0: none will."""

    @classmethod
    def of(cls, settings: Any, around: Any) -> _Device:
        raise NotImplementedError

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
        return {}

    def apply(self, values: Values) -> None:
        for place, text in values.items():
            self.fails, fails = max(self.fails - 1, 0), self.fails == 1
            self.lies, lies = max(self.lies - 1, 0), self.lies == 1
            if fails:
                raise DeviceError(f"{place}: a write failed on purpose")
            if not lies:
                self._inner.apply({place: text})


class _Fleet:
    """Three NICs with agents, a clock of their own, and what faults are armed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.outcome = Outcome(seed)
        self.now = 1000.0
        self.files: dict[str, Path] = {}
        self.agents: dict[str, Agent] = {}
        self.devices: dict[str, _Device] = {}
        self.armed: dict[tuple[str, str], str] = {}  # (device, method) -> fault
        self.cut: set[str] = set()
        self.away = dict.fromkeys(NAMES, 0.0)
        for name in NAMES:
            self._lay_out(name)
            self.start(name)
        nics = [{"name": n, "address": self.agents[n].address} for n in NAMES]
        tls = {"ca": "certs/ca.pem", "cert": "certs/controller.pem", "key": "certs/controller.key"}
        fleet = {"nics": nics, "tls": tls, "attempts": 2, "trial_s": TRIAL_S, "timeout_s": 20.0}
        self.fleet = validate(fleet, Fleet, source="fleet")

    def _lay_out(self, name: str) -> None:
        PlayedNic(self.folder / name / "root", default_setting())
        self.files[name] = self.folder / name / "agent.toml"
        tls = {
            "ca": "../certs/ca.pem",
            "cert": f"../certs/{name}.pem",
            "key": f"../certs/{name}.key",
        }
        text = {"device": name, "driver": "mlx5", "listen": "127.0.0.1:0", "journal": "journal",
                "root": "root", "commands": "recorded", "tls": tls,
                "settings": dict(PlayedNic.settings)}  # fmt: skip
        self.files[name].write_text(toml_text(text))

    def start(self, name: str) -> None:
        """Start an agent, again at the same address if it ran before."""
        if name in self.agents:
            self.agents[name].close()
            text = self.files[name].read_text()
            self.files[name].write_text(text.replace("127.0.0.1:0", self.agents[name].address))

        def wrap(inner: Driver) -> Driver:
            self.devices[name] = _Device(inner, self.folder / name / "root")
            return self.devices[name]

        self.agents[name] = load_agent(self.files[name], clock=lambda: self.now, wrap=wrap)
        self.agents[name].start()

    def cc_file(self, name: str, file: str) -> Path:
        """Return a parameter's file."""
        folder = f"root/sys/kernel/debug/mlx5/{PlayedNic.settings['pci']}/cc_params"
        return self.folder / name / folder / file

    def reboot(self, name: str) -> None:
        """Bring the device back with the vendor's values; its agent starts with it."""
        for knob, value in default_setting().to_nvidia().items():
            if knob in NIC_KNOBS:
                file = self.cc_file(name, DCQCN[knob].debugfs or "")
                if not file.exists():
                    file = file.with_name("gone")
                file.write_text(f"{value:.0f}\n")
        self.start(name)

    def pass_time(self, seconds: float) -> None:
        """Let time pass in steps, and watch how long devices are away."""
        until = self.now + seconds
        while self.now < until:
            self.now += STEP_S
            for name, agent in self.agents.items():
                agent.guard.tick()
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
        """End the agents."""
        for agent in self.agents.values():
            agent.close()


class _Client(AgentClient):
    """A connection with the network's faults, and with others that strike at a certain call."""

    def __init__(self, fleet: _Fleet, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._fleet = fleet
        self._earlier: list[tuple[str, Any]] = []

    def send(self, method: str, request: Any) -> Any:
        fleet = self._fleet
        fault = fleet.armed.pop((self.name, method), "")
        if fault == "controller-crash":
            raise _CrashError
        if fault == "partition":
            fleet.cut.add(self.name)
        if self.name in fleet.cut or fault == "request-lost":
            return _Lost()
        if fault == "agent-crash":
            fleet.start(self.name)
        if fault == "reboot":
            fleet.reboot(self.name)
        if fault == "duplicated":
            _wait(super().send(method, request))
        future = super().send(method, request)
        if fault == "outdated":
            for earlier in self._earlier:
                _wait(super().send(*earlier))
        self._earlier.append((method, request))
        if fault == "reply-lost":
            _wait(future)
            return _Lost()
        return future


def _no_space(record: object) -> None:
    raise DeviceError("the journal cannot be written (no space left, on purpose)")


def _wait(future: Any) -> None:
    try:
        future.result()
    except grpc.RpcError:
        return


def _arm(fleet: _Fleet, name: str, undo: list[Callable[[], object]]) -> None:
    """Prepare one fault for the next change."""
    rng, device = fleet.random, fleet.random.choice(NAMES)
    fleet.outcome.faults.append(f"{name} at {device}")
    if name == "write-fails":
        fleet.devices[device].fails = rng.randrange(1, 6)
    elif name == "read-back-lies":
        fleet.devices[device].lies = rng.randrange(1, 6)
    elif name == "clock-jump":
        fleet.now += rng.uniform(0.0, 3.0 * TRIAL_S)
    elif name == "file-gone":
        file = fleet.cc_file(device, rng.choice(("rp_gd", "rp_ai_rate", "rp_time_reset")))
        file.rename(file.with_name("gone"))
        undo.append(lambda: os.rename(file.with_name("gone"), file))
    elif name == "disk-full":
        journal = fleet.agents[device].journal
        vars(journal)["append"] = _no_space
        undo.append(lambda: vars(journal).pop("append"))
    else:
        fleet.armed[(device, rng.choice(METHODS))] = name


def _change(fleet: _Fleet) -> None:
    """Carry out one change of all devices while up to three faults strike."""
    rng = fleet.random
    wanted = {"rp_ai_rate": rng.randrange(1, 500) * 1e6, "rp_gd": float(rng.randrange(10, 14)),
              "rp_time_reset": rng.randrange(1, 900) * 1e-6,
              "rp_hai_rate": rng.randrange(10, 5000) * 1e6}  # fmt: skip
    undo: list[Callable[[], object]] = []
    for name in rng.sample(sorted(FAULTS), rng.randrange(0, 4)):
        _arm(fleet, name, undo)
    controller = Controller(
        fleet.fleet, fleet.folder, lambda *args, **more: _Client(fleet, *args, **more)
    )
    try:
        controller.open()
        controller.carry_out({name: {"": wanted} for name in NAMES}, "a case")
        fleet.outcome.confirmed += 1
    except (DcqcnGymError, _CrashError):
        fleet.pass_time(rng.uniform(0.0, TRIAL_S))
    finally:
        controller.close()
    fleet.armed.clear()
    fleet.pass_time(rng.uniform(0.0, 1.5 * TRIAL_S))
    for heal in undo:
        heal()
    for device in fleet.devices.values():
        device.fails = device.lies = 0
    if rng.random() < 0.5:
        fleet.cut.clear()


def run_case(seed: int, folder: Path, certs: Path | None = None) -> Outcome:
    """Run a case in an empty folder; AssertionError names what is not as it must be."""
    if certs is None:
        write_all(folder / "certs", NAMES, ["controller"])
    else:
        (folder / "certs").symlink_to(certs)
    fleet = _Fleet(folder, seed)
    try:
        for _ in range(4):
            _change(fleet)
        fleet.cut.clear()
        fleet.pass_time(2.0 * TRIAL_S)
        for name, agent in fleet.agents.items():
            what = f"seed {seed}, {name}: {agent.guard.status} after {fleet.outcome.faults}"
            assert fleet.held(name) == fleet.confirmed(name), what
            assert agent.guard.status.state in ("idle", "staged"), what
        return fleet.outcome
    finally:
        fleet.close()


@contextmanager
def _certificates() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        write_all(Path(folder), NAMES, ["controller"])
        yield Path(folder)


def main() -> None:
    """Run cases from seed 0 on and say what they did."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    longest, confirmed, faults = 0.0, 0, 0
    with _certificates() as certs:
        for seed in range(given.first, given.first + given.cases):
            with tempfile.TemporaryDirectory() as folder:
                outcome = run_case(seed, Path(folder), certs)
            longest = max(longest, outcome.longest_away_s)
            confirmed += outcome.confirmed
            faults += len(outcome.faults)
    print(
        f"{given.cases} cases, {faults} faults, {confirmed} changes confirmed; every device ended "
        f"at a confirmed setting; longest time away: {longest:g} s (a trial lasts {TRIAL_S:g} s)"
    )


if __name__ == "__main__":
    main()
