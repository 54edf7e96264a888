"""Can this traffic answer? Coverage of a capture, its busiest windows, the length a trace needs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.errors import ConfigError, quote

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FEWEST = 20
"""With fewer flows than this, one host in all of them may be chance."""
EVERYWHERE = "capture at a mirror of every leaf, or at every host"


class Problem(NamedTuple):
    """Why nothing that runs show of some traffic would be true of the network, and what to do."""

    why: str
    step: str

    @property
    def text(self) -> str:
        """Both, for a line."""
        return f"this cannot tell which setting is right: {self.why}; {self.step}"


def sampled_problem(rate: int) -> Problem | None:
    """Return what is wrong with an export that counted one packet in ``rate``; None for 1."""
    if rate == 1:
        return None
    return Problem(
        f"the flows are of an export that counted one packet in {rate}: most flows of fewer "
        "packets are missing and all sizes are estimates",
        f"export without sampling, or {EVERYWHERE}",
    )


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
    apart: bool = False
    """Whether no host both sends and receives."""

    @property
    def problem(self) -> Problem | None:
        """Why these flows are not the network's traffic; None where nothing speaks against it."""
        if self.at is None:
            return None
        return Problem(
            f"all {self.flows} flows begin or end at h{self.at}, one of {self.hosts} hosts: this "
            "is a capture at one host, and what its flows met in the network is not in it",
            EVERYWHERE,
        )

    @property
    def text(self) -> str:
        """Return it in one line."""
        possible = max(1, self.hosts * (self.hosts - 1))
        apart = self.apart and self.flows >= FEWEST
        return (
            f"{self.flows} flows; {self.senders} senders and {self.receivers} receivers of "
            f"{self.hosts} hosts, {100 * self.pairs / possible:.3g} % of their pairs"
            + "; no host sends and receives: if hosts do, this is one direction of them"
            * apart
        )


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


def window_of(text: str | None) -> tuple[float, float] | None:
    """Return the window, in ms, of ``FROM:TO`` in seconds; None of None.

    Raises ConfigError for anything else.
    """
    if text is None:
        return None
    low, _, high = text.partition(":")
    try:
        found = float(low or 0), float(high)
    except ValueError:
        found = (0.0, 0.0)
    if not 0 <= found[0] < found[1] < 1e9:
        raise ConfigError(f"--window {quote(text)}; expected FROM:TO in seconds, such as 0.5:0.55")
    return 1e3 * found[0], 1e3 * found[1]


MOST_BEGINS = 1_000_000


def busiest_begin(starts_ns: Floats, sizes: Floats, length_ns: float, step_ns: float) -> float:
    """Return the begin, a multiple of ``step_ns``, of the stretch in which most bytes start.

    The stretch ends with the last start at the latest. Of several that are as busy the middle one
    is taken, so that what is busy does not lie at its edge.
    """
    order = np.argsort(starts_ns)
    starts, before = starts_ns[order], np.concatenate(([0.0], np.cumsum(sizes[order])))
    last = max(0.0, float(starts[-1]) - length_ns)
    step = step_ns * math.ceil(max(1.0, last / step_ns / MOST_BEGINS))
    begins = np.arange(0.0, last + 1, step)
    inside = (
        before[np.searchsorted(starts, begins + length_ns)]
        - before[np.searchsorted(starts, begins)]
    )
    best = np.flatnonzero(inside == inside.max())
    return float(begins[best[len(best) // 2]])


@dataclass
class Census:
    """Who is in a trace, and what starts in each of its windows; flows are added bit by bit."""

    window_s: float = 0.1
    flows: int = 0
    last_ns: int = 0
    pairs: set[tuple[int, int]] = field(default_factory=set)
    _windows: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add(self, src: Ints, dst: Ints, size: Ints, start_ns: Ints) -> None:
        """Count some flows: hosts, bytes, and their starts from the first flow on."""
        self.flows += int(src.size)
        self.last_ns = max(self.last_ns, int(start_ns.max(initial=0)))
        self.pairs.update(zip(src.tolist(), dst.tolist(), strict=True))
        which = start_ns // max(1, round(self.window_s * 1e9))
        numbers, at = np.unique(which, return_inverse=True)
        sums = np.bincount(at, weights=size.astype(np.float64))
        for number, flows, total in zip(numbers, np.bincount(at), sums, strict=True):
            known = self._windows.get(int(number), (0, 0))
            self._windows[int(number)] = known[0] + int(flows), known[1] + int(total)

    def coverage(self, hosts: int) -> Coverage:
        """Return who is in them, of a network of so many hosts."""
        senders, receivers = {src for src, _ in self.pairs}, {dst for _, dst in self.pairs}
        at = None
        if self.flows >= FEWEST and len(senders | receivers) > 2:
            ends = set.intersection(*(set(pair) for pair in self.pairs))
            at = min(ends & senders & receivers, default=None)
        return Coverage(
            self.flows,
            hosts,
            len(senders),
            len(receivers),
            len(self.pairs),
            at,
            not senders & receivers,
        )

    def busiest(self) -> list[Window]:
        """Return the three windows in which most bytes start, the busiest first."""
        order = sorted(self._windows, key=lambda n: (-self._windows[n][1], n))[:3]
        return [
            Window(n * self.window_s, (n + 1) * self.window_s, *self._windows[n]) for n in order
        ]

    @property
    def busiest_text(self) -> str:
        """Name them as ``--window`` takes them; empty where the trace is hardly longer."""
        if self.last_ns <= 2e9 * self.window_s:
            return ""
        names = ", ".join(one.text for one in self.busiest())
        return f"busiest windows, for --window: {names}; else a run takes the busiest of its length"


@dataclass(frozen=True)
class Length:
    """How much of a trace a session needs, all in ms, and which options fit what is there."""

    there_ms: float
    warmup_ms: float
    interval_ms: float
    intervals: int
    parts: int
    part_intervals: int
    sharing: int = 1
    """Seeds of the search among which the parts are shared evenly."""

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
        fewest = max(2, self.sharing)
        for parts in range(max(fewest, self.parts), fewest - 1, -self.sharing):
            for part in range(self.part_intervals, 3, -1):
                used = self.warmup_ms + parts * (self.warmup_ms + part * self.interval_ms)
                n = math.floor((self.there_ms - used) / self.interval_ms)
                if n >= max(5, part):
                    n = min(n, self.intervals)
                    return replace(self, intervals=n, parts=parts, part_intervals=part)
        return None

    @property
    def options(self) -> str:
        """Return the options of ``tune`` that ask for this session."""
        return (
            f"--intervals {self.intervals} --eval-seeds {self.parts // self.sharing} "
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
