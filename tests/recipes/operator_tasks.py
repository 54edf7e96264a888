"""Ten tasks of an operator who has docs/operators.md and nothing else, each timed.

``python tests/recipes/operator_tasks.py [TASK...]`` carries them out, each in an empty folder, and
prints a table of lines and seconds. The files are made up; every word and option that is
typed stands on the page.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "traffic"))
from making import netflow5, pcap, roce, udp

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operators.md").read_text(encoding="utf-8")
BLOCKS: Mapping[str, str] = dict(
    re.findall(r"<!-- file (\S+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL)
)
SIZES, SHARES = (4000, 30_000, 200_000, 1_000_000), (35, 30, 25, 10)
FEW = "--tuner advise --intervals 4 --eval-seeds 3 --eval-intervals 4"
Flow = tuple[float, int, int, int]


def flows(seconds: float, load: float, *, gbps: float = 25, hosts: int = 8) -> list[Flow]:
    """Start in s, source, target and bytes of flows as in a cluster."""
    draw = random.Random(1)
    gap = sum(s * p for s, p in zip(SIZES, SHARES, strict=True)) * 8e-11 / (gbps * load)
    found = []
    for host in range(hosts):
        at = draw.expovariate(1 / gap)
        while at < seconds:
            other = draw.choice([h for h in range(hosts) if h != host])
            found.append((at, host, other, draw.choices(SIZES, SHARES)[0]))
            at += draw.expovariate(1 / gap)
    return sorted(found)


def address(host: int) -> str:
    """The address of a host."""
    return f"10.0.0.{host + 1}"


def captured(of: list[Flow]) -> bytes:
    """A capture of RoCE v2, a packet of 1 KB every 0.4 us of a flow."""
    frames = []
    for number, (at, source, target, size) in enumerate(of):
        n = max(2, -(-size // 1024))
        for i, kind in enumerate([0x06] + [0x07] * (n - 2) + [0x08]):
            frame = roce(address(source), address(target), kind, i, 1024, 100 + number % 10_000)
            frames.append((round(at * 1e9) + 400 * i, frame))
    return pcap(sorted(frames, key=lambda f: f[0]), magic=0xA1B23C4D)


def exported(of: list[Flow]) -> bytes:
    """A capture of NetFlow as a collector receives it, 30 records a datagram."""
    rows = [(address(s), address(d), n, -(-n // 1024), round(at * 1e3)) for at, s, d, n in of]
    return pcap([
        (i, udp("192.0.2.1", "192.0.2.9", 2055, 2055, netflow5(rows[i : i + 30])))
        for i in range(0, len(rows), 30)
    ])  # fmt: skip


def present() -> dict[str, bytes]:
    """The page's scenario with a setting in force."""
    return {"present.toml": BLOCKS["present.toml"].encode()}


def limited() -> dict[str, bytes]:
    """The same with the page's guardrails."""
    return {"present.toml": (BLOCKS["present.toml"] + BLOCKS["guardrails.toml"]).encode()}


@dataclass(frozen=True)
class Task:
    """What an operator wants, has and types; ``answer`` is a pattern of what is said in the end."""

    name: str
    wants: str
    files: Callable[[], dict[str, bytes]]
    typed: tuple[str, ...]
    answer: str


TUNE = f"dcqcn-gym tune --scenario present.toml {FEW} --out run"
SWEEP = "dcqcn-gym sweep --scenario present.toml --metric slowdown-mice-p99 --seeds 2 --intervals 5"
ANSWER = r"(Deploy|Keep|A choice|Cannot tell).*"
TASKS = (
    Task("capture", "from a capture of all hosts to an answer",
         lambda: {**present(), "roce.pcap": captured(flows(0.015, 0.25))},
         ("dcqcn-gym traffic import roce.pcap --scenario present.toml --out traffic",
          f"dcqcn-gym tune --scenario traffic/scenario.toml {FEW} --out run"), ANSWER),
    Task("netflow", "from NetFlow to an answer",
         lambda: {**present(), "netflow.pcap": exported(flows(0.3, 0.4))},
         ("dcqcn-gym traffic import netflow.pcap --scenario present.toml --out traffic",
          "dcqcn-gym tune --scenario traffic/scenario.toml --tuner advise --out run"), ANSWER),
    Task("in force", "is my setting right, which is not NVIDIA's default?", present, (TUNE,),
         ANSWER),
    Task("knob", "which knob matters for small flows?", present,
         (f"{SWEEP} --knob kmin=50,100,400 --out sweep",
          f"{SWEEP} --knob RPG_AI_RATE=5,50,500 --out rate"), r"mice, p99"),
    Task("job", "does a setting shorten my job's iteration?",
         lambda: {"job.toml": BLOCKS["job.toml"].encode()},
         (f"dcqcn-gym tune --scenario job.toml {FEW} --out run",), ANSWER),
    Task("export", "commands for my SONiC switches, and the way back", present,
         (TUNE.replace("advise --intervals 4", "paraleon --intervals 10"),
          "dcqcn-gym emit run --format sonic --changed-only --force",
          "dcqcn-gym emit run --format sonic --changed-only --rollback"), r"WRED_PROFILE"),
    Task("cost", "what did a tune cost?", present, (TUNE, "cat run/timing.json"), r"cpu"),
    Task("two", "two settings side by side", present,
         ("dcqcn-gym simulate --scenario present.toml --set kmin=400 --intervals 20 "
          "--against initial --out runs/try",), r"slowdown"),
    Task("one-sided", "can a capture at one host tell?",
         lambda: {"roce.pcap": captured([f for f in flows(0.01, 0.4) if 3 in f[1:3]])},
         ("dcqcn-gym traffic import roce.pcap --page --out traffic",), r"capture at one host"),
    Task("guardrails", "an answer within limits of my own", limited, (TUNE,), ANSWER),
)  # fmt: skip


def carry_out(task: Task, folder: Path) -> tuple[float, str]:
    """Type a task; return the seconds of CPU that it took and what it said."""
    for name, data in task.files().items():
        (folder / name).write_bytes(data)
    env = dict(os.environ, COLUMNS="160")
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    said, begin = [], os.times()
    for line in task.typed:
        run = subprocess.run(
            shlex.split(line), cwd=folder, env=env, capture_output=True, text=True, timeout=600
        )
        said.append(run.stdout + run.stderr)
        if run.returncode:
            raise RuntimeError(f"{line}\n{said[-1]}")
    end = os.times()
    spent = end.children_user + end.children_system - begin.children_user - begin.children_system
    return spent, "\n".join(said)


def unknown_words(task: Task) -> list[str]:
    """Return the commands and options that a task types and the page does not show."""
    words = [word for line in task.typed for word in shlex.split(line)]
    commands = [" ".join(shlex.split(line)[:2]) for line in task.typed if line[0] == "d"]
    return [w for w in [*commands, *(w for w in words if w[:2] == "--")] if w not in PAGE]


def main(names: list[str]) -> None:
    """Print the table."""
    print("| wants | lines typed | CPU s | wall s | the last of what was said |")
    print("|---|---|---|---|---|")
    for task in TASKS:
        if names and task.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            spent, said = carry_out(task, Path(folder))
            wall = time.monotonic() - begin
        found = re.search(task.answer, said)
        shown = (found[0] if found else f"NOT FOUND in {said}").partition(":")[0]
        print(f"| {task.wants} | {len(task.typed)} | {spent:.0f} | {wall:.0f} | {shown} |")


if __name__ == "__main__":
    main(sys.argv[1:])
