"""The delay of CNPs by a capture: from a marked packet after a pause to the CNP that answers it.

Bandwidths and latencies never tell it: with marks a time jumps at the smallest change. A mirror of
the receiver's port shows both: the first data packet with the mark CE from A to B after a pause,
and the next CNP from B to A. Farther from the NIC, the way there and back is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dcqcn_gym.core.confidence import student_quantile
from dcqcn_gym.core.flow_export.fields import DatagramError
from dcqcn_gym.core.flow_export.packets import RocePacket, classify, innermost
from dcqcn_gym.core.tally import Tally
from dcqcn_gym.extras.traffic.frames import FRAMES, frames

QUIET_NS = 1_000_000
"""So long no mark and no CNP: a gap between CNPs that is shorter holds none back."""
LATEST_NS = 1_000_000
FEWEST = 4
"""Answered marks from which an interval follows."""
CE = 3


def read_cnp_delays(path: Path, tally: Tally) -> list[float]:
    """Return the delays in a capture, in microseconds; every frame is accounted for."""
    last: dict[tuple[bytes, bytes], int] = {}
    marked: dict[tuple[bytes, bytes], int] = {}
    found = []
    for frame in frames(path, tally):
        try:
            inner, kind = innermost(frame.data, frame.link), classify(frame.data, frame.link)
        except DatagramError as error:
            tally.leave_out(FRAMES, "frames are broken", error)
            continue
        if isinstance(inner, str) or (kind not in ("CNPs",) and not isinstance(kind, RocePacket)):
            tally.leave_out(FRAMES, "frames are neither RoCE's data nor CNPs")
            continue
        now = frame.when_ns
        if kind == "CNPs":
            pair = inner.target, inner.source  # the data's way
            since, last[pair] = marked.pop(pair, None), now
            if since is None or now - since > LATEST_NS:
                tally.leave_out(FRAMES, "CNPs answer no first mark after a pause")
            else:
                tally.take(FRAMES)
                found.append((now - since) / 1000)
            continue
        pair = inner.source, inner.target
        if inner.ecn != CE:
            tally.leave_out(FRAMES, "data packets are not marked")
        elif now - last.get(pair, now - QUIET_NS) < QUIET_NS:
            last[pair] = now
            tally.leave_out(FRAMES, "marked packets come within a millisecond of another")
        else:
            last[pair] = marked[pair] = now
            tally.take(FRAMES)
    if marked:
        tally.note("marked packets were never answered by a CNP", count=len(marked))
    return found


def mean_and_half(delays: Sequence[float], confidence: float) -> tuple[float, float]:
    """Return the mean of :data:`FEWEST` delays or more, and half of its interval (Student's)."""
    n = len(delays)
    spread = float(np.std(delays, ddof=1)) / n**0.5
    return float(np.mean(delays)), student_quantile(0.5 + confidence / 2, n - 1) * spread
