"""The next-hop table of a scenario: the egress port of single flows at a switch.

Read from CSV rows ``switch,src,dst,ordinal,port[,packets]`` or written inline, and checked against
the network: every row has to keep its packets on a shortest path.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, ValidationInfo

from dcqcn_gym.core.errors import ConfigError, did_you_mean, quote
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.tables import lines_of, numbers_of, path_of

COLUMNS = ("switch", "src", "dst", "ordinal", "port", "packets")
PACKETS = ("data", "acks")
HEADER = "switch,src,dst,ordinal,port[,packets]"


class NextHop(NamedTuple):
    """At node ``switch``, data of flow number ``ordinal`` of ``src`` to ``dst`` leaves by ``port``.

    With ``packets = "acks"`` what its receiver sends back does: ACKs, NACKs and CNPs.

    ``ordinal`` counts the flows of a source from 0, in the order in which they start; ``port``
    counts the links of the switch from 0, in the order of the topology.
    """

    switch: int
    src: int
    dst: int
    ordinal: int
    port: int
    packets: Literal["data", "acks"] = "data"

    @property
    def target(self) -> int:
        """The host that these packets go to."""
        return self.dst if self.packets == "data" else self.src


class Paths:
    """Ports of switches on shortest paths, by destination."""

    def __init__(self, net: Fabric) -> None:
        self._net = net
        self._distances: dict[int, dict[int, int]] = {}

    def ports(self, switch: int, dst: int) -> list[int]:
        """Return the ports of a switch that lead to a host by a shortest path."""
        if dst not in self._distances:
            self._distances[dst] = self._walk(dst)
        far = self._distances[dst]
        near = far[switch] - 1
        return [i for i, peer in enumerate(self._net.peers[switch]) if far.get(peer) == near]

    def _walk(self, dst: int) -> dict[int, int]:
        far, edge = {dst: 0}, deque([dst])
        while edge:
            node = edge.popleft()
            for peer in self._net.peers[node]:
                if peer not in far and not self._net.is_host(peer):  # hosts do not forward
                    far[peer] = far[node] + 1
                    edge.append(peer)
        return far

    def problem(self, row: NextHop) -> str:
        """Return what is wrong with a row, or an empty string."""
        net = self._net
        if not net.n_hosts <= row.switch < net.n_nodes:
            return (
                f"switch = {row.switch} is not a switch; expected {net.n_hosts} to "
                f"{net.n_nodes - 1}, the switches are numbered after the hosts"
            )
        for key, host in (("src", row.src), ("dst", row.dst)):
            if not 0 <= host < net.n_hosts:
                return f"{key} = {host} is not a host; expected 0 to {net.n_hosts - 1}"
        if row.src == row.dst:
            return f"src and dst are both {row.src}; expected two different hosts"
        if not 0 <= row.ordinal < 2**32:
            return f"ordinal = {row.ordinal}; expected 0 to {2**32 - 1}"
        ports = self.ports(row.switch, row.target)
        if row.port not in ports:
            known = ", ".join(map(str, ports))
            return (
                f"port = {row.port} of switch {row.switch} is on no shortest path to host "
                f"{row.target}; expected {known}"
            )
        return ""


def check_next_hops(rows: Iterable[tuple[str, NextHop]], net: Fabric) -> None:
    """Raise :class:`ConfigError` for the first row that does not fit; each comes with its place."""
    paths = Paths(net)
    seen: dict[tuple[Any, ...], str] = {}
    for place, row in rows:
        problem = paths.problem(row)
        before = seen.setdefault((*row[:4], row.packets), place)
        if not problem and before != place:
            problem = f"the same flow and switch as in {before}; expected one row for them"
        if problem:
            raise ConfigError(f"{place}: {problem}")


def _is_header(path: Path, line: int, text: str) -> bool:
    """Return True for a line of column names; raise :class:`ConfigError` for other names."""
    names = [cell.strip() for cell in text.split(",")]
    if not all(name[:1].isalpha() for name in names):
        return False
    for name in names:
        if name not in COLUMNS:
            raise ConfigError(
                f"{path} line {line}: unknown column {quote(name)}{did_you_mean(name, COLUMNS)}"
            )
    if tuple(names) not in (COLUMNS[:-1], COLUMNS):
        raise ConfigError(f"{path} line {line}: {quote(text)}; expected the columns {HEADER}")
    return True


def _row(path: Path, line: int, text: str) -> NextHop:
    """Return a row; without its last column it is of data."""
    rest, _, packets = text.rpartition(",")
    if text.count(",") < len(COLUMNS) - 1:
        rest, packets = text, PACKETS[0]
    numbers = numbers_of(path, line, rest, ",".join(COLUMNS[:-1]), (True,) * 5)
    if packets.strip() not in PACKETS:
        raise ConfigError(
            f"{path} line {line}: packets = {quote(packets.strip())}; expected data or acks"
            f"{did_you_mean(packets.strip(), PACKETS)}"
        )
    switch, src, dst, ordinal, port = numbers
    acks = packets.strip() == "acks"
    return NextHop(switch, src, dst, ordinal, port, "acks" if acks else "data")


def read_next_hops(path: Path, net: Fabric | None = None) -> tuple[NextHop, ...]:
    """Read ``switch,src,dst,ordinal,port[,packets]`` rows; ``#`` lines and a header are optional.

    With ``net`` the rows are checked as well. Raises :class:`ConfigError` with the line.
    """
    rows: list[tuple[str, NextHop]] = []
    for line, text in lines_of(path):
        if text.startswith("#") or (not rows and _is_header(path, line, text)):
            continue
        rows.append((f"{path} line {line}", _row(path, line, text)))
    if not rows:
        raise ConfigError(f"{path}: holds no row; expected lines {HEADER}")
    if net is not None:
        check_next_hops(rows, net)
    return tuple(row for _, row in rows)


def _to_rows(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        return read_next_hops(path_of(value, info), (info.context or {}).get("fabric"))
    return value


NextHopsField = Annotated[
    tuple[NextHop, ...],
    BeforeValidator(_to_rows, json_schema_input_type=str | tuple[NextHop, ...]),
    Field(description="path of a CSV file switch,src,dst,ordinal,port[,packets], or such rows"),
]
