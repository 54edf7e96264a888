"""Dolce-RC, Fig. 3: alpha against beta and the number of connections, from its equation 20."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from dcqcn_gym.benchmarks.papers.claims import AtMost, Between, Claim, Derived, Reading, Sign
from dcqcn_gym.benchmarks.papers.figure import (
    Against,
    Cell,
    CellResult,
    Figure,
    Measure,
    Over,
    Size,
)
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults

PLACE = "section IV-A, Fig. 3"
CAPACITY = 100e9
BETAS = tuple(0.7 + 0.05 * i for i in range(13))
PACKET_BITS = 8000


@dataclass(frozen=True)
class Fluid:
    """The fluid model of DCQCN with beta (equations 15 and 16), in packets and seconds.

    ``rate`` is C / N; the timers and steps are those of the DCQCN paper.
    """

    rate: float
    gap: float
    step: float = 40e6 / PACKET_BITS
    counter: float = 1e4
    timer: float = 55e-6
    alpha_timer: float = 55e-6
    stages: int = 5

    def alpha(self, beta: float, p: float) -> float:
        """Return alpha where the rate is steady while a share p is marked (equation 20)."""
        log = math.log1p(-p)
        a = -math.expm1(log * self.gap * self.rate)
        b = p / math.expm1(-log * self.counter)
        c = math.exp(log * self.stages * self.counter) * b
        d = p / math.expm1(-log * self.timer * self.rate)
        e = math.exp(log * self.stages * self.timer * self.rate) * d
        return (beta - 1 + self.gap * self.step / a * (c + e)) / (
            a / (self.gap * self.rate * (b + d))
        )

    def marking(self) -> float:
        """Return p of DCQCN itself: beta = 1, and alpha as its own updates make it."""
        low, high = 1e-9, 0.5
        for _ in range(200):
            p = math.sqrt(low * high)
            own = -math.expm1(math.log1p(-p) * self.alpha_timer * self.rate)
            low, high = (p, high) if self.alpha(1, p) > own else (low, p)
        return low

    def approximate_marking(self) -> float:
        """Return p to first order in small p (Zhu et al., CoNEXT 2016, on DCQCN's fluid model).

        p = (R_AI N^2 / (tau' C^2) (1 / B + N / (T C))^2)^(1/3), tau' the timer of alpha.
        """
        share = 1 / self.counter + 1 / (self.timer * self.rate)
        return float((self.step / (self.alpha_timer * self.rate**2) * share**2) ** (1 / 3))


def measure(cell: Cell, size: Size) -> CellResult:
    """Return alpha along beta for N connections on 100 Gb/s."""
    gap = 1e-6 if cell.row == OWN else 50e-6
    model = Fluid(CAPACITY / PACKET_BITS / float(cell.x), gap)
    p = model.approximate_marking() if cell.row == APPROXIMATE else model.marking()
    alphas = [model.alpha(beta, p) for beta in BETAS]
    steps = [after - before for before, after in pairwise(alphas)]
    values = {"alpha": model.alpha(1, p), "smallest step": min(steps), "marking": p}
    return CellResult(values, {"alpha": (BETAS, alphas)})


PUBLISHED, OWN, APPROXIMATE = "CNP gap 50 us", "CNP gap 1 us", "approximate p, 50 us"


def _along_n(row: str, results: FigureResults, seed: int) -> list[tuple[float, float]]:
    places = [x for found, x in results.places if found == row]
    return [(float(x), results.value("alpha", row, x, seed)) for x in places]


def grows(results: FigureResults, seed: int) -> float:
    """Return the smallest growth of alpha by a step of beta, over every N."""
    return min(results.value("smallest step", row, x, seed) for row, x in results.places)


def peak(row: str, results: FigureResults, seed: int) -> float:
    """Return N where alpha is largest at beta = 1."""
    return max(_along_n(row, results, seed), key=lambda pair: pair[1])[0]


def range_of(results: FigureResults, seed: int) -> float:
    """Return the range of alpha over N at beta = 1."""
    values = [alpha for _, alpha in _along_n(PUBLISHED, results, seed)]
    return max(values) - min(values)


USUAL = Reading(
    "with the usual approximation of the marking probability for small p (series), at 10 to 20 "
    "connections; the paper does not say from where it has it. With the one that equation 20 and "
    "DCQCN's own alpha give, alpha grows with N to the end",
    Derived(partial(peak, APPROXIMATE)),
)

COUNTS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
POINTS = dict.fromkeys((PUBLISHED, OWN, APPROXIMATE), COUNTS)
FIGURE = Figure(
    name="R-fig3",
    paper="dolce-rc",
    title="alpha by beta and number of connections, a formula",
    x="N",
    sizes=dict.fromkeys(("smoke", "quick", "full"), Size(POINTS, 2)),
    measure=measure,
    measures=(
        Measure("alpha", "alpha at beta = 1", 1, ".4f"),
        Measure("marking", "marking probability, %", 1e2, ".3f"),
        Measure("smallest step", "smallest growth per 0.05 of beta", 1, ".3f"),
    ),
    claims=(
        Claim("for a given N, alpha grows with beta", PLACE, Derived(grows), Sign(1)),
        Claim("for a given beta, alpha does not change too much with N (by at most 0.2)", PLACE,
              Derived(range_of), AtMost(0.2, 0.4)),
        Claim("and appears to have a maximum as N grows from 1 to 100", PLACE,
              Derived(partial(peak, PUBLISHED)), Between(1.5, 99), 1, " connections", ".0f",
              readings=(USUAL,)),
    ),
    plots=(
        Over("alpha", "alpha against beta", "beta",
             ((PUBLISHED, 1), (PUBLISHED, 10), (PUBLISHED, 100)), lines=((0, "0"), (1, "1"))),
        Against("alpha", "alpha at beta = 1 against N", "N", log_x=True),
    ),
    ours=(
        "p, which equation 20 needs: that at which DCQCN itself is steady, beta = 1 and its own "
        "alpha",
        "DCQCN's published timers and steps, packets of 1000 B",
        "nothing is drawn, so seeds change nothing",
    ),
)  # fmt: skip
