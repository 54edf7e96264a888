"""How large a scenario may be: sizes are checked before anything of that size is built.

The estimate is of the memory of one environment, in Python and in the engine: links and their
ports, the routes (4 bytes per switch and ToR), and the sketches of the monitor at every ToR.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from dcqcn_gym.core.errors import ConfigError

MAX_HOSTS = 65_536
MAX_LINKS = 1_000_000
MAX_PORTS = 4096
"""Of a switch: the engine numbers them with 12 bits."""
MAX_MEMORY_BYTES = 4 * 10**9
MAX_SKETCH_BYTES = 10**9
MAX_FLOW_PACKETS = 2**31 - 1
"""Packet numbers of a queue pair have 32 bits, and which of two is later has to be known."""

_LINK_BYTES = 800
"""Of one link: 180 B as Python objects, twice while it expands, 100 B of text, 300 B of ports."""
_ROUTE_BYTES = 4
_NODE_BYTES = 400


def check_size(hosts: int, switches: int, links: int) -> None:
    """Raise :class:`ConfigError` for a topology that is too large, from its numbers alone."""
    need = (hosts + switches) * _NODE_BYTES + links * _LINK_BYTES
    need += min(hosts, switches) * switches * _ROUTE_BYTES  # ToRs are not counted yet
    size = f"{hosts} hosts, {switches} switches and {links} links need about {_gigabytes(need)}"
    if hosts > MAX_HOSTS:
        raise ConfigError(f"{size} of memory; expected at most {MAX_HOSTS} hosts")
    if links > MAX_LINKS:
        raise ConfigError(f"{size} of memory; expected at most {MAX_LINKS} links")
    if need > MAX_MEMORY_BYTES:
        raise ConfigError(f"{size} of memory; expected at most {_gigabytes(MAX_MEMORY_BYTES)}")


def check_ports(hosts: int, ends: Iterable[int]) -> None:
    """Raise :class:`ConfigError` for a switch with too many ports; ``ends``: of all links."""
    for node, ports in Counter(ends).items():
        if node >= hosts and ports > MAX_PORTS:
            raise ConfigError(
                f"switch {node - hosts} has {ports} ports; expected at most {MAX_PORTS}"
            )


def check_flow(size: int, messages: int, payload_bytes: int) -> None:
    """Raise :class:`ConfigError` for a flow, or messages posted at once, of too many packets."""
    packets = -(-size // payload_bytes) * messages
    if packets > MAX_FLOW_PACKETS:
        what = f"{messages} messages" if messages > 1 else "a flow"
        raise ConfigError(
            f"{what} of {size} bytes in packets of {payload_bytes} are {packets} packets on one "
            f'queue pair; expected at most {MAX_FLOW_PACKETS} (2^31 - 1), or "unlimited" flows'
        )


def check_sketches(monitor: Any, tors: int) -> None:
    """Raise :class:`ConfigError` if the sketches of all ToRs together take too much memory."""
    one = getattr(monitor, "heavy_bytes", 0) + getattr(monitor, "light_bytes", 0)
    if "elastic" in monitor.kind and tors * one > MAX_SKETCH_BYTES:
        raise ConfigError(
            f"monitor: heavy_bytes + light_bytes = {one} at {tors} ToRs need "
            f"{_gigabytes(tors * one)} of memory; expected at most {_gigabytes(MAX_SKETCH_BYTES)}"
        )


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.3g} GB" if size < 10**15 else "more than a million GB"
