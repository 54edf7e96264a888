"""ACC, table 1 and Fig. 9: IOPS of a storage cluster by pattern and IO depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dcqcn_gym.benchmarks.papers.applications import steered
from dcqcn_gym.benchmarks.papers.claims import AtMost, Change, Claim, Derived, Effect
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measure, Measured, Size
from dcqcn_gym.benchmarks.papers.results import Results
from dcqcn_gym.envs.scenario.applications import STORAGE_PATTERNS
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.rows import changed_scenario
from dcqcn_gym.tuners.acc_state import TEMPLATES

PLACE = "section 5.3.1, table 1, Fig. 9"
ACC = "acc"
VENDOR = "vendor-ecn"
HIGH = "640 / 2560 KB"
KEPT = ", queue pairs kept"
"""End of the name of a row in which a pair of hosts has one queue pair, which keeps its rate."""
TUNERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    VENDOR: (VENDOR, {}),
    ACC: (ACC, {}),
    HIGH: ("fixed", TEMPLATES[14]),
}
"""The tuner of a row and its arguments; the last is a curve of ACC's list, never changed."""
DEPTHS = (16, 128)
SMALL = "oltp to 4 KiB, 16"


def place(pattern: str, depth: int) -> str:
    """Return the name of a place along x."""
    return f"{pattern}, {depth}"


def measure(cell: Cell, size: Size) -> Measured:
    """Run the storage cluster in a pattern at a depth, under a policy for the marking curve."""
    pattern, _, depth = str(cell.x).partition(", ")
    io: dict[str, Any] = {"kind": "storage", "pattern": pattern, "depth": int(depth)}
    if cell.x == SMALL:
        reads, (smallest, _) = STORAGE_PATTERNS["oltp"]
        io = {"kind": "storage", "read_share": reads, "block_bytes": [smallest, 4096],
              "depth": int(depth)}  # fmt: skip
    name = cell.row.removesuffix(KEPT)
    changes = {"monitor": {"kind": "none"}, "workloads": [io], "warmup_us": 0,
               "qp": "flow" if name == cell.row else "pair"}  # fmt: skip
    scenario = changed_scenario(load_scenario("storage-24"), changes, str(cell.x))
    tuner, arguments = TUNERS[name]
    return steered(scenario, tuner, cell.seed, size.length_ms, arguments)


VDI, VDI_16, BACKUP, OLTP = (
    place("vdi", 128), place("vdi", 16), place("file-backup", 128), place("oltp", 16),
)  # fmt: skip
DEEP = (VDI, BACKUP)
ALL = tuple(place(pattern, depth) for pattern in STORAGE_PATTERNS for depth in DEPTHS)


def _points(every: Sequence[str]) -> dict[str, Sequence[str]]:
    kept = dict.fromkeys((f"{row}{KEPT}" for row in TUNERS), (VDI_16, *DEEP))
    return {VENDOR: (*every, place("oltp", 1), SMALL), ACC: every, HIGH: DEEP, **kept}


SHORT = (
    "6 ms from an idle network are six decisions, and every IO has a queue pair of its own, which "
    "starts at line rate and is done before a cut acts. Storage keeps its connections: where a "
    "pair of hosts keeps one (series) one of ACC's curves has at least half of the claimed gain"
)


def most_marked(results: Results, seed: int) -> float:
    """Return the larger of the marked shares with one IO, and with small blocks."""
    places = (place("oltp", 1), SMALL)
    return max(results.value("marked", VENDOR, at, seed) for at in places)


FIGURE = Figure(
    name="A-fig9",
    paper="acc",
    title="storage operations per second by pattern and IO depth",
    x="pattern and IO depth",
    sizes={
        "smoke": Size(_points((VDI_16, *DEEP, OLTP)), 1, length_ms=1),
        "quick": Size(_points(ALL), 6, length_ms=6),
        "full": Size(_points(ALL), 10, length_ms=1000),
    },
    measure=measure,
    measures=(
        Measure("rate", "IOPS, thousands", 1e-3, ".4g"),
        Measure("marked", "marks per 100 packets", 1e2, ".2g"),
        Measure("paused", "paused, %", 1e2, ".2g"),
        Measure("rtt", "round trip, mean, us", 1e6, ".4g"),
        Measure("rtt_p99", "p99 of the intervals, us", 1e6, ".4g"),
    ),
    claims=(
        Claim("VDI at depth 16: 5 % more IOPS than the vendor's static ECN", PLACE,
              Change("rate", ACC, VENDOR, VDI_16), Effect(0.05), 100, " %", "+.1f", no_test=SHORT),
        Claim("VDI at depth 128: 15.3 % more", PLACE,
              Change("rate", ACC, VENDOR, VDI), Effect(0.153), 100, " %", "+.1f", no_test=SHORT),
        Claim("FileBackup: up to 30 % more", PLACE,
              Change("rate", ACC, VENDOR, BACKUP), Effect(0.3), 100, " %", "+.1f", no_test=SHORT),
        Claim("at low depth and with small blocks almost no packets are marked (below 1 %): OLTP "
              "with one IO, and to 4 KiB", PLACE,
              Derived(most_marked), AtMost(0.01), 100, " %", ".2g"),
    ),
    ours=(
        "the fabric (four racks at 25 Gb/s, two spines), two copies of a written block, and all "
        "that docs/scenarios.md says of the kind storage",
        "ACC is the shipped policy, trained by us on other traffic; the paper's is not published",
        "disks take no time, and the depths between 16 and 128 are left out",
    ),
    revision=2,
)  # fmt: skip
