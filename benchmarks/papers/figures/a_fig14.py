"""ACC (SIGCOMM 2021), Fig. 14: one agent for the whole fabric against one per port."""

from __future__ import annotations

from dcqcn_gym.benchmarks.papers.acc import BY_SIZE, OURS, faster, points, websearch
from dcqcn_gym.benchmarks.papers.claims import Change, Claim, Sign
from dcqcn_gym.benchmarks.papers.figure import Figure, Size

PLACE = "section 5.3, Fig. 14"
ROWS = ("ACC", "C-ACC", "SECN1", "SECN2")


FIGURE = Figure(
    name="A-fig14",
    paper="acc",
    title="one agent for the fabric (C-ACC) against one per port (D-ACC, here ACC)",
    x="load",
    sizes={
        "smoke": Size(points(ROWS, (0.7,)), 2, length_ms=2, more={"hosts": 16}),
        "quick": Size(points(ROWS, (0.7,)), 5, length_ms=25, more={"hosts": 16}),
        "full": Size(points(ROWS, (0.7,)), 5, length_ms=300, more={"hosts": 96}),
    },
    measure=websearch,
    measures=BY_SIZE,
    claims=(
        faster("16 % lower mean of all flows under C-ACC than SECN1",
               PLACE, "mean", "C-ACC", "SECN1", 0.7),
        faster("52 % lower mean of all flows under C-ACC than SECN2",
               PLACE, "mean", "C-ACC", "SECN2", 0.7),
        Claim("C-ACC has a higher mean of all flows than D-ACC",
              PLACE, Change("mean", "C-ACC", "ACC", 0.7), Sign(1), 100, " %", "+.1f"),
        Claim("C-ACC has a higher mean of mice than D-ACC",
              PLACE, Change("mice", "C-ACC", "ACC", 0.7), Sign(1), 100, " %", "+.1f"),
    ),
    ours=(
        *OURS,
        "the load, which the paper does not give for this figure, is 70 %; the paper's caption "
        "swaps the names of the two designs, its text does not",
    ),
)  # fmt: skip
