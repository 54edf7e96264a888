"""Every figure and table of the five papers that shows a result, and what has become of it here.

A row is built if a file in ``figures/`` has the name of one of its parts; nothing lists the files.
Drawings of a design are no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module, util
from pathlib import Path

from dcqcn_gym.benchmarks.papers.figure import Figure
from dcqcn_gym.core.errors import ConfigError, UnknownNameError

PACKAGE = "dcqcn_gym.benchmarks.papers.figures"


@dataclass(frozen=True)
class Paper:
    """A paper: the name of its page, how it is called, where it appeared, a word before all."""

    name: str
    title: str
    source: str
    note: str = ""


PAPERS: Sequence[Paper] = (
    Paper(
        "paraleon",
        "PARALEON",
        "ICNP 2024",
        "Rows called PARALEON, and its variants, search within the ranges of the authors' later "
        "code, as the tuner `paraleon` does; those within the ranges of their first prototype, "
        "which were judged before, are the series *prototype's ranges*. The paper prints neither "
        "ranges nor steps: [where its text, the prototype and the later code differ in ranges, "
        "steps, schedule or weights](../../tuners.md#paraleon-the-paper-its-authors-two-codes-"
        "and-what-runs-here), a table has a row for each, which is judged here and why. Claims and "
        "rules are those of before. The last table before the figures has every verdict that "
        "turned, by the ranges or by the size alone: figures whose names end in *-prototype* keep "
        "full sizes, judged by the prototype's ranges and not run again, and those without count "
        "at size quick.",
    ),
    Paper("acc", "ACC", "SIGCOMM 2021"),
    Paper("chameleon", "CHAMELEON", "SIGCOMM 2023, poster"),
    Paper("dolce-rc", "Dolce-RC", "Ye et al., Data-Driven Rate Control for RDMA Networks"),
    Paper("dcqcn-plus", "DCQCN+", "ICNP 2018"),
)


@dataclass(frozen=True)
class Item:
    """A figure or table. ``parts`` are its files by name, by default one of its own name.

    ``impossible`` says why nothing of it can be measured here; a part that is built counts more.
    """

    name: str
    paper: str
    title: str
    parts: tuple[str, ...] = ()
    impossible: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the figures that hold it."""
        return self.parts or (self.name,)

    @property
    def state(self) -> str:
        """``built``, ``not possible here`` or ``not yet``."""
        if any(map(built, self.files)):
            return "built"
        return "not possible here" if self.impossible else "not yet"


_P, _A, _C, _R, _D = (paper.name for paper in PAPERS)
_HARDWARE = "measured on network cards that are not here"
_INPUT = "settings of the paper, not results"

ROWS: Sequence[Item] = (
    Item("P-tab1", _P, "the experts' setting", impossible=_INPUT),
    Item("P-tab2", _P, "NCCL all-to-all of 128 cards, default against expert"),
    Item("P-tab3", _P, "the settings of the system", impossible=_INPUT),
    Item("P-tab4", _P, "overheads"),
    Item("P-fig5", _P, "throughput and round trip against single knobs"),
    Item("P-fig6", _P, "surface of two knobs"),
    Item("P-fig7", _P, "completion times while tuning",
        ("P-fig7ab", "P-fig7-drained", "P-fig7cd")),
    Item("P-fig8", _P, "an influx of another workload", ("P-fig8-late",)),
    Item("P-fig9", _P, "the same against pretrained settings",
        ("P-fig9",)),
    Item("P-fig10", _P, "monitors: accuracy and effect", ("P-fig10a", "P-fig10b")),
    Item("P-fig11", _P, "monitor intervals: accuracy and effect",
        ("P-fig11a", "P-fig11b", "P-fig11b-prototype")),
    Item("P-fig12", _P, "utility against iterations of the annealing",
        ("P-fig12", "P-fig12-prototype")),
    Item("P-fig13", _P, "bandwidth of all-to-all by scale",
        ("P-fig13",)),
    Item("P-fig14", _P, "storage traffic that comes and goes"),
    Item("A-tab1", _A, "six input-output patterns", ("A-fig9",)),
    Item("A-fig9", _A, "storage operations per second"),
    Item("A-fig10", _A, "training with a parameter server"),
    Item("A-fig11", _A, "the distributions of flow sizes", impossible=_INPUT),
    Item("A-fig12", _A, "completion times of WebSearch by load"),
    Item("A-fig13", _A, "load that differs by place and time"),
    Item("A-fig14", _A, "one agent for all against one per switch"),
    Item("A-fig15", _A, "a queue around a burst"),
    Item("A-fig16", _A, "an untrained agent and changes of the workload"),
    Item("A-txt-tcp", _A, "RDMA beside TCP"),
    Item("C-fig2", _C, "all-to-all after the search"),
    Item("R-fig3", _R, "alpha by beta and number of connections"),
    Item("R-fig5", _R, "OSU all-to-all latency by size"),
    Item("R-fig6", _R, "CacheFollower on 1024 hosts"),
    Item("R-fig8", _R, "short flows beside long ones under Dolce-RC+"),
    Item("R-tab1", _R, "mean completion times of CacheFollower", ("R-fig6",)),
    Item("R-tab2", _R, "mean completion times of DataMining"),
    Item("D-fig3", _D, "a ConnectX-4 against its parameters in a simulation", impossible=_HARDWARE),
    Item("D-fig4", _D, "queue against number of flows under DCQCN"),
    Item("D-fig5", _D, "timers and steps for large incast with 8 flows"),
    Item("D-fig6", _D, "queue and rate of large incast under DCQCN+"),
    Item("D-fig7", _D, "large incast under TIMELY"),
    Item("D-fig8", _D, "three flows that start one after another"),
    Item("D-fig9", _D, "1900 to 10 in a fabric of 2410 nodes"),
    Item("D-fig10", _D, "a ConnectX-4 with the static values of DCQCN+"),
    Item("D-fig11", _D, "completion times of real workloads"),
    Item("D-fig12", _D, "sensitivity to the parameters of DCQCN+"),
    Item("D-fig13", _D, "fairness", ("D-fig13a", "D-fig13b")),
)  # fmt: skip


def _module(name: str) -> str:
    return f"{PACKAGE}.{name.lower().replace('-', '_')}"


def built(name: str) -> bool:
    """Return whether there is a file for a figure of this name."""
    return util.find_spec(_module(name)) is not None


def figures_of(paper: str) -> Iterator[Figure]:
    """Yield the figures of a paper that are built, in the paper's order."""
    names = dict.fromkeys(name for row in ROWS if row.paper == paper for name in row.files)
    yield from (figure(name) for name in names if built(name))


def figure(name: str) -> Figure:
    """Load a figure; errors say what it is instead, or which names are near."""
    known = [part for row in ROWS for part in (row.name, *row.files)]
    if name not in known:
        raise UnknownNameError("figure", name, dict.fromkeys(known))
    row = row_of(name)
    parts = [part for part in ([name] if name in row.files else row.files) if built(part)]
    if not parts:
        why = f": {row.impossible}" if row.impossible else ""
        raise ConfigError(f"figure {name} is {row.state}{why}; dcqcn-gym paper run shows all")
    if len(parts) > 1:
        raise ConfigError(f"figure {name} has parts; give one of {', '.join(parts)}")
    found = import_module(_module(parts[0])).FIGURE
    if not isinstance(found, Figure) or found.name != parts[0] or found.paper != row.paper:
        raise ConfigError(f"{_module(parts[0])}.FIGURE is not the figure {parts[0]} of {row.paper}")
    return found


def row_of(name: str) -> Item:
    """Return the row of a figure or of one of its parts; a row's own name counts before a part."""
    own = [row for row in ROWS if row.name == name]
    return (own or [row for row in ROWS if name in row.files])[0]


def results_folder() -> Path:
    """Return the folder of the results that are committed with the project."""
    return Path(__file__).parent / "results"
