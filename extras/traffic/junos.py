"""Junos: drop profiles of queues with ECN, whose thresholds are shares of a queue's buffer.

``class-of-service drop-profiles NAME interpolate fill-level LOW HIGH drop-probability 0 P`` (also
pairs ``fill-level N drop-probability P``), schedulers that name one and have
``explicit-congestion-notification``, scheduler maps, and forwarding classes with their queue.
Source: Juniper's class-of-service statements "drop-profiles" and "schedulers". Which buffer a
percentage is of, no line says: that is ``--queue-bytes``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dcqcn_gym.core.tally import Tally
from dcqcn_gym.extras.traffic.dump_files import LINES

_COS = re.compile(r"(?:^|\s)class-of-service (.*)$")
_PROFILE = re.compile(r"drop-profiles (\S{1,64}) (.*)$")
_USED = re.compile(r"schedulers (\S{1,64}) drop-profile-map .*drop-profile (\S{1,64})$")
_ECN = re.compile(r"schedulers (\S{1,64}) explicit-congestion-notification$")
_MAPPED = re.compile(r"scheduler-maps \S{1,64} forwarding-class (\S{1,64}) scheduler (\S{1,64})$")
_QUEUE = re.compile(r"forwarding-classes class (\S{1,64}) (.*)$")
_LISTS = re.compile(r"(fill-level|drop-probability) ((?:\[ )?\d{1,3}(?: \d{1,3})*)")


@dataclass(frozen=True)
class JunosCurve:
    """A curve that a queue marks by, thresholds in KB."""

    file: str
    profile: str
    queue: int | None
    lossless: bool | None
    knobs: dict[str, float]


@dataclass
class JunosProfiles:
    """What the lines of class-of-service say; a profile is known once all of them are read."""

    lines: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """(File, drop profile) -> its lines."""
    levels: dict[tuple[str, str], dict[str, list[int]]] = field(default_factory=dict)
    uses: dict[tuple[str, str], str] = field(default_factory=dict)
    """(File, scheduler) -> drop profile."""
    marks: set[tuple[str, str]] = field(default_factory=set)
    """(File, scheduler) with ECN."""
    classes: dict[tuple[str, str], str] = field(default_factory=dict)
    """(File, scheduler) -> forwarding class."""
    queues: dict[tuple[str, str], tuple[int | None, bool]] = field(default_factory=dict)
    """(File, forwarding class) -> queue, and whether it is no-loss."""

    def line(self, place: str, whole: str) -> bool:
        """Take a line of class-of-service; True if it is of a drop profile, to be settled."""
        cos = _COS.search(whole)
        if cos is None:
            return False
        file, words = place.partition(" line ")[0], cos[1]
        if used := _USED.match(words):
            self.uses[file, used[1]] = used[2]
        elif ecn := _ECN.match(words):
            self.marks.add((file, ecn[1]))
        elif mapped := _MAPPED.match(words):
            self.classes[file, mapped[2]] = mapped[1]
        elif queue := _QUEUE.match(words):
            number = re.search(r"queue-num (\d)", queue[2])
            before = self.queues.get((file, queue[1]), (None, False))
            self.queues[file, queue[1]] = (int(number[1]) if number else before[0],
                                           before[1] or "no-loss" in queue[2])  # fmt: skip
        elif (profile := _PROFILE.match(words)) and (lists := _LISTS.findall(profile[2])):
            key = file, profile[1]
            self.lines.setdefault(key, []).append(profile[0])
            of = self.levels.setdefault(key, {"fill-level": [], "drop-probability": []})
            for name, text in lists:
                of[name] += [int(n) for n in text.removeprefix("[ ").split()]
            return True
        return False

    def settle(self, queue_bytes: float | None, tally: Tally) -> Iterator[JunosCurve]:
        """Yield the curves of queues that mark; account for all lines of drop profiles."""
        for (file, name), lines in self.lines.items():
            users = [s for (f, s), profile in self.uses.items() if (f, profile) == (file, name)]
            marking = [s for s in users if (file, s) in self.marks]
            levels, shares = self.levels[file, name].values()
            reason = None
            if users and not marking:
                reason = "drop profiles are of queues without ECN: they drop and do not mark"
            elif (
                not all("interpolate" in line for line in lines)
                or [len(levels), len(shares), *shares[:1]] != [2, 2, 0]
                or levels[0] >= levels[1]
            ):
                reason = "drop profiles are no line from 0 at a fill-level to more at another"
            elif queue_bytes is None:
                reason = ("thresholds are shares of a queue's buffer: its bytes are needed "
                          "(--queue-bytes)")  # fmt: skip
            if reason is not None or queue_bytes is None:
                for line in lines:
                    tally.leave_out(LINES, reason or "", line)
                continue
            tally.take(LINES, len(lines))
            knobs = {"kmin": levels[0] / 1e5 * queue_bytes, "kmax": levels[1] / 1e5 * queue_bytes,
                     "pmax": shares[1] / 100}  # fmt: skip
            for scheduler in marking or [""]:
                of = self.classes.get((file, scheduler), "")
                queue, lossless = self.queues.get((file, of), (None, None))
                yield JunosCurve(file, name, queue, lossless, knobs)
        self.lines.clear()
