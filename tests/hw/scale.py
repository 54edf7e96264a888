"""How long a change of a large fleet takes, and what it costs in CPU, on loopback.

Every agent has a port, a certificate and a journal of its own. With ``--scenario`` the agents are
those of the digital fabric in another process, NICs and switches with their Redis servers; with
``--agents N`` they are N NICs in this process.

    python tests/hw/scale.py --scenario fb-hadoop --write docs/results.md
    python tests/hw/scale.py --agents 1000 --write docs/results.md
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dcqcn_gym.benchmarks.markdown_page import insert
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import BackendError
from dcqcn_gym.core.knobs import default_setting
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.agent.server import Agent, load_agent
from dcqcn_gym.hw.certs import write_all
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.drivers import Targets
from dcqcn_gym.hw.fabric.devices import PlayedNic
from dcqcn_gym.hw.fleet import Fleet, load_fleet
from dcqcn_gym.runs.table import Table

__all__ = ["COLUMNS", "Took", "measure", "nic_agents"]

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Took:
    """Figures of some changes of a whole fleet."""

    devices: int
    seconds: Sequence[float]
    """From the first message of a change to its last confirmation."""
    skews_s: Sequence[float]
    """Between the first device that had applied it and the last."""
    controller_cpu_s: float
    """Per change."""
    agents_cpu_s: float | None
    """Per change, of all agents; None where they share the controller's process."""

    def row(self) -> list[str]:
        """Return them as cells of :data:`COLUMNS`."""
        own, agents = f"{self.controller_cpu_s:.2f} s", "in the controller's"
        if self.agents_cpu_s is not None:
            agents = f"{self.agents_cpu_s * 1e3 / self.devices:.1f} ms each"
        return [
            f"{self.devices}", f"{len(self.seconds)}", f"{float(np.median(self.seconds)):.2f} s",
            f"{max(self.seconds):.2f} s", f"{float(np.median(self.skews_s)):.2f} s",
            own, agents,
        ]  # fmt: skip


COLUMNS = (
    "devices", "changes", "apply to confirm, median", "longest", "first to last device",
    "CPU of the controller, a change", "CPU of the agents",
)  # fmt: skip


def measure(controller: Controller, changes: int, pids: Sequence[int] = ()) -> Took:
    """Change every device so often and say how long it took; the agents' processes are ``pids``."""
    nics, switches = set(controller.nics), set(controller.switches)
    seconds, skews = [], []
    agents, own = _cpu(pids), time.process_time()
    for i in range(changes):
        targets: dict[str, Targets] = {n: {"": {"rp_ai_rate": 10.0 + i % 50}} for n in nics}
        targets |= {n: {"": {"kmin": 50.0 + i % 40}} for n in switches}
        begun = time.monotonic()
        done = controller.carry_out(targets, f"change {i}")
        seconds.append(time.monotonic() - begun)
        skews.append(done.skew_s)
        if len(done.changed) != len(targets):
            raise BackendError(f"{len(done.changed)} of {len(targets)} devices changed")
    spent = (time.process_time() - own) / changes
    return Took(
        len(nics) + len(switches), seconds, skews, spent,
        (_cpu(pids) - agents) / changes if pids else None,
    )  # fmt: skip


def _cpu(pids: Sequence[int]) -> float:
    """Return the CPU seconds of processes so far."""
    found = 0
    for pid in pids:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        found += int(words[11]) + int(words[12])  # utime, stime
    return found / TICKS


@contextmanager
def nic_agents(folder: Path, number: int) -> Iterator[Fleet]:
    """Run agents of so many NICs in this process; yield their fleet."""
    names = [f"nic-{i}" for i in range(number)]
    write_all(folder / "certs", names, ["controller"])
    agents: list[Agent] = []
    try:
        for name in names:
            PlayedNic(folder / name / "root", default_setting())
            tls = {"ca": "../certs/ca.pem", "cert": f"../certs/{name}.pem",
                   "key": f"../certs/{name}.key"}  # fmt: skip
            text = {"device": name, "driver": "mlx5", "listen": "127.0.0.1:0", "root": "root",
                    "journal": "journal", "commands": "recorded", "tls": tls,
                    "settings": dict(PlayedNic.settings)}  # fmt: skip
            file = folder / name / "agent.toml"
            file.write_text(toml_text(text), encoding="utf-8")
            agents.append(load_agent(file))
            agents[-1].start()
        nics = [{"name": n, "address": a.address} for n, a in zip(names, agents, strict=True)]
        own = {"ca": "certs/ca.pem", "cert": "certs/controller.pem", "key": "certs/controller.key"}
        given = {"nics": nics, "tls": own, "timeout_s": 120.0, "trial_s": 600.0}
        yield validate(given, Fleet, source="fleet")
    finally:
        for agent in agents:
            agent.close()


@contextmanager
def _fabric(folder: Path, scenario: str) -> Iterator[tuple[Path, list[int]]]:
    """Run the digital fabric in a process of its own; yield its fleet's file and all processes."""
    words = [sys.executable, "-m", "dcqcn_gym.cli", "hw", "fabric", "-s", scenario]
    process = subprocess.Popen(
        [*words, "--out", str(folder / "f")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        if "agents run" not in said:
            raise BackendError(f"the digital fabric did not start: {said!r}")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        yield folder / "f" / "fleet.toml", [process.pid, *map(int, children.split())]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--scenario", help="the digital fabric of this scenario")
    what.add_argument("--agents", type=int, help="so many NICs in this process")
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--write", type=Path, help="a page with marks for the table")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="hw-"))
    try:
        if given.scenario is not None:
            with _fabric(folder, given.scenario) as (file, pids):
                controller = Controller(load_fleet(file), file.parent)
                text = _measured(controller, given.changes, pids)
        else:
            with nic_agents(folder, given.agents) as fleet:
                text = _measured(Controller(fleet, folder), given.changes, [])
    finally:
        shutil.rmtree(folder)
    option = f"--scenario {given.scenario}" if given.scenario else f"--agents {given.agents}"
    text = f"`python tests/hw/scale.py {option}`:\n\n{text}"
    print(text)
    if given.write is not None:
        insert(given.write, "fleet scale agents" if given.agents else "fleet scale fabric", text)


def _measured(controller: Controller, changes: int, pids: Sequence[int]) -> str:
    """Return what was measured, as Markdown."""
    try:
        controller.open()
        took = measure(controller, changes, pids)
        states = controller.ask_all("Status", pb.Nothing()).values()
        idle = count(s.state == "idle" for s in states)
        handles = len(os.listdir("/proc/self/fd"))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return (
            f"{Table(COLUMNS, [took.row()]).markdown()}\n\n"
            f"{idle} devices ended at a confirmed setting. This process: {handles} file handles, "
            f"{threading.active_count()} threads of Python, {memory:.0f} MiB at most; "
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} over the last minute.\n"
        )
    finally:
        controller.close()


if __name__ == "__main__":
    main()
