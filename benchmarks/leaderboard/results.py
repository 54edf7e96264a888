"""A leaderboard as tables and as ``results.json``: everything follows from the logs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.benchmarks.leaderboard.board_tables import (
    CSV_FILE,
    columns_table,
    harm_table,
    ranking_table,
    write_csv,
)
from dcqcn_gym.benchmarks.leaderboard.bootstrap import hierarchical, scenario_mean
from dcqcn_gym.benchmarks.leaderboard.categories import category_of_entry, ranks_within
from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard
from dcqcn_gym.benchmarks.leaderboard.reading import CHECKPOINTS
from dcqcn_gym.benchmarks.leaderboard.result_file import EntryLine
from dcqcn_gym.benchmarks.leaderboard.risk import GUARDRAILS
from dcqcn_gym.benchmarks.leaderboard.scoring import (
    STAGES,
    EntryScores,
    OnlineCurves,
    StageScores,
    score_entries,
)
from dcqcn_gym.benchmarks.leaderboard.suite import Suite
from dcqcn_gym.core.config import validate
from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.files import read_text
from dcqcn_gym.core.interval import FloatArray
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.results import plain, write_parquet
from dcqcn_gym.runs.results import write_results as write_json_results
from dcqcn_gym.runs.table import Table, count_of
from dcqcn_gym.tuners import TUNERS

POINTS = 26
"""Most points of a curve of utility: means over equal stretches of the budget."""


def write_results(
    board: Leaderboard,
    workers: int | None = None,
    out: Path | None = None,
    scored: Sequence[EntryScores] | None = None,
) -> tuple[list[Table], list[str]]:
    """Write ``results.json`` and ``leaderboard.md``; return the tables and remarks for a terminal.

    ``runs.csv``, and with pyarrow ``runs.parquet``, have a line a run; ``out``, another folder than
    the leaderboard's, gets none. Logs are read by ``workers`` processes, by default one per CPU,
    unless the entries are ``scored``.
    """
    folder = out or board.out
    entries, lines = _in_order(board, scored or score_entries(board, workers))
    tuners = {entry.name: entry.tuner for entry in board.entries}
    details = {
        line.entry: {"summary": _summary(tuners[line.entry]), **line.data()["learning_curve"]}
        for line in lines
        if line.learning_curve
    }
    write_json_results(
        folder,
        "leaderboard",
        [line.model_dump(exclude={"learning_curve"}, exclude_unset=True) for line in lines],
        scenarios=board.suite.scenarios.values(),
        tuners={entry.name: (entry.tuner, entry.tuner_args) for entry in board.entries},
        seeds={"repetitions": list(range(board.repetitions))},
        figures={**_suite(board.suite), **_season(board), "entries": details},
    )  # fmt: skip
    if out is None:
        _write_runs(board, entries, folder)
    tables = [
        t for t in (ranking_table(board, lines), columns_table(lines, details), harm_table(lines))
        if t.rows
    ]  # fmt: skip
    text = "\n\n".join(f"## {t.title}\n\n{t.markdown()}" for t in tables)
    write_atomically(folder / "leaderboard.md", (text + "\n").encode())
    makes = f"bench run --out {board.out} makes them"
    lacking = [(entry.name, count_of(entry.missing, "run")) for entry in entries if entry.missing]
    return tables, [f"{name}: {runs} missing; {makes}" for name, runs in lacking]


def _suite(suite: Suite) -> dict[str, Any]:
    """Return the suite as the pages show it: its protocol, its scenarios' files."""
    return {
        "suite": suite.file.name,
        "suite_digest": suite.digest,
        "protocol": suite.file.model_dump(mode="json"),
        "files": {name: read_text(suite.folder / f"{name}.toml") for name in suite.scenarios},
        "checkpoints": list(CHECKPOINTS),
    }


def _summary(tuner: str) -> str:
    if tuner not in TUNERS.builtin:
        return ""
    try:
        return TUNERS.load(tuner).summary
    except DcqcnGymError:  # an extra is missing here
        return ""


def _season(board: Leaderboard) -> dict[str, Any]:
    """Return what is said of a season: its salt, and whose the entries of others are."""
    if not board.salt:
        return {}
    # what sha256sum says of the file that was drawn
    sha256 = hashlib.sha256(f"{board.salt}\n".encode()).hexdigest()
    others = {name: one.model_dump(exclude={"category"}) for name, one in board.submitted.items()}
    return {"season": {"salt": board.salt, "salt_sha256": sha256, "entries": others}}


def _in_order(
    board: Leaderboard, entries: Sequence[EntryScores]
) -> tuple[list[EntryScores], list[EntryLine]]:
    """Return the entries, the best first, and their lines."""
    entries = sorted(
        entries,
        key=lambda one: -scenario_mean(one.parts["online"].risk) if one.complete else np.inf,
    )
    places = _places(board, entries)
    return entries, [entry_line(board, entry, places.get(entry.name)) for entry in entries]


def _places(board: Leaderboard, entries: Sequence[EntryScores]) -> dict[str, int]:
    """Return ranks by the online R, within each division.

    An entry that has runs missing, or ran less often than the others, has none.
    """
    able = {
        e.name: e.parts["online"].risk
        for e in entries
        if e.complete and e.repetitions == board.repetitions
    }
    return ranks_within({name: category_in(board, name) for name in able}, able)


def category_in(board: Leaderboard, name: str) -> str:
    """Return an entry's category: that of its code, or what the authors of another's say."""
    if name in board.submitted:
        return board.submitted[name].category
    return category_of_entry(next(one for one in board.entries if one.name == name))


def entry_line(board: Leaderboard, entry: EntryScores, rank: int | None = None) -> EntryLine:
    """Return an entry's figures; but for the rank, no other entry counts."""
    line: dict[str, Any] = {
        "entry": entry.name,
        "category": category_in(board, entry.name),
        "missing": entry.missing,
        "repetitions": entry.repetitions,
    }
    names = list(board.suite.scenarios)
    for stage in STAGES if entry.complete else ():
        line[stage] = _stage(names, entry.parts[stage], rank if stage == "online" else None)
    if entry.curve is not None:
        line["wire_bytes"] = float(np.mean(entry.curve.wire_bytes))
        line["learning_curve"] = _curve(entry.curve)
    return validate(plain(line), EntryLine, source=f"{board.out}, entry {entry.name!r}")


def _stage(names: Sequence[str], part: StageScores, rank: int | None) -> dict[str, Any]:
    return {
        "risk": hierarchical(part.risk).model_dump(),
        "score": hierarchical(part.score).model_dump(),
        "utility": float(np.mean(part.utility)),
        "risks": _by_name(names, part.risk),
        "scores": _by_name(names, part.score),
        "classes": _by_name(names, part.classes.mean(axis=1)),
        "harm": {
            "share": part.harm.share,
            "price": _by_name(names, part.harm.by_scenario),
            "beyond": part.harm.beyond(names),
        },
        "rank": rank,
        "beside": {
            name: float(np.nanmean(values)) if np.isfinite(values).any() else None
            for name, values in part.beside.items()
        },
    }


def _curve(curve: OnlineCurves) -> dict[str, Any]:
    """Return S up to each checkpoint, the utility's course and the settings, by scenario."""
    return {
        "anytime": {
            "score": [hierarchical(scores).model_dump() for scores in curve.so_far],
            "scores": _by_name(list(curve.utility), curve.so_far.mean(axis=-1).T),
        },
        "utility": {name: _thinned(c) for name, c in curve.utility.items()},
        "settings": {name: _spread(s) for name, s in curve.recommended.items()},
    }


def _thinned(curves: FloatArray) -> list[float]:
    """Return the mean over the repetitions, in at most :data:`POINTS` stretches."""
    mean = curves.mean(axis=0)
    return [round(float(np.mean(part)), 5) for part in np.array_split(mean, min(POINTS, mean.size))]


def _spread(settings: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return least, median and largest value of each knob; groups of devices apart by a dot."""
    flat = [_flat(setting) for setting in settings]
    return {
        knob: [float(np.min(v)), float(np.median(v)), float(np.max(v))]
        for knob in flat[0]
        if (v := [one[knob] for one in flat if knob in one])
    }


def _flat(setting: Mapping[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, value in setting.items():
        if isinstance(value, Mapping):
            found |= {f"{key}.{knob}": float(x) for knob, x in value.items()}
        else:
            found[key] = float(value)
    return found


def _by_name(names: Sequence[str], values: Any) -> dict[str, Any]:
    """Return what belongs to each scenario; numbers that are not known as None."""
    known = np.array(np.where(np.isfinite(values), values, None), dtype=object).tolist()
    return dict(zip(names, known, strict=True))


def _write_runs(board: Leaderboard, entries: Sequence[EntryScores], out: Path) -> None:
    """Write ``runs.parquet`` where pyarrow is installed; incomplete entries are left out."""
    lines = [plain(line) for entry in entries for line in _runs(board, entry)]
    write_parquet(out / "runs.parquet", lines)
    write_csv(out / CSV_FILE, lines)


def _runs(board: Leaderboard, entry: EntryScores) -> Iterator[dict[str, Any]]:
    """Yield suite, entry, scenario, repetition, S, utility, S so far, wire bytes and changes."""
    if entry.curve is None:
        return
    online, final = entry.parts["online"], entry.parts["final"]
    for i, scenario in enumerate(board.suite.file.scenarios):
        for repetition in range(entry.repetitions):
            so_far = entry.curve.so_far[:, i, repetition]
            at = (i, repetition)
            yield {
                "suite": board.suite.file.name,
                "entry": entry.name,
                "scenario": scenario.name,
                "third": scenario.third,
                "repetition": repetition,
                "risk_online": online.risk[at],
                "risk_final": final.risk[at],
                "score_online": online.score[at],
                "score_final": final.score[at],
                "utility_online": online.utility[at],
                "utility_final": final.utility[at],
                **{
                    f"score_at_{100 * share:.0f}": value
                    for share, value in zip(CHECKPOINTS, so_far, strict=True)
                },
                "wire_bytes": entry.curve.wire_bytes[at],
                **_amounts(entry, at),
                "recommended": entry.curve.recommended[scenario.name][repetition],
            }


def _amounts(entry: EntryScores, at: tuple[int, int]) -> dict[str, Any]:
    """Return every figure of one run beside its score: changes of both stages, and the others."""
    found: dict[str, Any] = {}
    for stage in STAGES:
        part = entry.parts[stage]
        found |= {f"{name}_{stage}": values[at] for name, values in part.beside.items()}
        found |= {
            f"{one.name}, change_{stage}": float(part.changes[at[0], k, at[1]])
            for k, one in enumerate(GUARDRAILS)
        }
    return found
