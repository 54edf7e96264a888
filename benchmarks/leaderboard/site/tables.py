"""The tables of the leaderboard's pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.board_tables import change_words, worst_words
from dcqcn_gym.benchmarks.leaderboard.bootstrap import Score
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE
from dcqcn_gym.benchmarks.leaderboard.result_file import HarmLine
from dcqcn_gym.benchmarks.leaderboard.site.figures import scenario_estimate
from dcqcn_gym.benchmarks.leaderboard.site.model import SiteEntry, SiteSuite
from dcqcn_gym.core.score import geometric_ratio
from dcqcn_gym.core.toml_text import parse_toml
from dcqcn_gym.core.verdict import in_words
from dcqcn_gym.runs.table import MISSING, Table, number, with_interval

WORDS = ("category", "status", "traffic", "worst harm", "harm on it")
"""Columns of words, aligned to the left."""
NOTHING = 0.01
"""R below which nothing is said of a scenario."""
_ON_SCENARIO = ("R online", "R final", "S online", "harm on it")


def _form(value: float | None, form: str) -> str:
    return MISSING if value is None else format(value, form).replace("-", "−")


def _interval(score: Score) -> str:
    return str(score).replace("-", "−")


def facts(suite: SiteSuite, entry: SiteEntry) -> list[tuple[str, str]]:
    """Return what is said first on an entry's page, as name and value."""
    given = _pairs(entry.tuner["arguments"])
    code = [
        ("tuner", f"{entry.tuner['tuner']}{f' ({given})' if given else ''}"),
        *([("changes of the scenarios", _pairs(entry.changes) or "none")]
          if entry.submitted else []),
        ("code", f"SHA-256 {str(entry.tuner['sha256'])[:12]}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in entry.versions.items())),
    ]  # fmt: skip
    line, final, online = entry.line, entry.line.final, entry.line.online
    if final is None or online is None:
        return [("not complete", f"{line.missing} runs missing"), *code]
    ms = _form(entry.milliseconds, ".2f")
    return [
        ("rank", _place(suite, entry)),
        ("R online", f"{_interval(online.risk)}: what it gains, the price of its harm taken off"),
        *([("R on the verifier's seeds", _interval(entry.verification.risks["fresh"]))]
          if entry.verification and "fresh" in entry.verification.risks else []),
        ("S online", f"{_interval(online.score)} (slowdowns "
                     f"{geometric_ratio(online.score.value):.2f} of the default's)"),
        ("R final", _interval(final.risk)),
        ("S final", _interval(final.score)),
        ("better than the default", f"in {_better(entry)}\u00a0% of the runs"),
        ("harm", _harm(suite, online.harm)),
        ("utility", f"{final.utility:.3f} final, {online.utility:.3f} online"),
        ("wire bytes per interval", number(round(line.wire_bytes or 0.0), 7)),
        ("tuner's CPU time", "not measured" if ms == MISSING else f"{ms} ms a decision"),
        ("repetitions", str(line.repetitions)),
        *code,
    ]  # fmt: skip


def _pairs(table: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in table.items())


def _place(suite: SiteSuite, entry: SiteEntry) -> str:
    """Return an entry's rank, or why it has none."""
    if entry.name in suite.ranks:
        among = "" if entry.division == "tuners" else f" of its division ({entry.division})"
        return f"{suite.ranks[entry.name]}{among}"
    if entry.too_few:
        return f"none: it has {entry.line.repetitions} of {entry.asked} repetitions"
    if entry.category == "oracle":
        return "none: an oracle"
    if entry.believed and not entry.convicted:
        return "none: only seasons have ranks"
    return f"none: {entry.said}"


def _better(entry: SiteEntry) -> int:
    return round(100 * float(np.mean(entry.scores("online") > 0)))


def _harm(suite: SiteSuite, harm: HarmLine) -> str:
    seen = f"on {len(harm.beyond)} of {len(suite.scenarios)} scenarios"
    return f"{seen}, at worst {worst_words(harm)}" if harm.beyond else "none seen"


def where(suite: SiteSuite, entry: SiteEntry) -> str:
    """Return in one sentence where an entry gains most and where it loses."""
    if entry.line.online is None:
        return ""
    means = dict(zip(suite.scenarios, entry.risks("online").mean(axis=1), strict=True))
    order = sorted(means, key=lambda name: -means[name])

    def words(names: Sequence[str]) -> str:
        return in_words([f"{name} ({means[name]:+.2f})".replace("(-", "(−") for name in names])

    best = [name for name in order[:2] if means[name] > NOTHING]
    lost = [name for name in order[::-1] if means[name] < -NOTHING]
    gains = f"Gains most on {words(best)}" if best else "Gains nowhere"
    if not lost:
        return f"{gains}; loses nowhere."
    return f"{gains}; loses on {len(lost)} of {len(order)} scenarios, most on {words(lost[:2])}."


def verified_beside(entry: SiteEntry) -> Table:
    """Return what an entry and the reference entries did on its verifier's traffic, best first."""
    columns = ("entry", "R online", "S online", "scenarios with harm")
    beside = {} if entry.verification is None else entry.verification.beside
    found = sorted(beside.items(), key=lambda one: -one[1].value)
    rows = [
        (name, _interval(of), _form(of.gain, "+.3f"), f"{100 * of.harm:.0f}\u00a0%")
        for name, of in found
    ]
    return Table(columns, rows)


def scenarios_of(suite: SiteSuite, entry: SiteEntry) -> Table:
    """Return an entry's figures scenario by scenario."""
    lines = []
    for place, scenario in enumerate(suite.protocol["scenarios"] if entry.complete else ()):
        name = scenario["name"]
        lines.append((name, scenario["third"], *_on_scenario(entry, place, name)))
    return Table(("scenario", "traffic", *_ON_SCENARIO), lines, words=2)


def _on_scenario(entry: SiteEntry, place: int, name: str) -> tuple[str, ...]:
    online, final = (scenario_estimate(entry, stage, place) for stage in ("online", "final"))
    beyond = entry.line.stage("online").harm.beyond.get(name, {})
    return (
        with_interval(online, "+.3f", style="brackets").replace("-", "−"),
        with_interval(final, "+.3f", style="brackets").replace("-", "−"),
        _form(float(np.mean(entry.scores("online")[place])), "+.3f"),
        ", ".join(change_words(*one) for one in beyond.items()) or "none",
    )


def entries_on(suite: SiteSuite, place: int, name: str) -> Table:
    """Return every entry's figures on one scenario, best first."""
    entries = sorted(
        (entry for entry in suite.entries if entry.complete),
        key=lambda entry: -float(np.mean(entry.risks("online")[place])),
    )
    lines = [(entry.name, entry.category, *_on_scenario(entry, place, name)) for entry in entries]
    return Table(("entry", "category", *_ON_SCENARIO), lines, words=2)


def settings_of(suite: SiteSuite, entry: SiteEntry) -> Table:
    """Return what an entry recommended, knob by knob, where that is not the default everywhere."""
    columns = ("knob", "median default", "median", "least", "largest", "scenarios where it moved")
    base = suite.entry(BASELINE)
    if not entry.complete or base is None or not base.complete:
        return Table(columns, [])
    own, theirs = entry.details["settings"], base.details["settings"]
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
