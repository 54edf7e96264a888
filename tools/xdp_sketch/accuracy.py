"""The Elastic Sketch as an XDP program: flow sizes of each interval against the exact ones.

    python tools/xdp_sketch/accuracy.py [--buckets 2048 32] [--write FILE]

RoCE v2 frames of FB_Hadoop flows go out of one network namespace by a raw socket and through a veth
pair into another, where sketch.bpf.c counts them; after each interval its maps are read and
cleared. Exact are the sender's own counts. Needs root, clang, bpftool and a kernel with BPF; else
it says in one sentence what is missing and ends with status 3.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import mmap
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.table import Table, as_markdown

HERE = Path(__file__).parent
WAYS = 7
LIGHT_A_BUCKET = 32
"""Counters of the light part, a bucket of the heavy one: three quarters of the memory."""
PAYLOAD, ACTIVE = 1000, 200
"""Bytes of a packet, and flows that send in turns at a time."""
BPF_OBJ_GET, SYS_BPF = 7, 321
FLAG, CLONE_NEWNET = 0x8000_0000, 0x4000_0000


class MissingError(Exception):
    """What this machine lacks, in one sentence."""


def bpf_object(path: Path) -> int:
    """Return a descriptor of a pinned map."""
    name = ctypes.create_string_buffer(str(path).encode())
    attributes = ctypes.create_string_buffer(struct.pack("<QI", ctypes.addressof(name), 0), 120)
    found = ctypes.CDLL(None, use_errno=True).syscall(SYS_BPF, BPF_OBJ_GET, attributes, 120)
    if found < 0:
        raise OSError(ctypes.get_errno(), f"{path}: {os.strerror(ctypes.get_errno())}")
    return int(found)


def check() -> None:
    """Raise :class:`MissingError` where BPF cannot be used."""
    for program in ("clang", "bpftool", "ip"):
        if shutil.which(program) is None:
            raise MissingError(f"{program} is not installed")
    if os.geteuid() != 0:
        raise MissingError("XDP programs are loaded by root alone")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(SYS_BPF, 0, ctypes.create_string_buffer(120), 120)
    if ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        raise MissingError("this kernel has no bpf() for us")


def run(*words: str) -> str:
    """Run a program; return what it printed."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError(f"`{' '.join(words)}`: {done.stderr.strip()[:300]}")
    return done.stdout


@dataclass
class Sketch:
    """The maps of the program, in memory that the kernel writes."""

    heavy: np.ndarray  # buckets x 16: keys, then bytes
    light: np.ndarray
    seen: np.ndarray

    def read(self) -> tuple[np.ndarray, int]:
        """Return the bytes of every flow that has a place, and those of all others together."""
        keys, held = self.heavy[:, :WAYS], self.heavy[:, WAYS + 1 : 2 * WAYS + 1]
        there = keys != 0
        places = (keys.astype(np.uint64) * 0x9E3779B1 & 0xFFFFFFFF) % len(self.light)
        flagged = there & (held & FLAG != 0)
        sizes = (held & ~np.uint32(FLAG)).astype(np.int64)
        sizes += np.where(flagged, self.light[places.astype(np.int64)].astype(np.int64), 0)
        return sizes[there], int(self.light.sum())

    def clear(self) -> None:
        """Begin the next interval."""
        self.heavy[:] = 0
        self.light[:] = 0
        self.seen[:] = 0


@contextmanager
def loaded(folder: Path, buckets: int) -> Iterator[tuple[Sketch, Path]]:
    """Compile and load the program; yield its maps and where it is pinned."""
    binary, light = folder / "sketch.o", buckets * LIGHT_A_BUCKET
    run("clang", "-O2", "-g", "-target", "bpf", f"-DBUCKETS={buckets}", f"-DLIGHT={light}",
        f"-I/usr/include/{os.uname().machine}-linux-gnu", "-c", str(HERE / "sketch.bpf.c"),
        "-o", str(binary))  # fmt: skip
    pins = Path(f"/sys/fs/bpf/dcqcn-gym-{os.getpid()}")
    if not os.path.ismount("/sys/fs/bpf"):
        run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")
    pins.mkdir()
    try:
        run("bpftool", "prog", "load", str(binary), str(pins / "prog"), "pinmaps", str(pins))
        page = mmap.PAGESIZE

        def view(name: str, kind: str, shape: tuple[int, ...]) -> np.ndarray:
            size = int(np.prod(shape)) * np.dtype(kind).itemsize
            memory = mmap.mmap(bpf_object(pins / name), -(-size // page) * page)
            return np.frombuffer(memory, dtype=kind)[: int(np.prod(shape))].reshape(shape)

        yield Sketch(view("heavy", "<u4", (buckets, 2 * WAYS + 2)), view("light", "<u8", (light,)),
                     view("seen", "<u8", (2,))), pins / "prog"  # fmt: skip
    finally:
        shutil.rmtree(pins, ignore_errors=True)


@contextmanager
def link(program: Path) -> Iterator[socket.socket]:
    """Yield a raw socket at one end of a veth pair; the program is at the other."""
    one, two = f"dg{os.getpid()}a", f"dg{os.getpid()}b"
    spaces = one, two
    try:
        for space in spaces:
            run("ip", "netns", "add", space)
        run("ip", "link", "add", "name", one, "netns", one, "type", "veth", "peer", "name", two,
            "netns", two)  # fmt: skip
        for space in spaces:
            run("ip", "-n", space, "link", "set", space, "up")
        # not `ip netns exec`, which has a /sys of its own, without the pinned program
        run("nsenter", f"--net=/var/run/netns/{two}", "bpftool", "net", "attach", "xdpgeneric",
            "pinned", str(program), "dev", two)  # fmt: skip
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/var/run/netns/{one}", os.O_RDONLY)
        _enter(there)
        try:
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            raw.bind((one, 0))
        finally:
            _enter(own)
        with raw:
            yield raw
    finally:
        for space in spaces:
            with suppress(MissingError):
                run("ip", "netns", "del", space)


def _enter(space: int) -> None:
    """Move this thread into a network namespace (Python has os.setns from 3.12 on)."""
    if ctypes.CDLL(None, use_errno=True).setns(space, CLONE_NEWNET):
        raise MissingError(f"setns: {os.strerror(ctypes.get_errno())}")


def frame(source: int, pair: int) -> bytes:
    """Return a RoCE v2 frame: a middle packet of a write by host ``source`` on a queue pair."""
    body = bytes([0x07, 0, 0xFF, 0xFF, 0]) + pair.to_bytes(3, "big") + bytes(4 + PAYLOAD + 4)
    udp = struct.pack(">HHHH", 0xC000 + pair % 999, 4791, 8 + len(body), 0) + body
    ip = struct.pack(">BBHIBBH4s4s", 0x45, 106, 20 + len(udp), 0, 64, 17, 0,
                     struct.pack(">I", 0x0A000000 + source), bytes([10, 0, 0, 1]))  # fmt: skip
    return b"\xff" * 12 + b"\x08\x00" + ip + udp


class Flows:
    """Flows of FB_Hadoop's sizes: :data:`ACTIVE` of them send in turns, and others follow."""

    def __init__(self, seed: int) -> None:
        points = load_scenario("fb-hadoop").workloads[0].cdf.points  # type: ignore[attr-defined]
        self._sizes, self._shares = np.array(points).T
        self._random = np.random.default_rng(seed)
        self._number = 0
        self._live = [self._new() for _ in range(ACTIVE)]

    def _new(self) -> tuple[bytes, int, list[int]]:
        self._number += 1
        size = np.interp(self._random.random(), self._shares, self._sizes)
        packets = max(1, round(float(size) / PAYLOAD))
        return frame(self._number % 128, self._number), self._number, [packets]

    def send(self, raw: socket.socket, seconds: float) -> dict[int, int]:
        """Send for so long; return flow -> bytes that went out."""
        sent: dict[int, int] = {}
        until, at = time.perf_counter() + seconds, 0
        while time.perf_counter() < until:
            data, flow, left = self._live[at]
            raw.send(data)
            sent[flow] = sent.get(flow, 0) + PAYLOAD
            left[0] -= 1
            if not left[0]:
                self._live[at] = self._new()
            at = (at + 1) % ACTIVE
        return sent


def bins(sizes: np.ndarray) -> np.ndarray:
    """Return flows by log2 of their bytes."""
    logs = np.floor(np.log2(np.maximum(sizes, 1))).astype(int)
    return np.bincount(np.clip(logs, 0, 40), minlength=41)


def accuracy(found: np.ndarray, exact: np.ndarray) -> float:
    """Return 1 less the flows in another bin, as a share of both (weighted mean relative error)."""
    both = int((found + exact).sum())
    return 1.0 - float(np.abs(found - exact).sum()) / both if both else 1.0


def cost_ns(program: Path, folder: Path) -> float:
    """Return nanoseconds a packet, by the kernel's own test run of a million."""
    (folder / "frame").write_bytes(frame(1, 77))
    said = run("bpftool", "prog", "run", "pinned", str(program), "data_in", str(folder / "frame"),
               "repeat", "1000000")  # fmt: skip
    match = re.search(r"duration \(average\): (\d+)ns", said)
    return float(match[1]) if match else float("nan")


def intervals(sketch: Sketch, flows: Flows, raw: socket.socket, ms: float, count: int) -> list[str]:
    """Return the cells of so many intervals of a length."""
    found = []
    for _ in range(count):
        sketch.clear()
        sent = flows.send(raw, ms * 1e-3)
        time.sleep(0.002)  # what is under way arrives
        sizes, light = sketch.read()
        exact = np.array(list(sent.values()))
        lost = int(exact.sum() // PAYLOAD - sketch.seen[1])
        share = light / max(int(exact.sum()), 1)
        found.append((len(exact), len(sizes), accuracy(bins(sizes), bins(exact)), share, lost))
    flows_there, held, right, share, _ = np.mean(found, axis=0)
    worst, lost = min(one[2] for one in found), sum(one[4] for one in found)
    return [f"{ms:g} ms", f"{flows_there:.0f}", f"{held:.0f}", f"{right:.4f}", f"{worst:.4f}",
            f"{share:.2%}", str(lost)]  # fmt: skip


def measured(buckets: int, intervals_ms: list[float], count: int, seed: int) -> list[list[str]]:
    """Return a line an interval; the cost of a packet stands in each."""
    with tempfile.TemporaryDirectory() as place, loaded(Path(place), buckets) as (sketch, program):
        with link(program) as raw:
            flows = Flows(seed)
            lines = [intervals(sketch, flows, raw, ms, count) for ms in intervals_ms]
        cost = cost_ns(program, Path(place))
    size = buckets * (64 + 8 * LIGHT_A_BUCKET) / 1024
    return [[f"{size:.0f} KiB", *line, f"{cost:.0f} ns"] for line in lines]


def main() -> int:
    """Print the table; 3 where this machine cannot."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--intervals-ms", type=float, nargs="+", default=[1.0, 10.0, 100.0])
    parser.add_argument("--buckets", type=int, nargs="+", default=[2048, 32])
    parser.add_argument("--count", type=int, default=20, help="intervals of each length")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help="a Markdown file for the table")
    given = parser.parse_args()
    try:
        check()
        lines = [
            line
            for buckets in given.buckets
            for line in measured(buckets, given.intervals_ms, given.count, given.seed)
        ]
    except MissingError as error:
        print(f"no XDP here: {error}", file=sys.stderr)
        return 3
    columns = ("memory", "interval", "flows", "in the sketch", "accuracy", "worst",
               "bytes in the light part", "frames lost", "a packet")  # fmt: skip
    text = as_markdown([Table(columns, lines)])
    text += f"\n{given.count} intervals each; a packet by the kernel's own test run of a million\n"
    print(text)
    if given.write is not None:
        given.write.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
