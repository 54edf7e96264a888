"""Messages from the packets of RoCE, whatever order they were captured in.

A message is the set of sequence numbers of one queue pair from its first packet to its last. So
packets that overtake each other (adaptive routing, spraying over source ports), and packets that
are sent again (go-back-N) or captured twice, are told apart from lost ones by their numbers alone.
A number far from all that was seen, a first packet where a middle one had been, or a long silence
is another connection: queue pairs' numbers are used again.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from dcqcn_gym.core.flow_export.packets import RocePacket
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.extras.traffic.frames import FRAMES

_NUMBERS = 1 << 24
"""Sequence numbers, which begin anew behind the last."""
WINDOW = 1 << 16
"""Packets that may be under way at a time: 64 MB at 1 KB a packet, 0.6 s of a path at 800 Gb/s."""
SILENT_NS = 30_000_000_000
"""A queue pair that was silent so long is another connection; retries of a NIC end far earlier."""
_SWEEP = 256
"""Runs at which those left behind are looked for."""
_MOST_DONE = 2 * WINDOW
"""Messages after which those outside of the window are forgotten."""

AGAIN = "packets were sent or captured again"
MISSING = "packets are not in the capture, by their numbers"
OPEN_END = "messages go on when the capture ends"
OPEN_BEGIN = "messages began before the capture"
REUSED = "queue pairs were used again by another connection"


@dataclass
class Message:
    """What one message's packets in the capture say."""

    start_ns: int
    end_ns: int
    bytes: int


@dataclass
class _Run:
    """Packets with numbers from ``low`` to ``high``, all there, of one message."""

    low: int
    high: int
    start_ns: int
    end_ns: int
    bytes: int
    begins: bool
    ends: bool

    def join(self, later: _Run) -> None:
        """Take in the packets that follow without a gap."""
        self.high, self.ends = later.high, later.ends
        self.start_ns = min(self.start_ns, later.start_ns)
        self.end_ns = max(self.end_ns, later.end_ns)
        self.bytes += later.bytes


@dataclass
class Connection:
    """The packets of one queue pair in one direction; numbers count on beyond 24 bits here."""

    _highest: int = -1
    _last_ns: int = 0
    _by_low: dict[int, _Run] = field(default_factory=dict)
    _by_high: dict[int, _Run] = field(default_factory=dict)
    _done: list[tuple[int, int, bool]] = field(default_factory=list)
    """Messages of the window that were yielded, in order: numbers from and to, whether the first
    packet was there."""

    def is_over(self, packet: RocePacket, when_ns: int) -> bool:
        """Return whether a packet is of another connection that uses the same numbers."""
        if self._highest < 0:
            return False
        number = self._unwrapped(packet.sequence)
        if abs(number - self._highest) > WINDOW or when_ns - self._last_ns > SILENT_NS:
            return True
        if packet.response:  # a READ that is asked for again may begin anywhere
            return False
        done = self._finished(number)
        return done is not None and done[2] and packet.begins != (number == done[0])

    def add(self, packet: RocePacket, when_ns: int, tally: Tally) -> Iterator[Message]:
        """Take a packet; yield the messages that are whole, or given up, by it."""
        number = self._unwrapped(packet.sequence)
        self._last_ns = max(self._last_ns, when_ns)
        if self._seen(number):
            tally.leave_out(FRAMES, AGAIN)
            return
        tally.take(FRAMES)
        self._highest = max(self._highest, number)
        run = self._insert(
            _Run(number, number, when_ns, when_ns, packet.payload_bytes, packet.begins, packet.ends)
        )
        if run.begins and run.ends:
            self._remove(run)
            self._finish(run.low, run.high, begins=True)
            yield Message(run.start_ns, run.end_ns, run.bytes)
        elif len(self._by_low) > _SWEEP:
            old = [r for r in self._by_low.values() if r.high < self._highest - WINDOW]
            yield from self._given_up(old, tally, ended=False)

    def rest(self, tally: Tally, *, ended: bool) -> Iterator[Message]:
        """Yield what is left when the capture (``ended``) or the connection is over."""
        yield from self._given_up(list(self._by_low.values()), tally, ended=ended)

    def _unwrapped(self, sequence: int) -> int:
        """Return the number nearest to the highest one so far."""
        if self._highest < 0:
            return sequence
        ahead = (sequence - self._highest) % _NUMBERS
        return self._highest + (ahead if ahead < _NUMBERS // 2 else ahead - _NUMBERS)

    def _finished(self, number: int) -> tuple[int, int, bool] | None:
        at = bisect_right(self._done, (number, 1 << 62, True)) - 1
        return self._done[at] if at >= 0 and number <= self._done[at][1] else None

    def _seen(self, number: int) -> bool:
        if number > self._highest:
            return False
        if self._finished(number) is not None or number in self._by_low or number in self._by_high:
            return True
        return any(run.low < number < run.high for run in self._by_low.values())

    def _insert(self, run: _Run) -> _Run:
        before = None if run.begins else self._by_high.get(run.low - 1)
        if before is not None and not before.ends:
            del self._by_high[before.high]
            before.join(run)
            run = before
        behind = None if run.ends else self._by_low.get(run.high + 1)
        if behind is not None and not behind.begins:
            del self._by_low[behind.low], self._by_high[behind.high]
            run.join(behind)
        self._by_low[run.low] = self._by_high[run.high] = run
        return run

    def _remove(self, run: _Run) -> None:
        self._by_low.pop(run.low, None)
        self._by_high.pop(run.high, None)

    def _finish(self, low: int, high: int, *, begins: bool) -> None:
        insort(self._done, (low, high, begins))
        if len(self._done) > _MOST_DONE:
            oldest = self._highest - WINDOW
            self._done = [done for done in self._done if done[1] >= oldest]

    def _given_up(self, runs: list[_Run], tally: Tally, *, ended: bool) -> Iterator[Message]:
        """Yield the messages of runs with gaps: each ends with a last packet or before a first."""
        message: list[_Run] = []
        for run in sorted(runs, key=lambda r: r.low):
            self._remove(run)
            if message and (run.begins or message[-1].ends):
                yield self._cut(message, tally, ended=False)
                message = []
            message.append(run)
        if message:
            yield self._cut(message, tally, ended=ended)

    def _cut(self, runs: list[_Run], tally: Tally, *, ended: bool) -> Message:
        missing = runs[-1].high - runs[0].low + 1
        for run in runs:
            missing -= run.high - run.low + 1
        if missing:
            tally.note(MISSING, count=missing)
        if not runs[0].begins:
            tally.note(OPEN_BEGIN)
        if not runs[-1].ends and ended:
            tally.note(OPEN_END)
        self._finish(runs[0].low, runs[-1].high, begins=runs[0].begins)
        message = Message(runs[0].start_ns, runs[0].end_ns, 0)
        for run in runs:
            message.start_ns = min(message.start_ns, run.start_ns)
            message.end_ns = max(message.end_ns, run.end_ns)
            message.bytes += run.bytes
        return message
