"""ACC (SIGCOMM 2021), Fig. 14: one agent for the whole fabric against one per port."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.acc import BY_SIZE, OURS, REWARD, TAIL, faster, points, websearch
from dcqcn_gym.benchmarks.papers.claims import Claim, Growth, Sign
from dcqcn_gym.benchmarks.papers.figure import Figure, Size

PLACE = "section 5.3, Fig. 14"
ROWS = ("ACC", "C-ACC", "SECN1", "SECN2")
MORE = ("20 / 80 KB", "40 / 160 KB", "160 / 640 KB")
"""Further rows: curves that the agent could have held."""
POINTS = points((*ROWS, *MORE), (0.7,))
UNLEARNT = (
    "C-ACC has 216 actions and took 2,000 decisions in its training: it gets less reward than "
    "every curve that is held, so that this is not the paper's agent. Counting unfinished flows, "
    "left out under every series, would not change that"
)

FIGURE = Figure(
    name="A-fig14",
    paper="acc",
    title="one agent for the fabric (C-ACC) against one per port (D-ACC, here ACC)",
    x="load",
    sizes={
        "smoke": Size(POINTS, 2, length_ms=2, more={"hosts": 16}),
        "quick": Size(POINTS, 5, length_ms=25, more={"hosts": 16}),
        "full": Size(POINTS, 5, length_ms=300, more={"hosts": 96}),
    },
    measure=websearch,
    measures=(*BY_SIZE, TAIL, REWARD),
    claims=(
        faster("16 % lower mean of all flows under C-ACC than SECN1",
               PLACE, "mean", "C-ACC", "SECN1", 0.7, UNLEARNT),
        faster("25 % lower 99th percentile of all flows under C-ACC than SECN1",
               PLACE, "p99", "C-ACC", "SECN1", 0.7, UNLEARNT),
        faster("52 % lower mean of all flows under C-ACC than SECN2",
               PLACE, "mean", "C-ACC", "SECN2", 0.7, UNLEARNT),
        faster("70 % lower 99th percentile of all flows under C-ACC than SECN2",
               PLACE, "p99", "C-ACC", "SECN2", 0.7, UNLEARNT),
        Claim("C-ACC has a higher mean of all flows than D-ACC",
              PLACE, Growth("mean", "C-ACC", "ACC", 0.7), Sign(1), 100, " %", "+.1f",
              no_test=UNLEARNT),
        Claim("C-ACC has a higher mean of mice than D-ACC",
              PLACE, Growth("mice", "C-ACC", "ACC", 0.7), Sign(1), 100, " %", "+.1f",
              no_test=UNLEARNT),
    ),
    ours=(
        *OURS,
        "the load, which the paper does not give for this figure, is 70 %; the paper's caption "
        "swaps the names of the two designs, its text does not",
    ),
    revision=3,
)  # fmt: skip
