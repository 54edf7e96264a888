"""The tables of the board's pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.board.protocol import BASELINE
from dcqcn_gym.benchmarks.board.results import TOO_FEW
from dcqcn_gym.benchmarks.board.site.data import SiteRow, SiteSuite
from dcqcn_gym.benchmarks.board.site.figures import scenario_estimate
from dcqcn_gym.core.score import geometric_ratio
from dcqcn_gym.core.toml_text import parse_toml
from dcqcn_gym.runs.table import MISSING, Table, number, with_interval

__all__ = [
    "RANKING",
    "WORDS",
    "RankingLine",
    "best_setting",
    "description",
    "facts",
    "ranking",
    "rows_on",
    "scenarios_of",
    "settings_of",
]


@dataclass(frozen=True)
class RankingLine:
    """A line of the ranking: what filters look at, and its cells."""

    row: SiteRow
    cells: Sequence[str]
    flags: str


RANKING = ("rank", "S final", "slowdown", "flags", "track", "rank in track", "status", "S online",
           "p against default", "better runs", "regret", "U final", "U online",
           "intervals to recover", "wire bytes per interval", "tuner ms per interval",
           "repetitions")  # fmt: skip
WORDS = ("flags", "track", "status", "third")
"""Columns of words, aligned to the left."""


def ranking(suite: SiteSuite) -> list[RankingLine]:
    """Return the lines of a suite's ranking, ranked rows first."""
    return [RankingLine(row, _ranked_cells(suite, row), _flags(row)) for row in suite.rows]


def _flags(row: SiteRow) -> str:
    return ", ".join(f"{_short(name)} ({n})" for name, n in row.flags.items())


def _short(flag: str) -> str:
    """Return a flag's name for a narrow column: ``p99 of mice``."""
    words = flag.replace("99th percentile of slowdown", "p99").replace("mean slowdown", "mean")
    return words.replace(" ", "\u00a0")


def _ranked_cells(suite: SiteSuite, row: SiteRow) -> list[str]:
    rank, in_track = (_rank(ranks.get(row.name)) for ranks in (suite.ranks, suite.in_track))
    where = [row.track, in_track, row.verification.status]
    if not row.complete:
        missing = f"{row.line['missing']} runs missing"
        return [rank, MISSING, MISSING, missing, *where, *[MISSING] * (len(RANKING) - 7)]
    line, final, online = row.line, row.line["final"], row.line["online"]
    default = row.name == BASELINE
    return [
        rank,
        "0" if default else _interval(final["score"]),
        f"{geometric_ratio(final['score']['value']):.2f}",
        _flags(row) or f"none{TOO_FEW if row.too_few else ''}",
        *where,
        "0" if default else _interval(online["score"]),
        _chance(line["p_default"]),
        MISSING if default else f"{100 * final['improvement']:.0f}\u00a0%",
        _form(line["regret"], ".2f"),
        f"{final['utility']:.3f}",
        f"{online['utility']:.3f}",
        _form(line["recovery"], ".1f"),
        number(round(line["wire_bytes"]), 7),
        _form(row.cost.get("tuner_ms_per_interval"), ".2f"),
        str(line["repetitions"]),
    ]


def _rank(band: int | None) -> str:
    return MISSING if band is None else str(band)


def _form(value: float | None, form: str) -> str:
    return MISSING if value is None else format(value, form).replace("-", "−")


def _chance(p: float | None) -> str:
    """Return a p-value; a small one keeps a digit instead of becoming 0.000."""
    return _form(p, ".3f" if p is None or p >= 0.001 else ".0e")


def _interval(score: Mapping[str, float]) -> str:
    text = f"{score['value']:+.3f} [{score['low']:+.3f}, {score['high']:+.3f}]"
    return text.replace("-", "−")


def facts(suite: SiteSuite, row: SiteRow) -> list[tuple[str, str]]:
    """Return what is said first on a row's page, as name and value."""
    cells = dict(zip(RANKING, _ranked_cells(suite, row), strict=True))
    given = _pairs(row.tuner["arguments"])
    found = [
        ("rank", _place(row, cells)),
        ("S final", f"{cells['S final']} (slowdowns {cells['slowdown']} of the default's)"),
        ("S online", cells["S online"]),
        ("against the default", f"p = {cells['p against default']}, "
                                f"better in {cells['better runs']} of the runs"),
        ("regret", f"{cells['regret']} (0: the best known, 1: the default)"),
        ("utility", f"{cells['U final']} final, {cells['U online']} online"),
        ("intervals to recover", cells["intervals to recover"]),
        ("wire bytes per interval", cells["wire bytes per interval"]),
        ("tuner's CPU time", _spent(cells["tuner ms per interval"])),
        ("repetitions", cells["repetitions"]),
        ("safety flags", cells["flags"]),
        ("tuner", f"{row.tuner['tuner']}{f' ({given})' if given else ''}"),
        *([("changes of the scenarios", _pairs(row.changes) or "none")] if row.submitted else []),
        ("code", f"SHA-256 {str(row.tuner['sha256'])[:12]}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in row.versions.items())),
    ]  # fmt: skip
    if not row.complete:
        return [("not complete", cells["flags"]), *found[-3:]]
    return found


def _pairs(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in table.items())


def _place(row: SiteRow, cells: Mapping[str, str]) -> str:
    """Return a row's ranks, or why it has none."""
    if cells["rank"] != MISSING:
        return f"{cells['rank']} of all, {cells['rank in track']} in its track ({row.track})"
    if row.flags:
        return "none: it raises the safety flags below"
    if row.too_few:
        return f"none: it has {row.line['repetitions']} of {row.asked} repetitions"
    return f"none: {'an oracle' if row.track == 'oracle' else row.verification.status}"


def _spent(ms: str) -> str:
    return "not measured" if ms == MISSING else f"{ms} ms per interval"


def scenarios_of(suite: SiteSuite, row: SiteRow) -> Table:
    """Return a row's figures scenario by scenario."""
    columns = ("scenario", "third", "S final", "S online", "regret", "intervals to recover",
               "flags")  # fmt: skip
    lines = []
    for place, entry in enumerate(suite.protocol["scenarios"] if row.complete else ()):
        name = entry["name"]
        lines.append((name, entry["third"], *_on_scenario(row, place, name)))
    return Table(columns, lines, words=2)


def _on_scenario(row: SiteRow, place: int, name: str) -> tuple[str, ...]:
    final, online = (scenario_estimate(row, stage, place) for stage in ("final", "online"))
    return (
        with_interval(final, "+.3f", style="brackets").replace("-", "−"),
        with_interval(online, "+.3f", style="brackets").replace("-", "−"),
        _form(row.details["regret"][name], ".2f"),
        _form(row.details["recovery"].get(name), ".1f"),
        ", ".join(row.line["final"]["flags_by_scenario"].get(name, ())) or "none",
    )


def rows_on(suite: SiteSuite, place: int, name: str) -> Table:
    """Return every row's figures on one scenario, best first."""
    columns = ("row", "track", "S final", "S online", "regret", "intervals to recover", "flags")
    rows = sorted(
        (row for row in suite.rows if row.complete),
        key=lambda row: -float(np.mean(row.scores("final")[place])),
    )
    lines = [(row.name, row.track, *_on_scenario(row, place, name)) for row in rows]
    return Table(columns, lines, words=2)


def settings_of(suite: SiteSuite, row: SiteRow) -> Table:
    """Return what a row recommended, knob by knob, where that is not the default everywhere."""
    columns = ("knob", "default", "median", "least", "largest", "scenarios where it moved")
    base = suite.row(BASELINE)
    if not row.complete or base is None or not base.complete:
        return Table(columns, [])
    own, theirs = row.details["settings"], base.details["settings"]
    knobs = dict.fromkeys(knob for settings in own.values() for knob in settings)
    lines = []
    for knob in knobs:
        spread = [own[name][knob] for name in own if knob in own[name]]
        plain = knob.rpartition(".")[2]
        defaults = {n: theirs[n][plain][1] for n in theirs if plain in theirs[n]}
        moved = [n for n in own if knob in own[n] and own[n][knob] != [defaults.get(n)] * 3]
        if not moved:
            continue
        values = (
            [np.median(list(defaults.values()))] if defaults else [None],
            [np.median([s[1] for s in spread]), min(s[0] for s in spread),
             max(s[2] for s in spread)],
        )  # fmt: skip
        cells = [number(None if v is None else float(v), 6) for some in values for v in some]
        lines.append((knob, *cells, f"{len(moved)} of {len(own)}"))
    return Table(columns, lines)


def description(text: str) -> str:
    """Return what a scenario's file says of itself."""
    return str(parse_toml(text, "scenario").get("description", ""))


def best_setting(suite: SiteSuite, name: str) -> list[tuple[str, str]]:
    """Return the knobs of the best setting known on a scenario that differ from the default's."""
    best = suite.best_known.get(name)
    base = suite.row(BASELINE)
    if best is None or base is None or not base.complete:
        return []
    default = base.details["settings"][name]
    found = []
    for knob, value in _leaves(best["setting"]):
        plain = knob.rpartition(".")[2]
        if default.get(plain, [None] * 3)[1] != value:
            found.append((knob, number(float(value))))
    return found


def _leaves(setting: Mapping[str, Any], before: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for key, value in setting.items():
        if isinstance(value, Mapping):
            found += _leaves(value, f"{before}{key}.")
        else:
            found.append((before + key, float(value)))
    return found
