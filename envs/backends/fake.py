"""The fake backend: a closed-form toy network, deterministic, for tests and examples.

No packet moves. Every knob has a place in 0..1 of its tuned range, turned so that 1 favours
throughput; their weighted mean is the *push* of a setting. More push fills the links and the
queues; beyond 0.6 it also causes pauses. What is best depends on the share of elephants, which
drifts with time, so that tuners have something to follow. The numbers mean nothing for a real
network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dcqcn_gym.core.errors import ConfigError, StateError
from dcqcn_gym.core.groups import Devices, DeviceSetting, resolve
from dcqcn_gym.core.interval import (
    FSD_BINS,
    FinishedFlows,
    FloatArray,
    FlowSizeDistribution,
    IntArray,
    IntervalReport,
    report_with,
)
from dcqcn_gym.core.knobs import Knob, KnobTable, Setting
from dcqcn_gym.envs.backends.base import SIMULATED, Opens
from dcqcn_gym.envs.scenario.monitor import OwnMonitor

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario

BASE_RTT_PS = 20_000_000
PACKET_BYTES = 1062
PAYLOAD_BYTES = 1000
DRIFT_INTERVALS = 40
KL_THETA = 0.01


@dataclass
class _Open:
    """Everything that changes while the toy network runs."""

    scenario: Scenario
    seed: int
    now_ps: int = 0
    index: int = 0
    push: float | None = None
    last_share: float | None = None
    ordinal: int = 0

    @cached_property
    def devices(self) -> Devices:
        """The hosts, around one switch."""
        n = self.scenario.n_hosts
        return Devices(
            n_hosts=n,
            port_node=[*range(n), *([n] * n)],
            port_index=[*([0] * n), *range(n)],
            tiers={n: 0},
        )


class FakeBackend(Opens[_Open]):
    """A :class:`~dcqcn_gym.envs.backends.base.Backend` without packets.

    ``work_intervals``: the network has delivered everything after so many intervals (``done``),
    and is idle from then on; None: never.
    """

    offers = SIMULATED
    unknown: frozenset[str] = frozenset()

    def __init__(self, work_intervals: int | None = None) -> None:
        self._work_intervals = work_intervals

    @property
    def done(self) -> bool:
        """True once all work is delivered; False while closed."""
        opened = self._open
        limit = self._work_intervals
        return opened is not None and limit is not None and opened.index >= limit

    def open(self, scenario: Scenario, seed: int) -> None:
        """Build the toy network of ``scenario.n_hosts`` hosts around one switch."""
        self._check_closed()
        if isinstance(scenario.monitor, OwnMonitor):
            raise ConfigError(
                f"monitor {scenario.monitor.kind!r} is fed by the flow log, which the fake backend "
                "does not have; use the native or the ns3 backend"
            )
        self._open = _Open(scenario, seed)

    def apply(self, setting: DeviceSetting) -> None:
        """Put a setting in force from the current instant on."""
        opened = self._opened("apply")
        table, rate = opened.scenario.table, opened.scenario.line_rate_bps
        # groups are those of the scenario's network, whose switches the toy has melted into one
        uniform = isinstance(setting, Setting)
        devices = opened.devices if uniform else opened.scenario.fabric.devices
        nic, ecn = resolve(setting, devices, table)
        opened.push = _push(nic, ecn[devices.n_hosts :], rate, table)

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        """Run one monitor interval (or ``duration_ps``) and report it."""
        opened = self._opened("advance")
        if opened.push is None:
            raise StateError("advance() without a setting; call apply() first")
        span = opened.scenario.monitor_interval_ps if duration_ps is None else duration_ps
        report = _report(opened, span, opened.push, silent=self.done)
        opened.now_ps += span
        opened.index += 1
        return report

    def close(self) -> None:
        """Release everything; allowed in every state."""
        self._open = None


def _scale(knobs: Sequence[Knob], line_rate_bps: float) -> tuple[FloatArray, ...]:
    """Return of some knobs what their places need and no setting changes."""
    low, high = np.array([knob.tuned_at(line_rate_bps) for knob in knobs]).T
    log = np.array([knob.log for knob in knobs])
    shift = np.where(low > 0, 0.0, 1.0 - low)
    rising = np.array([knob.direction > 0 for knob in knobs])
    return low, high, log, shift, np.log((high + shift) / (low + shift)), rising


def _place(rows: FloatArray, scale: tuple[FloatArray, ...]) -> FloatArray:
    """Return the place of every value in its tuned range, 0..1, 1 favours throughput."""
    low, high, log, shift, decades, rising = scale
    value = np.clip(rows, low, high)
    linear = (value - low) / (high - low)
    logarithmic = np.log((value + shift) / (low + shift)) / decades
    place = np.clip(np.where(log, logarithmic, linear), 0.0, 1.0)
    return np.asarray(np.where(rising, place, 1.0 - place), dtype=np.float64)


@lru_cache(maxsize=64)
def _scales(
    table: KnobTable, line_rate_bps: float
) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...], FloatArray]:
    """Return the scales of NICs' and of switches' knobs, and how much each knob counts."""
    nic, ecn = ([table[name] for name in names] for names in (table.nic, table.ecn))
    # by the place among the observed knobs: a knob nobody tunes or sees changes nothing here
    at = {name: i for i, name in enumerate(table.observed)}
    weights = [k.tuned_by_default / (1.0 + at.get(k.name, 0) % 4) for k in (*nic, *ecn)]
    return _scale(nic, line_rate_bps), _scale(ecn, line_rate_bps), np.array(weights)


def _push(nic: FloatArray, ecn: FloatArray, line_rate_bps: float, table: KnobTable) -> float:
    """Return how hard a setting pushes, 0..1: the weighted mean place of the tuned knobs."""
    of_nic, of_ecn, weight = _scales(table, line_rate_bps)
    places = [_place(nic, of_nic).mean(axis=0), _place(ecn, of_ecn).mean(axis=0)]
    return float(np.sum(weight * np.concatenate(places)) / np.sum(weight))


def _elephant_share(index: int, seed: int) -> float:
    """Return the share of elephants, a triangle wave between 0.1 and 0.9."""
    phase = (index + seed) % DRIFT_INTERVALS / DRIFT_INTERVALS
    return 0.1 + 0.8 * (1.0 - abs(2.0 * phase - 1.0))


def _report(opened: _Open, span_ps: int, push: float, *, silent: bool) -> IntervalReport:
    n, rate = opened.devices.n_hosts, opened.scenario.line_rate_bps
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([opened.seed, opened.index])))
    share = 0.0 if silent else _elephant_share(opened.index, opened.seed)
    fill = 0.0 if silent else _fill(push, share)
    inflation = 1.0 + 4.0 * push * push * (1.3 - share)
    paused = max(0.0, push - 0.6) ** 2 * (1.2 - share)
    jitter = 1.0 + 0.01 * (rng.random(n) - 0.5)
    capacity = rate * span_ps * 1e-12 / 8
    tx = (np.minimum(fill * jitter, 1.0) * capacity).astype(np.int64)
    packets = int(np.sum(tx)) // PACKET_BYTES
    marks = int(packets * 0.1 * (1 - push))
    return report_with(
        np.full(n, rate),
        np.array(opened.devices.port_node),
        np.full(2 * n, rate),
        index=opened.index,
        start_ps=opened.now_ps,
        end_ps=opened.now_ps + span_ps,
        host_tx_bytes=tx,
        **_round_trips(n, packets, inflation),
        **_port_columns(
            tx,
            marks,
            pause_ps=0.0 if silent else paused * span_ps,
            frames=2 * int(1000 * paused),
            queued=0 if silent else int(1e6 * push * push),
        ),
        delivered_bytes=packets * PAYLOAD_BYTES,
        data_packets=packets,
        acks=packets,
        cnps=marks // 4,
        marks=marks,
        pauses=int(1000 * paused) * n,
        resumes=int(1000 * paused) * n,
        packet_hops=2 * packets,
        active_flows=0 if silent else 4 * n,
        fsd=_fsd(opened, share, 4 * n, silent=silent),
        finished=_finished(opened, rng, span_ps, inflation, silent=silent),
    )


def _fill(push: float, share: float) -> float:
    """Return the share of the line rate that a host sends at."""
    need = 0.35 + 0.4 * share  # elephants want more push than mice
    return 0.2 + 0.75 * push / (push + 0.4 * need)


def _round_trips(n: int, packets: int, inflation: float) -> dict[str, Any]:
    """Return the columns of a report by pair: every host's to the next one, if it sent anything."""
    hosts = np.arange(n if packets else 0)
    acks = packets // max(n, 1)
    return {
        "rtt_src": hosts,
        "rtt_dst": (hosts + 1) % n,
        "rtt_count": np.full(len(hosts), acks),
        "rtt_sum_ps": np.full(len(hosts), int(acks * BASE_RTT_PS * inflation)),
        "rtt_base_ps": np.full(len(hosts), BASE_RTT_PS),
    }


def _port_columns(
    tx: IntArray, marks: int, *, pause_ps: float, frames: int, queued: int
) -> dict[str, Any]:
    """Return the columns of a report by port: those of hosts, which are paused, then the switch's.

    ``tx`` are bytes of each host, ``marks`` packets in all, ``pause_ps`` and ``frames`` of PFC are
    each host's, ``queued`` are bytes in each of the switch's ports.
    """
    n = len(tx)
    port_tx = np.concatenate([tx, tx])
    queue = np.repeat([0, queued], n)
    return {
        "port_pause_ps": np.repeat([pause_ps, 0.0], n),
        "port_tx_bytes": port_tx,
        "port_tx_packets": port_tx // PACKET_BYTES,
        "port_marked_packets": _spread(marks, n),
        "port_marked_bytes": _spread(marks, n) * PACKET_BYTES,
        "port_queue_bytes": queue,
        "port_max_queue_bytes": 2 * queue,
        "port_pfc_sent": np.repeat([0, frames], n),
        "port_pfc_received": np.repeat([frames, 0], n),
    }


def _spread(total: int, n: int) -> IntArray:
    """Share a count among the ``n`` switch ports; host ports get none."""
    counts = np.zeros(2 * n, dtype=np.int64)
    counts[n:] = total // n
    counts[n : n + total % n] += 1
    return counts


def _fsd(opened: _Open, share: float, flows: int, *, silent: bool) -> FlowSizeDistribution:
    if silent:
        return FlowSizeDistribution()
    old, opened.last_share = opened.last_share, share
    kl = 0.0
    if old is not None:
        kl = float(share * np.log(share / old) + (1 - share) * np.log((1 - share) / (1 - old)))
    bins = np.zeros(FSD_BINS)
    bins[2], bins[10] = (1 - share) * flows, share * flows
    return FlowSizeDistribution(
        elephants=0.8 * share * flows,
        potential=0.2 * share * flows,
        mice=(1 - share) * flows,
        weighted_elephants=0.9 * share * flows,
        weighted_mice=(1 - 0.9 * share) * flows,
        bins=bins,
        kl=max(kl, 0.0),
        triggered=old is None or kl > KL_THETA,
        monitor_bytes=12 * opened.devices.n_hosts,
    )


def _finished(
    opened: _Open, rng: np.random.Generator, span_ps: int, inflation: float, *, silent: bool
) -> FinishedFlows:
    if silent or span_ps <= 0:
        return FinishedFlows()
    n = opened.devices.n_hosts
    src = np.arange(n)
    size = rng.integers(200, 2_000_000, n)
    ideal = BASE_RTT_PS + (size * (8e12 / opened.scenario.line_rate_bps)).astype(np.int64)
    opened.ordinal += 1
    return FinishedFlows(
        src=src,
        dst=(src + 1) % n,
        ordinal=np.full(n, opened.ordinal - 1),
        bytes=size,
        start_ps=np.full(n, opened.now_ps),
        fct_ps=(ideal * inflation).astype(np.int64),
        ideal_fct_ps=ideal,
        workload=np.zeros(n, dtype=np.int64),
    )
