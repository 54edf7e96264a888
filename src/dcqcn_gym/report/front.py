"""A front page over a folder of runs: what lies there, what each came to, with links."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote as quoted

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.report.render import render
from dcqcn_gym.runs.whole_file import write_atomically

PAGE = "index.html"
DEEPEST = 4
"""Folders inside each other that are looked into."""
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class ListedRun:
    """A row of the page: one run, comparison or simulation."""

    name: str
    kind: str
    scenario: str
    tuner: str
    seed: str
    intervals: str
    action: str
    why: str
    page: str = ""


def write_front(folder: Path) -> tuple[Path, int]:
    """Write the front page of a folder; return its path and how many runs it lists."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; expected one that holds runs")
    entries = list(_entries(folder))
    if not entries:
        raise ConfigError(f"{folder} holds no run, comparison or simulation")
    path = folder / PAGE
    choices = {
        key: sorted({getattr(entry, key) for entry in entries} - {""})
        for key in ("kind", "scenario", "action")
    }
    title = folder.resolve().name
    write_atomically(path, render("front.html.j2", title=title, entries=entries, choices=choices))
    return path, len(entries)


def _entries(folder: Path) -> Iterator[ListedRun]:
    """Yield what lies in a folder, in the order of names; logs inside a run are no runs."""
    for place, folders, files in os.walk(folder):
        here, names = Path(place), set(files)
        within = here.relative_to(folder)
        found = _entry(here, within, names)
        if found is not None:
            yield found
        deep = len(within.parts) >= DEEPEST
        folders[:] = [] if deep or found is not None else sorted(folders)


def _entry(here: Path, within: Path, names: set[str]) -> ListedRun | None:
    known = ("report.html", "compare.html", "difference.svg", "sweep.svg")
    page = next((page for page in known if page in names), "")
    link = quoted((within / page).as_posix()) if page else ""
    if "best.json" in names:
        return _tuned(str(within), _json(here / "best.json"), link)
    if "run.jsonl" in names:
        return _unfinished(str(within), here / "run.jsonl", link)
    if "compare.html" in names:
        return _compared(str(within), _json(here / "results.json"), link)
    if "sweep.csv" in names:
        return _swept(str(within), _json(here / "results.json"), link)
    if {"summary.json", "intervals.csv"} <= names:
        said = _json(here / "summary.json")
        return ListedRun(
            str(within), "simulate", _text(said, "scenario"), "", _text(said, "seed"),
            _text(said, "intervals"), "", "", link,
        )  # fmt: skip
    return None


def _tuned(name: str, best: Mapping[str, Any], link: str) -> ListedRun:
    said = best.get("answer")
    said = said if isinstance(said, Mapping) else {}
    action = _text(said, "action") or "not known"
    if action == "deploy":
        action = f"deploy {_text(said, 'setting')}"
    return ListedRun(
        name, "tune", _text(best, "scenario"), _text(best, "tuner"), _text(best, "seed"),
        _text(best, "intervals"), action, _text(said, "why"), link,
    )  # fmt: skip


def _unfinished(name: str, log: Path, link: str) -> ListedRun:
    """Return the row of a run that goes on, or was cut short."""
    try:
        lines = read_file(log).splitlines()
        header = parse_json(lines[0])
    except (DcqcnGymError, ValueError, IndexError):
        lines, header = [b""], {}
    header = header if isinstance(header, Mapping) else {}
    scenario = header.get("scenario")
    called = _text(scenario, "name") if isinstance(scenario, Mapping) else ""
    done = f"{len(lines) - 1} of {_text(header, 'intervals')}"
    return ListedRun(
        name, "tune", called, _text(header, "tuner"), _text(header, "seed"), done,
        "not finished", "", link,
    )  # fmt: skip


def _compared(name: str, results: Mapping[str, Any], link: str) -> ListedRun:
    scenarios, tuners = (
        list(found) if isinstance(found := results.get(key), Mapping) else []
        for key in ("scenarios", "tuners")
    )
    return ListedRun(
        name, "compare", ", ".join(scenarios), f"{len(tuners)} tuners", "", "", "", "", link
    )


def _swept(name: str, results: Mapping[str, Any], link: str) -> ListedRun:
    scenarios, knobs = results.get("scenarios"), results.get("knobs")
    called = ", ".join(scenarios) if isinstance(scenarios, Mapping) else ""
    over = ", ".join(map(str, knobs)) if isinstance(knobs, list) else ""
    return ListedRun(name, "sweep", called, over, "", "", "", "", link)


def _json(path: Path) -> Mapping[str, Any]:
    """Return a file's table; an empty one where it cannot be read."""
    try:
        found = parse_json(read_file(path, _MOST_BYTES))
    except (DcqcnGymError, ValueError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if isinstance(value, Mapping):
        value = value.get("name", "")
    return str(value) if isinstance(value, str | int | float) else ""
