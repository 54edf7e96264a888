"""What the front page shows of a suite: S against harm, the ranking, the heat map, the files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup

from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE
from dcqcn_gym.benchmarks.leaderboard.result_file import Stage
from dcqcn_gym.benchmarks.leaderboard.site import figures, tables
from dcqcn_gym.benchmarks.leaderboard.site.model import SiteEntry, SiteSuite
from dcqcn_gym.benchmarks.leaderboard.tiers import CSV_FILE, shortened, worst_scenario
from dcqcn_gym.core.compressed_files import packed_beside, read_packed
from dcqcn_gym.report.axes import linear_axis
from dcqcn_gym.report.chart import Chart, Key, Panel
from dcqcn_gym.report.render import page_name
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.table import MISSING

_ROLES = {"static": "c1", "online": "c0", "pre-trained": "c2", "scheme": "c3", "oracle": "c5"}
"""Colours of the categories."""
_COLUMNS = ("rank in tier", "S final", "harm", "worst scenario", "S online", "rank online", "p99.9",
           "fairness", "changes", "category", "status")  # fmt: skip
_DOWNLOADS: dict[str, Callable[[str], str]] = {
    "results.json": lambda text: json.dumps(json.loads(text), separators=(",", ":")) + "\n",
    CSV_FILE: shortened,
}
"""Files to fetch, and how they are written: the same of a committed leaderboard as from logs."""
FULL = 0.7
"""S at which a cell of the heat map has its full colour: half or twice the slowdown."""


@dataclass(frozen=True)
class TableCell:
    """A cell of the heat map: its colour's share, its words, and whether it is beyond a limit."""

    part: int
    better: bool
    words: str
    harm: bool


@dataclass(frozen=True)
class Front:
    """All that the front page holds of a suite."""

    suite: SiteSuite
    columns: Sequence[str]
    lines: Sequence[tables.RankingLine]
    chart: Markup
    ranks: Markup
    heat: Sequence[tuple[SiteEntry, Sequence[TableCell]]]
    files: Sequence[tuple[str, str]]


def front(suite: SiteSuite, out: Path) -> Front:
    """Return it, and copy the files to fetch into ``out/data``."""
    complete = [entry for entry in suite.entries if entry.complete]
    columns, lines = _ranking(suite)
    return Front(
        suite, columns, lines, _harm_chart(suite, complete) if complete else Markup(),
        figures.ranks(suite),
        [(entry, _cells(suite, entry)) for entry in complete if entry.name != BASELINE],
        _files(suite, out),
    )  # fmt: skip


def _ranking(suite: SiteSuite) -> tuple[Sequence[str], list[tables.RankingLine]]:
    """Return columns and lines, ranked entries first; figures come first, flags are folded."""
    return _COLUMNS, [
        tables.RankingLine(entry, _ranking_cells(suite, entry), tables.flags_text(entry))
        for entry in suite.entries
    ]


def _ranking_cells(suite: SiteSuite, entry: SiteEntry) -> list[str]:
    rank = suite.ranks.get(entry.name, suite.in_category.get(entry.name))
    line, final, online = entry.line, entry.line.final, entry.line.online
    if final is None or online is None:
        return [MISSING, MISSING, f"{line.missing} runs missing", *[MISSING] * 6,
                entry.category, entry.said]  # fmt: skip
    beside = final.beside
    tier = final.harm.tier
    return [
        MISSING if rank is None else str(rank),
        _signed(str(final.score)),
        tier if tier == "none" else
        f"{tier}: {100 * final.harm.share:.0f}\u00a0%, worst {final.harm.worst:.1f}",
        _signed(f"{worst_scenario(final):+.2f}"),
        _signed(str(online.score)),
        MISSING if online.rank is None else str(online.rank),
        *(MISSING if beside.get(key) is None else format(beside[key], form) for key, form in
          (("p999", ".1f"), ("fairness", ".3f"), ("setting_changes", ".0f"))),
        entry.category,
        entry.said,
    ]  # fmt: skip


def _signed(text: str) -> str:
    return text.replace("-", "−")


def harm_share(entry: SiteEntry) -> float:
    """Return the share of the scenarios on which an entry is beyond any limit, in percent."""
    return 100 * entry.line.stage("final").harm.share


def best_trades(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the places of (harm, S) that no other beats in both, by harm."""
    found: list[int] = []
    for i in sorted(range(len(points)), key=lambda i: (points[i][0], -points[i][1])):
        if not found or points[i][1] > points[found[-1]][1]:
            found.append(i)
    return found


def _harm_chart(suite: SiteSuite, entries: Sequence[SiteEntry]) -> Markup:
    """Draw S against harm: a dot an entry, which links to its page; a line through the best."""
    known = [entry for entry in entries if entry.believed] or list(entries)
    points = [(harm_share(e), e.line.stage("final").score.value) for e in known]
    x, y = (np.array(side) for side in zip(*points, strict=True))
    panel = Panel(
        "Final S against harm: up is better, left is safer",
        linear_axis([x, np.zeros(1)], margin=0.08, wanted=9),
        linear_axis([y, np.zeros(1)], margin=0.12), 280, "scenarios beyond a limit, %",
    )  # fmt: skip
    panel.rule(y=0.0)
    best = best_trades(points)
    panel.line(Key("default", "best for their harm"), x[best], y[best])
    for entry, (harm, score) in zip(known, points, strict=True):
        tip = f"{entry.name} ({entry.category}): S {score:+.3f}, {harm:.0f} % beyond a limit"
        link = f"entries/{page_name([suite.name, entry.name])}"
        panel.dot(Key(_ROLES[entry.category], entry.category), harm, score, tip, link=link)
    for place, i in enumerate(best):  # by turns, as neighbours may be close
        panel.words(points[i][0], points[i][1], known[i].name, below=place % 2 == 0)
    return Chart([panel]).html()


def _cells(suite: SiteSuite, entry: SiteEntry) -> list[TableCell]:
    final, found = entry.line.stage("final"), []
    for name in suite.scenarios:
        score, said = float(np.mean(final.scores[name])), _beyond(final, name)
        words = _signed(f"{score:+.2f}") + (f"; {said}" if said else "")
        part = round(100 * min(1.0, abs(score) / FULL))
        found.append(TableCell(part, score > 0, f"{entry.name} on {name}: {words}", bool(said)))
    return found


def _beyond(final: Stage, name: str) -> str:
    """Return in words what is beyond its limit on a scenario."""
    found = final.harm.beyond.get(name, {})
    return ", ".join(f"{figure} {value:.1f} limits beyond" for figure, value in found.items())


def _files(suite: SiteSuite, out: Path) -> list[tuple[str, str]]:
    """Copy what is to be fetched of the suite's first folder; return name and place."""
    source = next(entry.folder for entry in suite.entries if not entry.submitted)
    found = []
    for name, made in _DOWNLOADS.items():
        path = source / name
        if not path.exists() and packed_beside(path) is None:
            continue
        place = f"data/{page_name([suite.name, name]).removesuffix('.html')}"
        (out / "data").mkdir(exist_ok=True)
        write_atomically(out / place, made(read_packed(path)).encode())
        found.append((name, place))
    return found
