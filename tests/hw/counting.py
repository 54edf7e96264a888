"""What the devices of a small fleet have really counted, what they show, and what is reported.

A counter may wrap, stick or start anew. :func:`check_interval` reads all devices through the
controller and holds every figure that is reported against the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.groups import Devices
from dcqcn_gym.hw.backend import reading_of
from dcqcn_gym.hw.controller import Controller
from dcqcn_gym.hw.device_counters import Counted, Shape, report_of
from dcqcn_gym.hw.fabric.devices import PlayedNic, PlayedSwitch
from dcqcn_gym.hw.gather import Gathered

__all__ = ["COUNTER_FAULTS", "Traffic", "check_interval", "read_all"]

COUNTER_FAULTS: Mapping[str, str] = {
    "counter-wraps": "a NIC's counter of bytes begins again behind 32 bits",
    "counter-stuck": "a NIC's counter of packets stands still",
    "counter-reset": "a NIC's counters begin at zero again, in the middle of an interval",
}
_NIC = ("tx_bytes", "tx_packets", "pfc_received", "pfc_sent", "pause_us", "cnps_sent")
_PORT = ("tx_bytes", "tx_packets", "pfc_received", "pfc_sent", "pause_us", "marked_packets",
         "marked_bytes", "dropped_packets", "queue_bytes", "max_queue_bytes")  # fmt: skip
_WRAP = 2**32


@dataclass
class _Nic:
    true: dict[str, int]
    hidden: dict[str, int] = field(default_factory=dict)
    """What the counters do not show any more: they began anew."""
    stuck: dict[str, int] = field(default_factory=dict)
    wraps: bool = False

    def shown(self) -> dict[str, int]:
        """Return what its files hold."""
        found = {n: v - self.hidden.get(n, 0) for n, v in self.true.items()} | self.stuck
        if self.wraps:
            found["tx_bytes"] %= _WRAP
        return found


class Traffic:
    """Grows when it is told to; files and databases show it at once."""

    def __init__(
        self, nics: Mapping[str, PlayedNic], switch: PlayedSwitch | None, seed: int
    ) -> None:
        self._random = Random(f"traffic {seed}")
        self._played, self._switch = nics, switch
        self._nics = {name: _Nic(dict.fromkeys(_NIC, 10**10)) for name in nics}
        self._ports = [dict.fromkeys(_PORT, 10**10) for _ in (switch.ports if switch else ())]
        n, ports = len(nics), len(self._ports)
        owners = [*range(n), *[n] * ports]
        numbers = [*[0] * n, *range(ports)]
        devices = Devices(n, owners, numbers, {n: 0} if ports else {})
        self.shape = Shape(devices, np.full(n, 25e9), np.full(n + ports, 25e9))
        self.show()

    def grow(self) -> None:
        """Let every device send something, and show it."""
        for nic in self._nics.values():
            self._grow(nic.true)
        for port in self._ports:
            self._grow(port)
        self.show()

    def _grow(self, counters: dict[str, int]) -> None:
        for name in counters:
            counters[name] += self._random.randrange(30_000, 10**6)

    def show(self) -> None:
        """Write what counters show into files and database, where these are there."""
        for name, played in self._played.items():
            played.show(self._nics[name].shown())
        if self._switch is not None and self._switch.runs:
            self._switch.show(self._ports)

    def restart(self, name: str) -> None:
        """Let a NIC's counters begin at zero again."""
        if name in self._nics:
            nic = self._nics[name]
            nic.hidden, nic.wraps = dict(nic.true), False
            self.show()

    def wrap(self, name: str) -> None:
        """Let a NIC count bytes in 32 bits, just before its end."""
        nic = self._nics[name]
        nic.hidden["tx_bytes"] = nic.true["tx_bytes"] - (_WRAP - 10)
        nic.wraps = True
        self.show()

    def stick(self, name: str) -> None:
        """Let a NIC's counter of packets stand still."""
        self._nics[name].stuck = {"tx_packets": self._nics[name].shown()["tx_packets"]}

    def heal(self) -> None:
        """End what is wrong with counters; those that began anew stay so."""
        for nic in self._nics.values():
            nic.stuck, nic.wraps = {}, False
        self.show()

    def truth(self) -> tuple[list[int], list[int]]:
        """Return the bytes that each NIC and each port of the switch has really sent."""
        return (
            [nic.true["tx_bytes"] for nic in self._nics.values()],
            [port["tx_bytes"] for port in self._ports],
        )


def read_all(controller: Controller, found: Gathered) -> Counted | None:
    """Return the counters of one instant; None if a report is missing."""
    if found.missing or set(found.figures) != {
        *controller.agents.nics,
        *controller.agents.switches,
    }:
        return None
    ports = {
        name: list(controller.agents.descriptions[name].ports)
        for name in controller.agents.switches
    }
    return reading_of(controller, ports, found.figures)


def check_interval(
    traffic: Traffic, before: Counted, after: Counted, sent: tuple[Sequence[int], Sequence[int]]
) -> bool:
    """Return whether an interval is reported; AssertionError if one is that did not happen.

    ``sent`` is the truth at its beginning.
    """
    try:
        report = report_of(traffic.shape, before, after, (0, 0, 10**9), None)
    except DcqcnGymError:
        return False
    (nics, ports), (nics_before, ports_before) = traffic.truth(), sent
    wanted = [a - b for a, b in zip(nics, nics_before, strict=True)]
    assert report.host_tx_bytes.tolist() == wanted, "an interval was made up"
    wanted = [a - b for a, b in zip(ports, ports_before, strict=True)]
    assert report.port_tx_bytes.tolist()[len(nics) :] == wanted, "an interval was made up"
    return True
