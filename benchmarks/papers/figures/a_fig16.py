"""ACC (SIGCOMM 2021), Fig. 16: an agent that was never trained, and changes of the workload."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.acc import OTHER_NICS, OURS, ROWS, fabric, points
from dcqcn_gym.benchmarks.papers.acc_loads import swapped
from dcqcn_gym.benchmarks.papers.claims import Claim, Direction, Growth
from dcqcn_gym.benchmarks.papers.figure import Cell, CellResult, Figure, Measure, Size
from dcqcn_gym.benchmarks.papers.tuned import tuned
from dcqcn_gym.core.statistics import statistic

PLACE = "section 6, Fig. 16"
LEARNS, STAYS = "ACC, untrained", "ACC, untrained, learns nothing"
CURVES = ("20 / 20 KB", "20 / 80 KB", "40 / 160 KB", "160 / 640 KB", "320 / 1280 KB",
          "640 / 2560 KB")  # fmt: skip
NAMES = (LEARNS, "SECN1", "SECN2", STAYS, *CURVES)
ENDS = (CURVES[0], CURVES[-1])
"""All of them that full size has, where a row takes 10 minutes; one is the best at quick size."""
PLACES = ("swapped",)
THEN = "5.5 to 8.5 s"
PHASES = {"0 to 1 s": (0.0, 1.0), "1 to 4.5 s": (1.0, 4.5), "4.5 to 5.5 s": (4.5, 5.5),
          THEN: (5.5, 8.5), "8.5 to 9.5 s": (8.5, 9.5),
          "9.5 to 10.5 s": (9.5, 10.5)}  # fmt: skip
"""Seconds of the paper's run, shortened like everything else."""


def measure(cell: Cell, size: Size) -> CellResult:
    """Run all phases; a figure is the mean over the flows that began in a phase."""
    scale = size.more["scale"]
    scenario = fabric(int(size.more["hosts"]), swapped(0.6, scale), warmup_us=0.0)
    tuner, arguments = ROWS.get(cell.row, ("acc", {}))
    if cell.row not in ROWS:
        learning = {"adapt": True, "updates": 10} if cell.row == LEARNS else {}
        arguments = {"file": "acc-untrained", **learning}
    seen = tuned(scenario, tuner, cell.seed, 10_500 * scale, arguments=arguments)
    _, start, fct = seen.flows()
    values = {
        name: statistic(fct[(start >= begin * scale) & (start < end * scale)])
        for name, (begin, end) in PHASES.items()
    }
    return CellResult(values, {}, seen.hops)


def _claim(text: str, phase: str, against: str, claimed: int) -> Claim:
    finding = Growth(phase, LEARNS, against, PLACES[0])
    return Claim(text, PLACE, finding, Direction(claimed), 100, " %", "+.1f",
                 no_test=OTHER_NICS)  # fmt: skip


FIGURE = Figure(
    name="A-fig16",
    paper="acc",
    title="an untrained agent and changes of the workload",
    x="traffic",
    sizes={
        "smoke": Size(points(NAMES, PLACES), 2, more={"hosts": 16, "scale": 0.0005}),
        "quick": Size(points(NAMES, PLACES), 10, more={"hosts": 16, "scale": 0.1}),
        "full": Size(points((*NAMES[:3], *ENDS), PLACES), 5, more={"hosts": 96, "scale": 1.0}),
    },
    measure=measure,
    measures=tuple(Measure(phase, f"{phase}: mean, us", 1e6, ".0f") for phase in PHASES),
    claims=(
        _claim("for a second after DataMining comes, completion times are higher than under SECN1",
               "4.5 to 5.5 s", "SECN1", 1),
        _claim("then lower: 31.1 % against SECN1", THEN, "SECN1", -1),
        _claim("and 56.2 % against SECN2", THEN, "SECN2", -1),
        _claim("no relapse when the workloads are swapped again: against SECN1 from 9.5 s on",
               "9.5 to 10.5 s", "SECN1", -1),
    ),
    ours=(
        *OURS[:1],
        "ten updates follow each of an agent's 21,000 decisions (one in the package); at quick "
        "size all times are a tenth, and decisions with them",
        "the paper's 31.1 and 56.2 % are of its whole run, and are held here against the phase "
        "after the workloads were swapped",
        "fixed curves: the six series with two thresholds; at full size only the first and the "
        "last of them, and no series that learns nothing",
        "means of phases, where the paper draws one point for every 500 ms; the load is 60 %",
    ),
)  # fmt: skip
