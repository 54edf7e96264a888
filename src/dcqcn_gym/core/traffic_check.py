"""Can this traffic answer? Coverage of a capture, its busiest windows, the length a trace needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

FEWEST = 20
"""With fewer flows than this, one host in all of them may be chance."""


@dataclass(frozen=True)
class Coverage:
    """Who is in a list of flows: shares are of the hosts of the network, and of their pairs."""

    flows: int
    hosts: int
    senders: int
    receivers: int
    pairs: int
    at: int | None
    """The host that is an end of every flow, sending and receiving: a capture at one host."""

    @property
    def problem(self) -> str:
        """Why these flows are not the network's traffic; empty where nothing speaks against it."""
        if self.at is None:
            return ""
        return (
            f"all {self.flows} flows begin or end at h{self.at}, one of {self.hosts} hosts: this "
            "is a capture at one host, and what its flows met in the network is not in it"
        )

    @property
    def text(self) -> str:
        """Return it in one line."""
        possible = max(1, self.hosts * (self.hosts - 1))
        return (
            f"{self.flows} flows; {self.senders} senders and {self.receivers} receivers of "
            f"{self.hosts} hosts, {100 * self.pairs / possible:.2g} % of their pairs"
        )


def coverage(src: Ints, dst: Ints, hosts: int) -> Coverage:
    """Return who is in a list of flows; ``src`` and ``dst`` are numbers below ``hosts``."""
    at = None
    if src.size >= FEWEST:
        for host in {int(src[0]), int(dst[0])}:
            ends = (src == host) | (dst == host)
            both = bool((src == host).any() and (dst == host).any())
            others = len({*src.tolist(), *dst.tolist()}) - 1
            if bool(ends.all()) and both and others > 1:
                at = host
    pairs = len(set(zip(src.tolist(), dst.tolist(), strict=True)))
    senders, receivers = len(set(src.tolist())), len(set(dst.tolist()))
    return Coverage(int(src.size), hosts, senders, receivers, pairs, at)


@dataclass(frozen=True)
class Window:
    """A stretch of a trace in seconds, with what starts in it."""

    begin_s: float
    end_s: float
    flows: int
    bytes: int

    @property
    def text(self) -> str:
        """Return it as ``--window`` takes it, with what is in it."""
        rate = self.bytes * 8e-9 / max(self.end_s - self.begin_s, 1e-12)
        return f"{self.begin_s:.6g}:{self.end_s:.6g} ({self.flows} flows, {rate:.3g} Gb/s)"


def busiest_windows(start_ns: Ints, size: Ints, window_s: float, most: int = 3) -> list[Window]:
    """Return the windows of a length in which most bytes start, the busiest first."""
    if not start_ns.size:
        return []
    which = start_ns // max(1, round(window_s * 1e9))
    numbers, at = np.unique(which, return_inverse=True)
    sums = np.bincount(at, weights=size.astype(np.float64))
    flows = np.bincount(at)
    order = np.argsort(-sums, kind="stable")[:most]
    return [
        Window(
            float(numbers[i] * window_s), float((numbers[i] + 1) * window_s),
            int(flows[i]), int(sums[i]),
        )
        for i in order
    ]  # fmt: skip


@dataclass(frozen=True)
class Length:
    """How much of a trace a session needs, all in ms, and which options fit what is there."""

    there_ms: float
    warmup_ms: float
    interval_ms: float
    intervals: int
    parts: int
    part_intervals: int

    @property
    def needed_ms(self) -> float:
        """A warm-up and the search, then a warm-up and the intervals of every later part."""
        part = self.warmup_ms + self.part_intervals * self.interval_ms
        return self.warmup_ms + self.intervals * self.interval_ms + self.parts * part

    @property
    def enough(self) -> bool:
        """Whether the trace is as long as that."""
        return self.there_ms >= self.needed_ms

    def fitting(self) -> Length | None:
        """Return the longest session that fits, of at least two parts; None if none does."""
        for parts in range(max(2, self.parts), 1, -1):
            for part in range(self.part_intervals, 3, -1):
                used = self.warmup_ms + parts * (self.warmup_ms + part * self.interval_ms)
                n = math.floor((self.there_ms - used) / self.interval_ms)
                if n >= max(5, part):
                    n = min(n, self.intervals)
                    return Length(self.there_ms, self.warmup_ms, self.interval_ms, n, parts, part)
        return None

    @property
    def options(self) -> str:
        """Return the options of ``tune`` that ask for this session."""
        return (
            f"--intervals {self.intervals} --eval-seeds {self.parts} "
            f"--eval-intervals {self.part_intervals}"
        )

    @property
    def text(self) -> str:
        """Say what is missing, and what would fit."""
        fits = self.fitting()
        within = f", or fit what is there: {fits.options}" if fits else ""
        return (
            f"the trace has {self.there_ms:.4g} ms and this session needs {self.needed_ms:.4g}: "
            f"capture {self.needed_ms:.4g} ms{within}"
        )
