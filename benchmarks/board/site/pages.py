"""Writes the pages: ranking, a page per row and per scenario, protocol, how to join, changelog."""

from __future__ import annotations

import hashlib
import inspect
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dcqcn_gym
from dcqcn_gym.benchmarks.board.protocol import BASELINE
from dcqcn_gym.benchmarks.board.site import figures, tables
from dcqcn_gym.benchmarks.board.site.data import SiteRow, SiteSuite, load_suites
from dcqcn_gym.benchmarks.board.site.history import update_history
from dcqcn_gym.benchmarks.board.tracks import TRACKS
from dcqcn_gym.benchmarks.board.verification import STATUSES
from dcqcn_gym.core.errors import DcqcnGymError, RunError
from dcqcn_gym.core.verdict import LIMITS
from dcqcn_gym.report.render import page_name, render
from dcqcn_gym.runs.log import write_atomically
from dcqcn_gym.runs.results import tuner_digest
from dcqcn_gym.tuners import TUNERS
from dcqcn_gym.tuners.base import Tuner

__all__ = ["write_site"]

FOLDERS = ("rows", "scenarios", "code")
"""What a build makes anew; everything else in the folder is left alone."""


def write_site(folders: Sequence[Path], out: Path, day: str, verdicts: Path | None = None) -> Path:
    """Write the site of some folders of results; return the path of its first page.

    ``day`` (YYYY-MM-DD) dates what is new in the changelog of rows, ``verdicts`` is the folder of
    those on submissions. Raises ConfigError or
    RunError; before everything could be read nothing is written.
    """
    suites = load_suites(folders, verdicts)
    try:
        for name in FOLDERS:
            shutil.rmtree(out / name, ignore_errors=True)
            (out / name).mkdir(parents=True)
    except OSError as error:
        raise RunError(f"--out {out} cannot be written: {error.strerror}") from error
    history = update_history(out, suites, day)
    for suite in suites:
        for row in suite.rows:
            _write_row(suite, row, out)
        for place, name in enumerate(suite.scenarios):
            _write_scenario(suite, place, name, out)
    shared = {"suites": suites, "tracks": TRACKS, "statuses": STATUSES, "up": ""}
    boards = [(suite, tables.ranking(suite)) for suite in suites]
    _page(out / "index.html", "site_index.html.j2", boards=boards, columns=tables.RANKING, **shared)
    _page(out / "protocol.html", "site_protocol.html.j2", limits=LIMITS, **shared)
    _page(out / "join.html", "site_join.html.j2", **shared)
    _page(out / "changelog.html", "site_changelog.html.j2", history=history, **shared)
    return out / "index.html"


def _page(path: Path, template: str, **values: Any) -> None:
    write_atomically(
        path, render(template, version=dcqcn_gym.__version__, words=tables.WORDS, **values)
    )


def _write_row(suite: SiteSuite, row: SiteRow, out: Path) -> None:
    drawn = {}
    if row.complete and row.name != BASELINE:
        drawn = {
            "scenarios": figures.by_scenario(suite, row),
            "profile": figures.profile(suite, row),
            "anytime": figures.anytime(suite, row),
        }
    if row.complete:
        drawn["utility"] = figures.utility(suite, row)
    _page(
        out / "rows" / page_name([suite.name, row.name]),
        "site_row.html.j2",
        suite=suite,
        row=row,
        status=STATUSES[row.verification.status],
        code=_write_code(row, out),
        facts=tables.facts(suite, row),
        scenarios=tables.scenarios_of(suite, row),
        settings=tables.settings_of(suite, row),
        figures=drawn,
        up="../",
    )


def _write_scenario(suite: SiteSuite, place: int, name: str, out: Path) -> None:
    _page(
        out / "scenarios" / page_name([suite.name, name]),
        "site_scenario.html.j2",
        suite=suite,
        name=name,
        entry=suite.protocol["scenarios"][place],
        text=suite.files[name],
        sentence=tables.description(suite.files[name]),
        best=suite.best_known.get(name),
        best_setting=tables.best_setting(suite, name),
        rows=tables.rows_on(suite, place, name),
        figure=figures.rows_on_scenario(suite, place)
        if any(r.complete for r in suite.rows)
        else "",
        up="../",
    )


def _write_code(row: SiteRow, out: Path) -> str | None:
    """Copy the source of a built-in tuner, if it is the code that ran, or of a submission.

    Return its place.
    """
    if row.code:
        return _kept(
            row.name,
            "\n".join(f"# {n}\n\n{c.decode(errors='replace')}" for n, c in row.code.items()),
            out,
        )
    name, given = str(row.tuner["tuner"]), row.tuner["arguments"]
    if name not in TUNERS.builtin or tuner_digest(name, given) != row.tuner["sha256"]:
        return None
    try:
        text = _source(name)
    except (DcqcnGymError, OSError):
        return None
    return _kept(name, text, out)


def _kept(name: str, text: str, out: Path) -> str:
    place = f"code/{page_name([name, _short(text)]).removesuffix('.html')}.txt"
    write_atomically(out / place, text.encode())
    return place


def _source(name: str) -> str:
    """Return the files that hold a tuner's class and those it inherits from."""
    found = TUNERS.load(name)
    files = [Path(inspect.getfile(part)) for part in found.__mro__ if issubclass(part, Tuner)]
    return "\n".join(
        f"# {path.name}\n\n{path.read_text(encoding='utf-8')}" for path in dict.fromkeys(files)
    )


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
