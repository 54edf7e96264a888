"""The program that an agent starts for flows by RDMA WRITE: perftest, one process for each flow.

It reads a schedule from its standard input, keeps an ``ib_write_bw`` waiting for every other host,
and begins one towards another host whenever a flow is due. Two flows of one pair run one after the
other. At the end, or when it is told to end, it prints a table of what ran, by size. perftest sets
up a connection for each flow, which takes its time: how late flows began is in the table.

    python -m dcqcn_gym.hw.load.flows --own 0 --first-port 18600 < schedule.json
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.core.sums import count, mean
from dcqcn_gym.hw.load.outputs import FLOW_COLUMNS, bandwidths
from dcqcn_gym.hw.load.waiting import Waiting, begin

PROGRAM = "ib_write_bw"
LEAST_MESSAGES = 5
"""perftest sends no fewer."""
LARGEST_MESSAGE = 2**23
"""Bytes; perftest sends no larger ones."""
CLASSES = (10_000, 100_000, 1_000_000, 10**12)
"""Largest sizes of the table's rows."""
BEGIN_S = 1.0
"""Time for all hosts to wait before the first flow."""
LINGER_S = 5.0
"""Time without a visit after which no others' flows are waited for, once the last was due."""
TRIES = 20
"""How often a flow is tried: the other side waits again only a moment after the one before."""
STEP_S = 0.005


def messages_of(size: int) -> tuple[int, int]:
    """Return message size and number of messages for a flow; at most a few bytes more than it."""
    n = max(LEAST_MESSAGES, math.ceil(size / LARGEST_MESSAGE))
    return math.ceil(size / n), n


@dataclass
class LoadFlow:
    """One flow; times in seconds of this program's clock."""

    to: int
    size: int
    due_s: float
    begun_s: float = 0.0
    ended_s: float = 0.0
    tries: int = 0
    bps: float | None = None
    """As perftest saw it; None if it failed."""


@dataclass
class LoadFlows:
    """The flows of one host; :meth:`step` does what is due."""

    own: int
    peers: Sequence[str]
    first_port: int
    options: Sequence[str]
    until_s: float
    waiting: deque[LoadFlow]
    ended: list[LoadFlow] = field(default_factory=list)
    _queued: dict[int, deque[LoadFlow]] = field(default_factory=dict)
    _running: dict[int, tuple[LoadFlow, subprocess.Popen[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        others = (peer for peer in range(len(self.peers)) if peer != self.own)
        words = [*self._words(), "-s", str(LARGEST_MESSAGE)]
        self._waiting = Waiting(words, self.first_port, others)

    def _words(self) -> list[str]:
        return [PROGRAM, "--report_gbits", *self.options]

    def step(self, now: float) -> bool:
        """Do what is due; return False once everything has ended."""
        self._waiting.keep()
        while self.waiting and self.waiting[0].due_s <= now:
            flow = self.waiting.popleft()
            self._queued.setdefault(flow.to, deque()).append(flow)
        for peer in list(self._running):
            self._look(peer, now)
        for peer, flows in self._queued.items():
            if flows and peer not in self._running:
                self._begin(flows.popleft(), now)
        busy = self.waiting or self._running or any(self._queued.values())
        return bool(busy) or now < max(self.until_s, self._waiting.visited_s + LINGER_S)

    def _begin(self, flow: LoadFlow, now: float) -> None:
        flow.begun_s = flow.begun_s or now
        flow.tries += 1
        size, n = messages_of(flow.size)
        port = str(self.first_port + self.own)
        own = ["-s", str(size), "-n", str(n), "-p", port, self.peers[flow.to]]
        process = begin([*self._words(), *own])
        self._running[flow.to] = flow, process

    def _look(self, peer: int, now: float) -> None:
        """Take up a flow's end, or try it again if nobody waited for it."""
        flow, process = self._running[peer]
        if process.poll() is None:
            return
        del self._running[peer]
        said, _ = process.communicate()
        if process.returncode and flow.tries < TRIES:
            self._queued[peer].appendleft(flow)
            return
        flow.ended_s = now
        try:
            flow.bps = bandwidths(said)[-1].mean_bps
        except DeviceError:
            flow.bps = None
        self.ended.append(flow)

    def close(self) -> None:
        """End every process."""
        self._waiting.close()
        for _, process in self._running.values():
            process.kill()
            process.communicate()


def table(ended: Sequence[LoadFlow], given: int) -> str:
    """Return what ran as text, which :func:`~dcqcn_gym.hw.load.outputs.flow_classes` reads."""
    lines = [f"rdma_write_flows: {len(ended)} of {given} flows ended", FLOW_COLUMNS]
    least = 0
    for most in CLASSES:
        own = [flow for flow in ended if least < flow.size <= most]
        done = [flow for flow in own if flow.bps is not None]
        late = [1e3 * (flow.begun_s - flow.due_s) for flow in own]
        took = np.array([1e3 * (flow.ended_s - flow.begun_s) for flow in done] or [0.0])
        lines.append(
            f"{most} {len(own)} {len(own) - len(done)} {count(flow.size for flow in done)} "
            f"{mean(took.tolist()):.3f} {np.percentile(took, 99):.3f} "
            f"{mean(late or [0.0]):.3f} {mean([f.bps or 0.0 for f in done] or [0.0]) / 1e9:.3f}"
        )
        least = most
    return "\n".join(lines)


def _flows(given: dict[str, Any], own: int, first_port: int, options: Sequence[str]) -> LoadFlows:
    begin = time.monotonic() + BEGIN_S
    columns = zip(given["to"], given["bytes"], given["at_us"], strict=True)
    waiting = deque(LoadFlow(to, size, begin + at * 1e-6) for to, size, at in columns)
    until = begin + given["seconds"] + LINGER_S
    return LoadFlows(own, given["peers"], first_port, options, until, waiting)


def main() -> None:
    """Run a schedule."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--own", type=int, required=True, help="number of this host")
    parser.add_argument("--first-port", type=int, default=18600)
    parser.add_argument("--device", help="of RDMA, as mlx5_0")
    words = parser.parse_args()
    options = [] if words.device is None else ["-d", words.device]

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    flows = _flows(json.load(sys.stdin), words.own, words.first_port, options)
    given = len(flows.waiting)
    try:
        while flows.step(time.monotonic()):
            time.sleep(STEP_S)
    except KeyboardInterrupt:
        pass
    finally:
        flows.close()
        print(table(flows.ended, given), flush=True)


if __name__ == "__main__":
    main()
