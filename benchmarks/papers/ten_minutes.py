"""The page for a reader with ten minutes: prose in ``ten_minutes.md``, numbers from the results.

A place ``{{FIGURE|PART|VERDICT}}`` of the prose is the finding of that figure's claim PART, or of
the one whose text holds PART; VERDICT is what the sentence around it takes for granted.
``{{table}}``, ``{{counts}}``, ``{{acks}}`` and ``{{ns3}}`` stand for what all results say together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dcqcn_gym.benchmarks.papers.acks import both_ways, what_changed
from dcqcn_gym.benchmarks.papers.catalog import figure
from dcqcn_gym.benchmarks.papers.checks import Checks
from dcqcn_gym.benchmarks.papers.claims import JudgedClaim, Outcome, judge
from dcqcn_gym.benchmarks.papers.page import Found, by_paper, claims_by_verdict, mark_tables
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.sums import count
from dcqcn_gym.runs.atomic_file import write_atomically

NAME = "ten-minutes.md"
PLACE = re.compile(r"\{\{([^{}]+)\}\}")
VERDICTS = {verdict.value for verdict in Outcome}


@dataclass(frozen=True)
class Filled:
    """The page, and the sentences that its numbers no longer bear out: what to write anew."""

    text: str
    stale: tuple[str, ...]


def template() -> str:
    """Return the prose with its places."""
    return Path(__file__).with_name("ten_minutes.md").read_text(encoding="utf-8")


def fill(prose: str, found: Found, checks: Checks) -> Filled:
    """Put numbers into the places of ``prose``.

    Raises ConfigError for a place that names no figure, no claim or several, or no verdict.
    """
    stale: list[str] = []
    whole = {
        "table": mark_tables(by_paper(found, ".").markdown().rstrip() + "\n").rstrip(),
        "counts": claims_by_verdict(found).removeprefix("In all, ").rstrip("."),
        "acks": _changed(checks),
        "ns3": _identical(checks),
    }

    @cache
    def judged(name: str) -> Sequence[JudgedClaim]:
        if name not in found:
            raise ConfigError(f"{NAME}: no results of {name!r} are kept; expected a figure")
        return judge(figure(name).claims, found[name][0])

    def at(place: re.Match[str]) -> str:
        words = [word.strip() for word in place[1].split("|")]
        if words[0] in whole and len(words) == 1:
            return whole[words[0]]
        if len(words) != 3 or words[2] not in VERDICTS:
            raise ConfigError(
                f"{NAME}: {place[0]} is no place; expected {{{{FIGURE|PART OF A CLAIM|VERDICT}}}} "
                f"or one of {', '.join(whole)}"
            )
        name, part, verdict = words
        one = _only(judged(name), name, part)
        if one.verdict.value != verdict:
            stale.append(f"{name}, {part}: {one.verdict.value}, the text takes it as {verdict}")
        return f"{one.found.mean * one.claim.scale:{one.claim.form}}{one.claim.unit}"

    return Filled(PLACE.sub(at, prose), tuple(stale))


def _only(judged: Sequence[JudgedClaim], name: str, part: str) -> JudgedClaim:
    """Return the claim with the text ``part``, else the one whose text holds it."""
    exact = [one for one in judged if one.claim.text == part]
    fitting = exact or [one for one in judged if part in one.claim.text]
    if len(fitting) != 1:
        raise ConfigError(
            f"{NAME}: {len(fitting)} claims of {name} hold {part!r}; expected exactly one"
        )
    return fitting[0]


def _changed(checks: Checks) -> str:
    return what_changed(
        [pair for name, two in checks.acks.items() for pair in both_ways(figure(name), *two)]
    )


def _identical(checks: Checks) -> str:
    same = count(one.verdict == "identical" for one in checks.confirmed.values())
    return f"{same} of {len(checks.confirmed)}"


def write_ten_minutes(docs: Path, found: Found, checks: Checks) -> tuple[Path, tuple[str, ...]]:
    """Write the page into ``docs``; return its file and what its prose gets wrong by now."""
    filled = fill(template(), found, checks)
    path = docs / NAME
    write_atomically(path, filled.text.encode())
    return path, filled.stale
