"""The charts of the leaderboard's pages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from dcqcn_gym.benchmarks.leaderboard.board_tables import worst_words
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE
from dcqcn_gym.benchmarks.leaderboard.site.model import SiteEntry, SiteSuite
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
    """Return R of an entry on a scenario, with its interval over the repetitions."""
    return estimate(entry.risks(stage)[place])


HARM = (
    (0.0, Key("c0", "no harm seen")),
    (0.1, Key("c1", "harm on up to a tenth of the scenarios")),
    (1.0, Key("c6", "harm on more of them")),
)
"""Colours of the ranking: the largest share of scenarios with harm, and what is said of it."""

LEAST = -1.0
"""What is below lies at the edge of the ranking's figure, so that the best can be told apart."""


def ranking(suite: SiteSuite) -> Markup:
    """Draw the online R of every entry with its interval, best first.

    The colour tells harm, the size of the dot the CPU time of a decision. A panel per division.
    """
    panels: dict[str, list[SiteEntry]] = {}
    for entry in suite.entries:
        if entry.complete and entry.believed:
            panels.setdefault(entry.division, []).append(entry)
    every = [entry.line.stage("online").risk for some in panels.values() for entry in some]
    bounds = [max(v, LEAST) for one in every for v in (one.low, one.high)]
    x = linear_axis([np.array([0.0, *bounds])])
    drawn = []
    for division, entries in sorted(panels.items(), key=lambda one: one[0] != "tuners"):
        title = "R online, 95 % interval: right of 0 is better than the default"
        panel = Panel(
            title if division == "tuners" else f"{_DIVISIONS[division]}, ranked apart", x,
            _named([_numbered(suite, entry) for entry in entries]), 10 + 19 * len(entries),
            wide_names=True,
        )  # fmt: skip
        panel.rule(x=0.0)
        for _, key in HARM:  # their order in the legend
            panel.values(key, np.zeros(0), np.zeros(0))
        for place, entry in enumerate(entries):
            _risk(suite, entry, place, panel)
        drawn.append(panel)
    return Chart(drawn).html() if drawn else Markup()


_DIVISIONS = {"simulating": "Tuners that simulate", "scheme": "Other hardware"}


def _numbered(suite: SiteSuite, entry: SiteEntry) -> str:
    place = suite.ranks.get(entry.name)
    return entry.name if place is None else f"{entry.name} · {place}"


def _risk(suite: SiteSuite, entry: SiteEntry, place: int, panel: Panel) -> None:
    online = entry.line.stage("online")
    key = next(key for most, key in HARM if online.harm.share <= most)
    panel.span(key, online.risk.low, online.risk.high, place)
    ms = entry.milliseconds
    tip = (
        f"{entry.name}: R {online.risk}, S {online.score.value:+.3f}, harm on "
        f"{100 * online.harm.share:.0f} % of the scenarios, at worst {worst_words(online.harm)}"
        f"{'' if ms is None else f', {ms:.2f} ms CPU a decision'}"
    )
    link = f"entries/{page_name([suite.name, entry.name])}"
    size = 9 + 3 * math.log10(1 + 100 * (ms or 0.0))
    panel.dot(key, max(online.risk.value, LEAST), place, tip, link=link, size=round(size, 1))


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
    """Draw final R (full, with interval) and online R (hollow) along named lines."""
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
        panel.dot(key, online.mean, place, f"{name}: online R {online.mean:+.3f}", hollow=True)
        panel.dot(key, final.mean, place, f"{name}: final R {final.mean:+.3f}")
    return Chart([panel]).html()


def by_scenario(suite: SiteSuite, entry: SiteEntry) -> Markup:
    """Draw the gains and losses of an entry, scenario by scenario."""
    given = {
        name: (scenario_estimate(entry, "final", i), scenario_estimate(entry, "online", i))
        for i, name in enumerate(suite.scenarios)
    }
    names = [name.replace("-", "\u2011") for name in suite.scenarios]
    title = (
        "R on every scenario: final (full, 95 % interval), online (hollow); right of 0 is better"
    )
    return _dots(names, given, title)


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
    title = "R of every entry: final (full, 95 % interval), online (hollow); right of 0 is better"
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
