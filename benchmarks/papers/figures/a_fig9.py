"""ACC, table 1 and Fig. 9: IOPS of a storage cluster by pattern and IO depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from dcqcn_gym.benchmarks.papers.acc import CONNECTX, PUBLISHED, ROWS, WEAK
from dcqcn_gym.benchmarks.papers.applications import steered
from dcqcn_gym.benchmarks.papers.claims import AtMost, Claim, Derived, Effect, Growth, Sign
from dcqcn_gym.benchmarks.papers.figure import Against, Cell, CellResult, Figure, Measure, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.core.sums import mean
from dcqcn_gym.envs.scenario.applications import STORAGE_PATTERNS
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.runs.entries import changed_scenario
from dcqcn_gym.tuners.acc_state import TEMPLATES

PLACE = "section 5.3.1, table 1, Fig. 9"
ACC, ADAPTING = "acc", "acc, adapting"
VENDOR = "vendor-ecn"
HIGH = "640 / 2560 KB"
FRESH = ", a queue pair per IO"
"""End of the name of a row in which every IO has a queue pair of its own, starting at line rate;
in the others a pair of hosts keeps one."""
TUNERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    VENDOR: (VENDOR, {}),
    ACC: (ACC, {}),
    ADAPTING: ROWS["ACC, adapting"],
    HIGH: ("fixed", TEMPLATES[14]),
}
"""The tuner of a row and its arguments; the last is a curve of ACC's list, never changed."""
DEPTHS = (16, 32, 64, 128)
SMALL = "oltp to 4 KiB, 16"


def place(pattern: str, depth: int) -> str:
    """Return the name of a place along x."""
    return f"{pattern}, {depth}"


def measure(cell: Cell, size: Size) -> CellResult:
    """Run the storage cluster in a pattern at a depth, under a policy for the marking curve."""
    pattern, _, depth = str(cell.x).partition(", ")
    io: dict[str, Any] = {"kind": "storage", "pattern": pattern, "depth": int(depth)}
    if cell.x == SMALL:
        reads, (smallest, _) = STORAGE_PATTERNS["oltp"]
        io = {"kind": "storage", "read_share": reads, "block_bytes": [smallest, 4096],
              "depth": int(depth)}  # fmt: skip
    name = cell.row.removesuffix(FRESH).removesuffix(CONNECTX)
    changes = {"monitor": {"kind": "none"}, "workloads": [io], "monitor_interval_us": 500,
               "warmup_us": size.more["warmup_ms"] * 1e3,
               "qp": "flow" if cell.row.endswith(FRESH) else "pair",
               **({} if cell.row.endswith(CONNECTX) else PUBLISHED)}  # fmt: skip
    scenario = changed_scenario(load_scenario("storage-24"), changes, str(cell.x))
    tuner, arguments = TUNERS[name]
    return steered(scenario, tuner, cell.seed, size.length_ms, arguments)


VDI, VDI_16 = place("vdi", 128), place("vdi", 16)
JUDGED = ("vdi", "file-backup")
OVERLOADED = ("oltp", "vdi", "exchange-server")


def _points(depths: Sequence[int]) -> dict[str, Sequence[str]]:
    every = tuple(place(pattern, depth) for pattern in JUDGED for depth in depths)
    more = tuple(place(name, depth) for name in OVERLOADED for depth in (16, 128))
    ends = {row + end: (VDI,) for row in (VENDOR, ACC, HIGH) for end in (CONNECTX, FRESH)}
    least = (place("oltp", 1), SMALL)
    held = (*dict.fromkeys((*every, *more)), *least)
    return {VENDOR: held, **dict.fromkeys((ACC, ADAPTING, HIGH), every), **ends}


def best_gain(pattern: str, row: str, results: FigureResults, seed: int) -> float:
    """Return a row's gain over the vendor's curve at the depth where it is largest over all seeds.

    Of a pattern's rate of operations.
    """

    def gain(at: str, one: int) -> float:
        return results.value("rate", row, at, one) / results.value("rate", VENDOR, at, one) - 1

    places = [str(x) for name, x in results.places if name == row and str(x).startswith(pattern)]
    return gain(max(places, key=lambda x: mean([gain(x, each) for each in results.seeds])), seed)


def overloaded(pattern: str, results: FigureResults, seed: int) -> float:
    """Return the change of a pattern's rate from depth 16 to 128 under the vendor's curve."""
    low, high = (results.value("rate", VENDOR, place(pattern, depth), seed) for depth in (16, 128))
    return high / low - 1


def wider(results: FigureResults, seed: int) -> float:
    """Return by how much ACC's gain with VDI is larger at depth 128 than at 16."""
    gains = [results.value("rate", ACC, at, seed) / results.value("rate", VENDOR, at, seed)
             for at in (VDI_16, VDI)]  # fmt: skip
    return gains[1] - gains[0]


def most_marked(results: FigureResults, seed: int) -> float:
    """Return the larger of the marked shares with one IO, and with small blocks."""
    places = (place("oltp", 1), SMALL)
    return max(results.value("marked", VENDOR, at, seed) for at in places)


FIGURE = Figure(
    name="A-fig9",
    paper="acc",
    title="storage operations per second by pattern and IO depth",
    x="pattern and IO depth",
    sizes={
        "smoke": Size(_points((16, 128)), 1, 1, {"warmup_ms": 0}),
        "quick": Size(_points(DEPTHS), 3, 100, {"warmup_ms": 20}),
        "full": Size(_points(DEPTHS), 10, 1000, {"warmup_ms": 20}),
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
              Growth("rate", ACC, VENDOR, VDI_16), Effect(0.05), 100, " %", "+.1f", weak=WEAK),
        Claim("VDI at depth 128: 15.3 % more", PLACE,
              Growth("rate", ACC, VENDOR, VDI), Effect(0.153), 100, " %", "+.1f", weak=WEAK),
        Claim("the gain grows with the depth: VDI, from 16 to 128", PLACE, Derived(wider), Sign(1),
              100, " points", "+.1f", no_test=WEAK),
        Claim("FileBackup: up to 30 % more", PLACE,
              Derived(partial(best_gain, "file-backup", ACC)), Effect(0.3), 100, " %", "+.1f",
              weak=WEAK),
        Claim("deeper queues and more tasks overload the storage: IOPS at depth 128 against 16",
              PLACE, {name: Derived(partial(overloaded, name)) for name in OVERLOADED}, Sign(-1),
              100, " %", "+.0f",
              no_test="disks take no time here, so that nothing but the network can be overloaded"),
        Claim("at low depth and with small blocks almost no packets are marked (below 1 %): OLTP "
              "with one IO, and to 4 KiB", PLACE,
              Derived(most_marked), AtMost(0.01), 100, " %", ".2g"),
    ),
    plots=tuple(
        Against("rate", f"IOPS of {pattern}, thousands", "pattern, depth", tuple(TUNERS), 1e-3,
                places=[place(pattern, depth) for depth in DEPTHS])
        for pattern in JUDGED
    ),
    ours=(
        "the fabric (four racks at 25 Gb/s, two spines), two copies of a written block, and all "
        "that docs/scenarios.md says of the kind storage",
        "ACC is the shipped policy, trained by us on other traffic; the paper's is not published",
        "a pair of hosts keeps its queue pair; 100 ms (quick) or 1 s (full) after 20 ms of warm-up",
        "NICs have the published reaction point; series with ConnectX's beside them",
        "disks take no time; patterns without a claim are left out",
    ),
    revision=3,
)  # fmt: skip
