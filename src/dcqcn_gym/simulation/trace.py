"""The options of a trace: quantities, period, ports and flows.

The network is looked into at every multiple of a period (:mod:`dcqcn_gym.simulation.tracer`);
nothing that is simulated changes.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from typing import Any, Literal

from dcqcn_gym.core.errors import ConfigError, MissingExtraError, UnknownNameError, quote
from dcqcn_gym.envs.scenario.fabric import Fabric

QUANTITIES = ("queue", "rate", "pause")
EVENTS = "rp"
SENDING = "sending"
COMPLETIONS = "completions"
JOBS = "jobs"
JOBS_FILE = "trace_jobs.json"
TABLES = ("ports", "flows", EVENTS, SENDING, "total", COMPLETIONS)
TRACE_FILES = (
    *(f"trace_{what}.{kind}" for what in TABLES for kind in ("csv", "parquet")),
    "trace.svg",
    JOBS_FILE,
)
"""Every file that a trace can write."""

_UNITS_PS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}


@dataclass(frozen=True)
class PortName:
    """One egress port: its number in reports, its node, its number there, the peer node."""

    number: int
    node: int
    index: int
    peer: int

    def __str__(self) -> str:
        return f"{self.node}>{self.peer}"


@dataclass(frozen=True)
class Trace:
    """What to trace: quantities, period, ports, a choice of flows, the file format, events.

    ``events``: every CNP, cut and increase of the queue pairs; it needs none of the choices.
    ``sending``: what the chosen flows, and all hosts together, put on the wire in each period.
    ``jobs``: every operation of a training job at every rank, as a Chrome trace.
    ``completions``: how many messages of each workload were done in each, and how long they took.

    ``flows`` is ``"all"`` or (src, dst or None, ordinal or None) patterns; an empty tuple is none.
    """

    quantities: tuple[str, ...]
    every_ps: int
    ports: tuple[PortName, ...]
    flows: Literal["all"] | tuple[tuple[int, int | None, int | None], ...]
    format: Literal["csv", "parquet"] = "csv"
    events: bool = False
    sending: bool = False
    completions: bool = False
    jobs: bool = False
    hosts: int = 0
    """Hosts of the network; their ports are the first ones."""

    def wanted(self, src: int, dst: int, ordinal: int) -> bool:
        """True if this flow is to be traced."""
        if self.flows == "all":
            return True
        return any(src == s and d in (None, dst) and o in (None, ordinal) for s, d, o in self.flows)


def parse_trace(
    what: str, every: str, ports: str, flows: str, file_format: str, net: Fabric
) -> Trace:
    """Read the options of ``simulate --trace``; raise ConfigError with one sentence.

    ``what``: some of queue, rate, pause, rp, sending, completions, jobs. ``every``: a time.
    ``ports``: all, hosts, switches, NODE, NODE:PORT or NODE>PEER. ``flows``: all, none, SRC,
    SRC>DST or SRC:ORDINAL. Lists have commas.
    """
    quantities = _items(what)
    known = (*QUANTITIES, EVENTS, SENDING, COMPLETIONS, JOBS)
    for name in quantities:
        if name not in known:
            raise UnknownNameError("quantity of --trace", name, known)
    if not quantities:
        raise ConfigError(f"--trace '' names nothing; expected some of {','.join(known)}")
    if file_format == "parquet":
        need_pyarrow("pyarrow")
    elif file_format != "csv":
        raise ConfigError(f"--trace-format {quote(file_format)}; expected csv or parquet")
    return Trace(
        tuple(q for q in QUANTITIES if q in quantities),
        _time_ps(every),
        _choose_ports(ports, net),
        _choose_flows(flows, net.n_hosts),
        "parquet" if file_format == "parquet" else "csv",
        events=EVENTS in quantities,
        sending=SENDING in quantities,
        completions=COMPLETIONS in quantities,
        jobs=JOBS in quantities,
        hosts=net.n_hosts,
    )


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _time_ps(text: str) -> int:
    match = re.fullmatch(r"([0-9.]+)\s*(ps|ns|us|ms|s)", text.strip())
    try:
        ps = round(float(match[1]) * _UNITS_PS[match[2]]) if match else 0
    except ValueError:
        ps = 0
    if ps < 1000:
        raise ConfigError(f"--every {quote(text)}; expected a time of at least 1ns such as 10us")
    return ps


def port_names(net: Fabric) -> list[PortName]:
    """Return every egress port in the order of reports: node by node, links in their order."""
    rows = [(node, i, peer) for node, ends in enumerate(net.peers) for i, peer in enumerate(ends)]
    return [PortName(number, *row) for number, row in enumerate(rows)]


def _choose_ports(text: str, net: Fabric) -> tuple[PortName, ...]:
    every = port_names(net)
    chosen: set[PortName] = set()
    for item in _items(text):
        match = re.fullmatch(r"(\d+)(?:([:>])(\d+))?", item)
        if item in ("all", "hosts", "switches"):
            found = [p for p in every if item == "all" or net.is_host(p.node) == (item == "hosts")]
        elif match:
            node, sign = int(match[1]), match[2]
            found = [p for p in every if p.node == node]
            if sign:
                end = int(match[3])
                found = [p for p in found if end == (p.index if sign == ":" else p.peer)]
        else:
            found = []
        if not found:
            raise ConfigError(
                f"--trace-ports: no port {quote(item)}; expected all, hosts, switches, NODE, "
                "NODE:PORT "
                f"or NODE>PEER, with nodes 0 to {net.n_nodes - 1} (switches from {net.n_hosts} on)"
            )
        chosen.update(found)
    return tuple(sorted(chosen, key=lambda port: port.number))


def _choose_flows(
    text: str, n_hosts: int
) -> Literal["all"] | tuple[tuple[int, int | None, int | None], ...]:
    items = _items(text)
    if items == ["all"]:
        return "all"
    if items == ["none"] or not items:
        return ()
    chosen = []
    for item in items:
        match = re.fullmatch(r"(\d+)(?:([:>])(\d+))?", item)
        src = int(match[1]) if match else n_hosts
        dst = int(match[3]) if match and match[2] == ">" else None
        ordinal = int(match[3]) if match and match[2] == ":" else None
        if src >= n_hosts or (dst is not None and dst >= n_hosts):
            raise ConfigError(
                f"--trace-flows: no flow {quote(item)}; expected all, none, SRC, SRC>DST or "
                f"SRC:ORDINAL, with hosts 0 to {n_hosts - 1}"
            )
        chosen.append((src, dst, ordinal))
    return tuple(chosen)


def need_pyarrow(module: str) -> Any:
    """Return a module of pyarrow; raise MissingExtraError if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError("--trace-format parquet", "parquet") from None
