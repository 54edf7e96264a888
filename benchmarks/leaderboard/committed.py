"""The leaderboard as committed data: results, and what every run was, without the logs.

``bench report --keep`` writes a folder of a few MB for a leaderboard whose logs have gigabytes:

- ``results.json.xz`` and ``leaderboard.md``, from which ``bench site`` and the docs are made;
- ``study.json``: the suite's digest, the entries, and a season's salt;
- ``runs.jsonl.xz``: a line for the first repetition of every scenario, with the
  digests of both logs and the setting it recommended: whole for the default, for other entries what
  is not the default's on the same scenario;
- ``cost.json``, where the leaderboard's seconds are known.

``bench run --check`` makes runs of it again and compares their digests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.cost import COST_FILE, write_cost
from dcqcn_gym.benchmarks.leaderboard.log_digests import run_digest
from dcqcn_gym.benchmarks.leaderboard.protocol import (
    BASELINE,
    KIND,
    Attempt,
    Leaderboard,
    open_leaderboard,
)
from dcqcn_gym.benchmarks.leaderboard.results import write_results
from dcqcn_gym.benchmarks.leaderboard.salted_choices import choose
from dcqcn_gym.benchmarks.leaderboard.scoring import STAGES, EntryScores, score_entries
from dcqcn_gym.core.compressed_files import PACKED_SMALL, pack_small, read_packed
from dcqcn_gym.core.errors import RunError, UnknownNameError, quote
from dcqcn_gym.core.files import parse_json, read_file, read_text
from dcqcn_gym.core.version import RELEASE
from dcqcn_gym.runs.atomic_file import write_atomically
from dcqcn_gym.runs.claim import STUDY_FILE
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.runs.log import MOST_LOG_BYTES, write_json
from dcqcn_gym.runs.results import read_results
from dcqcn_gym.runs.study import held_study

SHOWN = 4
"""Entries in the table of the docs."""
RESULTS_FILE = "results.json"
RUNS_FILE = "runs.jsonl"
STORED = 1
"""Repetitions whose digests are stored: as many as ``rerun`` makes again."""


def write_committed(board: Leaderboard, out: Path, workers: int | None = None) -> list[str]:
    """Write the committed form of whole entries into ``out``; return those that are left out.

    The same leaderboard gives the same bytes, but for ``cost.json``. Raises RunError if ``out``
    holds a leaderboard of another suite, or the default has runs missing: without them no entry has
    a score.
    """
    _refuse_other_content(board, out)
    scored = {one.name: one for one in score_entries(board, workers) if one.complete}
    whole = [entry for entry in board.entries if entry.name in scored]
    if not whole:
        raise RunError(
            f"{board.out}: runs of {BASELINE!r} are missing, and every score is against them; "
            f"bench run --out {board.out} makes them, or --repetitions N keeps the first ones alone"
        )
    out.mkdir(parents=True, exist_ok=True)
    committed = replace(board, entries=whole)
    # first: a killed command can be given again
    _write_study(committed, out)
    write_results(committed, out=out, scored=list(scored.values()))
    for path in out.glob("*.parquet"):  # their bytes are those of a version of pyarrow
        path.unlink()
    lines = {entry.name: _lines(board, entry, scored[entry.name]) for entry in whole}
    found = lines.pop(BASELINE)
    default = {line["scenario"]: line["recommended"] for line in found}
    for of in lines.values():
        found += _without_default(of, default)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in found)
    _write_packed(out / RUNS_FILE, text)
    results = read_results(out / RESULTS_FILE, "leaderboard").data()
    _write_packed(out / RESULTS_FILE, json.dumps(results, separators=(",", ":")) + "\n")
    if not any(cost.runs for cost in write_cost(committed, out)):
        (out / COST_FILE).unlink()
    return [entry.name for entry in board.entries if entry not in whole]


def _write_study(board: Leaderboard, out: Path) -> None:
    """Write the leaderboard's own ``study.json`` into ``out``, with what is kept of it alone."""
    held = held_study(board.out, KIND)
    assert held is not None
    kept = {
        "entry": {entry.name: held.parts["entry"][entry.name] for entry in board.entries},
        "scenario": held.parts["scenario"],
        "repetition": {str(i): None for i in range(board.repetitions)},
    }
    plan = {**held.plan, "suite": board.suite.given}  # a season's may have joined the package
    kept_study = held.model_copy(update={"parts": kept, "plan": plan})
    write_json(out / STUDY_FILE, kept_study.model_dump())


def _write_packed(path: Path, text: str) -> None:
    """Write a text as a packed file, and remove the plain one."""
    write_atomically(path.with_name(path.name + PACKED_SMALL), pack_small(text.encode()))
    path.unlink(missing_ok=True)


def _refuse_other_content(board: Leaderboard, out: Path) -> None:
    """Raise RunError rather than replace a leaderboard of another suite, or what is none."""
    if not (out / STUDY_FILE).exists():
        if out.is_dir() and any(out.iterdir()):
            raise RunError(
                f"{out} holds files and no leaderboard, and what is committed would replace "
                "some; give another --out"
            )
        return
    held = held_study(out, KIND)
    found = held.same if held is not None else {}
    if found.get("suite_digest") != board.suite.digest:
        raise RunError(
            f"{out} holds a leaderboard of suite {quote(found.get('suite'))}, {board.out} one of "
            f"{board.suite.file.name!r}; give another --out, or remove that folder first"
        )


def _lines(board: Leaderboard, entry: Entry, scored: EntryScores) -> list[dict[str, Any]]:
    """Return a line per stored run of a whole entry."""
    assert scored.curve is not None
    return [
        {
            "entry": entry.name,
            "scenario": attempt.scenario.name,
            "repetition": attempt.repetition,
            **{
                stage: run_digest(read_file(path, MOST_LOG_BYTES))
                for stage, path in zip(STAGES, attempt.logs, strict=True)
            },
            "recommended": scored.curve.recommended[attempt.scenario.name][attempt.repetition],
        }
        for attempt in board.attempts(entry)
        if attempt.repetition < STORED
    ]


def _without_default(
    lines: Sequence[dict[str, Any]], default: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield lines of an entry, each with those knobs alone that are not the default's."""
    for line in lines:
        base = default[line["scenario"]]
        moved = {k: v for k, v in line["recommended"].items() if base.get(k) != v}
        yield {**line, "recommended": moved}


def ranking_text(folder: Path) -> str:
    """Return the first lines of a committed ranking as Markdown, from ``leaderboard.md``."""
    title, table = read_text(folder / "leaderboard.md").split("\n\n")[:2]
    lines = table.splitlines()[: 2 + SHOWN]
    return "\n".join([title.removeprefix("## "), "", *lines, ""])


@dataclass(frozen=True)
class Committed:
    """A committed leaderboard: its runs by entry, scenario and repetition, and its entries."""

    board: Leaderboard
    runs: Mapping[tuple[str, str, int], Mapping[str, Any]]

    @property
    def names(self) -> list[str]:
        """The entries that can be run again by name: all but the default."""
        return [entry.name for entry in self.board.entries if entry.name != BASELINE]


def open_committed(folder: Path) -> Committed:
    """Return what ``report --keep`` wrote; ConfigError or RunError if it is something else."""
    board = open_leaderboard(folder)
    path = folder / RUNS_FILE
    text = read_packed(path)
    try:
        lines = [parse_json(line) for line in text.splitlines()]
        runs = {(line["entry"], line["scenario"], int(line["repetition"])): line for line in lines}
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path} holds no runs of a leaderboard: {quote(str(error))}") from None
    for attempt in board.attempts():
        if attempt.repetition < STORED and _key(attempt) not in runs:
            raise RunError(
                f"{path} has no line for {attempt.title}; bench report --keep writes it anew"
            )
    return Committed(board, runs)


def rerun(
    committed: Committed,
    out: Path,
    entry: str | None = None,
    **how: Any,
) -> tuple[str, int, list[str]]:
    """Make what is stored of an entry again; return its name, how many runs, what differs.

    Without a ``entry`` the version draws one, so that each release looks at another. ``how`` goes
    to :meth:`Leaderboard.carry_out`. Raises UnknownNameError.
    """
    known = [BASELINE, *committed.names]
    name = entry or choose(committed.names or known, RELEASE, "rerun")
    if name not in known:
        raise UnknownNameError("entry", name, known)
    chosen = next(one for one in committed.board.entries if one.name == name)
    board = replace(committed.board, entries=[chosen], out=out, repetitions=STORED)
    failed = board.carry_out(**how)
    differing = [f"{path.parent.name}/{path.name}: {words}" for path, words in failed.items()]
    attempts = board.attempts()
    for attempt in attempts:
        differing += _differences(attempt, committed.runs[_key(attempt)])
    return name, len(attempts), differing


def _key(attempt: Attempt) -> tuple[str, str, int]:
    return attempt.entry.name, attempt.scenario.name, attempt.repetition


def _differences(attempt: Attempt, line: Mapping[str, Any]) -> Iterator[str]:
    for stage, path in zip(STAGES, attempt.logs, strict=True):
        if path.exists() and run_digest(read_file(path, MOST_LOG_BYTES)) != line[stage]:
            yield f"{attempt.title}: the {stage} run is not the one that was committed"
