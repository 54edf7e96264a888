"""Collective operations and iterations of jobs: how long each took, algbw and busbw (nccl-tests).

A round is every transfer of one collective; the next one starts a pause after the last transfer of
the round before, so rounds never overlap and time alone distinguishes them. An iteration of a job
is one as well, which the engine reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dcqcn_gym.core.interval import FinishedFlows, JobSpans, LiveFlows
from dcqcn_gym.core.sums import count

if TYPE_CHECKING:
    from dcqcn_gym.core.iterations import Operations, Part

BUS_FACTORS: Mapping[str, Callable[[int], float]] = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "reduce-scatter": lambda n: (n - 1) / n,
    "all-gather": lambda n: (n - 1) / n,
    "all-to-all": lambda n: (n - 1) / n,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
    "message": lambda n: 1.0,
    "iteration": lambda n: 1.0,
}
"""busbw / algbw by the number of ranks (nccl-tests, doc/PERFORMANCE.md)."""


@dataclass(frozen=True)
class Collective:
    """One workload that repeats a collective operation.

    ``workload`` is its index in the scenario, ``bytes`` the buffer of one rank (S of nccl-tests),
    ``flows`` the number of flows of a round, ``pause_ps`` the time between two rounds. Of a job
    (kind ``iteration``) ``bytes`` are what a rank sends over the fabric, ``flows`` is 0,
    ``start_ps`` is when the first iteration starts, ``stop_ps`` when none does any more (-1:
    never), ``rounds`` how many there are (0: no end), and ``operations`` what its labels are.
    """

    workload: int
    kind: str
    ranks: int
    bytes: int
    flows: int
    pause_ps: int
    start_ps: int = 0
    stop_ps: int = -1
    rounds: int = 0
    operations: Operations | None = field(default=None, compare=False, repr=False)

    @property
    def bus_factor(self) -> float:
        """busbw / algbw."""
        return BUS_FACTORS[self.kind](self.ranks)


@dataclass(frozen=True)
class CollectiveRound:
    """A finished round: ``number`` counts the rounds of its workload that were seen whole."""

    collective: Collective
    number: int
    start_ps: int
    end_ps: int
    spans: JobSpans | None = field(default=None, compare=False, repr=False)

    @property
    def part(self) -> Part | None:
        """Where the time of an iteration went; None of other collectives."""
        c = self.collective
        if c.operations is None or self.spans is None:
            return None
        return c.operations.part(c.workload, self.spans, self.start_ps, self.end_ps)

    @property
    def time_ps(self) -> int:
        """From the first start to the last completion."""
        return self.end_ps - self.start_ps

    @property
    def algbw(self) -> float:
        """S / t in bytes per second."""
        return self.collective.bytes / (self.time_ps * 1e-12)

    @property
    def busbw(self) -> float:
        """Algbw x factor in bytes per second: what one link carries."""
        return self.algbw * self.collective.bus_factor

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for logs; bandwidths follow from them."""
        c = self.collective
        return {
            "workload": c.workload,
            "collective": c.kind,
            "ranks": c.ranks,
            "bytes": c.bytes,
            "start_ps": self.start_ps,
            "time_ps": self.time_ps,
            "pause_ps": c.pause_ps,
        }


@dataclass
class _Progress:
    """The round of one workload that is under way, and sums over the finished ones."""

    collective: Collective
    flows: int = 0
    start_ps: int = 0
    end_ps: int = -1
    times_ps: list[int] = field(default_factory=lambda: [0, 0, 0])  # sum, shortest, longest
    rounds: int = 0

    def add(self, start_ps: int, end_ps: int) -> CollectiveRound | None:
        """Count a flow; return the round if this was its last one."""
        if self.flows == 0:
            self.start_ps = start_ps
        self.flows += 1
        self.start_ps = min(self.start_ps, start_ps)
        self.end_ps = max(self.end_ps, end_ps)
        if self.flows < self.collective.flows:
            return None
        self.flows = 0
        return self.over(self.start_ps, self.end_ps)

    def over(self, start_ps: int, end_ps: int, spans: JobSpans | None = None) -> CollectiveRound:
        """Count a round and return it."""
        done = CollectiveRound(self.collective, self.rounds, start_ps, end_ps, spans)
        self.end_ps = end_ps
        self.rounds += 1
        total, low, high = self.times_ps
        took = done.time_ps
        self.times_ps = [total + took, min(low or took, took), max(high, took)]
        return done

    def running_since(self, live: LiveFlows) -> int | None:
        """Return the start of the round that is under way; None between two rounds."""
        c = self.collective
        if not c.flows:
            start = self.end_ps + c.pause_ps if self.rounds else c.start_ps
            over = 0 < c.rounds <= self.rounds or 0 <= c.stop_ps <= start
            return None if over else start
        starts = live.start_ps[live.workload == c.workload].tolist()
        starts += [self.start_ps] if self.flows else []
        return min(starts, default=None)

    def summary(self) -> dict[str, Any]:
        """Return plain values; see :func:`_summary`."""
        c = self.collective
        return _summary(c, self.rounds, self.times_ps)


def _summary(c: Collective, rounds: int, times_ps: Sequence[int]) -> dict[str, Any]:
    """Return plain values; means of bandwidth are S over the mean time, as in nccl-tests."""
    total, low, high = times_ps
    seen = rounds > 0
    algbw = c.bytes * rounds / (total * 1e-12) * 1e-9 if seen else None
    cycle_s = (total + rounds * c.pause_ps) * 1e-12
    return {
        "workload": c.workload,
        "collective": c.kind,
        "ranks": c.ranks,
        "bytes": c.bytes,
        "rounds": rounds,
        "time_ns_mean": total / rounds / 1000 if seen else None,
        "time_ns_min": low / 1000 if seen else None,
        "time_ns_max": high / 1000 if seen else None,
        "algbw_gbytes_per_s": algbw,
        "busbw_gbytes_per_s": None if algbw is None else algbw * c.bus_factor,
        "iterations_per_s": rounds / cycle_s if seen else None,
    }


def no_round(of: Mapping[str, Any], intervals: int, delivered: float | None) -> str:
    """Say that no round finished, and about how many intervals one needs.

    ``of`` has collective, ranks and bytes as a summary does; ``delivered`` are the bytes that
    arrived, None where other traffic is among them. The rest is taken to go on at that pace.
    """
    kind, ranks = of["collective"], of["ranks"]
    said = f"no round of the {kind} of {ranks} ranks finished in {intervals} intervals"
    if not delivered:
        return f"{said}: give many more"
    whole = of["bytes"] * ranks * BUS_FACTORS[kind](ranks)
    return f"{said}: one takes about {math.ceil(intervals * whole / delivered)}"


def summary_of_parts(parts: Sequence[Part]) -> dict[str, Any]:
    """Return where a job's time went, in nanoseconds an iteration; empty without one.

    ``computing_ns``, ``exposed_ns`` (by kind) and ``waiting_ns`` are means over the ranks, of which
    ``by_rank`` has what each computes, has exposed, waits and is late; ``busbw`` has a row for each
    collective and size, with bandwidths in GB/s as of nccl-tests where its bytes are known.
    """
    if not parts:
        return {}
    from dcqcn_gym.core.iterations import added  # of jobs alone

    whole = added(parts)
    n, ranks = whole["iterations"] * 1000, len(whole["computing_ps"])
    columns = [whole[key] for key in ("computing_ps", "waiting_ps", "late_ps")]
    return {
        "computing_ns": count(columns[0]) / ranks / n,
        "exposed_ns": {kind: ps / ranks / n for kind, ps in whole["exposed_ps"].items()},
        "waiting_ns": count(columns[1]) / ranks / n,
        "by_rank": [
            {"computing_ns": c / n, "exposed_ns": (whole["time_ps"] - c - w) / n,
             "waiting_ns": w / n, "late_ns": late / n}
            for c, w, late in zip(*columns, strict=True)
        ],
        "busbw": [_busbw(row, whole["iterations"]) for row in whole["collectives"]],
    }  # fmt: skip


def _busbw(row: Sequence[Any], iterations: int) -> dict[str, Any]:
    kind, ranks, size, times, ps = row
    algbw = size * times / ps * 1e3 if size and ps else None
    factor = BUS_FACTORS.get(kind, BUS_FACTORS["iteration"])(ranks)
    return {
        "collective": kind, "ranks": ranks, "bytes": size or None, "times": times / iterations,
        "time_ns_mean": ps / times / 1000, "algbw_gbytes_per_s": algbw,
        "busbw_gbytes_per_s": None if algbw is None else algbw * factor,
    }  # fmt: skip


def summary_of_rounds(rounds: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what :meth:`RoundTracker.summary` does, from logged rounds; by workload."""
    times: dict[int, list[int]] = {}
    collectives: dict[int, Collective] = {}
    for r in rounds:
        times.setdefault(r["workload"], []).append(int(r["time_ps"]))
        collectives[r["workload"]] = Collective(
            r["workload"], r["collective"], r["ranks"], r["bytes"], 0, r["pause_ps"]
        )
    return [
        _summary(collectives[w], len(t), (count(t), min(t), max(t)))
        for w, t in sorted(times.items())
    ]


class RoundTracker:
    """Finds the finished rounds in the finished flows of one interval after the other."""

    def __init__(self, collectives: Iterable[Collective]) -> None:
        self._progress = {c.workload: _Progress(c) for c in collectives}
        self._spans = JobSpans()

    @property
    def collectives(self) -> list[Collective]:
        """What is watched."""
        return [p.collective for p in self._progress.values()]

    def add(self, finished: FinishedFlows, spans: JobSpans | None = None) -> list[CollectiveRound]:
        """Take an interval's flows and jobs' spans by completion; return the rounds they finish."""
        if not self._progress:
            return []
        return [*self._rounds(finished), *self._iterations(spans or JobSpans())]

    def _iterations(self, spans: JobSpans) -> Iterator[CollectiveRound]:
        """Yield the iterations that are over, each with the spans in it."""
        waiting = self._spans.and_then(spans.where(spans.host >= 0)) if len(spans) else self._spans
        for i in np.flatnonzero(spans.host < 0).tolist():
            workload, end = int(spans.workload[i]), int(spans.end_ps[i])
            ours = (waiting.workload == workload) & (waiting.end_ps <= end)
            of, waiting = waiting.where(ours), waiting.where(~ours)
            yield self._progress[workload].over(int(spans.begin_ps[i]), end, of)
        self._spans = waiting

    def _rounds(self, finished: FinishedFlows) -> Iterator[CollectiveRound]:
        watched = [w for w, p in self._progress.items() if p.collective.flows]
        for i in np.flatnonzero(np.isin(finished.workload, watched)).tolist():
            start = int(finished.start_ps[i])
            progress = self._progress[int(finished.workload[i])]
            done = progress.add(start, start + int(finished.fct_ps[i]))
            if done is not None:
                yield done

    def running(self, live: LiveFlows) -> dict[int, int]:
        """Return {workload: start in ps} of the rounds under way, given the unfinished flows."""
        since = {w: p.running_since(live) for w, p in self._progress.items()}
        return {w: start for w, start in since.items() if start is not None}

    def summary(self) -> list[dict[str, Any]]:
        """Return per workload: rounds, mean, shortest and longest time, algbw, busbw in GB/s.

        ``iterations_per_s`` counts a round and its pause as one iteration of training.
        """
        return [p.summary() for p in self._progress.values()]
