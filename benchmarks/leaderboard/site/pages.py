"""Writes the pages: ranking, one per entry and scenario, protocol, how to join."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dcqcn_gym
from dcqcn_gym.benchmarks.leaderboard.categories import CATEGORIES
from dcqcn_gym.benchmarks.leaderboard.protocol import BASELINE
from dcqcn_gym.benchmarks.leaderboard.risk import GUARDRAILS
from dcqcn_gym.benchmarks.leaderboard.site import figures, tables
from dcqcn_gym.benchmarks.leaderboard.site.data import load_suites
from dcqcn_gym.benchmarks.leaderboard.site.front import front
from dcqcn_gym.benchmarks.leaderboard.site.model import SHOWN_STATUSES, SiteEntry, SiteSuite
from dcqcn_gym.core.errors import RunError
from dcqcn_gym.report.render import page_name, render
from dcqcn_gym.runs.atomic_file import write_atomically

FOLDERS = ("entries", "scenarios", "data")
"""What a build makes anew; everything else in the folder is left alone."""


def write_site(
    folders: Sequence[Path],
    out: Path,
    verdicts: Path | None = None,
    leave_out: Callable[[str], object] | None = None,
) -> Path:
    """Write the site of some folders of results; return the path of its first page.

    ``verdicts`` is the folder of those on submissions, ``leave_out`` as
    :func:`~.data.load_suites` takes it. Raises ConfigError or RunError; before everything could be
    read nothing is written.
    """
    suites = load_suites(folders, verdicts, leave_out)
    try:
        for name in FOLDERS:
            shutil.rmtree(out / name, ignore_errors=True)
            (out / name).mkdir(parents=True)
    except OSError as error:
        raise RunError(f"--out {out} cannot be written: {error.strerror}") from error
    for suite in suites:
        for entry in suite.entries:
            _write_entry(suite, entry, out)
        for place, name in enumerate(suite.scenarios):
            _write_scenario(suite, place, name, out)
    shared = {"suites": suites, "categories": CATEGORIES, "statuses": SHOWN_STATUSES, "up": ""}
    fronts = [front(suite, out) for suite in suites]
    _page(out / "index.html", "site_index.html.j2", fronts=fronts, **shared)
    _page(out / "protocol.html", "site_protocol.html.j2", guardrails=GUARDRAILS, **shared)
    _page(out / "join.html", "site_join.html.j2", **shared)
    return out / "index.html"


def _page(path: Path, template: str, **values: Any) -> None:
    write_atomically(
        path, render(template, version=dcqcn_gym.__version__, words=tables.WORDS, **values)
    )


def _write_entry(suite: SiteSuite, entry: SiteEntry, out: Path) -> None:
    drawn = {}
    if entry.complete and entry.name != BASELINE:
        drawn = {
            "scenarios": figures.by_scenario(suite, entry),
            "anytime": figures.anytime(suite, entry),
        }
    if entry.complete:
        drawn["utility"] = figures.utility(suite, entry)
    _page(
        out / "entries" / page_name([suite.name, entry.name]),
        "site_entry.html.j2",
        suite=suite,
        entry=entry,
        status=SHOWN_STATUSES[entry.status],
        where=tables.where(suite, entry),
        facts=tables.facts(suite, entry),
        beside=tables.verified_beside(entry),
        scenarios=tables.scenarios_of(suite, entry),
        settings=tables.settings_of(suite, entry),
        figures=drawn,
        up="../",
    )


def _write_scenario(suite: SiteSuite, place: int, name: str, out: Path) -> None:
    _page(
        out / "scenarios" / page_name([suite.name, name]),
        "site_scenario.html.j2",
        suite=suite,
        name=name,
        scenario=suite.protocol["scenarios"][place],
        text=suite.files[name],
        sentence=tables.description(suite.files[name]),
        entries=tables.entries_on(suite, place, name),
        figure=figures.entries_on_scenario(suite, place)
        if any(r.complete for r in suite.entries)
        else "",
        up="../",
    )
