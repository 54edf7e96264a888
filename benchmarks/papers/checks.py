"""What was checked beside a paper's figures: ns-3, and ACKs in the class of their data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.papers.acks import both_ways, what_changed
from dcqcn_gym.benchmarks.papers.claims import JudgedClaim
from dcqcn_gym.benchmarks.papers.figure import Figure
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.runs.table import Table, with_interval

CONFIRMED_FILE = "ns3.json"


@dataclass(frozen=True)
class Confirmed:
    """A case that ran on the native engine and on ns-3 (``tools/paper_confirm.py``).

    ``comparison`` has the numbers of ``dcqcn-gym ns3 parity``: pairs are native and ns-3.
    """

    paper: str
    figure: str
    what: str
    tuner: str
    same_settings: bool
    """Whether the tuner's settings were the same throughout."""
    verdict: str
    """``identical``, ``within bounds`` or ``APART``."""
    comparison: Mapping[str, Any]


def read_confirmed(path: Path) -> Mapping[str, Confirmed]:
    """Return what is on file, by paper; RunError if it holds something else."""
    try:
        found = [Confirmed(**row) for row in json.loads(path.read_bytes())["rows"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} does not hold what tools/paper_confirm.py writes") from error
    return {one.paper: one for one in found}


@dataclass(frozen=True)
class Checks:
    """Results by figure, as they are and with ACKs among the data; comparisons by paper."""

    acks: Mapping[str, tuple[FigureResults, FigureResults]] = field(default_factory=dict)
    confirmed: Mapping[str, Confirmed] = field(default_factory=dict)


def confirmed_table(found: Sequence[Confirmed]) -> Table:
    """Return a line for each case: what ran, how much of it, and how far apart the two are."""
    columns = ("paper", "figure", "case", "acted", "intervals", "flows", "packet-hops", "marks",
               "pauses", "mean FCT apart", "utility apart", "verdict")  # fmt: skip
    return Table(columns, [_confirmed_row(one) for one in found], words=4)


def _confirmed_row(one: Confirmed) -> list[str]:
    c = one.comparison
    counts = (c["flows"], c["packet_hops"], c["marks"], c["pauses"])
    same = [str(a) if a == b else f"{a} / {b}" for a, b in counts]
    apart = [f"{value:.1e}" if value else "0" for value in (c["fct_of_mean"], c["utility_mean"])]
    acted = one.tuner if one.same_settings else f"{one.tuner}, other settings"
    return [one.paper, one.figure, one.what, acted, str(c["intervals"]), *same, *apart, one.verdict]


def confirmed_text(one: Confirmed) -> str:
    """Return a page's section on ns-3."""
    c = one.comparison
    acted = one.tuner if one.same_settings else f"{one.tuner}, other settings"
    return (
        "## The same on ns-3\n\n"
        f"`python tools/paper_confirm.py {one.paper}` runs seed {c['seed']} of "
        f"{one.figure} in small ({one.what}; {acted}) on the native engine and on "
        f"[ns-3](../../reference/ns3.md): {c['intervals']} intervals, {c['flows'][0]} flows, "
        f"{c['packet_hops'][0]:,} packet-hops, **{one.verdict}** in reports and settings."
    )


def acks_text(figure: Figure, usual: FigureResults, data: FigureResults) -> str:
    """Return a figure's section on ACKs and CNPs in the class of their data."""
    pairs = both_ways(figure, usual, data)
    rows = [
        [a.claim.text, *(word for one in (a, b) for word in (_found(one), one.verdict.value))]
        for a, b in pairs
        if a.verdict is not b.verdict
    ]
    columns = ("the paper says", "own class: found", "verdict", "data's class: found", "verdict")
    command = f"dcqcn-gym paper run {figure.name} --size {data.size} --acks data"
    parts = [
        f"### {figure.name} with ACKs among the data",
        "ACKs and CNPs [in the class of their data](../../reference/model.md#links-and-ports), "
        f"as in the papers' simulators: {what_changed(pairs)} (`{command}`).",
    ]
    return "\n\n".join([*parts, Table(columns, rows, words=1).markdown()] if rows else parts)


def _found(one: JudgedClaim) -> str:
    claim = one.claim
    return with_interval(one.found, claim.form, claim.scale, unit=claim.unit, style="brackets")
