"""A figure with ACKs and CNPs in the class of their data, as the papers' simulators have them.

Here they have a class of their own at switches, which nothing else delays. With
``[switch] ack_class = "data"`` they wait in the queues of the data that goes their way, and PFC
stops them with it. A figure that names rows in ``data_acks`` can be measured in both ways; its
``measure`` passes its scenario through :func:`as_asked`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dcqcn_gym.benchmarks.papers.claims import (
    Claim,
    Finding,
    Growth,
    JudgedClaim,
    Level,
    Outcome,
    judge,
)
from dcqcn_gym.benchmarks.papers.figure import DATA_ACKS, Figure, Size
from dcqcn_gym.benchmarks.papers.figure_results import FigureResults
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.entries import changed_scenario

FOLDER = "acks"
"""Where such results are committed, beside those of the figures as they are."""


def as_asked(scenario: Scenario, size: Size) -> Scenario:
    """Return the scenario with ACKs and CNPs in the class of their data if ``size`` asks for it."""
    if not size.more.get(DATA_ACKS):
        return scenario
    return changed_scenario(scenario, {"switch": {"ack_class": "data"}}, scenario.name)


def with_data_acks(figure: Figure) -> Figure:
    """Return the figure measured in that way: its ``data_acks`` rows and the claims about them.

    Raises ConfigError if it names none.
    """
    if not figure.data_acks:
        raise ConfigError(
            f"{figure.name} is not measured with ACKs in the class of their data; expected a "
            "figure that names rows in 'data_acks'"
        )
    sizes = {
        name: replace(
            size,
            points={row: at for row, at in size.points.items() if row in figure.data_acks},
            more={**size.more, DATA_ACKS: 1.0},
        )
        for name, size in figure.sizes.items()
    }
    return replace(figure, sizes=sizes, claims=_claims(figure), plots=(), ours=())


def has_data_acks(results: FigureResults) -> bool:
    """Return whether results were made in that way."""
    return any(line["more"].get(DATA_ACKS) for line in results.lines)


def both_ways(
    figure: Figure, usual: FigureResults, data: FigureResults
) -> list[tuple[JudgedClaim, JudgedClaim]]:
    """Return every claim that both results can judge: as it is, and with ACKs among the data."""
    claims = _claims(figure)
    return list(zip(judge(claims, usual), judge(claims, data), strict=True))


def what_changed(pairs: Sequence[tuple[JudgedClaim, JudgedClaim]]) -> str:
    """Return how many verdicts changed, and how many of those from coming out to not, or back."""
    changed = count(a.verdict is not b.verdict for a, b in pairs)
    said = f"{changed} of {len(pairs)} verdicts changed"
    if not changed:
        return said
    turned = count(_side(a) * _side(b) < 0 for a, b in pairs)
    return f"{said}, {turned or 'none'} of them between coming out and not"


def _side(one: JudgedClaim) -> int:
    """Return 1 for a claim that came out, at least its direction, -1 for one that did not."""
    return {Outcome.OPEN: 0, Outcome.NO_TEST: 0, Outcome.NOT: -1}.get(one.verdict, 1)


def _claims(figure: Figure) -> Sequence[Claim]:
    """Return the claims about the rows in ``data_acks``, with those of their cells that are.

    Without causes and readings, which need other rows.
    """
    rows = set(figure.data_acks)
    kept = [
        (claim, {name: one for name, one in claim.cells.items() if _is_about(one, rows)})
        for claim in figure.claims
    ]
    return [
        replace(claim, finding=cells, cause=None, readings=()) for claim, cells in kept if cells
    ]


def _is_about(finding: Finding, rows: set[str]) -> bool:
    if isinstance(finding, Growth):
        return {finding.row, finding.against} <= rows
    return isinstance(finding, Level) and finding.row in rows
