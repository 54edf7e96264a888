"""Series below the monitor interval: what is sent, and how long messages take, period by period."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dcqcn_gym.core.interval import FinishedFlows

__all__ = ["COMPLETION_COLUMNS", "SENDING_COLUMNS", "TOTAL_COLUMNS", "Sending", "completions"]

SENDING_COLUMNS = ("time_ns", "src", "dst", "ordinal", "workload", "sending_bps")
TOTAL_COLUMNS = ("time_ns", "sending_bps")
COMPLETION_COLUMNS = ("time_ns", "workload", "messages", "bytes", "mct_mean_ns", "mct_max_ns")


class Sending:
    """The rate at which each queue pair, and all hosts together, put data on the wire.

    The rate of a period is the wire bytes whose transmission began in it, headers and repeated
    packets included, over its length. A queue pair that is gone at the end of a period has no row
    for it, but its bytes are in the total. ``kept``: queue pairs outlive their flows, so one that
    had nothing to do goes on counting where it was.
    """

    def __init__(self, every_ps: int, *, kept: bool = False) -> None:
        self._every_s = every_ps * 1e-12
        self._kept = kept
        self._sent: dict[tuple[int, int], int] = {}
        self._total = 0

    def rates(self, flows: Mapping[str, Any]) -> Any:
        """Return the rate of each row in bit/s, since the look before."""
        names = zip(flows["src"].tolist(), flows["queue_pair"].tolist(), strict=True)
        now = dict(zip(names, flows["sent_bytes"].tolist(), strict=True))
        before = [self._sent.get(key, 0) for key in now]
        self._sent = {**self._sent, **now} if self._kept else now
        return (flows["sent_bytes"] - np.array(before, dtype=np.int64)) * 8 / self._every_s

    def total(self, tx_bytes: Any) -> float:
        """Return the rate of all hosts, of what their ports have sent since the start."""
        sent = int(tx_bytes.sum())
        rate = (sent - self._total) * 8 / self._every_s
        self._total = sent
        return rate


def completions(done: FinishedFlows, every_ps: int) -> dict[str, Any]:
    """Return columns of :data:`COMPLETION_COLUMNS`: a row for each period and workload with some.

    ``time_ns`` is the end of the period; a message's completion time (MCT) counts in the period in
    which its last ACK came.
    """
    finish = done.start_ps + done.fct_ps
    keys = np.stack([finish // every_ps + 1, done.workload], axis=1)
    periods, place = np.unique(keys, axis=0, return_inverse=True)
    place = place.reshape(-1)
    n = len(periods)
    counts = np.bincount(place, minlength=n)
    longest = np.zeros(n, dtype=np.int64)
    np.maximum.at(longest, place, done.fct_ps)
    sums, sizes = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    np.add.at(sums, place, done.fct_ps)
    np.add.at(sizes, place, done.bytes)
    values = (
        periods[:, 0] * (every_ps / 1000), periods[:, 1], counts, sizes,
        sums / np.maximum(counts, 1) / 1000, longest / 1000,
    )  # fmt: skip
    return dict(zip(COMPLETION_COLUMNS, values, strict=True))
