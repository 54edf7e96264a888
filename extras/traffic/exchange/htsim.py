"""htsim's ``.topo``: regular trees of two and three tiers, in both directions; and its run folder.

A file has ``Nodes``, ``Tiers`` and ``Podsize`` (hosts of a pod), then for each ``Tier`` from the
ToRs on the speed, latency and number of its links down, and the number of its links up.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, DecimalException
from pathlib import Path
from typing import Any

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.files import read_text
from dcqcn_gym.core.toml_text import toml_text
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.envs.scenario.tables import FLOW_HEADER, Flow
from dcqcn_gym.envs.scenario.three_tier import ThreeTier
from dcqcn_gym.envs.scenario.topology import FatTree, LeafSpine, Topology
from dcqcn_gym.extras.traffic.exchange.hpcc_topology import decimal_text
from dcqcn_gym.extras.traffic.exchange.ledger import Ledger
from dcqcn_gym.extras.traffic.records import RECORDS
from dcqcn_gym.extras.traffic.simulators import SIMULATORS

_MOST_BYTES = 2**20
_USED = ("downlink_speed_gbps", "radix_down", "radix_up", "downlink_latency_ns")
_SAME = {"oversubscribed": "the ratio of the radices says it", "bundle": "1: one link a pair"}
_LEFT_OUT = {
    "queue_down": "queues are of switch.buffer_bytes", "queue_up": "queues are of "
    "switch.buffer_bytes", "switch_latency_ns": "switches take no time beside a frame's own",
}  # fmt: skip


def htsim_topology(topology: Topology) -> str:
    """Return a ``.topo``; ConfigError for a network that is no regular tree of two or three tiers.

    Three tiers have one latency here and one a tier there.
    """
    if isinstance(topology, LeafSpine) and not topology.racks and topology.links_per_spine == 1:
        hosts = topology.tors * topology.hosts_per_tor
        steps = topology.step_of("host_"), topology.step_of("uplink_")
        delays = topology.host_delay_us, topology.uplink_delay_us
        radices = (topology.hosts_per_tor, topology.n_spines), (topology.tors,)
        return _topo(hosts, hosts, steps, delays, radices)
    tiers = topology.tiers if isinstance(topology, FatTree) else topology
    if not isinstance(tiers, ThreeTier):
        raise ConfigError(
            f"htsim's .topo has regular trees; the topology is {topology.kind!r}; expected "
            "leaf-spine with one link to each spine and no other racks, fat-tree or three-tier"
        )
    pod = tiers.tors_per_pod * tiers.hosts_per_tor
    steps3 = tuple(tiers.step_of(name) for name in ("host_", "tor_", "core_"))
    radices3 = ((tiers.hosts_per_tor, tiers.aggs_per_pod),
                (tiers.tors_per_pod, tiers.cores_per_agg), (tiers.pods,))  # fmt: skip
    return _topo(tiers.pods * pod, pod, steps3, (tiers.delay_us,) * 3, radices3)


def _topo(
    hosts: int, pod: int, steps: tuple[int, ...], delays: tuple[float, ...],
    radices: tuple[tuple[int, ...], ...],
) -> str:  # fmt: skip
    lines = [f"Nodes {hosts}", f"Tiers {len(steps)}", f"Podsize {pod}"]
    for tier, (step, delay, radix) in enumerate(zip(steps, delays, radices, strict=True)):
        if 8000 % step:
            raise ConfigError(f"htsim's speeds are whole Gb/s; {8000 / step:.6g} is none")
        latency = decimal_text(Decimal(str(delay)) * 1000)
        if "." in latency:
            raise ConfigError(f"htsim's latencies are whole nanoseconds; {latency} is none")
        lines += ["", f"Tier {tier}", f"Downlink_speed_Gbps {8000 // step}",
                  f"Radix_Down {radix[0]}", *(f"Radix_Up {up}" for up in radix[1:]),
                  f"Downlink_Latency_ns {latency}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def read_topo(path: Path, said: Ledger) -> dict[str, Any]:
    """Return the table ``[topology]`` of a ``.topo``; ConfigError for what cannot be here."""
    head: dict[str, int] = {}
    tiers: list[dict[str, Decimal]] = []
    for number, line in enumerate(read_text(path, _MOST_BYTES).splitlines(), 1):
        text = line.strip()
        words = text.split()
        if not words:
            continue
        if text.startswith("#"):
            said.leave_out(path.name, number, text, "lines are comments")
            continue
        key, value = words[0].lower(), _number(path, number, words)
        if key == "tier":
            tiers.append({})
            said.take(path.name, number, text, f"tier {len(tiers) - 1}")
            if value != len(tiers) - 1:
                raise ConfigError(f"{path} line {number}: {quote(text)}; expected tiers from 0 on")
        elif not tiers:
            head[key] = int(value)
            said.take(path.name, number, text, "[topology]")
        else:
            _tier_line(path.name, number, text, key, said)
            tiers[-1][key] = value
    return _table(path, head, tiers)


def _number(path: Path, number: int, words: list[str]) -> Decimal:
    try:
        value = Decimal(words[1]) if len(words) == 2 and len(words[1]) < 30 else Decimal("nan")
    except DecimalException:
        value = Decimal("nan")
    if not value.is_finite() or not 0 <= value < 10**15:
        raise ConfigError(f"{path} line {number}: {quote(' '.join(words))}; expected a word and a "
                          "number")  # fmt: skip
    return value


def _tier_line(name: str, number: int, text: str, key: str, said: Ledger) -> None:
    if key in _USED or key in _SAME:
        said.take(name, number, text, _SAME.get(key, "[topology]"))
    else:
        said.leave_out(name, number, text, _LEFT_OUT.get(key, "words are not known"))


def _table(path: Path, head: Mapping[str, int], tiers: list[dict[str, Decimal]]) -> dict[str, Any]:
    wanted = [key for key in ("nodes", "tiers", "podsize") if key not in head]
    for tier in tiers:
        wanted += [k for k in _USED if k not in tier and (k != "radix_up" or tier is not tiers[-1])]
    if wanted or len(tiers) != head.get("tiers") or len(tiers) not in (2, 3):
        raise ConfigError(f"{path}: {len(tiers)} tiers{', no ' + wanted[0] if wanted else ''}; "
                          "expected Nodes, Tiers and Podsize, then two or three tiers with "
                          "Downlink_speed_Gbps, Downlink_Latency_ns and radices")  # fmt: skip
    if any(tier.get("bundle", 1) != 1 for tier in tiers):
        raise ConfigError(f"{path}: a Bundle of several links; expected Bundle 1")
    down = [int(tier["radix_down"]) for tier in tiers]
    table = _two_tiers(tiers, down) if len(tiers) == 2 else _three_tiers(path, tiers, down)
    hosts = 1
    for radix in down:
        hosts *= radix
    if hosts != head["nodes"]:
        raise ConfigError(f"{path}: Nodes {head['nodes']}, and the radices make {hosts} hosts; "
                          "expected the same")  # fmt: skip
    return table


def _two_tiers(tiers: list[dict[str, Decimal]], down: list[int]) -> dict[str, Any]:
    return {
        "kind": "leaf-spine", "tors": down[1], "hosts_per_tor": down[0],
        "spines": int(tiers[0]["radix_up"]), "host_gbps": float(tiers[0]["downlink_speed_gbps"]),
        "uplink_gbps": float(tiers[1]["downlink_speed_gbps"]),
        "host_delay_us": float(tiers[0]["downlink_latency_ns"] / 1000),
        "uplink_delay_us": float(tiers[1]["downlink_latency_ns"] / 1000),
    }  # fmt: skip


def _three_tiers(path: Path, tiers: list[dict[str, Decimal]], down: list[int]) -> dict[str, Any]:
    delays = {tier["downlink_latency_ns"] for tier in tiers}
    if len(delays) != 1:
        raise ConfigError(f"{path}: several latencies; expected one for all of three tiers")
    speeds = zip(("host_gbps", "tor_gbps", "core_gbps"), tiers, strict=True)
    return {
        "kind": "three-tier", "pods": down[2], "tors_per_pod": down[1], "hosts_per_tor": down[0],
        "aggs_per_pod": int(tiers[0]["radix_up"]), "cores_per_agg": int(tiers[1]["radix_up"]),
        **{key: float(tier["downlink_speed_gbps"]) for key, tier in speeds},
        "delay_us": float(delays.pop() / 1000),
    }  # fmt: skip


def import_htsim(folder: Path) -> tuple[dict[str, str], Ledger]:
    """Return the files of a scenario of a folder with one ``.topo`` and one ``.cm``."""
    said = Ledger()
    topo, matrix = (_only(folder, ending) for ending in (".topo", ".cm"))
    table = read_topo(topo, said)
    flows = []
    for sent in SIMULATORS["htsim"](matrix, said.tally):
        flow = Flow(sent.source, sent.target, sent.bytes, float(sent.start_ns))
        if problem := flow.problem(None):
            said.tally.leave_out(RECORDS, "flows cannot be here", problem)
        else:
            said.tally.take(RECORDS)
            flows.append(flow)
    values: dict[str, Any] = {
        "description": f"a run folder of htsim: {topo.name} and {matrix.name}",
        "topology": table, "workloads": [{"kind": "flows", "flows": "flows.csv"}],
    }  # fmt: skip
    with_flows = [{"kind": "flows", "flows": flows}]
    validate({"name": "imported", **values, "workloads": with_flows}, Scenario, source=str(folder))
    said.tally.check()
    rows = [f"{f.src},{f.dst},{f.bytes},{f.start_ns!r}\n" for f in flows]
    return {
        "scenario.toml": toml_text(values), "flows.csv": "".join([f"{FLOW_HEADER}\n", *rows]),
        "lines.csv": said.csv(),
    }, said  # fmt: skip


def _only(folder: Path, ending: str) -> Path:
    found = sorted(folder.glob(f"*{ending}"))
    if len(found) != 1:
        raise ConfigError(f"{folder}: {len(found)} files *{ending}; expected one")
    return found[0]
