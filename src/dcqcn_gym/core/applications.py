"""Figures of applications: IOPS, iterations/s, and the time of the job.

An *operation* is an IO of storage, an iteration of training with a parameter server, or a round
of a collective. All follow from the finished flows, so every backend gives them: an operation is
over when the last ACK of its last flow is back. The rate is that of the operations between the
first completion that was seen and the last, so that it does not depend on where a window ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcqcn_gym.core.interval import FinishedFlows

UNITS: Mapping[str, str] = {"storage": "IOPS", "parameter-server": "iterations/s"}
"""What the operations per second of a kind are called; those of collectives: rounds/s."""


@dataclass(frozen=True)
class Application:
    """One workload that repeats an operation.

    ``workload`` is its index in the scenario. An operation is over with every ``flows``-th flow
    that ends at one of ``ends``; it is a read if that flow has at least ``read_bytes`` (0: there
    are no reads). ``start_ps`` is when the workload begins.
    """

    workload: int
    kind: str
    ends: tuple[int, ...]
    flows: int
    start_ps: int
    read_bytes: int = 0


@dataclass(frozen=True)
class Done:
    """The operations of one workload that were over in one interval."""

    application: Application
    operations: int
    reads: int
    first_ps: int
    """When the first of them was over."""
    last_ps: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for logs; :func:`summary_of_applications` takes them."""
        a = self.application
        return {
            "workload": a.workload,
            "application": a.kind,
            "operations": self.operations,
            **({"reads": self.reads} if a.read_bytes else {}),
            "start_ps": a.start_ps,
            "first_ps": self.first_ps,
            "last_ps": self.last_ps,
        }


class ApplicationTracker:
    """Counts operations in the finished flows of one interval after the other, from time 0."""

    def __init__(self, applications: Iterable[Application]) -> None:
        self.applications = tuple(applications)
        self._flows = [0] * len(self.applications)

    def add(self, finished: FinishedFlows) -> tuple[Done, ...]:
        """Take the flows of an interval, ordered by completion; return what they got done."""
        return tuple(self._done(finished)) if len(finished.src) else ()

    def _done(self, finished: FinishedFlows) -> Iterator[Done]:
        for i, a in enumerate(self.applications):
            ours = (finished.workload == a.workload) & np.isin(finished.dst, a.ends)
            over = np.flatnonzero(ours)[a.flows - 1 - self._flows[i] :: a.flows]
            self._flows[i] = (self._flows[i] + int(np.count_nonzero(ours))) % a.flows
            if not over.size:
                continue
            when = (finished.start_ps[over] + finished.fct_ps[over]).tolist()
            reads = finished.bytes[over] >= a.read_bytes if a.read_bytes else np.zeros(0)
            yield Done(a, len(when), int(np.count_nonzero(reads)), min(when), max(when))


def summary_of_applications(
    done: Iterable[Mapping[str, Any]], rounds: Iterable[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Return what logged operations and rounds of collectives come to; see :class:`Completed`."""
    tally = Completed()
    tally.add(done, rounds)
    return tally.summary()


class Completed:
    """Adds up what applications got done, in memory that does not grow."""

    def __init__(self) -> None:
        self._of: dict[int, dict[str, Any]] = {}

    def add(
        self, done: Iterable[Mapping[str, Any]], rounds: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        """Add entries of :meth:`Done.as_dict`, and rounds of collectives as logs have them."""
        for entry in (*done, *map(_round_done, rounds)):
            known = self._of.get(entry["workload"])
            self._of[entry["workload"]] = dict(entry) if known is None else _merged(known, entry)

    def summary(self) -> list[dict[str, Any]]:
        """Return per workload: operations, their rate, and the time of the job.

        ``per_s`` in ``unit`` is None with fewer than two completions; ``reads_per_s`` is there for
        storage; ``job_ns`` goes from the start of the workload (of the first round that was seen
        whole) to the last completion.
        """
        return [_summary(e) for _, e in sorted(self._of.items())]


def _round_done(r: Mapping[str, Any]) -> dict[str, Any]:
    end = r["start_ps"] + r["time_ps"]
    return {
        "workload": r["workload"], "application": r["collective"], "operations": 1,
        "start_ps": r["start_ps"], "first_ps": end, "last_ps": end,
    }  # fmt: skip


def _merged(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **a,
        **{key: a[key] + b[key] for key in ("operations", "reads") if key in a},
        **{key: min(a[key], b[key]) for key in ("start_ps", "first_ps")},
        "last_ps": max(a["last_ps"], b["last_ps"]),
    }


def _summary(e: Mapping[str, Any]) -> dict[str, Any]:
    kind, operations, span_ps = e["application"], e["operations"], e["last_ps"] - e["first_ps"]
    per_s = (operations - 1) / (span_ps * 1e-12) if span_ps > 0 else None
    found = {
        "workload": e["workload"],
        "application": kind,
        "operations": operations,
        "unit": UNITS.get(kind, "rounds/s"),
        "per_s": per_s,
        "job_ns": (e["last_ps"] - e["start_ps"]) / 1000,
    }
    if "reads" in e:
        found["reads_per_s"] = None if per_s is None else per_s * e["reads"] / operations
    return found
