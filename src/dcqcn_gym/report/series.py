"""One log as arrays: what everything that judges a run reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.interval import ColumnTable, FloatArray, IntArray, no_ints
from dcqcn_gym.core.score import GUARD, Flows, window_flows
from dcqcn_gym.core.statistics import slowdowns
from dcqcn_gym.envs.scenario.workloads import draws_traffic
from dcqcn_gym.runs.log import Run


@dataclass(frozen=True, eq=False)
class FlowTable(ColumnTable):
    """Flows with their sizes, starts and ideal completion times, in bytes and ps."""

    bytes: IntArray = field(default_factory=no_ints)
    start_ps: IntArray = field(default_factory=no_ints)
    ideal_fct_ps: IntArray = field(default_factory=no_ints)

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[int]]) -> FlowTable:
        """Return the table of a log's columns."""
        names = ("bytes", "start_ps", "ideal_fct_ps")
        return cls(*(np.asarray(columns[name], dtype=np.int64) for name in names))


@dataclass(frozen=True, eq=False)
class Series:
    """One log as arrays with one entry per interval, and its flows."""

    header: Mapping[str, Any]
    end: Mapping[str, Any] | None
    records: Sequence[Mapping[str, Any]]
    finished: FlowTable
    """The flows that finished, and :attr:`fct_ps` their completion times."""
    fct_ps: IntArray
    flow_interval: IntArray
    """Position in ``records`` of the interval in which each of them finished."""
    left: FlowTable | None
    """The flows that were not finished at the end; None if the log lacks them."""

    @classmethod
    def of(cls, run: Run) -> Series:
        """Build the arrays of a run that was read."""
        flows = [r.get("flows") or {} for r in run.intervals]
        # the lists of flows are most of a log: keep them as arrays only
        records = [{k: v for k, v in r.items() if k != "flows"} for r in run.intervals]
        counts = [len(f.get("bytes", ())) for f in flows]

        def joined(key: str) -> IntArray:
            parts = [np.asarray(f.get(key, ()), dtype=np.int64) for f in flows]
            return np.concatenate(parts) if parts else no_ints()

        size, start = joined("bytes"), joined("start_ps")
        unfinished = None if run.end is None else run.end.get("unfinished")
        known = start.size == size.size  # a log of somebody else's may lack the starts
        return cls(
            header=run.header,
            end=run.end,
            records=records,
            finished=FlowTable(
                size, start if known else np.zeros_like(size), joined("ideal_fct_ps")
            ),
            fct_ps=joined("fct_ps"),
            flow_interval=np.repeat(np.arange(len(records)), counts),
            left=FlowTable.of(unfinished) if known and unfinished is not None else None,
        )

    def __len__(self) -> int:
        return len(self.records)

    def column(self, name: str) -> FloatArray:
        """Return a numeric field per interval; NaN where it is missing."""
        return np.array([float(_number(r.get(name))) for r in self.records])

    def fsd(self, name: str) -> FloatArray:
        """Return a field of the flow-size distribution per interval; NaN where it is missing."""
        return np.array([float(_number((r.get("fsd") or {}).get(name))) for r in self.records])

    def first(self, n: int) -> Series:
        """Return the first ``n`` intervals and their flows; what finished later is unfinished."""
        if n >= len(self):
            return self
        chosen = self.flow_interval < n
        left = self.left
        if left is not None:
            left = self.finished.where(~chosen).and_then(left)
            left = left.where(left.start_ps < (self.records[n - 1]["end_ps"] if n else 0))
        return Series(
            self.header,
            None,
            self.records[:n],
            self.finished.where(chosen),
            self.fct_ps[chosen],
            self.flow_interval[chosen],
            left,
        )

    @property
    def drawn(self) -> bool:
        """Return whether another seed would have had, or had, other traffic."""
        return draws_traffic(self.header.get("scenario")) or bool(self.part)

    @property
    def part(self) -> str:
        """Which part of a trace this run had; empty: all of it, or traffic that was drawn."""
        return str(self.header.get("part", ""))

    @property
    def window_ps(self) -> tuple[int, int]:
        """Begin and end of what was recorded."""
        if not self.records:
            return 0, 0
        return int(self.records[0]["start_ps"]), int(self.records[-1]["end_ps"])

    @property
    def time_ms(self) -> FloatArray:
        """Simulated time at the end of each interval, since the first one began."""
        return (self.column("end_ps") - self.window_ps[0]) * 1e-9

    @property
    def utility(self) -> FloatArray:
        """Utility per interval, in 0..1."""
        return self.column("utility")

    @property
    def busy(self) -> npt.NDArray[np.bool_]:
        """True for the intervals with traffic."""
        return np.array([not r.get("idle") for r in self.records], dtype=bool)

    @property
    def pause_share(self) -> FloatArray:
        """Share of the interval that the mean device was paused, in 0..1."""
        duration = self.column("end_ps") - self.column("start_ps")
        return self.column("device_pause_ps") / duration

    @property
    def unfinished(self) -> int:
        """Flows that were still active when the log ends, whenever they started."""
        return int(self.records[-1].get("active_flows", 0)) if self.records else 0

    @cached_property
    def flow_slowdown(self) -> FloatArray:
        """Slowdowns of the finished flows."""
        return slowdowns(self.fct_ps, self.finished.ideal_fct_ps)

    @property
    def flows(self) -> tuple[IntArray, FloatArray]:
        """Sizes and slowdowns of the flows that finished, whenever they started."""
        return self.finished.bytes, self.flow_slowdown

    @property
    def all_flows(self) -> Flows | None:
        """Every flow that started in the window before its guard, unfinished ones at their age.

        None if the log lacks the unfinished ones.
        """
        return self.flows_before(GUARD)

    def flows_before(self, guard: float) -> Flows | None:
        """Return :attr:`all_flows` with another guard, a share of the window."""
        if self.left is None or not self.records:
            return None
        f, left = self.finished, self.left
        begin, end = self.window_ps
        return window_flows(
            (f.bytes, f.start_ps, self.fct_ps, f.ideal_fct_ps),
            (left.bytes, left.start_ps, left.ideal_fct_ps),
            begin_ps=begin,
            end_ps=end,
            guard=guard,
        )

    @cached_property
    def every_flow(self) -> tuple[IntArray, FloatArray]:
        """Sizes and slowdowns of :attr:`all_flows`; nothing where the log lacks them."""
        flows = self.all_flows or Flows.none()
        return flows.bytes, flows.slowdown


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
