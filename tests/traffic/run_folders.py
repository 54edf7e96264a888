"""Run folders of other simulators, as their users have them, by an encoder of the tests alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

CONFIG: Mapping[str, str] = {
    "ENABLE_QCN": "1", "USE_DYNAMIC_PFC_THRESHOLD": "1", "PACKET_PAYLOAD_SIZE": "1000",
    "TOPOLOGY_FILE": "mix/topology.txt", "FLOW_FILE": "mix/flow.txt", "TRACE_FILE": "mix/trace.txt",
    "TRACE_OUTPUT_FILE": "mix/mix.tr", "FCT_OUTPUT_FILE": "mix/fct.txt",
    "PFC_OUTPUT_FILE": "mix/pfc.txt", "SIMULATOR_STOP_TIME": "2.006", "CC_MODE": "1",
    "ALPHA_RESUME_INTERVAL": "1", "RATE_DECREASE_INTERVAL": "4", "CLAMP_TARGET_RATE": "0",
    "RP_TIMER": "300", "EWMA_GAIN": "0.00390625", "FAST_RECOVERY_TIMES": "1",
    "RATE_AI": "20Mb/s", "RATE_HAI": "200Mb/s", "MIN_RATE": "1000Mb/s",
    "DCTCP_RATE_AI": "1000Mb/s", "ERROR_RATE_PER_LINK": "0.0000", "L2_CHUNK_SIZE": "4000",
    "L2_ACK_INTERVAL": "1", "L2_BACK_TO_ZERO": "0", "HAS_WIN": "0", "GLOBAL_T": "1",
    "VAR_WIN": "0", "FAST_REACT": "0", "U_TARGET": "0.95", "MI_THRESH": "0", "INT_MULTI": "1",
    "MULTI_RATE": "0", "SAMPLE_FEEDBACK": "0", "PINT_LOG_BASE": "1.05", "PINT_PROB": "1.0",
    "RATE_BOUND": "1", "ACK_HIGH_PRIO": "1", "LINK_DOWN": "0 0 0", "ENABLE_TRACE": "0",
    "KMAX_MAP": "2 100000000000 400 400000000000 1600",
    "KMIN_MAP": "2 100000000000 100 400000000000 400",
    "PMAX_MAP": "2 100000000000 0.2 400000000000 0.2",
    "BUFFER_SIZE": "32", "QLEN_MON_FILE": "mix/qlen.txt", "QLEN_MON_START": "2000000000",
    "QLEN_MON_END": "3000000000",
}  # fmt: skip
"""Every key that the script of HPCC's paper writes, for DCQCN at 100 Gb/s."""

SIZES = "0 0\n1000 20\n10000 60.5\n1000000 100\n"


def leaf_spine(hosts: int = 16, leaves: int = 2, spines: int = 2) -> str:
    """Return a ``topology.txt``: hosts at 100 Gb/s, uplinks at 400, delays in two units."""
    first, links = hosts + leaves, []
    for host in range(hosts):
        links.append(f"{host} {hosts + host * leaves // hosts} 100Gbps 1000ns 0")
    for leaf in range(hosts, first):
        links += [f"{leaf} {first + spine} 400Gbps 0.001ms 0.000000" for spine in range(spines)]
    switches = " ".join(str(node) for node in range(hosts, first + spines))
    head = f"{first + spines} {leaves + spines} {len(links)}\n{switches}\n"
    return head + "\n".join(links) + "\n"


def flow_list(flows: Sequence[tuple[int, int, int, int, str]]) -> str:
    """Return a ``flow.txt`` of (source, target, priority, bytes, start in s)."""
    rows = [f"{a} {b} {priority} 100 {size} {start}" for a, b, priority, size, start in flows]
    return "\n".join([str(len(rows)), *rows]) + "\n"


def incast_flows(hosts: int = 16) -> str:
    """Return a ``flow.txt``: half of the hosts to one of the other half, and two mice."""
    to = hosts - 1
    flows = [(host, to, 3, 300_000, f"2.0000{host:02}") for host in range(hosts // 2)]
    return flow_list([*flows, (to, 0, 3, 1500, "2.000100"), (1, 9, 3, 70_000, "2.0001005")])


def hpcc_folder(
    folder: Path, config: Mapping[str, str | None] | None = None, flows: str | None = None
) -> Path:
    """Write a run folder of 16 hosts; ``config`` replaces keys, None takes one out."""
    folder.mkdir(parents=True, exist_ok=True)
    values = {**CONFIG, **(config or {})}
    lines = [f"{key} {value}\n" for key, value in values.items() if value is not None]
    (folder / "config.txt").write_text("\n".join(lines))
    (folder / "topology.txt").write_text(leaf_spine())
    (folder / "flow.txt").write_text(flows or incast_flows())
    (folder / "trace.txt").write_text("1\n0\n")
    (folder / "WebSearch.txt").write_text(SIZES)
    return folder


TOPO = """# a leaf-spine
Nodes 32
Tiers 2
Podsize 32

Tier 0
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 2
Queue_Down 100
Downlink_Latency_ns 1000
Switch_Latency_ns 0
Oversubscribed 4

Tier 1
Downlink_speed_Gbps 400
Radix_Down 4
Downlink_Latency_ns 500
Switch_Latency_ns 0
Bundle 1
"""
MATRIX = (
    "Nodes 32\nConnections 3\n0->4 id 1 start 0 size 2000000\n"
    "1->4 id 2 start 100500 "
    "size 9\n5->3 id 3 trigger 1 size 7\n"
)


def htsim_folder(folder: Path, topo: str = TOPO, matrix: str = MATRIX) -> Path:
    """Write a run folder of htsim."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fabric.topo").write_text(topo)
    (folder / "all.cm").write_text(matrix)
    return folder
