"""What lies in a folder, as trackers know it: runs with parameters, figures by step, and an end.

One reader for all of them. An event log gives a point for every interval; logs of what it
recommends on held-out seeds become figures at its end (``held_out/...``). A training gives a point
for every row of its learning curve.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.core.sums import mean
from dcqcn_gym.core.utility import Terms
from dcqcn_gym.report.metrics import metrics_of
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run

Figures: TypeAlias = dict[str, float]

TERMS = tuple(one.name for one in fields(Terms))
_NO_FIGURES = ("i", "start_ps", "end_ps", "utility")


@dataclass(frozen=True)
class Point:
    """Figures at a step; ``ps`` is the simulated time, 0 where there is none."""

    step: int
    ps: int
    figures: Figures


@dataclass(frozen=True)
class TrackedRun:
    """One run: its name, what was asked for, its points, and what it came to.

    ``key`` is the same for the same run under the same name: exporting it again can replace it.
    """

    name: str
    key: str
    parameters: Mapping[str, str | int | float]
    points: list[Point] = field(default_factory=list)
    final: Figures = field(default_factory=dict)
    answer: str = ""
    """The sentence that a session ends with."""

    @property
    def steps(self) -> int:
        """The step of the figures at the end: one behind the last point."""
        return self.points[-1].step + 1 if self.points else 0


def tracked_runs(folder: Path) -> Iterator[TrackedRun]:
    """Yield every run below a folder, in the order of names.

    Raises RunError for a log that is damaged, and where there is none.
    """
    if not folder.is_dir():
        raise RunError(f"{folder} is no folder; expected one that a command wrote")
    logs = sorted(path for path in folder.rglob("*.jsonl") if _is_log(path))
    trainings = sorted(folder.rglob("train.json"))
    if not logs and not trainings:
        raise RunError(f"{folder} holds no event log and no training; nothing can be tracked")
    judges: dict[Path, list[Path]] = {}
    for path in logs:
        judges.setdefault(_judged(path), [])
        if _judged(path) != path:
            judges[_judged(path)].append(path)
    for path, held_out in sorted(judges.items()):
        yield _of_log(folder, path, held_out)
    for path in trainings:
        yield _of_training(folder, path)


def _is_log(path: Path) -> bool:
    with path.open("rb") as file:
        return b'"kind":"run"' in file.read(100)


def _judged(path: Path) -> Path:
    """Return the log of the run that a log on held-out seeds judges; the same path for others."""
    if path.parent.name == "evaluation" and (found := re.fullmatch(r"(.+)-seed\d+", path.stem)):
        if found[1] == "recommended":
            return path.parents[1] / "run.jsonl"
        reference = path.parents[1] / "reference" / f"{found[1]}.jsonl"
        return reference if reference.exists() else path.with_name(f"{found[1]}.jsonl")
    if found := re.fullmatch(r"(seed\d+)-held-out\d+", path.stem):
        return path.with_name(f"{found[1]}.jsonl")
    if found := re.fullmatch(r"final-(\d+)", path.stem):
        return path.with_name(f"online-{found[1]}.jsonl")
    return path


def _of_log(folder: Path, path: Path, held_out: list[Path]) -> TrackedRun:
    name = (Path(folder.resolve().name) / path.relative_to(folder).with_suffix("")).as_posix()
    final: Figures = {}
    judged = [_known(metrics_of(Series.of(read_run(log)))) for log in held_out]
    for key in sorted({key for figures in judged for key in figures}):
        final[f"held_out/{key}"] = mean([one[key] for one in judged if key in one])
    if not path.exists():  # a setting that was only judged
        return _run(name, read_run(held_out[0]).header, final=final)
    log = read_run(path)
    series = Series.of(log)
    if log.intervals:
        final |= {f"run/{key}": value for key, value in _known(metrics_of(series)).items()}
    points = [Point(line["i"], line["end_ps"], _figures(line)) for line in series.records]
    answer = _answer(path.with_name("best.json")) if path.name == "run.jsonl" else ""
    return _run(name, log.header, points, final, answer)


def _run(
    name: str,
    header: Mapping[str, Any],
    points: list[Point] | None = None,
    final: Figures | None = None,
    answer: str = "",
) -> TrackedRun:
    said = json.dumps([name, header], sort_keys=True)
    key = hashlib.sha256(said.encode()).hexdigest()[:16]
    return TrackedRun(name, key, _parameters(header), points or [], final or {}, answer)


def _parameters(header: Mapping[str, Any]) -> dict[str, str | int | float]:
    """Return what was asked for; of a scenario its name, of other tables every value."""
    found: dict[str, str | int | float] = {}
    for key, value in header.items():
        if key in ("schema", "kind"):
            continue
        if key == "scenario" and isinstance(value, Mapping):
            found[key] = str(value.get("name"))
        elif key == "scenarios" and isinstance(value, list):
            found[key] = ", ".join(str(one.get("name", one)) for one in value)
        elif isinstance(value, Mapping):
            found |= {f"{key}/{k}": _plain(v) for k, v in value.items()}
        else:
            found[key] = _plain(value)
    return found


def _plain(value: object) -> str | int | float:
    return value if isinstance(value, str | int | float) else json.dumps(value)


def _figures(line: Mapping[str, Any]) -> Figures:
    """Return the numbers of an interval: utility and terms, the setting, and what was measured."""
    found: Figures = {}
    if not line.get("idle"):
        found["utility"] = line["utility"]
        found |= {
            f"term/{name}": value for name, value in zip(TERMS, line.get("terms", ()), strict=False)
        }
    for name, value in line.get("setting", {}).items():
        if isinstance(value, Mapping):  # one of several groups of devices
            found |= {f"setting/{name}/{knob}": of for knob, of in value.items()}
        else:
            found[f"setting/{name}"] = value
    for name, value in line.items():
        if name not in _NO_FIGURES:
            found[f"interval/{name}"] = value
    return _known(found)


def _known(figures: Mapping[str, Any]) -> Figures:
    """Return what is a finite number."""
    return {
        name: float(value)
        for name, value in figures.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def _answer(best: Path) -> str:
    if not best.exists():
        return ""
    found = parse_json(read_file(best))
    return str(found["answer"]["title"]) if "answer" in found else ""


def _of_training(folder: Path, header: Path) -> TrackedRun:
    """Return a training; rows of a start replace those of an earlier one from there on."""
    place = header.parent
    name = (Path(folder.resolve().name) / place.relative_to(folder)).as_posix()
    rows: dict[int, Figures] = {}
    for path in [*sorted(place.glob("progress-*.csv")), place / "curve.csv"]:
        if not path.exists():
            continue
        own = list(_rows(path))
        begin = own[0][0] if own else 0
        rows = {step: row for step, row in rows.items() if step < begin} | dict(own)
    points = [Point(step, 0, row) for step, row in rows.items()]
    found = parse_json(read_file(header))
    asked = {key: value for key, value in found.items() if key != "command"}
    return _run(name, asked, points)


def _rows(path: Path) -> Iterator[tuple[int, Figures]]:
    """Yield step and figures of a learning curve; seconds of this machine are left out."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            step = row.get("time/total_timesteps") or row.get("decisions")
            if not step:  # a torn last line
                continue
            figures = {
                key: float(text)
                for key, text in row.items()
                if text and not key.startswith("time/") and key not in ("decisions", "scenario")
            }
            yield int(float(step)), _known(figures)
