"""ACC, table 1 and Fig. 9: IOPS of a storage cluster by pattern and IO depth."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.applications import steered
from dcqcn_gym.benchmarks.papers.claims import AtMost, Change, Claim, Effect, Level
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measure, Measured, Size
from dcqcn_gym.envs.scenario.applications import STORAGE_PATTERNS
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.rows import changed_scenario

PLACE = "section 5.3.1, table 1, Fig. 9"
ACC = "acc"
VENDOR = "vendor-ecn"
DEPTHS = (16, 128)


def place(pattern: str, depth: int) -> str:
    """Return the name of a place along x."""
    return f"{pattern}, {depth}"


def measure(cell: Cell, size: Size) -> Measured:
    """Run the storage cluster in a pattern at a depth, under a policy for the marking curve."""
    pattern, _, depth = str(cell.x).partition(", ")
    io = {"kind": "storage", "pattern": pattern, "depth": int(depth)}
    changes = {"monitor": {"kind": "none"}, "workloads": [io], "warmup_us": 0}
    scenario = changed_scenario(load_scenario("storage-24"), changes, str(cell.x))
    return steered(scenario, cell.row, cell.seed, size.length_ms)


ALL = tuple(place(pattern, depth) for pattern in STORAGE_PATTERNS for depth in DEPTHS)
POINTS = dict.fromkeys((VENDOR, ACC), ALL)
CLAIMED = (place("vdi", 16), place("vdi", 128), place("file-backup", 128), place("oltp", 16))
FIGURE = Figure(
    name="A-fig9",
    paper="acc",
    title="storage operations per second by pattern and IO depth",
    x="pattern and IO depth",
    sizes={
        "smoke": Size({VENDOR: CLAIMED, ACC: CLAIMED}, 1, length_ms=1),
        "quick": Size(POINTS, 3, length_ms=6),
        "full": Size(POINTS, 10, length_ms=1000),
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
              Change("rate", ACC, VENDOR, place("vdi", 16)), Effect(0.05), 100, " %", "+.1f"),
        Claim("VDI at depth 128: 15.3 % more", PLACE,
              Change("rate", ACC, VENDOR, place("vdi", 128)), Effect(0.153), 100, " %", "+.1f"),
        Claim("FileBackup: up to 30 % more", PLACE,
              Change("rate", ACC, VENDOR, place("file-backup", 128)), Effect(0.3), 100, " %",
              "+.1f"),
        Claim("OLTP at low depth and small blocks: almost no marked packets (below 1 %)", PLACE,
              Level("marked", VENDOR, place("oltp", 16)), AtMost(0.01), 100, " %", ".2g"),
    ),
    ours=(
        "the fabric (four racks at 25 Gb/s, two spines), two copies of a written block, and all "
        "that docs/scenarios.md says of the kind storage",
        "ACC is the shipped policy, trained by us on other traffic; the paper's is not published",
        "disks take no time, and the depths between 16 and 128 are left out",
    ),
)  # fmt: skip
