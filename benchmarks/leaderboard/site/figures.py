"""The charts of the leaderboard's pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE
from dcqcn_gym.benchmarks.leaderboard.site.model import SiteEntry, SiteSuite
from dcqcn_gym.comparison.figures import profile_chart
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.core.statistics import Estimate, estimate
from dcqcn_gym.report.axes import Axis, linear_axis, named_axis
from dcqcn_gym.report.chart import Chart, Key, Panel
from dcqcn_gym.report.render import page_name

SHOWN = 3
"""Other entries beside the one that a page is about."""


def _others(suite: SiteSuite, entry: SiteEntry) -> list[SiteEntry]:
    """Return the entries that an entry is drawn beside: the best ones, and the experts' setting."""
    first = [
        one for one in suite.entries if one.complete and one.name not in (entry.name, BASELINE)
    ]
    expert = [one for one in first if one.name == "expert"]
    return list({one.name: one for one in [*first[: SHOWN - 1], *expert]}.values())


def _role(entry: SiteEntry, place: int) -> str:
    return entry.name if entry.name in ("default", "expert") else f"c{1 + place}"


def scenario_estimate(entry: SiteEntry, stage: str, place: int) -> Estimate:
    """Return S of an entry on a scenario, with its interval over the repetitions."""
    return estimate(entry.scores(stage)[place])


def profile(suite: SiteSuite, entry: SiteEntry) -> Markup:
    """Draw on which share of the runs S reached a level, beside other entries."""
    drawn = [entry, *_others(suite, entry)]
    gains = {one.name: np.sort(one.scores("final"), axis=None) for one in drawn}
    return profile_chart(gains, "Share of the runs, %, with at least this final S", "S").html()


def anytime(suite: SiteSuite, entry: SiteEntry) -> Markup:
    """Draw S of the online run, had it ended after a share of the budget."""
    x = 100 * np.array(suite.checkpoints)
    drawn = [entry, *(one for one in _others(suite, entry))]
    curves = {}
    for one in drawn:
        points = one.details["anytime"]["score"]
        curves[one.name] = [
            np.array([p[key] for p in points], dtype=np.float64) for key in ("value", "low", "high")
        ]
    value, low, high = curves[entry.name]
    every = [low, high, *(c[0] for c in curves.values()), np.zeros(1)]
    panel = Panel(
        "S so far, mean over the scenarios (band: 95 % interval)",
        linear_axis([x, np.zeros(1)], exact=True), linear_axis(every), 190, "% of the budget",
        follow=True,
    )  # fmt: skip
    panel.rule(y=0.0)
    ours = Key("tuned", entry.name)
    panel.band(ours, x, low, high, "band")
    panel.line(ours, x, value)
    for place, one in enumerate(drawn[1:]):
        panel.line(Key(_role(one, place), one.name), x, curves[one.name][0])
    return Chart([panel]).html()


def _named(names: Sequence[str]) -> Axis:
    """Return an axis of names without the middle of long ones: a telephone has no room."""
    cut = [name if len(name) <= 24 else f"{name[:12]}…{name[-11:]}" for name in names]
    return named_axis(cut, down=True)


def _dots(names: Sequence[str], given: Mapping[str, tuple[Estimate, Estimate]], title: str,
          own: str = "tuned") -> Markup:  # fmt: skip
    """Draw final S (full, with interval) and online S (hollow) along named lines."""
    means = [
        np.array([v for v in (f.mean, f.low, f.high, o.mean) if v is not None])
        for f, o in given.values()
    ]
    x = linear_axis([*means, np.zeros(1)], margin=0.08)
    y = _named(names)
    panel = Panel(title, x, y, 16 + 20 * len(names), wide_names=True)
    panel.rule(x=0.0)
    for place, (name, (final, online)) in enumerate(given.items()):
        role = name if name in ("default", "expert") else own
        key = Key(role, role if role != own else "tuners")
        if final.low is not None and final.high is not None:
            panel.stem(key, (final.low, place), (final.high, place))
        panel.dot(key, online.mean, place, f"{name}: online S {online.mean:+.3f}", hollow=True)
        panel.dot(key, final.mean, place, f"{name}: final S {final.mean:+.3f}")
    return Chart([panel]).html()


def by_scenario(suite: SiteSuite, entry: SiteEntry) -> Markup:
    """Draw the gains and losses of an entry, scenario by scenario."""
    given = {
        name: (scenario_estimate(entry, "final", i), scenario_estimate(entry, "online", i))
        for i, name in enumerate(suite.scenarios)
    }
    names = [name.replace("-", "\u2011") for name in suite.scenarios]
    title = (
        "S on every scenario: final (full, 95 % interval), online (hollow); right of 0 is better"
    )
    return _dots(names, given, title)


def ranks(suite: SiteSuite) -> Markup:
    """Draw what ranks tell apart: a dot an entry with its interval, a bar over each rank's entries.

    A panel per tier of harm, and one of schemes. Nothing without ranks of two entries.
    """
    panels = []
    places = {**suite.in_category, **suite.ranks}
    for title, entries in _tiers([e for e in suite.entries if e.name in places]):
        entries.sort(key=lambda e: (places[e.name], -e.line.stage("final").score.value))
        scores = [entry.line.stage("final").score for entry in entries]
        every = [np.array([one.low, one.high]) for one in scores]
        panel = Panel(
            title, linear_axis([*every, np.zeros(1)], margin=0.08),
            _named([entry.name for entry in entries]), 16 + 22 * len(entries),
            wide_names=True,
        )  # fmt: skip
        panel.rule(x=0.0)
        for place, (entry, score) in enumerate(zip(entries, scores, strict=True)):
            rank = places[entry.name]
            panel.line(Key("default", "95 % interval"), np.array([score.low, score.high]),
                       np.array([place, place]))  # fmt: skip
            if place == 0 or rank != places[entries[place - 1].name]:
                last = max(i for i, one in enumerate(entries) if places[one.name] == rank)
                bar = Key("c3", "not told apart from its best")
                panel.stem(bar, (score.value, place - 0.25), (score.value, last + 0.25))
            link = f"entries/{page_name([suite.name, entry.name])}"
            tip = f"rank {rank}, {entry.name}: S {score}"
            panel.dot(Key("tuned", "S final"), score.value, place, tip, link=link)
        panels.append(panel)
    return Chart(panels).html() if panels else Markup()


def _tiers(entries: Sequence[SiteEntry]) -> list[tuple[str, list[SiteEntry]]]:
    """Return titles and entries that were ranked together, of two entries or more."""
    found: dict[str, list[SiteEntry]] = {}
    for entry in entries:
        what = "Schemes" if entry.category == "scheme" else "Ranks by S"
        title = f"{what}, harm: {entry.line.stage('final').harm.tier}"
        found.setdefault(title, []).append(entry)
    return [(title, some) for title, some in found.items() if len(some) > 1]


def entries_on_scenario(suite: SiteSuite, place: int) -> Markup:
    """Draw every entry on one scenario."""
    entries = [entry for entry in suite.entries if entry.complete]
    given = {
        entry.name: (
            scenario_estimate(entry, "final", place),
            scenario_estimate(entry, "online", place),
        )
        for entry in entries
    }
    title = "S of every entry: final (full, 95 % interval), online (hollow); right of 0 is better"
    return _dots(list(given), given, title)


def utility(suite: SiteSuite, entry: SiteEntry) -> Markup:
    """Draw the utility while tuning on every scenario, mean over the repetitions."""
    base = suite.entry(BASELINE)
    curves = entry.details["utility"]
    theirs = base.details["utility"] if base is not None and base.complete else {}
    shown = [np.array(c) for some in (curves, theirs) for c in some.values()]
    budget = float(suite.protocol["intervals"])
    x, y = linear_axis([np.array([0.0, budget])], exact=True, wanted=3), linear_axis(shown)
    panels = []
    for name, values in curves.items():
        panel = Panel(name, x, y, 90, "interval", follow=True)
        if name in theirs and entry.name != BASELINE:
            panel.line(Key("default", "default"), *_placed(theirs[name], budget))
        key = Key("default", "default") if entry.name == BASELINE else Key("tuned", entry.name)
        panel.line(key, *_placed(values, budget))
        panels.append(panel)
    return Chart(panels, 4).html()


def _placed(values: Sequence[float], budget: float) -> tuple[FloatArray, FloatArray]:
    y = np.array(values, dtype=np.float64)
    return (np.arange(len(y)) + 0.5) * budget / len(y), y
