"""What a figure or table of a paper is here: what is run, what is measured, what is claimed.

Recipe for a new one: copy ``figures/d_fig5.py`` to the name of yours (``A-fig12`` is
``figures/a_fig12.py``) and fill in its :class:`Figure`:

1. ``sizes``: for smoke, quick and full, the rows (scheme, setting, tuner: any names of yours) with
   their points along x, the number of seeds, the simulated length. Smoke is what the tests run: a
   second or two. Quick is a tenth of the paper's seeds and lengths.
2. ``measure``: a function of the module that takes a :class:`Cell` and a :class:`Size` and returns
   :class:`CellResult`, the same for the same arguments. :mod:`dcqcn_gym.benchmarks.papers.probe`
   runs a scenario and keeps series. Seeds are the same for all rows, so rows meet the same traffic.
3. ``claims``: what the paper says, where, which figure of the results shows it, and the rule
   (:mod:`dcqcn_gym.benchmarks.papers.claims`). A claim that does not come out names its cause: more
   rows that isolate it, and a rule that they meet.
4. ``plots``, and ``ours``: what the paper leaves open and what was chosen, one sentence each.

Nothing else: the catalogue finds the file by its name. ``dcqcn-gym paper run NAME --size smoke``
tries it, ``python tools/paper_pages.py runs/papers/NAME/quick`` keeps results and
writes the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dcqcn_gym.benchmarks.papers.claims import Claim
from dcqcn_gym.benchmarks.papers.figure_results import Place, Series

SIZES = ("smoke", "quick", "full")
DATA_ACKS = "acks_as_data"
"""The number in ``Size.more`` that asks for ACKs in the class of their data (``acks.py``), so that
results say how they were made."""


@dataclass(frozen=True)
class Cell:
    """One measurement: a row at one place along x, with one seed (from 1)."""

    row: str
    x: Place
    seed: int

    @property
    def name(self) -> str:
        """Row, place and seed in words."""
        place = f"{self.x:g}" if isinstance(self.x, int | float) else self.x
        return f"{self.row} at {place}, seed {self.seed}"


@dataclass(frozen=True)
class Size:
    """How much is run. ``points``: the places of each row; ``length_ms``: simulated, per cell.

    ``more`` are further numbers that the figure's ``measure`` wants.
    """

    points: Mapping[str, Sequence[Place]]
    seeds: int
    length_ms: float = 0.0
    more: Mapping[str, float] = field(default_factory=dict)

    def cells(self) -> Iterator[Cell]:
        """Yield every measurement, seed by seed, so that what is cut short holds whole seeds."""
        for seed in range(1, self.seeds + 1):
            for row, places in self.points.items():
                for x in places:
                    yield Cell(row, x, seed)


@dataclass(frozen=True)
class CellResult:
    """What a cell gives: figures by name in SI units, curves, and the packet-hops it took."""

    values: Mapping[str, float]
    series: Mapping[str, Series] = field(default_factory=dict)
    hops: int = 0


@dataclass(frozen=True)
class Measure:
    """A column of the table: a name in ``Measured.values``, its title, unit, factor and format."""

    name: str
    title: str
    scale: float = 1.0
    form: str = ".3g"


@dataclass(frozen=True)
class Against:
    """A plot of a measure against x, a curve per row with its interval; ``lines``: the claim.

    ``places``: those along x that it shows, all if empty.
    """

    measure: str
    title: str
    x_label: str
    rows: Sequence[str] = ()
    scale: float = 1.0
    log_x: bool = False
    log_y: bool = False
    lines: Sequence[tuple[float, str]] = ()
    places: Sequence[Place] = ()


@dataclass(frozen=True)
class Over:
    """A plot of the series of single runs (seed 1), one curve per cell named in ``cells``."""

    series: str
    title: str
    x_label: str
    cells: Sequence[tuple[str, Place]]
    scale: float = 1.0
    x_scale: float = 1.0
    log_x: bool = False
    log_y: bool = False
    lines: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper. ``revision`` rises when ``measure`` gives other numbers."""

    name: str
    paper: str
    title: str
    sizes: Mapping[str, Size]
    measure: Callable[[Cell, Size], CellResult]
    measures: Sequence[Measure]
    claims: Sequence[Claim]
    x: str
    """What the places along x are, for the table."""
    plots: Sequence[Against | Over] = ()
    ours: Sequence[str] = ()
    """What the paper leaves open, and what is done here."""
    revision: int = 1
    judged_in: str = ""
    """The figure that the same claims are counted in, if they are measured twice."""
    before: Mapping[str, str] = field(default_factory=dict)
    """Rows that are judged, and the series of what was judged in their place before."""
    data_acks: Sequence[str] = ()
    """Rows that are also measured with ACKs and CNPs in the class of their data (``acks.py``)."""
