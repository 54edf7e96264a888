"""Three ways to flow sizes that need no programmable switch, as monitors in simulation.

What a switch or NIC would export is made from the flow log and read by the collector that listens
on a fleet; the bytes on the wire are those of the datagrams or messages themselves.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np
from pydantic import Field

from dcqcn_gym.core.flow_export.netflow import FlowRecord, encode_ipfix
from dcqcn_gym.core.flow_export.packets import OVERHEAD, ROCE_PORT, UDP, FlowKey, header_of
from dcqcn_gym.core.flow_export.sflow import FlowSample, encode
from dcqcn_gym.core.interval import FlowSizeDistribution
from dcqcn_gym.envs.monitors.base import (
    FloatArray,
    FlowLog,
    FlowMonitor,
    MonitorContext,
    MonitorSettings,
)
from dcqcn_gym.hw.collectors.collector import Collector, FlowWindow

_STREAM = 0x53464C  # of the samples, apart from other draws of the same seed
FRAMES = 14 + 20 + 8 + 4
"""Bytes around a UDP datagram on the wire."""


class _WindowSettings(MonitorSettings):
    delta: int = Field(default=3, ge=1, description="active intervals of a potential elephant")


class _SflowSettings(_WindowSettings):
    sample_one_in: int = Field(default=100, ge=1, le=2**24, description="mean packets per sample")


class _IpfixSettings(_WindowSettings):
    active_us: float = Field(default=5000.0, gt=0, description="a flow is exported this often")
    idle_us: float = Field(default=2000.0, gt=0, description="and once it was silent so long")


class _PairSettings(_WindowSettings):
    most_pairs: int = Field(
        default=1024, ge=1, description="queue pairs that the NICs of a ToR count apart"
    )


class _Exported(FlowMonitor):
    """What the three have in common: the window, and each row's share of the last interval."""

    def __init__(self, context: MonitorContext, settings: MonitorSettings) -> None:
        super().__init__(context, settings)
        own = cast(_WindowSettings, settings)
        self._window = FlowWindow(context.tau_bytes, own.delta)

    def elephant_shares(self, log: FlowLog) -> FloatArray:
        """Return the share of every row; NaN for a flow that was not exported."""
        shares = self._window.shares
        names = zip(log.tor.tolist(), log.key.tolist(), strict=True)
        return np.array([shares.get(self._name(*one), np.nan) for one in names])

    def _name(self, tor: int, key: int) -> Hashable:
        return _key(tor, key)


class SflowMonitor(_Exported):
    """Every ToR samples packets by chance and sends their first bytes at once (sFlow v5)."""

    name = "sflow"
    summary = "sampled packets, sent at once (sFlow v5)"
    Settings: ClassVar[type[MonitorSettings]] = _SflowSettings

    def __init__(self, context: MonitorContext, settings: MonitorSettings) -> None:
        super().__init__(context, settings)
        self._rate = cast(_SflowSettings, settings).sample_one_in
        self._random = np.random.Generator(
            np.random.PCG64(np.random.SeedSequence([context.seed, _STREAM]))
        )
        self._collector = Collector("sflow", self._window)
        self._sequence = 0

    def observe(self, log: FlowLog) -> FlowSizeDistribution:
        """Sample, send, collect."""
        drawn = self._random.binomial(log.packets, 1.0 / self._rate)
        sent = 0
        for tor in np.unique(log.tor).tolist():
            samples: list[FlowSample] = []
            for i in np.flatnonzero((log.tor == tor) & (drawn > 0)).tolist():
                payload = round(int(log.payload_bytes[i]) / int(log.packets[i]))
                header = header_of(_key(tor, int(log.key[i])), payload)
                one = FlowSample(tor, self._rate, payload + OVERHEAD, header)
                samples += [one] * int(drawn[i])
            datagrams = encode(_address(tor), self._sequence, samples)
            self._sequence += len(datagrams)
            sent += FRAMES * len(datagrams)
            for datagram in datagrams:
                self._collector.feed(datagram, str(tor))
        return _with_frames(self._collector.close(), sent)


class IpfixMonitor(_Exported):
    """Every ToR counts each flow and exports its record when a timer ends (IPFIX)."""

    name = "ipfix"
    summary = "every flow counted, exported when a timer ends (IPFIX)"
    Settings: ClassVar[type[MonitorSettings]] = _IpfixSettings

    def __init__(self, context: MonitorContext, settings: MonitorSettings) -> None:
        super().__init__(context, settings)
        own = cast(_IpfixSettings, settings)
        self._active_ps, self._idle_ps = own.active_us * 1e6, own.idle_us * 1e6
        self._cache: dict[tuple[int, int], list[float]] = {}  # bytes, packets, first, last
        self._collector = Collector("ipfix", self._window)
        self._sequence = 0

    def observe(self, log: FlowLog) -> FlowSizeDistribution:
        """Count, export what is due, collect."""
        columns = (log.tor, log.key, log.payload_bytes, log.packets)
        for tor, key, sent, packets in zip(*(c.tolist() for c in columns), strict=True):
            row = self._cache.setdefault((tor, key), [0.0, 0.0, log.start_ps, 0.0])
            row[0] += sent
            row[1] += packets
            row[3] = log.end_ps
        framed = 0
        for tor, records in self._due(log.end_ps).items():
            messages = encode_ipfix(records, self._sequence, tor)
            self._sequence += len(records)
            framed += FRAMES * len(messages)
            for message in messages:
                self._collector.feed(message, str(tor))
        return _with_frames(self._collector.close(), framed)

    def _due(self, now_ps: int) -> dict[int, list[FlowRecord]]:
        """Return the records that leave now, by ToR, and forget their flows."""
        found: dict[int, list[FlowRecord]] = {}
        for name, (sent, packets, first, last) in list(self._cache.items()):
            if now_ps - first >= self._active_ps or now_ps - last >= self._idle_ps:
                del self._cache[name]
                found.setdefault(name[0], []).append(_record(name, int(sent), int(packets)))
        return found

    def _name(self, tor: int, key: int) -> Hashable:
        return (*_key(tor, key)[:3], 0)


class QueuePairMonitor(_Exported):
    """Every NIC counts its queue pairs apart; the controller reads them in every interval."""

    name = "queue-pairs"
    summary = "exact bytes of every queue pair, read from NICs"
    Settings: ClassVar[type[MonitorSettings]] = _PairSettings

    def __init__(self, context: MonitorContext, settings: MonitorSettings) -> None:
        super().__init__(context, settings)
        self._most = cast(_PairSettings, settings).most_pairs
        self._counted: dict[tuple[int, int], int] = {}

    def observe(self, log: FlowLog) -> FlowSizeDistribution:
        """Read the counters that grew; pairs too many for the NICs of a ToR stay unseen."""
        grown: dict[Hashable, float] = {}
        pairs: dict[int, int] = {}
        wire = 0
        rows = zip(log.tor.tolist(), log.key.tolist(), log.payload_bytes.tolist(), strict=True)
        for tor, key, sent in rows:
            pairs[tor] = pairs.get(tor, 0) + 1
            if pairs[tor] > self._most:
                self._window.untracked += 1
                continue
            total = self._counted.get((tor, key), 0) + sent
            self._counted[tor, key] = total
            grown[_key(tor, key)] = float(sent)
            wire += message_bytes(f"qp/{key & 0xFFFFFF}/tx_bytes", total)
        return self._window.close(grown, wire)


def message_bytes(name: str, value: int) -> int:
    """Return the bytes of one figure in an agent's message: an entry of ``map<string, uint64>``."""
    body = 2 + len(name) + 1 + max(-(-value.bit_length() // 7), 1)
    return 1 + max(-(-body.bit_length() // 7), 1) + body


def _key(tor: int, key: int) -> FlowKey:
    """Return the flow of a row of the log as packets name it: its key is the source address."""
    return (key.to_bytes(4, "big"), _address(tor), 0xC000 | (key & 0x3FFF), key & 0xFFFFFF)


def _address(tor: int) -> bytes:
    return (0x0AFF0000 + tor).to_bytes(4, "big")


def _record(name: tuple[int, int], sent: int, packets: int) -> FlowRecord:
    source, target, port, _ = _key(*name)
    octets = sent + (20 + 8 + 12 + 4) * packets
    return FlowRecord(source, target, port, ROCE_PORT, UDP, octets, packets, 1)


def _with_frames(fsd: FlowSizeDistribution, sent: int) -> FlowSizeDistribution:
    """Return the distribution with the bytes around its datagrams on the wire."""
    return replace(fsd, monitor_bytes=fsd.monitor_bytes + sent)
