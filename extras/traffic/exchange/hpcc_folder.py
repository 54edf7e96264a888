"""A run folder of HPCC's simulator becomes a scenario with the same fabric, flows and setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.envs.scenario.fabric import Fabric
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.tables import CDF_HEADER, FLOW_HEADER, Flow, read_cdf
from dcqcn_gym.envs.scenario.topology import Graph, fabric
from dcqcn_gym.extras.traffic.exchange.hpcc_config import (
    CONFIG,
    FIXED,
    KNOBS,
    MAPS,
    Config,
    read_config,
)
from dcqcn_gym.extras.traffic.exchange.hpcc_topology import (
    HpccTopology,
    bps_at,
    decimal_text,
    parse_topology,
)
from dcqcn_gym.extras.traffic.exchange.ledger import NOT_GIVEN, Ledger
from dcqcn_gym.extras.traffic.exchange.window import window_bytes
from dcqcn_gym.extras.traffic.records import RECORDS
from dcqcn_gym.extras.traffic.simulators import SIMULATORS, Sent

SCENARIO, LINES = "scenario.toml", "lines.csv"
INTERVAL_US = 1000
ONE_LINK = "that program knows one link between two nodes, the last"
_MOST_FILES, _MOST_CDF = 100, 2**20
_OTHER_PRIORITY = "flows are of priority 0, which is outside of PFC there, or of none of 1 to 7"

DIFFERENCES = (
    "there a frame takes whole nanoseconds: 100 Gb/s runs at 101; here links are exact",
    'there ACKs are ahead of data at hosts alone; here too, by switch.ack_class = "data"',
    "there next hops are ordered by memory address; here by port: other paths, the same choice",
    "there marks are drawn in another order: compare distributions, not single runs",
    "there nothing is sent again without a NACK; here after transport.rto_us, where loss can be",
    "there PFC stops for ever if headroom exceeds the buffer; here that is an error",
)
"""Where that simulator and this one do not agree whatever the files say."""


def import_hpcc(folder: Path) -> tuple[dict[str, str], Ledger]:
    """Return the files of a scenario by name, and what each line became.

    Raises :class:`ConfigError` for what is no such folder, another control than DCQCN, and a
    fabric that cannot be here (a host with several links).
    """
    said = Ledger()
    config = read_config(folder / CONFIG, said)
    topology = parse_topology(_named(folder, config, "TOPOLOGY_FILE", "topology.txt", said))
    table = topology.graph()
    net = fabric(validate(table, Graph, source=f"{folder}: the topology"))
    _say_links(topology, said)
    flows, origin = _flows(folder, config, topology, said)
    values: dict[str, Any] = {
        "description": f"{net.n_hosts} hosts of a run folder of HPCC's simulator",
        **_task(config, origin, said), "initial": _initial(config, net, said),
        "wire": _wire(config, said), "switch": _switch(config, flows, said),
        "transport": _transport(config, net, said), "topology": table,
        "workloads": _workloads(flows),
    }  # fmt: skip
    with_flows = [{**w, "flows": flows[w["priority"]]} for w in values["workloads"]]
    validate({"name": "imported", **values, "workloads": with_flows}, Scenario, source=str(folder))
    files = {SCENARIO: toml_text(values), **_flow_files(flows), **_cdfs(folder, config, said)}
    said.tally.check()
    said.lines.sort(key=lambda line: (line[0] != CONFIG, line[0], line[1] or math.inf))
    return {**files, LINES: said.csv()}, said


def _named(folder: Path, config: Config, key: str, usual: str, said: Ledger) -> Path:
    """Return a file that the configuration names, else the usual one; only its name counts."""
    name = config.files.get(key, usual)
    path = folder / (name if (folder / name).is_file() else usual)
    if key in config.places:
        said.take(CONFIG, *config.places[key], f"{path.name} of the folder")
    return path


def _say_links(topology: HpccTopology, said: Ledger) -> None:
    said.tally.came("links", len(topology.links))
    said.tally.take("links", len(topology.links))
    if topology.announced != len(topology.links):
        said.tally.note("files say another number of links than they have",
                        f"{topology.announced}, and has {len(topology.links)}")  # fmt: skip
    pairs: set[tuple[int, int]] = set()
    for link in topology.links:
        pair = min(link.a, link.b), max(link.a, link.b)
        if pair in pairs:
            said.tally.note(f"links are beside another one: {ONE_LINK}", f"{link.a} {link.b}")
        pairs.add(pair)
        if link.loss:
            said.tally.note("links lose frames there and not here", f"{link.a} {link.b}")
        if not link.exact:
            said.tally.note("links have no whole number of ps a byte: rounded",
                            f"{link.a} {link.b}")  # fmt: skip


def _flows(
    folder: Path, config: Config, topology: HpccTopology, said: Ledger
) -> tuple[dict[int, list[Flow]], Decimal]:
    """Return the flows by priority, and the instant (s) that is 0 here."""
    path = _named(folder, config, "FLOW_FILE", "flow.txt", said)
    hosts = {node: i for i, node in enumerate(topology.hosts)}
    sent = list(SIMULATORS["hpcc"](path, said.tally))
    first = min((one.start_ns for one in sent), default=Decimal(0))
    origin = config.values["QLEN_MON_START"]
    if first < origin:
        origin = first // 10**9 * 10**9
    flows: dict[int, list[Flow]] = {}
    for one in sent:
        if reason := _problem(one, hosts):
            said.tally.leave_out(RECORDS, reason, f"{one.source} {one.target} {one.priority}")
            continue
        at = float(one.start_ns - origin)
        flow = Flow(hosts[one.source], hosts[one.target], one.bytes, at)
        if problem := flow.problem(len(hosts)):
            said.tally.leave_out(RECORDS, "flows cannot be here", problem)
            continue
        said.tally.take(RECORDS)
        flows.setdefault(one.priority, []).append(flow)
    if not flows:
        raise ConfigError(f"{path}: no flow that can be used"
                          + "".join(f"; {line}" for line in said.tally.lines()[:5]))  # fmt: skip
    return dict(sorted(flows.items())), origin


def _problem(sent: Sent, hosts: dict[int, int]) -> str:
    if not 1 <= sent.priority <= 7:
        return _OTHER_PRIORITY
    if sent.source not in hosts or sent.target not in hosts:
        return "flows end at a node that is no host"
    return "flows are from a host to itself" if sent.source == sent.target else ""


def _task(config: Config, origin: Decimal, said: Ledger) -> dict[str, Any]:
    stop_ns = config.values["SIMULATOR_STOP_TIME"] * 10**9
    intervals = max(1, math.ceil((stop_ns - origin) / (INTERVAL_US * 1000)))
    _say(config, "SIMULATOR_STOP_TIME", f"intervals = {intervals} of 1 ms", said)
    start = decimal_text(origin.scaleb(-9))
    _say(config, "QLEN_MON_START", f"time 0 here is {start} s there", said)
    return {"monitor_interval_us": INTERVAL_US, "intervals": intervals, "warmup_us": 0}


def _say(config: Config, key: str, became: str, said: Ledger) -> None:
    if key in config.places:
        said.take(CONFIG, *config.places[key], became)


def _initial(config: Config, net: Fabric, said: Ledger) -> dict[str, float]:
    """Return the setting: of the marking curves that of the fastest host link."""
    rates = {bps_at(link.ps_per_byte) for link in net.links}
    mine = bps_at(min(link.ps_per_byte for link in net.host_link))
    found: dict[str, float] = {**FIXED, **{k.name: config.knobs[k.name] for k in KNOBS.values()}}
    for key, knob in MAPS.items():
        curve = config.maps.get(key, {})
        if mine not in curve:
            raise ConfigError(f"{CONFIG}: {key} has no value for {mine} bit/s, the rate of host "
                              f"links; expected '{key} 1 {mine} VALUE'")  # fmt: skip
        found[knob] = float(curve[mine])
        others = [rate for rate in sorted(rates & curve.keys()) if curve[rate] != curve[mine]]
        became = f"initial.{knob} = {found[knob]:g}, that of {mine} bit/s, at all ports"
        if others:
            became += f"; those of {', '.join(map(str, others))} bit/s are left out"
            said.tally.note("marking curves of other rates are left out: a setting has one",
                            f"{key} {others[0]}")  # fmt: skip
        said.take(CONFIG, *config.places[key], became)
    return found


def _wire(config: Config, said: Ledger) -> dict[str, Any]:
    payload = int(config.values["PACKET_PAYLOAD_SIZE"])
    _say(config, "PACKET_PAYLOAD_SIZE", f"wire.payload_bytes = {payload}", said)
    return {"profile": "hpcc", "payload_bytes": payload}


def _switch(config: Config, flows: dict[int, list[Flow]], said: Ledger) -> dict[str, Any]:
    size = int(config.values["BUFFER_SIZE"] * 2**20)
    _say(config, "BUFFER_SIZE", f"switch.buffer_bytes = {size} (MiB there)", said)
    return {"buffer_bytes": size, "lossless": list(flows), "ack_class": "data"}


def _transport(config: Config, net: Fabric, said: Ledger) -> dict[str, Any]:
    _say(config, "L2_ACK_INTERVAL", "transport.ack_every = 1: of every packet, there too", said)
    if not config.values["HAS_WIN"]:
        _say(config, "HAS_WIN", "transport.window_bytes = 0: no window", said)
        _say(config, "VAR_WIN", "nothing without a window", said)
        return {"window_bytes": 0}
    window = window_bytes(net, int(config.values["PACKET_PAYLOAD_SIZE"]))
    scaling = bool(config.values["VAR_WIN"])
    _say(config, "HAS_WIN", f"transport.window_bytes = {window}, the largest product of rate and "
         "round trip", said)  # fmt: skip
    _say(config, "VAR_WIN", f"transport.window_scaling = {str(scaling).lower()}", said)
    return {"window_bytes": window, "window_scaling": scaling}


def flow_file(priority: int) -> str:
    """Return the name of the table with a priority's flows."""
    return "flows.csv" if priority == 3 else f"flows-{priority}.csv"


def _workloads(flows: dict[int, list[Flow]]) -> list[dict[str, Any]]:
    return [{"kind": "flows", "flows": flow_file(p), "priority": p} for p in flows]


def _flow_files(flows: dict[int, list[Flow]]) -> dict[str, str]:
    return {
        flow_file(priority): "".join([f"{FLOW_HEADER}\n", *(
            f"{f.src},{f.dst},{f.bytes},{f.start_ns!r}\n" for f in of)])
        for priority, of in flows.items()
    }  # fmt: skip


def _cdfs(folder: Path, config: Config, said: Ledger) -> dict[str, str]:
    """Return the tables of sizes beside the run as ours; count other files."""
    used = {CONFIG, "topology.txt", "flow.txt", "trace.txt", *config.files.values()}
    others = sorted(p for p in folder.iterdir() if p.name not in used and p.is_file())
    found = {}
    for number, path in enumerate(others):
        said.tally.came("other files")
        points = _points(path) if number < _MOST_FILES else []
        if not points:
            reason = "files are no table of sizes (bytes and percent a line)"
            said.tally.leave_out("other files", reason, path.name)
            continue
        said.tally.take("other files")
        name = f"sizes-{path.stem}.csv"
        found[name] = "".join([f"{CDF_HEADER}\n", *(f"{b},{share!r}\n" for b, share in points)])
        said.take(path.name, NOT_GIVEN, "", f'{name}, for kind = "poisson", cdf = "{name}"')
    return found


def _points(path: Path) -> Sequence[tuple[int, float]]:
    """Return (bytes, cumulative share) of a file of sizes; nothing for another file."""
    try:
        return read_cdf(path).points if path.stat().st_size <= _MOST_CDF else ()
    except ConfigError:
        return ()
