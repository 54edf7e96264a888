"""What the front page shows of a suite: one sentence, one figure, the ranking, maps, files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup

from dcqcn_gym.benchmarks.leaderboard.board_tables import (
    change_words,
    worst_words,
)
from dcqcn_gym.benchmarks.leaderboard.bootstrap import Score
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE
from dcqcn_gym.benchmarks.leaderboard.site import figures
from dcqcn_gym.benchmarks.leaderboard.site.model import SiteEntry, SiteSuite
from dcqcn_gym.core.compressed_files import read_packed
from dcqcn_gym.core.score import CLASSES, geometric_ratio
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.verdict import in_words
from dcqcn_gym.report.render import page_name
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.results import write_parquet
from dcqcn_gym.runs.table import MISSING, Table, as_csv

_COLUMNS = ("rank", "R online", "S online", "slowdown", "harm", "worst harm", "R final",
           "CPU ms a decision", "CPU s a run", "category", "status")  # fmt: skip
FULL = 0.7
"""R at which a cell of the heat map has its full colour: half or twice the slowdown."""


@dataclass(frozen=True)
class TableCell:
    """A cell of the heat map: its colour's share, its words, and whether harm is seen."""

    part: int
    better: bool
    words: str
    harm: bool


@dataclass(frozen=True)
class Front:
    """All that the front page holds of a suite."""

    suite: SiteSuite
    sentence: str
    columns: Sequence[str]
    lines: Sequence[tuple[SiteEntry, Sequence[str]]]
    chart: Markup
    kinds: Table
    heat: Sequence[tuple[SiteEntry, Sequence[TableCell]]]
    files: Sequence[tuple[str, str]]


def front(suite: SiteSuite, out: Path) -> Front:
    """Return it, and write the files to fetch into ``out/data``."""
    complete = [entry for entry in suite.entries if entry.complete]
    lines = [(entry, _cells_of(suite, entry)) for entry in suite.entries]
    return Front(
        suite, sentence(suite), _COLUMNS, lines, figures.ranking(suite), _kinds(suite, complete),
        [(entry, _cells(suite, entry)) for entry in complete if entry.name != BASELINE],
        _files(suite, lines, out),
    )  # fmt: skip


def sentence(suite: SiteSuite) -> str:
    """Return which tuner to try first, what could go wrong, and what cannot be told apart."""
    known = [
        entry for entry in suite.entries
        if entry.complete and entry.believed and entry.division == "tuners"
        and entry.category != "oracle" and entry.name != BASELINE
    ]  # fmt: skip
    if not known:
        return "No entry beside the default is complete."
    found = {entry.name: entry.line.stage("online").risk for entry in known}
    better = [entry for entry in known if found[entry.name].low > 0]
    worse = count(one.high < 0 for one in found.values())
    same = len(known) - len(better) - worse
    rest = f"{same} of {len(known)} cannot be told from the default, {worse} are worse."
    if not better:
        return f"Nothing gains more than chance would: {rest}"
    best = better[0]
    risk, harm = found[best.name], best.line.stage("online").harm
    where = f"harm is seen on {len(harm.beyond)} of {len(suite.scenarios)} scenarios"
    told = f"{where}, at worst {worst_words(harm)}" if harm.beyond else "no harm is seen anywhere"
    rank = suite.ranks.get(best.name)
    beside = [e.name for e in better[1:] if rank and suite.ranks.get(e.name) == rank]
    also = f" {in_words(beside)} cannot be told from it." if beside else ""
    return (
        f"Try {best.name} first: it gains {_percent(risk)} while it tunes, the price of its harm "
        f"taken off; {told}.{also} {rest}"
    )


def _percent(risk: Score) -> str:
    value, low, high = (100 * (1 - geometric_ratio(v)) for v in (risk.value, risk.low, risk.high))
    return f"{value:.0f} % [{low:.0f}, {high:.0f}]"


def _cells_of(suite: SiteSuite, entry: SiteEntry) -> list[str]:
    rank = suite.ranks.get(entry.name)
    line, final, online = entry.line, entry.line.final, entry.line.online
    if final is None or online is None:
        return [MISSING, f"{line.missing} runs missing", *[MISSING] * 7, entry.category, entry.said]
    runs = entry.cost.get("runs")
    return [
        MISSING if rank is None else str(rank),
        _signed(str(online.risk)),
        _signed(f"{online.score.value:+.3f}"),
        f"{geometric_ratio(online.score.value):.2f}",
        f"{100 * online.harm.share:.0f}\u00a0%",
        worst_words(online.harm),
        _signed(str(final.risk)),
        MISSING if entry.milliseconds is None else f"{entry.milliseconds:.2f}",
        f"{entry.cost['cpu_s'] / runs:.2f}" if runs else MISSING,
        entry.category,
        entry.said,
    ]


def _signed(text: str) -> str:
    return text.replace("-", "−")


def _kinds(suite: SiteSuite, entries: Sequence[SiteEntry]) -> Table:
    """Return the online R by kind of traffic, and the gain by class of sizes."""
    thirds = [one["third"] for one in suite.protocol["scenarios"]]
    kinds = list(dict.fromkeys(thirds))
    columns = ("entry", *(f"R {kind} ({thirds.count(kind)})" for kind in kinds),
               *(f"gain of {one.name}" for one in CLASSES))  # fmt: skip
    lines = []
    for entry in entries:
        risks = entry.risks("online").mean(axis=1)
        by_kind = [float(np.mean(risks[[third == kind for third in thirds]])) for kind in kinds]
        classes = np.array(list(entry.line.stage("online").classes.values()), dtype=np.float64)
        by_class = [
            float(np.nanmean(column)) if np.isfinite(column).any() else None for column in classes.T
        ]
        cells = [MISSING if v is None else _signed(f"{v:+.2f}") for v in (*by_kind, *by_class)]
        lines.append((entry.name, *cells))
    return Table(columns, lines)


def _cells(suite: SiteSuite, entry: SiteEntry) -> list[TableCell]:
    online, found = entry.line.stage("online"), []
    for name in suite.scenarios:
        risk = float(np.mean(online.risks[name]))
        beyond = online.harm.beyond.get(name, {})
        said = ", ".join(change_words(guardrail, change) for guardrail, change in beyond.items())
        words = _signed(f"{risk:+.2f}") + (f"; {said}" if said else "")
        part = round(100 * min(1.0, abs(risk) / FULL))
        found.append(TableCell(part, risk > 0, f"{entry.name} on {name}: {words}", bool(said)))
    return found


def _files(
    suite: SiteSuite, lines: Sequence[tuple[SiteEntry, Sequence[str]]], out: Path
) -> list[tuple[str, str]]:
    """Write what is to be fetched; return name and place.

    The ranking as CSV, with pyarrow as Parquet, and the results of the suite's leaderboard.
    """
    (out / "data").mkdir(exist_ok=True)
    found = []

    def place(name: str) -> Path:
        at = f"data/{page_name([suite.name, name]).removesuffix('.html')}"
        found.append((name, at))
        return out / at

    columns, rows = ("entry", *_COLUMNS), [(entry.name, *cells) for entry, cells in lines]
    write_atomically(place("ranking.csv"), as_csv([columns, *rows]))
    write_parquet(place("ranking.parquet"), [dict(zip(columns, r, strict=True)) for r in rows])
    if not (out / found[-1][1]).exists():
        found.pop()
    source = next(entry.folder for entry in suite.entries if not entry.submitted)
    # the same of a committed leaderboard as from logs
    results = json.dumps(json.loads(read_packed(source / "results.json")), separators=(",", ":"))
    write_atomically(place("results.json"), f"{results}\n".encode())
    return found
