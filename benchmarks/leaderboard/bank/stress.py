"""The scenarios of suite ``stress-v1``: large fan-in beside mice where the other suites have none.

They were listed, and their digests committed, before anything was tuned. Nothing that is fitted
may look at them: :mod:`dcqcn_gym.benchmarks.leaderboard.bank.bank` is for that.
"""

from __future__ import annotations

from typing import Any

from dcqcn_gym.benchmarks.leaderboard.generator import Drawn

Table = dict[str, Any]

INTERVALS = 30


def _star(hosts: int, gbps: int, delay_us: float = 5.0) -> Table:
    return {"kind": "single-switch", "hosts": hosts, "gbps": gbps, "delay_us": delay_us}


def _racks(tors: int, hosts: int, spines: int, host_gbps: int, uplink_gbps: int) -> Table:
    return {"kind": "leaf-spine", "tors": tors, "hosts_per_tor": hosts, "spines": spines,
            "host_gbps": host_gbps, "uplink_gbps": uplink_gbps}  # fmt: skip


def _incast(senders: int, size: int, dst: int = 0, off_us: int = 500) -> Table:
    hosts = [h for h in range(dst, dst + senders + 1) if h != dst]
    return {"kind": "incast", "dst": dst, "hosts": hosts, "bytes": size, "off_us": off_us}


def _flows(cdf: str, load: float, load_of: str = "host") -> Table:
    return {"kind": "poisson", "cdf": cdf, "load": load, "load_of": load_of}


def _drawn(
    name: str, words: str, topology: Table, *workloads: Table, buffer_bytes: int | None = None
) -> Drawn:
    table: Table = {
        "description": words,
        "intervals": INTERVALS,
        "warmup_us": 2_000,
        "topology": topology,
        **({"switch": {"buffer_bytes": buffer_bytes}} if buffer_bytes else {}),
        "monitor": {"kind": "elastic"},
        "workloads": list(workloads),
    }
    steady = all(one["kind"] == "poisson" for one in workloads)
    return Drawn(name, "steady" if steady else "closed-loop", table)


MICE, MIXED = "SolarRPC_approx", "FB_Hadoop"

STRESS = (
    _drawn("00-star-31-mixed", "31:1 incast of 200 KB beside FB_Hadoop, 100 Gb/s",
           _star(32, 100), _incast(31, 200_000), _flows(MIXED, 0.06)),
    _drawn("01-star-31-shallow", "31:1 incast beside FB_Hadoop, 100 Gb/s, a shallow buffer",
           _star(32, 100), _incast(31, 300_000), _flows(MIXED, 0.06), buffer_bytes=7_500_000),
    _drawn("02-star-31-fast", "31:1 incast of 1 MB beside FB_Hadoop, 400 Gb/s",
           _star(32, 400), _incast(31, 1_000_000), _flows(MIXED, 0.02)),
    _drawn("03-star-63-mixed", "63:1 incast of 100 KB beside FB_Hadoop, 100 Gb/s",
           _star(64, 100), _incast(63, 100_000), _flows(MIXED, 0.04)),
    _drawn("04-star-63-deep", "63:1 incast of 300 KB beside FB_Hadoop, 100 Gb/s, a deep buffer",
           _star(64, 100), _incast(63, 300_000), _flows(MIXED, 0.04), buffer_bytes=64_000_000),
    _drawn("05-star-63-near", "63:1 incast of 200 KB beside FB_Hadoop, 200 Gb/s, 1 us links",
           _star(64, 200, 1.0), _incast(63, 200_000), _flows(MIXED, 0.02)),
    _drawn("06-star-127-25g", "127:1 incast of 50 KB beside FB_Hadoop, 25 Gb/s",
           _star(128, 25), _incast(127, 50_000), _flows(MIXED, 0.08)),
    _drawn("07-star-127-mice", "127:1 incast of 100 KB beside RPCs below 128 KB, 100 Gb/s",
           _star(128, 100), _incast(127, 100_000), _flows(MICE, 0.02)),
    _drawn("08-racks-127", "127:1 incast of 100 KB beside FB_Hadoop, 8 racks, 4:1, 100 Gb/s",
           _racks(8, 16, 4, 100, 100), _incast(127, 100_000), _flows(MIXED, 0.02)),
    _drawn("09-racks-63-fast", "63:1 incast of 500 KB beside FB_Hadoop, 4 racks, 4:1, 200 Gb/s",
           _racks(4, 16, 4, 200, 200), _incast(63, 500_000), _flows(MIXED, 0.02)),
    _drawn("10-racks-two-31", "two 31:1 incasts of 200 KB beside FB_Hadoop, 4 racks, 100 Gb/s",
           _racks(4, 16, 2, 100, 400), _incast(31, 200_000), _incast(31, 300_000, 32, 1_000),
           _flows(MIXED, 0.03)),
    _drawn("11-racks-8-to-1", "WebSearch at 40 % of the uplinks, 128 hosts, 8:1, 100 Gb/s",
           _racks(8, 16, 2, 100, 100), _flows("WebSearch", 0.4, "uplink")),
    _drawn("12-racks-alltoall", "all-to-all of 32 of 128 hosts beside RPCs, 8 racks, 100 Gb/s",
           _racks(8, 16, 4, 100, 100),
           {"kind": "alltoall", "hosts": 32, "bytes": 64_000, "off_us": 2_000}, _flows(MICE, 0.01)),
    _drawn("13-fat-tree-63", "63:1 incast of 100 KB beside AliStorage2019, 128 hosts, 100 Gb/s",
           {"kind": "fat-tree", "k": 8}, _incast(63, 100_000), _flows("AliStorage2019", 0.02)),
    _drawn("14-star-31-rpc", "31:1 incast of 500 KB beside RPCs below 128 KB, 400 Gb/s, 1 us links",
           _star(32, 400, 1.0), _incast(31, 500_000), _flows(MICE, 0.02)),
    _drawn("15-racks-1024", "127:1 incast of 50 KB beside RPCs of 64 of 1,024 hosts, 25 Gb/s",
           _racks(64, 16, 4, 25, 100), _incast(127, 50_000), {**_flows(MICE, 0.1), "hosts": 64}),
)  # fmt: skip
"""What a scenario is, in the order of its number."""
