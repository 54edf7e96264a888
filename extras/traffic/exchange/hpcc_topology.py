"""HPCC's ``topology.txt``: ``nodes switches links``, the switches, and five words a link.

A link is ``from to rate delay loss``. Nodes that are no switches are hosts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import read_file
from dcqcn_gym.envs.scenario.fabric import Fabric

MOST_BYTES = 64 * 2**20
_MOST_NODES = 2 * 65536
_NUMBER = r"(\d{1,15}(?:\.\d{1,15})?(?:e[+-]?\d{1,2})?)"
_RATE = re.compile(rf"{_NUMBER}\s*([kmgt]?)(?:bps|b/s|bit/s)?", re.IGNORECASE)
_TIME = re.compile(rf"{_NUMBER}(ps|ns|us|ms|s|)", re.IGNORECASE)
_TIMES = {"ps": 0, "ns": 3, "us": 6, "ms": 9, "s": 12, "": 12}
_UNITS = {"": 0, "k": 3, "m": 6, "g": 9, "t": 12}
SLOWEST_PS, FASTEST_PS = 8000, 10
"""Bounds of a link's picoseconds per byte: 1 and 800 Gb/s."""


class HpccLink(NamedTuple):
    """A link between two nodes: picoseconds per byte, delay in picoseconds, share of loss."""

    a: int
    b: int
    ps_per_byte: int
    delay_ps: int
    loss: float
    exact: bool
    """Whether its rate is a whole number of picoseconds per byte, as ours are."""


@dataclass(frozen=True)
class HpccTopology:
    """The nodes ``0..nodes-1``, those that are switches, and the links in the file's order."""

    nodes: int
    switches: tuple[int, ...]
    links: tuple[HpccLink, ...]
    announced: int

    @property
    def hosts(self) -> tuple[int, ...]:
        """The other nodes, in ascending order."""
        switches = set(self.switches)
        return tuple(node for node in range(self.nodes) if node not in switches)

    def names(self) -> dict[int, str]:
        """Return the name of every node in a scenario: ``h0``, ... and ``s0``, ..."""
        names = {node: f"h{i}" for i, node in enumerate(self.hosts)}
        return names | {node: f"s{i}" for i, node in enumerate(self.switches)}

    def graph(self) -> dict[str, Any]:
        """Return the table ``[topology]`` of a scenario; tiers are steps from the hosts."""
        names = self.names()
        links: list[dict[str, Any]] = []
        for link in self.links:
            one = {"ends": [names[link.a], names[link.b]], **_rate(link.ps_per_byte),
                   "delay_us": link.delay_ps / 1e6}  # fmt: skip
            if links and {**links[-1], "parallel": 1} == {**one, "parallel": 1}:
                links[-1]["parallel"] = links[-1].get("parallel", 1) + 1
            else:
                links.append(one)
        sizes = {"hosts": len(self.hosts), "switches": len(self.switches)}
        return {"kind": "graph", **sizes, "tiers": self._tiers(), "links": links}

    def _tiers(self) -> list[int]:
        peers: dict[int, set[int]] = {}
        for link in self.links:
            peers.setdefault(link.a, set()).add(link.b)
            peers.setdefault(link.b, set()).add(link.a)
        known: dict[int, int] = {}
        switches = set(self.switches)
        now = {p for host in self.hosts for p in peers.get(host, ())} & switches
        for steps in range(self.nodes):
            known |= dict.fromkeys(now, min(steps, 2))
            now = {p for node in now for p in peers[node] if p in switches and p not in known}
            if not now:
                break
        return [known.get(switch, 0) for switch in self.switches]


def _rate(step: int) -> Mapping[str, float | int]:
    return {"gbps": 8000 / step} if 8000 % step == 0 else {"ps_per_byte": step}


def bps_of(text: str) -> Decimal | None:
    """Return a rate such as ``100Gbps``, ``25Gb/s`` or ``100000000000`` in bit/s."""
    match = _RATE.fullmatch(text)
    return None if match is None else Decimal(match[1]).scaleb(_UNITS[match[2].lower()])


def delay_of(text: str) -> int | None:
    """Return a delay such as ``1000ns`` or ``0.001ms`` in whole picoseconds."""
    match = _TIME.fullmatch(text)
    value = Decimal(match[1]).scaleb(_TIMES[match[2].lower()]) if match else Decimal(-1)
    return int(value.to_integral_value()) if 0 <= value < 2**55 else None


def parse_topology(path: Path) -> HpccTopology:
    """Read such a file; raise :class:`ConfigError` for another one, naming the first bad link."""
    words = read_file(path, MOST_BYTES).decode("utf-8", "replace").split()
    try:
        nodes, switches, announced = (int(word) for word in words[:3])
        ids = [int(word) for word in words[3 : 3 + switches]]
    except ValueError:
        raise _no_topology(path) from None
    if not (0 < switches < nodes <= _MOST_NODES and len(ids) == switches):
        raise _no_topology(path)
    if len(set(ids)) != switches or not all(0 <= node < nodes for node in ids):
        raise ConfigError(f"{path}: switches {quote(ids[:5])} ...; expected {switches} different "
                          f"nodes of 0 to {nodes - 1}")  # fmt: skip
    behind = words[3 + switches :]
    links = [_link(path, behind[i : i + 5], nodes) for i in range(0, len(behind), 5)]
    return HpccTopology(nodes, tuple(sorted(ids)), tuple(links), announced)


def _no_topology(path: Path) -> ConfigError:
    return ConfigError(
        f"{path}: no topology of HPCC's simulator; expected 'nodes switches links', the numbers of "
        "the switches, and five words a link: from, to, rate, delay, loss (SimAI's has six words "
        "in its first line, and NVSwitches: a fabric's hosts here have one link)"
    )


def _link(path: Path, words: list[str], nodes: int) -> HpccLink:
    try:
        a, b = (int(word) for word in words[:2])
        rate, delay, loss = bps_of(words[2]), delay_of(words[3]), float(words[4])
    except (ValueError, IndexError):
        raise ConfigError(f"{path}: link {quote(' '.join(words))}; expected from, to, rate, delay, "
                          "loss, such as '0 16 100Gbps 1000ns 0'") from None  # fmt: skip
    if not (0 <= a < nodes and 0 <= b < nodes):
        raise ConfigError(f"{path}: link {quote(' '.join(words))} ends at a node that is not "
                          f"there; expected nodes 0 to {nodes - 1}")  # fmt: skip
    step = Decimal(8 * 10**12) / rate if rate else Decimal(0)
    if not FASTEST_PS <= step <= SLOWEST_PS or delay is None or not 0 <= loss <= 1:
        raise ConfigError(
            f"{path}: link {quote(' '.join(words))}; expected 1 to 800 Gb/s, a delay such as "
            "1000ns or 0.001ms, and a loss of 0 to 1"
        )
    return HpccLink(a, b, int(step.to_integral_value()), delay, loss, step == int(step))


def topology_text(net: Fabric) -> str:
    """Return ``topology.txt`` of a fabric, nodes numbered as here: hosts first."""
    lines = [f"{net.n_nodes} {len(net.tiers)} {len(net.links)}",
             " ".join(map(str, range(net.n_hosts, net.n_nodes)))]  # fmt: skip
    for link in net.links:
        lines.append(f"{link.a} {link.b} {rate_text(link.ps_per_byte)} "
                     f"{decimal_text(Decimal(link.delay_ps).scaleb(-3))}ns 0")  # fmt: skip
    return "\n".join(lines) + "\n"


def rate_text(step: int) -> str:
    """Return a rate of so many picoseconds per byte as HPCC's files write it."""
    bps = bps_at(step)
    return f"{bps // 10**9}Gbps" if bps % 10**9 == 0 else f"{bps}bps"


def bps_at(step: int) -> int:
    """Return the bit/s, whole, that stand for so many picoseconds per byte there."""
    return round(8 * 10**12 / step)


def decimal_text(value: Decimal) -> str:
    """Return a number in digits, without an exponent and without zeros at its end."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
