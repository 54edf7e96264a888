"""ACC, table 1 and Fig. 9: IOPS of a storage cluster by pattern and IO depth."""

from __future__ import annotations

from typing import Any

from dcqcn_gym.benchmarks.papers.acc import CONNECTX, PUBLISHED, ROWS, SMALL
from dcqcn_gym.benchmarks.papers.applications import steered
from dcqcn_gym.benchmarks.papers.claims import AtMost, Change, Claim, Derived, Effect, Sign
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, Figure, Measure, Measured, Size
from dcqcn_gym.benchmarks.papers.results import Results
from dcqcn_gym.envs.scenario.applications import STORAGE_PATTERNS
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.rows import changed_scenario

PLACE = "section 5.3.1, table 1, Fig. 9"
ACC = "ACC"
VENDOR = "vendor-ecn"
HIGH = "640 / 2560 KB"
EACH = ", a queue pair per IO"
"""End of the name of a row in which every IO has a queue pair of its own, not a pair of hosts."""
SMALL_IO = "oltp to 4 KiB, 16"
WARMUP_US = 20_000


def place(pattern: str, depth: int) -> str:
    """Return the name of a place along x."""
    return f"{pattern}, {depth}"


def measure(cell: Cell, size: Size) -> Measured:
    """Run the storage cluster in a pattern at a depth, under a policy for the marking curve."""
    pattern, _, depth = str(cell.x).partition(", ")
    io: dict[str, Any] = {"kind": "storage", "pattern": pattern, "depth": int(depth)}
    if cell.x == SMALL_IO:
        reads, (smallest, _) = STORAGE_PATTERNS["oltp"]
        io = {"kind": "storage", "read_share": reads, "block_bytes": [smallest, 4096],
              "depth": int(depth)}  # fmt: skip
    name = cell.row.removesuffix(EACH).removesuffix(CONNECTX)
    nics = {} if cell.row.endswith(CONNECTX) else PUBLISHED
    changes = {"monitor": {"kind": "none"}, "workloads": [io], "monitor_interval_us": 500,
               "warmup_us": WARMUP_US if size.length_ms > 1 else 0,
               "qp": "flow" if cell.row.endswith(EACH) else "pair", **nics}  # fmt: skip
    scenario = changed_scenario(load_scenario("storage-24"), changes, str(cell.x))
    tuner, arguments = ROWS.get(name, (name, {}))
    return steered(scenario, tuner, cell.seed, size.length_ms, arguments)


VDI, VDI_16, BACKUP, OLTP = (
    place("vdi", 128), place("vdi", 16), place("file-backup", 128), place("oltp", 16),
)  # fmt: skip
BACKUPS = (place("file-backup", 16), place("file-backup", 64), BACKUP)
DEEP = {"VDI": (VDI_16, VDI), "OLTP": (OLTP, place("oltp", 128))}
ALL = (VDI_16, VDI, *BACKUPS)
POINTS = {
    VENDOR: (*ALL, *DEEP["OLTP"], place("oltp", 1), SMALL_IO), ACC: ALL, HIGH: ALL,
    **{f"{row}{CONNECTX}": (VDI_16, VDI, BACKUP) for row in (VENDOR, ACC)},
    **{f"{row}{EACH}": (VDI_16,) for row in (VENDOR, ACC)},
}  # fmt: skip


def most_marked(results: Results, seed: int) -> float:
    """Return the larger of the marked shares with one IO, and with small blocks."""
    places = (place("oltp", 1), SMALL_IO)
    return max(results.value("marked", VENDOR, at, seed) for at in places)


def gain(at: str, results: Results, seed: int) -> float:
    """Return by how much more IOPS ACC has than the vendor's curve."""
    own, other = (results.value("rate", row, at, seed) for row in (ACC, VENDOR))
    return own / other - 1


def best_gain(results: Results, seed: int) -> float:
    """Return the largest gain with FileBackup, at any depth."""
    return max(gain(at, results, seed) for at in BACKUPS)


def growth(results: Results, seed: int) -> float:
    """Return by how much the gain with VDI grows from depth 16 to 128."""
    return gain(VDI, results, seed) - gain(VDI_16, results, seed)


FIGURE = Figure(
    name="A-fig9",
    paper="acc",
    title="storage operations per second by pattern and IO depth",
    x="pattern and IO depth",
    sizes={
        "smoke": Size(POINTS, 1, length_ms=1),
        "quick": Size(POINTS, 5, length_ms=100),
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
              Change("rate", ACC, VENDOR, VDI_16), Effect(0.05), 100, " %", "+.1f"),
        Claim("VDI at depth 128: 15.3 % more", PLACE,
              Change("rate", ACC, VENDOR, VDI), Effect(0.153), 100, " %", "+.1f"),
        Claim("FileBackup: up to 30 % more, at the best depth", PLACE,
              Derived(best_gain), Effect(0.3), 100, " %", "+.1f"),
        Claim("the gain grows with the depth (VDI, 16 to 128)", PLACE,
              Derived(growth), Sign(1), 100, " points", "+.1f"),
        Claim("with more depth the cluster gets less done (the vendor's, 16 to 128)", PLACE,
              {name: Change("rate", VENDOR, VENDOR, deep, shallow)
               for name, (shallow, deep) in DEEP.items()}, Sign(-1), 100, " %", "+.1f"),
        Claim("at low depth and with small blocks almost no packets are marked (below 1 %): OLTP "
              "with one IO, and to 4 KiB", PLACE,
              Derived(most_marked), AtMost(0.01), 100, " %", ".2g"),
    ),
    plots=(
        Against("rate", "IOPS, thousands", "pattern and IO depth", (ACC, VENDOR, HIGH), 1e-3),
    ),
    ours=(
        "the fabric (four racks at 25 Gb/s, two spines), two copies of a written block, and all "
        "that docs/scenarios.md says of the kind storage",
        *SMALL[1:3],
        "a pair of hosts keeps one queue pair (storage keeps its connections) unless a series says "
        "otherwise; 100 ms after 20 ms of warm-up; decisions of 500 us",
        "ACC's network was not trained on these patterns; disks take no time",
    ),
    revision=3,
)  # fmt: skip
