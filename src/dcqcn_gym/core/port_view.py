"""Observations and rewards of agents, from the figures of their ports, on fixed scales.

Per interval and agent, from the per-port part of a report: how long the queue is, how much was
sent, how much of that was marked, how long the port was paused. A report always gives the same
numbers; there are no running statistics. Entries are in 0..1 by construction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.agents import Agent
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.interval import FloatArray, IntervalReport

FIGURES = ("queue", "sent", "marked", "paused")
"""Figures of an agent in the order of their columns.

``queue`` is log2(1 + KB) / 16 of the data queued at the end of the interval, mean over the ports;
of an agent with NICs alone it is log2(mean RTT / base RTT) / 10 of their own samples, for a NIC
has no queue to mark. ``sent`` and ``marked`` are data bytes and ECN-marked data bytes over the
capacity of the ports, ``paused`` the share of the interval that the ports were paused, mean."""

QUEUE_BITS = 16.0
RTT_BITS = 10.0
QUEUE_STEPS_BYTES = 20_000.0 * 2.0 ** np.arange(10)
"""ACC's ladder of thresholds E(n) = 20 KB * 2^n (SIGCOMM'21, section 4), in bytes."""


def queue_score(queue_bytes: npt.ArrayLike) -> FloatArray:
    """Return D(L) in 0..1: 1 below 20 KB, a tenth less at every step of ACC's ladder, 0 at the top.

    The paper's D is a step function of the queue length whose numbers we do not have; these are
    ours.
    """
    steps = np.searchsorted(QUEUE_STEPS_BYTES, np.asarray(queue_bytes), side="right")
    return np.asarray(1.0 - steps / len(QUEUE_STEPS_BYTES), dtype=np.float64)


def _log2p1(x: FloatArray) -> FloatArray:
    """Return log2(1 + x), linear between powers of two, as the observation has it."""
    mantissa, exponent = np.frexp(1.0 + np.maximum(x, 0.0))
    return np.asarray(exponent - 1.0 + (2.0 * mantissa - 1.0), dtype=np.float64)


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def _sums(owner: npt.NDArray[np.int64], values: npt.NDArray[np.generic], n: int) -> FloatArray:
    """Return the sum of the values of each of ``n`` owners."""
    sums = np.bincount(owner, weights=np.asarray(values, dtype=np.float64), minlength=n)
    return np.asarray(sums, dtype=np.float64)


class PortView:
    """Turns reports into one row of :data:`FIGURES` per agent, and into each agent's own reward.

    ``throughput_weight`` is w1 of ACC's reward ``w1 * T + w2 * D(L)`` with ``w2 = 1 - w1``; T is
    the utilisation of the ports. The weights are ours. An agent with NICs alone has its base RTT
    over its mean RTT in place of D, which is :func:`queue_score`.
    """

    def __init__(self, agents: Sequence[Agent], throughput_weight: float = 0.5) -> None:
        if not 0.0 <= throughput_weight <= 1.0:
            raise ConfigError(f"throughput_weight = {throughput_weight}: expected 0..1")
        self.n = len(agents)
        self.throughput_weight = throughput_weight
        self._port = np.array([p for a in agents for p in a.ports], dtype=np.int64)
        self._owner = np.repeat(np.arange(self.n), [len(a.ports) for a in agents])
        self._ports_of = np.array([len(a.ports) for a in agents], dtype=np.float64)
        self._nics = np.array([not a.switches for a in agents])
        pairs = [(h, i) for i, a in enumerate(agents) if not a.switches for h in a.hosts]
        self._hosts = np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    def figures(self, report: IntervalReport) -> FloatArray:
        """Return shape (agents, 4); raise ConfigError if the report is of another network."""
        self._check(report)
        capacity = self._capacity(report)
        rows = np.empty((self.n, len(FIGURES)))
        rows[:, 0] = _log2p1(self._sum(report.port_queue_bytes) / self._ports_of / 1e3) / QUEUE_BITS
        rows[:, 1] = _ratio(self._sum(report.port_tx_bytes), capacity)
        rows[:, 2] = _ratio(self._sum(report.port_marked_bytes), capacity)
        span = max(report.duration_ps, 1)
        rows[:, 3] = self._sum(report.port_pause_ps) / self._ports_of / span
        if self._nics.any():
            inflation = 1.0 / np.maximum(self._rtt_score(report), 1e-9)
            rows[:, 0] = np.where(self._nics, _log2p1(inflation - 1.0) / RTT_BITS, rows[:, 0])
        return np.clip(rows, 0.0, 1.0)

    def rewards(self, report: IntervalReport) -> FloatArray:
        """Return each agent's own reward of an interval, in 0..1, shape (agents,)."""
        self._check(report)
        sent = np.minimum(_ratio(self._sum(report.port_tx_bytes), self._capacity(report)), 1.0)
        delay = self._sum(queue_score(report.port_queue_bytes)) / self._ports_of
        if self._nics.any():
            delay = np.where(self._nics, self._rtt_score(report), delay)
        return self.throughput_weight * sent + (1.0 - self.throughput_weight) * delay

    def _capacity(self, report: IntervalReport) -> FloatArray:
        return self._sum(report.port_rate_bps) * (report.duration_s / 8.0)

    def _sum(self, of_ports: npt.NDArray[np.generic]) -> FloatArray:
        return _sums(self._owner, of_ports[self._port], self.n)

    def _rtt_score(self, report: IntervalReport) -> FloatArray:
        """Return base RTT / mean RTT of the pairs that begin at an agent's hosts; 1 without any."""
        of_host = np.full(len(report.host_rate_bps), -1, dtype=np.int64)
        of_host[self._hosts[0]] = self._hosts[1]
        owner = of_host[report.rtt_src]
        mine = owner >= 0
        base = report.rtt_count[mine] * report.rtt_base_ps[mine]
        at = owner[mine]
        whole = _sums(at, report.rtt_sum_ps[mine], self.n)
        part = _sums(at, base, self.n)
        return np.where(whole > 0, np.minimum(_ratio(part, whole), 1.0), 1.0)

    def _check(self, report: IntervalReport) -> None:
        missing = {"port_queue_bytes", "port_tx_bytes", "port_marked_bytes", "port_pause_ps"}
        for name in sorted(missing & report.unknown):
            raise ConfigError(f"agents see figures of ports, and this backend cannot know {name!r}")
        if len(self._port) and int(self._port.max()) >= len(report.port_node):
            raise ConfigError(
                f"the agents have ports up to number {int(self._port.max())}; the backend reports "
                f"{len(report.port_node)} ports, so it is another network ('fake' has one switch "
                "for all of them); use the backend 'native' or 'ns3'"
            )


class Past:
    """The last intervals of several agents, the newest first: figures, then the setting shown."""

    def __init__(self, agents: int, history: int, shown: int) -> None:
        self.rows = np.zeros((agents, history, len(FIGURES) + shown), dtype=np.float32)

    def add(self, figures: FloatArray, shown: npt.ArrayLike) -> None:
        """Put an interval before the others; ``shown`` is of shape (agents, shown)."""
        self.rows[:, 1:] = self.rows[:, :-1].copy()
        self.rows[:, 0, : len(FIGURES)] = figures
        self.rows[:, 0, len(FIGURES) :] = shown

    def flat(self) -> FloatArray:
        """Return one row per agent."""
        return self.rows.reshape(len(self.rows), -1).astype(np.float64)
