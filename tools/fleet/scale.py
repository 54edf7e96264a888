"""How long a change of a large fleet takes, and what it costs in CPU, on loopback.

With ``--scenario`` the agents are those of the digital fabric in another process, NICs and switches
with their Redis servers, each with a port and a certificate of its own; with ``--agents N`` they
are N of `simulated_agents.py`, with default timers.

    python tools/fleet/scale.py --scenario fb-hadoop --write docs/measured/results.md
    python tools/fleet/scale.py --agents 1000 --agents 10000 --write docs/measured/results.md
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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import BackendError, StateError
from dcqcn_gym.core.sums import count, total
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.drivers import Targets
from dcqcn_gym.hw.fleet import load_fleet
from dcqcn_gym.report.markdown_page import insert
from dcqcn_gym.runs.table import Table

__all__ = [
    "COLUMNS", "Took", "Walk", "calls", "files_needed", "measure", "per_agent", "walk", "walks",
]  # fmt: skip

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
    nics, switches = set(controller.agents.nics), set(controller.agents.switches)
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


@contextmanager
def simulated(folder: Path, number: int) -> Iterator[int]:
    """Run so many simulated agents in a process of their own; yield its number."""
    words = [sys.executable, str(Path(__file__).with_name("simulated_agents.py")), str(folder)]
    process = subprocess.Popen([*words, "--agents", str(number)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if "listen" not in process.stdout.readline():
            raise BackendError("the simulated agents did not start")
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)


@dataclass(frozen=True)
class Step:
    """What one thing asked of all agents took."""

    seconds: float
    controller_cpu_s: float
    agents_cpu_s: float


@dataclass(frozen=True)
class Walk:
    """A fleet opened, asked, changed, confirmed, opened anew and stopped."""

    agents: int
    refused: str
    """What is said of a change with default timers; empty if it was confirmed."""
    trial_s: float
    steps: dict[str, Step]
    files: tuple[int, int]
    """Of the controller and of the agents' process, at most."""
    memory_mib: tuple[float, float]


def files_needed(number: int) -> str:
    """Return why so many agents cannot be simulated here; empty if they can."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    short = most != resource.RLIM_INFINITY and most < number + 200
    return (
        f"{number} agents need {number + 200} open files, and {most} are allowed" if short else ""
    )


def walk(number: int) -> Walk:
    """Simulate so many agents and have a controller do everything with them once."""
    with tempfile.TemporaryDirectory(prefix="hw-", dir=_memory_folder()) as name:
        folder = Path(name)
        with simulated(folder, number) as pid:
            return _Walker(folder, pid, number).walk()


def _memory_folder() -> str | None:
    """Return a folder in memory, where there is one: the disk of real agents is their own."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class _Walker:
    def __init__(self, folder: Path, pid: int, number: int) -> None:
        self._folder, self._pid, self._number = folder, pid, number
        self._steps: dict[str, Step] = {}
        self._files = (0, 0)

    def _timed(self, name: str, act: Callable[[], Any]) -> Any:
        own, others, begun = time.process_time(), _cpu([self._pid]), time.monotonic()
        found = act()
        self._steps[name] = Step(
            time.monotonic() - begun, time.process_time() - own, _cpu([self._pid]) - others
        )
        self._files = (_files(os.getpid()), _files(self._pid))
        return found

    def walk(self) -> Walk:
        """Do it all; BackendError if an agent does not follow."""
        file = self._folder / "fleet.toml"
        fleet = self._timed("fleet's file", lambda: load_fleet(file))
        refused, trial_s = "", fleet.trial_s
        controller = Controller(fleet, self._folder)
        try:
            self._timed("open", controller.agents.open)
            self._timed("status", controller.agents.states)
            try:
                self._change(controller, 40.0)
            except StateError as error:
                refused, trial_s = str(error), float(str(error).split("trial_s = ")[1].split()[0])
        finally:
            controller.close()
        if refused:  # before anything was written
            fleet = fleet.model_copy(update={"trial_s": trial_s})
            controller = Controller(fleet, self._folder)
            try:
                controller.agents.open()
                self._change(controller, 40.0)
            finally:
                controller.close()
        controller = Controller(fleet, self._folder)
        try:
            states, left = self._timed("stop, connections included", lambda: self._stop(controller))
        finally:
            controller.close()
        if left or {s.state for s in states.values()} != {"stopped"}:
            raise BackendError(f"{len(left)} of {self._number} agents did not stop")
        held = float(_status(self._pid, "VmHWM")) / 1024.0
        own = float(_status(os.getpid(), "VmHWM")) / 1024.0  # ru_maxrss has the parent's too
        return Walk(self._number, refused, trial_s, self._steps, self._files, (own, held))

    def _change(self, controller: Controller, rate: float) -> None:
        targets: dict[str, Targets] = {
            n: {"": {"rp_ai_rate": rate}} for n in controller.agents.nics
        }
        done = self._timed("stage and apply", lambda: controller.try_out(targets, "scale"))
        left_s = done.ends_s - time.monotonic()
        self._timed(
            "confirm", lambda: controller.confirm(done.transaction, done.changed, "scale", left_s)
        )
        if len(done.changed) != self._number:
            raise BackendError(f"{len(done.changed)} of {self._number} agents changed")

    def _stop(self, controller: Controller) -> Any:
        controller.agents.connect()
        return controller.rollback.stop(True, "scale")


def _files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _status(pid: int, name: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def walks(numbers: Sequence[int]) -> list[Walk]:
    """Walk with each number of agents, every one in a fresh process of the controller."""
    found = []
    for number in numbers:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found.append(pool.submit(walk, number).result())
    return found


def calls(number: int) -> float:
    """Walk with so many agents; return the project's functions that its thread calls per agent.

    A figure that no other load on the machine moves, unlike CPU seconds.
    """
    seen = [0]

    def see(frame: FrameType, event: str, _: Any) -> None:
        seen[0] += event == "call" and "dcqcn_gym" in frame.f_code.co_filename

    sys.setprofile(see)
    try:
        walk(number)
    finally:
        sys.setprofile(None)
    return seen[0] / number


def walk_table(found: Sequence[Walk]) -> str:
    """Return a Markdown table of steps, what each fleet needed beside, and what was refused."""
    head = ["", *(f"{w.agents:,} agents: wall, CPU per agent (controller)" for w in found)]
    rows = []
    for name in found[0].steps:
        cells = [w.steps[name] for w in found]
        rows.append([name, *(
            f"{c.seconds:.2f} s, {c.controller_cpu_s * 1e3 / w.agents:.2f} ms"
            for c, w in zip(cells, found, strict=True)
        )])  # fmt: skip
    rows += [
        ["files: controller, agents", *(f"{w.files[0]:,}, {w.files[1]:,}" for w in found)],
        ["memory: controller, agents",
         *(f"{w.memory_mib[0]:.0f} MiB, {w.memory_mib[1]:.0f} MiB" for w in found)],
        ["trial_s", *(f"{w.trial_s:g}" for w in found)],
    ]  # fmt: skip
    said = "".join(f"\n\n{w.agents:,} agents with default timers: {w.refused}." for w in found
                   if w.refused)  # fmt: skip
    return f"{Table(head, rows).markdown()}{said}\n"


def per_agent(found: Walk, steps: Sequence[str] = ()) -> float:
    """Return the controller's CPU seconds per agent over all steps, or these."""
    chosen = steps or list(found.steps)
    return total(found.steps[name].controller_cpu_s for name in chosen) / found.agents


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--scenario", help="the digital fabric of this scenario")
    what.add_argument("--agents", type=int, action="append", help="simulated ones; repeatable")
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--write", type=Path, help="a page with marks for the table")
    given = parser.parse_args()
    if given.scenario:
        option, text = f"--scenario {given.scenario}", _of_fabric(given.scenario, given.changes)
    else:
        for short in filter(None, map(files_needed, given.agents)):
            raise SystemExit(f"skipped: {short}")
        option, text = " ".join(f"--agents {n}" for n in given.agents), _of_agents(given.agents)
    text = f"`python tools/fleet/scale.py {option}`:\n\n{text}"
    print(text)
    if given.write is not None:
        insert(given.write, "fleet scale agents" if given.agents else "fleet scale fabric", text)


def _of_agents(numbers: Sequence[int]) -> str:
    found = walks(numbers)
    ratio = per_agent(found[-1]) / per_agent(found[0])
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} over the last minute"
    return (
        f"{walk_table(found)}\nAn agent costs the controller {ratio:.2f} times as much CPU among "
        f"{numbers[-1]:,} as among {numbers[0]:,}; {load}.\n"
    )


def _of_fabric(scenario: str, changes: int) -> str:
    folder = Path(tempfile.mkdtemp(prefix="hw-"))
    try:
        with _fabric(folder, scenario) as (file, pids):
            return _measured(Controller(load_fleet(file), file.parent), changes, pids)
    finally:
        shutil.rmtree(folder)


def _measured(controller: Controller, changes: int, pids: Sequence[int]) -> str:
    """Return what was measured, as Markdown."""
    try:
        controller.agents.open()
        took = measure(controller, changes, pids)
        states = controller.agents.ask_all("Status", pb.Nothing()).values()
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
