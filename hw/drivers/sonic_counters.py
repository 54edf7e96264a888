"""What a SONiC switch has counted, from COUNTERS_DB by the maps of port and queue names.

The switch copies its counters into Redis at an interval of its own (``FLEX_COUNTER_TABLE``:
1 s for ports, 10 s for queues, 60 s for watermarks unless told otherwise; its command line allows
100 ms and more), so nothing quicker than that can be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dcqcn_gym.core.errors import DeviceError
from dcqcn_gym.hw.drivers.sonic_db import COUNTERS_DB, Databases

POLLS = {"PORT": 1000, "QUEUE": 10000, "QUEUE_WATERMARK": 60000}
"""Group of counters -> the interval in ms at which an untouched switch polls it."""

QUEUE_FIGURES = {
    "SAI_QUEUE_STAT_BYTES": "tx_bytes",
    "SAI_QUEUE_STAT_PACKETS": "tx_packets",
    "SAI_QUEUE_STAT_DROPPED_PACKETS": "dropped_packets",
    "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS": "marked_packets",
    "SAI_QUEUE_STAT_WRED_ECN_MARKED_BYTES": "marked_bytes",
    "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES": "queue_bytes",
}
WATERMARK = "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"


def check_polls(db: Databases, interval_ms: float) -> None:
    """Raise DeviceError if a group that is needed is off or slower than ``interval_ms``."""
    for group, usual in POLLS.items():
        held = db.config(f"FLEX_COUNTER_TABLE|{group}")
        if held.get("FLEX_COUNTER_STATUS", "enable") != "enable":
            raise DeviceError(f"counters of group {group} are off; switch on: counterpoll")
        text = held.get("POLL_INTERVAL", str(usual))
        every = int(text) if text.isdecimal() else usual
        if every > interval_ms:
            raise DeviceError(
                f"the switch polls its {group} counters every {every} ms, but the monitor interval "
                f"is {interval_ms:g} ms; lengthen the interval, or let it poll more often "
                "(counterpoll, 100 ms and more)"
            )


def collect(db: Databases, ports: Sequence[str], queue: int) -> dict[str, int]:
    """Return ``PORT/figure`` for every port: docs/hardware.md lists them."""
    port_ids, queue_ids = db.read(
        COUNTERS_DB, ["COUNTERS_PORT_NAME_MAP", "COUNTERS_QUEUE_NAME_MAP"]
    )
    keys = []
    for port in ports:
        own, lossless = port_ids.get(port), queue_ids.get(f"{port}:{queue}")
        if own is None or lossless is None:
            raise DeviceError(f"COUNTERS_DB has no counters of port {port}, queue {queue}")
        keys += [f"COUNTERS:{own}", f"COUNTERS:{lossless}", f"PERIODIC_WATERMARKS:{lossless}"]
    read = db.read(COUNTERS_DB, keys)
    found = {}
    for i, port in enumerate(ports):
        of_port, of_queue, marks = read[3 * i : 3 * i + 3]
        for field, name in QUEUE_FIGURES.items():
            found[f"{port}/{name}"] = _whole(of_queue, field, port)
        found[f"{port}/max_queue_bytes"] = _whole(marks, WATERMARK, port)
        found |= _pfc(of_port, port, queue)
    return found


def _pfc(fields: Mapping[str, str], port: str, priority: int) -> dict[str, int]:
    """Return PFC figures; the pause time is measured where the platform can, else estimated."""
    name = f"SAI_PORT_STAT_PFC_{priority}_"
    pause = f"{name}RX_PAUSE_DURATION_US"
    if pause not in fields:
        pause = f"EST_PORT_STAT_PFC_{priority}_RX_PAUSE_DURATION_US"
    return {
        f"{port}/pfc_received": _whole(fields, f"{name}RX_PKTS", port),
        f"{port}/pfc_sent": _whole(fields, f"{name}TX_PKTS", port),
        f"{port}/pause_us": _whole(fields, pause, port),
    }


def _whole(fields: Mapping[str, str], name: str, port: str) -> int:
    text = fields.get(name)
    if text is None or not text.isdecimal():
        raise DeviceError(f"port {port}: {name} is {text!r}; expected a whole number")
    return int(text)
