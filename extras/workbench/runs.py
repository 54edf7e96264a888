"""Reads a folder of runs: sessions, comparisons, sweeps, studies and simulations, from their files.

The answer is the one that a run's files hold (``best.json``, ``results.json``). What cannot be read
is listed with its reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import quote as quoted

from dcqcn_gym.core.answer import IN_SERVICE, name_of
from dcqcn_gym.core.errors import ConfigError, DcqcnGymError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.groups import setting_of
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.extras.workbench.changes import KnobChange, changes
from dcqcn_gym.extras.workbench.figures import Figures, figures_of
from dcqcn_gym.extras.workbench.simulated import simulated_series
from dcqcn_gym.report.data import ReportData, load_report_data, recorded_scenario
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run

DEEPEST = 4
"""Folders inside each other that are looked into."""
STUDIES = ("compare", "sweep", "study")
_MOST_BYTES = 64 * 2**20
_PAGES = ("report.html", "compare.html", "difference.svg", "sweep.svg")


@dataclass(frozen=True)
class TriedSetting:
    """A setting of a run, on the runs with it; ``changes`` are against the setting in service."""

    name: str
    traffic: str
    figures: Figures
    judged: str = ""
    changes: tuple[KnobChange, ...] = ()
    unknown: str = ""
    """Why ``changes`` are not known; empty where they are."""


@dataclass(frozen=True)
class ShownRun:
    """A session, a scenario of a comparison, or a simulation, with every setting that it tried."""

    name: str
    kind: str
    scenario: str = ""
    tuner: str = ""
    seed: str = ""
    intervals: str = ""
    answer: Mapping[str, Any] | None = None
    baseline: str = ""
    """The setting in service, by its name among ``settings``."""
    settings: tuple[TriedSetting, ...] = ()
    page: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def action(self) -> str:
        """The answer in a word, with the setting to deploy."""
        action = _text(self.answer or {}, "action")
        return f"{action} {_text(self.answer or {}, 'setting')}" if action == "deploy" else action


class Reader:
    """Reads runs; what has not changed since it was last read is not read again."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[object, list[ShownRun]]] = {}

    def runs(self, folder: Path) -> list[ShownRun]:
        """Return what lies in a folder, in the order of names; ConfigError where nothing does."""
        if not folder.is_dir():
            raise ConfigError(f"{folder} is no folder; expected one that holds runs")
        found = [run for place, kind in _places(folder) for run in self._read(folder, place, kind)]
        if not found:
            raise ConfigError(
                f"{folder} holds no run, comparison, sweep or simulation; "
                f"`dcqcn-gym tune --out {folder / 'mine'}` makes one"
            )
        return found

    def _read(self, folder: Path, place: Path, kind: str) -> list[ShownRun]:
        stamp = _stamp(place)
        if self._known.get(place, (None,))[0] != stamp:
            name = place.relative_to(folder).as_posix()
            link = next((page for page in _PAGES if (place / page).is_file()), "")
            page = quoted(f"{name}/{link}") if link else ""
            self._known[place] = stamp, [*_READERS[kind](place, name, page)]
        return self._known[place][1]


def _stamp(place: Path) -> object:
    files = (path for path in sorted(place.rglob("*")) if path.suffix in (".json", ".jsonl"))
    return [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files]


def _places(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folders of runs with their kind; logs inside a run are no runs."""
    for place, folders, files in os.walk(folder):
        here = Path(place)
        kind = _kind(here, set(files))
        if kind:
            yield here, kind
        deep = len(here.relative_to(folder).parts) >= DEEPEST
        folders[:] = [] if deep or kind else sorted(folders)


def _kind(here: Path, names: set[str]) -> str:
    if names & {"best.json", "run.jsonl"}:
        return "tune"
    if {"summary.json", "intervals.csv"} <= names:
        return "simulate"
    known = {"compare.html": "compare", "sweep.csv": "sweep"}
    found = next((kind for name, kind in known.items() if name in names), "")
    said = _text(_json(here / "study.json"), "kind") if "study.json" in names else ""
    return found or (said if said in STUDIES else "")


def _session(place: Path, name: str, page: str) -> Iterator[ShownRun]:
    best = _json(place / "best.json")
    try:
        data = load_report_data(place)
    except DcqcnGymError as error:
        left_out = (str(error),)
        yield ShownRun(name, "tune", **_asked(best), answer=_answer(best), left_out=left_out,
                       page=page)  # fmt: skip
        return
    header = data.run.header
    asked = _asked({**header, **best})
    if not data.finished:
        asked["intervals"] = f"{len(data.run)} of {asked['intervals']}"
    answer = _answer(best) or (None if data.finished else {"action": "not finished"})
    scenario = recorded_scenario(header)
    groups = _groups(data)
    yield ShownRun(
        name, "tune", **asked, answer=answer, baseline=data.baseline, page=page,
        settings=tuple(
            _tried(of, traffic, runs, scenario, answer) for of, traffic, runs in groups if runs[0]
        ),
        left_out=tuple(data.notes),
    )  # fmt: skip


def _groups(data: ReportData) -> list[tuple[str, str, Sequence[Series]]]:
    """Return name, traffic and runs of every setting of a session, then its search."""
    tuner = f"{data.run.header.get('tuner', 'tuner')} while it searched"
    if data.tried:
        settings = [(name, data.judged_on, runs) for name, runs in data.tried.items()]
    else:
        settings = [(name, "while searching", [run]) for name, run in data.references.items()]
    return [*settings, (tuner, "while searching", [data.run])]


class _Asked(TypedDict):
    scenario: str
    tuner: str
    seed: str
    intervals: str


def _asked(table: Mapping[str, Any]) -> _Asked:
    return _Asked(
        scenario=_text(table, "scenario"),
        tuner=_text(table, "tuner"),
        seed=_text(table, "seed"),
        intervals=_text(table, "intervals"),
    )


def _tried(
    name: str,
    traffic: str,
    runs: Sequence[Series],
    scenario: Scenario | None,
    answer: Mapping[str, Any] | None,
    samples: Sequence[Sequence[Series]] = (),
) -> TriedSetting:
    seeds = f"{traffic}, {len(runs)} runs" if len(runs) > 1 else traffic
    judged = (answer or {}).get("tried", {}).get(name, {}).get("text", "")
    found, unknown = _changes((runs[0].end or {}).get("recommended"), scenario)
    figures = figures_of(samples or [[run] for run in runs])
    return TriedSetting(name, seeds, figures, str(judged), found, unknown)


def _changes(setting: object, scenario: Scenario | None) -> tuple[tuple[KnobChange, ...], str]:
    """Return the changes against the setting in service, or why they are not known."""
    if scenario is None:
        return (), "the log's scenario cannot be read"
    if not isinstance(setting, Mapping):
        return (), "the log has not come to its end, which holds the setting"
    try:
        return tuple(changes(setting_of(setting), scenario, scenario.initial_setting())), ""
    except DcqcnGymError as error:
        return (), str(error)


def _study(place: Path, name: str, page: str) -> Iterator[ShownRun]:
    """Yield the scenarios of a comparison, sweep or study: logs in CASE/ENTRY/."""
    study, results = _json(place / "study.json"), _json(place / "results.json")
    kind = _text(study, "kind") or _text(results, "kind") or "compare"
    parts = study.get("parts", {})
    cases = {path.parts[len(place.parts)] for path in place.rglob("*/*/*.jsonl")}
    answers = results.get("figures", {}).get("answers", {})
    for case in sorted(cases) or [""]:
        said = parts.get("case", {}).get(case)
        scenario = None if said is None else recorded_scenario({"scenario": said})
        answer = answers.get(case) or (None if results else {"action": "not finished"})
        left_out: list[str] = []
        entries = sorted({log.parent for log in (place / case).rglob("*.jsonl")}) if case else []
        settings = [_entry(entry, scenario, answer, left_out) for entry in entries]
        seeds = parts.get("seed", {})
        yield ShownRun(
            f"{name} {case}" if len(cases) > 1 else name, kind, case or _scenarios(results),
            f"{len(entries)} {'points' if kind == 'sweep' else 'entries'}" if entries else "",
            f"{len(seeds)} seeds" if seeds else "", _text(study.get("same", {}), "intervals"),
            answer, _text(answer or {}, "baseline"), tuple(one for one in settings if one), page,
            tuple(left_out),
        )  # fmt: skip


def _scenarios(results: Mapping[str, Any]) -> str:
    return ", ".join(results.get("scenarios", {}))


def _entry(
    folder: Path,
    scenario: Scenario | None,
    answer: Mapping[str, Any] | None,
    left_out: list[str],
) -> TriedSetting | None:
    """Return an entry from its logs on held-out seeds, or where there are none of its search."""
    held_out = sorted(folder.glob("seed*-held-out*.jsonl"))
    samples: dict[str, list[Series]] = {}
    for log in held_out or sorted(folder.glob("*.jsonl")):
        try:
            series = Series.of(read_run(log))
        except DcqcnGymError as error:
            left_out.append(f"{folder.name}/{log.name}: {error}")
            continue
        if series.end is None or not series.records:
            left_out.append(f"{folder.name}/{log.name}: the log has not come to its end")
            continue
        samples.setdefault(log.stem.partition("-")[0], []).append(series)
    if not samples:
        return None
    traffic = "held-out seeds" if held_out else "the same traffic"
    every = [run for sample in samples.values() for run in sample]
    return _tried(folder.name, traffic, every, scenario, answer, list(samples.values()))


def _simulation(place: Path, name: str, page: str) -> Iterator[ShownRun]:
    summary, same = _json(place / "summary.json"), _json(place / "study.json").get("same", {})
    scenario = recorded_scenario(same) if isinstance(same, Mapping) else None
    left_out, settings = [], []
    try:
        series = simulated_series(place)
        found, unknown = _changes(summary.get("setting"), scenario)
        settings = [
            TriedSetting("simulated", "one run", figures_of([[series]]), "", found, unknown)
        ]
    except (DcqcnGymError, ValueError) as error:
        left_out = [str(error)]
    asked = _asked(summary)
    yield ShownRun(name, "simulate", **asked, settings=tuple(settings), page=page,
                   left_out=tuple(left_out))  # fmt: skip


_READERS = {"tune": _session, "simulate": _simulation, **dict.fromkeys(STUDIES, _study)}


def in_service(run: ShownRun, setting: TriedSetting) -> bool:
    """Return whether a setting of a run is the one in service."""
    return setting.name == run.baseline


def called(setting: TriedSetting) -> str:
    """Return what a setting is called, as in answers; entries of comparisons by their names."""
    return "your setting" if setting.name == IN_SERVICE else name_of(setting.name)


def _answer(best: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found = best.get("answer")
    return found if isinstance(found, Mapping) else None


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
