"""Series below the monitor interval: what is sent, and how long messages take, period by period."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dcqcn_gym.core.interval import FinishedFlows

__all__ = ["COMPLETION_COLUMNS", "SENDING_COLUMNS", "TOTAL_COLUMNS", "Completions", "Sending"]

SENDING_COLUMNS = ("time_ns", "src", "dst", "ordinal", "workload", "sending_bps")
TOTAL_COLUMNS = ("time_ns", "sending_bps")
COMPLETION_COLUMNS = ("time_ns", "workload", "messages", "bytes", "mct_mean_ns", "mct_max_ns")


class Sending:
    """The rate at which each queue pair, and all hosts together, put data on the wire.

    The rate of a period is the wire bytes whose transmission began in it, headers and repeated
    packets included, over its length. A queue pair that is gone at the end of a period has no row
    for it, but its bytes are in the total. ``lasting``: queue pairs outlive their flows, so one
    that had nothing to do goes on counting where it was.
    """

    def __init__(self, every_ps: int, *, lasting: bool = False) -> None:
        self._every_s = every_ps * 1e-12
        self._lasting = lasting
        self._sent: dict[tuple[int, int], int] = {}
        self._total = 0

    def rates(self, flows: Mapping[str, Any]) -> Any:
        """Return the rate of each row in bit/s, since the look before."""
        names = zip(flows["src"].tolist(), flows["queue_pair"].tolist(), strict=True)
        now = dict(zip(names, flows["sent_bytes"].tolist(), strict=True))
        before = [self._sent.get(key, 0) for key in now]
        self._sent = {**self._sent, **now} if self._lasting else now
        return (flows["sent_bytes"] - np.array(before, dtype=np.int64)) * 8 / self._every_s

    def total(self, tx_bytes: Any) -> float:
        """Return the rate of all hosts, of what their ports have sent since the start."""
        sent = int(tx_bytes.sum())
        rate = (sent - self._total) * 8 / self._every_s
        self._total = sent
        return rate


class Completions:
    """Messages by the period of ``every_ps`` and the workload in which they were completed.

    A period may go on in the next interval, so its figures wait until it is over.
    """

    def __init__(self, every_ps: int) -> None:
        self._every_ps = every_ps
        self._open: dict[tuple[int, int], tuple[int, int, int, int]] = {}
        """(period, workload) -> messages, bytes, and sum and maximum of their times in ps."""

    def add(self, done: FinishedFlows) -> None:
        """Count messages, each in the period in which its last ACK came."""
        if not len(done.src):
            return
        keys = np.stack(
            [(done.start_ps + done.fct_ps) // self._every_ps + 1, done.workload], axis=1
        )
        periods, place = np.unique(keys, axis=0, return_inverse=True)
        place = place.reshape(-1)
        figures = np.zeros((4, len(periods)), dtype=np.int64)
        np.add.at(figures[0], place, 1)
        np.add.at(figures[1], place, done.bytes)
        np.add.at(figures[2], place, done.fct_ps)
        np.maximum.at(figures[3], place, done.fct_ps)
        for (period, workload), new in zip(periods.tolist(), figures.T.tolist(), strict=True):
            n, size, total, longest = self._open.get((period, workload), (0, 0, 0, 0))
            grown = n + new[0], size + new[1], total + new[2], max(longest, new[3])
            self._open[period, workload] = grown

    def take(self, until_ps: float = math.inf) -> dict[str, Any]:
        """Return, and forget, the periods that end by then, as :data:`COMPLETION_COLUMNS`.

        One row for each period and workload; ``time_ns`` is the end of the period.
        """
        over = sorted(key for key in self._open if key[0] * self._every_ps <= until_ps)
        rows = [(*key, *self._open.pop(key)) for key in over]
        period, workload, n, size, total, longest = np.array(rows, dtype=np.int64).reshape(-1, 6).T
        values = (
            period * (self._every_ps / 1000), workload, n, size,
            total / np.maximum(n, 1) / 1000, longest / 1000,
        )  # fmt: skip
        return dict(zip(COMPLETION_COLUMNS, values, strict=True))
