"""A network in one file: what a backend of one's own needs. Every link carries what Kmin allows."""

from __future__ import annotations

import numpy as np

from dcqcn_gym.core.errors import ConfigError, StateError
from dcqcn_gym.core.groups import Devices, DeviceSetting, resolve
from dcqcn_gym.core.interval import (
    REPORT_FIELDS,
    FlowSizeDistribution,
    IntervalReport,
    report_with,
)
from dcqcn_gym.envs.scenario.scenario import Scenario

PACKET = 1062
UNKNOWN = frozenset({"fsd.kl", *(name for name in REPORT_FIELDS if name.startswith("finished."))})


class ToyBackend:
    """A closed-form network; ``ToyBackend:SHARE`` leaves so much of every link to other traffic."""

    offers = frozenset({"per_switch"})
    unknown = UNKNOWN

    def __init__(self, left: float = 0.0) -> None:
        self._left = left
        self._open: tuple[Scenario, Devices, np.random.Generator] | None = None
        self._share: float | None = None
        self._now = self._index = 0

    @property
    def done(self) -> bool:
        return False

    def open(self, scenario: Scenario, seed: int) -> None:
        if self._open is not None:
            raise StateError("open() on an open backend; call close() first")
        self._open = scenario, scenario.fabric.devices, np.random.default_rng(seed)
        self._share, self._now, self._index = None, 0, 0

    def apply(self, setting: DeviceSetting) -> None:
        if self._open is None:
            raise StateError("apply() on a closed backend; call open() first")
        _, ecn = resolve(setting, self._open[1])
        self._share = float(np.mean(ecn[:, 0] / (ecn[:, 0] + 100.0))) * (1.0 - self._left)

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        if self._open is None:
            raise StateError("advance() on a closed backend; call open() first")
        if self._share is None:
            raise StateError("advance() without a setting; call apply() first")
        scenario, devices, random = self._open
        span = scenario.monitor_interval_ps if duration_ps is None else duration_ps
        links = scenario.fabric.host_link
        rate = np.array([link.rate_bps for link in links])
        noise = random.uniform(0.9, 1.0, len(links))
        packets = (rate * span * 1e-12 / 8 * self._share * noise / PACKET).astype(np.int64)
        report = _report(self._index, self._now, span, packets, rate, devices)
        self._now, self._index = self._now + span, self._index + 1
        return report

    def close(self) -> None:
        self._open = None


class ToyShareBackend(ToyBackend):
    """The same, named with what is left to others: ``toy_backend.py:ToyShareBackend:0.5``."""

    argument = "SHARE"

    @classmethod
    def from_argument(cls, text: str) -> ToyShareBackend:
        try:
            share = float(text)
        except ValueError:
            share = 1.0
        if not 0.0 <= share < 1.0:
            raise ConfigError(f"share {text!r}: expected a number from 0 to below 1")
        return cls(share)


def _report(
    index: int,
    start: int,
    span: int,
    packets: np.ndarray[tuple[int], np.dtype[np.int64]],
    rate: np.ndarray[tuple[int], np.dtype[np.float64]],
    devices: Devices,
) -> IntervalReport:
    hosts, sent = np.arange(len(packets)), int(packets.sum())
    base = np.full(len(packets), 20_000_000)
    one = np.ones(len(packets), dtype=np.int64)
    return report_with(
        rate, np.array(devices.port_node), np.full(len(devices.port_node), rate[0]),
        index=index, start_ps=start, end_ps=start + span, host_tx_bytes=packets * PACKET,
        rtt_src=hosts, rtt_dst=(hosts + 1) % len(hosts), rtt_count=one,
        rtt_sum_ps=base + packets * 1000, rtt_base_ps=base,
        delivered_bytes=sent * 1000, data_packets=sent, acks=sent, packet_hops=2 * sent,
        active_flows=len(packets), fsd=FlowSizeDistribution(known=False), unknown=UNKNOWN,
    )  # fmt: skip
