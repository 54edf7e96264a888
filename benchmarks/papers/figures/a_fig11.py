"""ACC (SIGCOMM 2021), Fig. 11: the distributions of flow sizes of its simulations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dcqcn_gym.benchmarks.papers.claims import AtLeast, Claim, Level
from dcqcn_gym.benchmarks.papers.figure import Cell, Figure, Measure, Measured, Over, Size
from dcqcn_gym.core.config import CONFIGS
from dcqcn_gym.envs.scenario.tables import read_cdf

PLACE = "section 5.3, Fig. 11"
ROWS = {
    "WebSearch": "WebSearch",
    "DataMining": "DataMining_a",
    "DataMining, table b": "DataMining_b",
}
X = "flow sizes"
STEPS = 1_000_000


def quantiles(points: Sequence[tuple[int, float]], shares: np.ndarray) -> np.ndarray:
    """Return the sizes below which these shares of the flows lie, linear between the points."""
    sizes, cumulative = zip(*points, strict=True)
    return np.asarray(np.interp(shares, cumulative, sizes))


def measure(cell: Cell, size: Size) -> Measured:
    """Read a table; no simulation, so every seed is the same."""
    table = read_cdf(CONFIGS / "workloads" / f"{ROWS[cell.row]}.csv")
    found = quantiles(table.points, (np.arange(STEPS) + 0.5) / STEPS)
    values = {
        "mean": table.mean_bytes,
        "median": float(found[STEPS // 2]),
        "top": float(found[-STEPS // 10 :].sum() / found.sum()),
        "mice": float(np.mean(found <= 100_000)),
    }
    shares = np.linspace(0.005, 1, 200)
    return Measured(values, {"cdf": (quantiles(table.points, shares).tolist(), shares.tolist())})


def _points() -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(ROWS, (X,))


FIGURE = Figure(
    name="A-fig11",
    paper="acc",
    title="the distributions of flow sizes",
    x="what",
    sizes=dict.fromkeys(("smoke", "quick", "full"), Size(_points(), 2)),
    measure=measure,
    measures=(
        Measure("mean", "mean, KB", 1e-3, ".0f"),
        Measure("median", "median, KB", 1e-3, ".1f"),
        Measure("mice", "flows to 100 KB, %", 1e2, ".0f"),
        Measure("top", "bytes in the largest tenth of flows, %", 1e2, ".0f"),
    ),
    claims=tuple(
        Claim(f"heavy tailed: {row}, bytes in the largest tenth of the flows", PLACE,
              Level("top", row, X), AtLeast(0.5), 100, " %", ".0f",
              no_test="an input of the paper, not a result")
        for row in ("WebSearch", "DataMining")
    ),
    plots=(
        Over("cdf", "Share of flows", "bytes", tuple((row, X) for row in ROWS), log_x=True),
    ),
    ours=(
        "the curves of the paper are not in its copy: these are the published tables of the two "
        "workloads; of DataMining two are in use, and `docs/scenarios.md` says where from",
        "heavy tailed: the largest tenth of the flows carries more than half of the bytes",
    ),
)  # fmt: skip
