"""How much of a network's time repeats the round trip before it, and what skipping that could gain.

``python tests/speed/measure.py steady``. A slot is one base round trip. A sender repeats in a slot
if it sends what it sent in the last slot that was simulated, up to a tolerance; such a slot would
be skipped, and the difference is an error of what is delivered, hence of the completion time.
Whoever skips does not know when a sender will stop repeating; here it is known, so that figures
are bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from engine_speed import JOBS

from dcqcn_gym.envs.backends.native import NativeBackend

SLOT_PS = 40_000_000
"""There and back over four links of 5 us: the base round trip between racks."""
TOLERANCES = (0.0, 0.01, 0.05, 0.2)
STEADY_JOBS = ("permutation", "all-to-all", "uplink30", "pfc-storm")
MS = 1_000_000_000


@dataclass
class Slots:
    """What each sender sent in each slot, and whether a port was paused at its end."""

    sent: list[dict[int, int]] = field(default_factory=list)
    paused: list[bool] = field(default_factory=list)
    _before: dict[int, int] = field(default_factory=dict)

    def look(self, _now_ps: int, ports: Mapping[str, Any], flows: Mapping[str, Any]) -> None:
        """Take the bytes of every queue pair with work."""
        now = dict(zip(flows["queue_pair"].tolist(), flows["sent_bytes"].tolist(), strict=True))
        self.sent.append({qp: sent - self._before.get(qp, 0) for qp, sent in now.items()})
        self.paused.append(bool(np.any(ports["paused"])))
        self._before |= now


@dataclass(frozen=True)
class Steady:
    """One job at one tolerance: shares of all bytes, in 0..1, and the errors that come of it."""

    job: str
    tolerance: float
    senders: float
    """Sent in slots in which the sender repeats, whatever others do."""
    network: float
    """Sent in slots in which nobody starts, ends, is paused or does something new."""
    median_error: float
    """Of completion times, relative, if senders are skipped each for itself."""
    p99_error: float

    def row(self) -> tuple[str, ...]:
        """Return the columns of the table."""
        shares = (self.senders, self.network)
        gains = [f"{share:.1%} / {1 / max(1 - share, 1e-9):.2f}" for share in shares]
        errors = (self.median_error, self.p99_error)
        return (self.job, f"{self.tolerance:.0%}", *gains, *(f"{e:.2%}" for e in errors))


COLUMNS = (
    "job", "tolerance", "bytes of senders that repeat / gain", "of networks that repeat / gain",
    "median error of completion", "99th percentile",
)  # fmt: skip


def steady_states(name: str, most_ms: int) -> list[Steady]:
    """Trace one job, at most so long, and return a row per tolerance."""
    job, slots, backend = JOBS[name], Slots(), NativeBackend()
    scenario = job.scenario()
    backend.open(scenario, 1)
    backend.apply(job.setting(scenario))
    backend.watch(SLOT_PS, range(len(scenario.fabric.devices.port_node)), slots.look)
    for _ in range(most_ms):
        if backend.done:
            break
        backend.advance(MS)
    backend.close()
    return [judged(name, slots, tolerance) for tolerance in TOLERANCES]


def judged(name: str, slots: Slots, tolerance: float) -> Steady:
    """Return what skipping at this tolerance saves and how wrong it is."""
    reference: dict[int, int] = {}
    wrong: dict[int, int] = {}
    done: dict[int, int] = {}
    ended: list[float] = []
    alone = together = sent_in_all = 0
    for sent, paused in zip(slots.sent, slots.paused, strict=True):
        gone = reference.keys() - sent.keys()
        ended += _errors([(wrong.pop(qp), done.pop(qp)) for qp in gone])
        news = bool(gone) or paused
        reference = {qp: reference[qp] for qp in reference.keys() & sent.keys()}
        repeated = 0
        for qp, n in sent.items():
            done[qp] = done.get(qp, 0) + n
            wrong.setdefault(qp, 0)
            if n > 0 and abs(n - reference.get(qp, 0)) <= tolerance * n:
                wrong[qp] += n - reference[qp]
                repeated += n
            else:
                reference[qp] = n
                news = True
        slot = sum(sent.values())
        sent_in_all, alone = sent_in_all + slot, alone + repeated
        together += 0 if news else slot
    ended += _errors([(wrong[qp], done[qp]) for qp in wrong])
    return Steady(
        name, tolerance, alone / sent_in_all, together / sent_in_all,
        float(np.median(ended)), float(np.quantile(ended, 0.99)),
    )  # fmt: skip


def _errors(pairs: Sequence[tuple[int, int]]) -> list[float]:
    """Return the relative errors of transfers: bytes that would be wrong, of all."""
    return [abs(wrong) / done for wrong, done in pairs if done > 0]
