"""What a node of a graph takes: 32 bytes and 4 an edge in the engine, beside the bytes of the file.

``python tests/jobs/test_graph_memory.py NODES`` prints both.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np

from dcqcn_gym.core.config import validate
from dcqcn_gym.envs.backends import make_backend
from dcqcn_gym.envs.scenario.job_graph import JobGraph, NodeKind
from dcqcn_gym.envs.scenario.scenario import Scenario

RANKS = 64


def chains(nodes: int) -> JobGraph:
    """Return a chain of computation and messages for each rank: an edge a node."""
    rank = np.arange(nodes) % RANKS
    kind = np.where(np.arange(nodes) // RANKS % 2 == 0, NodeKind.DELAY, NodeKind.TRANSFER)
    none, edges = np.zeros(nodes, dtype=np.int64), nodes - RANKS
    return JobGraph(
        kind, rank, np.where(kind == NodeKind.DELAY, rank, (rank + 1) % RANKS), none, none,
        none + 1000, np.minimum(np.arange(nodes + 1), edges), np.arange(edges) + RANKS,
        np.zeros((0, 2), dtype=np.int64), ("",), RANKS,
    )  # fmt: skip


def in_use() -> int:
    """Return the bytes of memory that are this process's own."""
    words = Path("/proc/self/status").read_text().split()
    return 1024 * int(words[words.index("RssAnon:") + 1])


def measure(path: Path, nodes: int) -> tuple[float, float]:
    """Return the bytes a node that a scenario with the graph takes, and an engine in it."""
    table = {
        "topology": {"kind": "single-switch", "hosts": RANKS, "gbps": 400, "delay_us": 1},
        "monitor_interval_us": 100, "workloads": [{"kind": "job", "graph": str(path)}],
    }  # fmt: skip
    begin = in_use()
    scenario = validate(table, Scenario, source="job")
    read = in_use()
    with closing(make_backend("native")) as backend:
        backend.open(scenario, 1)
        backend.apply(scenario.initial_setting())
        backend.advance()
        return (read - begin) / nodes, (in_use() - read) / nodes


def test_bytes_of_a_node(tmp_path: Path) -> None:
    nodes = 1_000_000
    chains(nodes).to_file(tmp_path / "chains.job")
    asked = [sys.executable, __file__, str(nodes), str(tmp_path / "chains.job")]
    freed = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}  # what is freed leaves the process
    run = subprocess.run(asked, capture_output=True, text=True, check=True, env=freed)
    said = run.stdout.split()
    file, engine = float(said[0]), float(said[1])
    assert 24 < file < 32  # 21, 4 an edge, and 5 of numbers of labels
    assert 35 < engine < 36 + 6  # 32 and 4 an edge


_BUILD = """
from pathlib import Path
from dcqcn_gym.envs.scenario.job_graph import JobGraphBuilder

def peak():
    return 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])

b, begin, last = JobGraphBuilder(64), peak(), 0
for i in range(500_000):
    last = b.transfer(i % 64, (i + 1) % 64, 1000, (last,) if i else ())
print(len(b.build()), peak() - begin)
"""


def test_bytes_of_a_node_while_a_graph_is_built() -> None:
    """What ``lowering.MOST_NODES`` goes by; the graph has as many edges as nodes."""
    asked = [sys.executable, "-c", _BUILD]
    run = subprocess.run(asked, capture_output=True, text=True, check=True)
    nodes, grown = map(int, run.stdout.split())
    assert 40 < grown / nodes < 140


if __name__ == "__main__":
    count, place = int(sys.argv[1]), Path(sys.argv[2] if sys.argv[2:] else "chains.job")
    if not place.exists():
        chains(count).to_file(place)
    print(*measure(place, count))
