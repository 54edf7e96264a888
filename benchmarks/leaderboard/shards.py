"""Shares of a leaderboard, made on machines that saw nothing of each other, joined to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dcqcn_gym.benchmarks.leaderboard.protocol import (
    LEADERBOARD_FILE,
    Leaderboard,
    open_leaderboard,
)
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.files import read_file
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.runs.log import MOST_LOG_BYTES, read_run, write_json
from dcqcn_gym.runs.whole_file import write_atomically


def merge_leaderboards(folders: Sequence[Path], out: Path) -> Leaderboard:
    """Copy the logs of some shares into ``out`` and return the whole leaderboard.

    A run that stands in two of them has to have the same bytes; of unfinished ones the longer is
    taken. ``out`` may hold what an earlier call left. Raises ConfigError or RunError; before
    everything is known to fit nothing is written.
    """
    boards = [open_leaderboard(folder) for folder in folders]
    if (out / LEADERBOARD_FILE).exists():
        boards.insert(0, open_leaderboard(out))
    whole = _joined(boards, out)
    chosen: dict[Path, Path] = {}
    for board in boards:
        for attempt in board.attempts():
            folder = out / attempt.folder.relative_to(board.out)
            for log in attempt.logs:
                _choose(chosen, log, folder / log.name)
            for timing in attempt.timings:
                if timing.exists():
                    chosen.setdefault(folder / timing.name, timing)
    for path, source in chosen.items():
        if path != source:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, read_file(source, MOST_LOG_BYTES))
    write_json(out / LEADERBOARD_FILE, whole.header())
    return whole


def _joined(boards: Sequence[Leaderboard], out: Path) -> Leaderboard:
    first = boards[0]
    entries: dict[str, tuple[Entry, str | None]] = {}
    slow: frozenset[str] = frozenset()
    for board in boards:
        if board.identity[:2] != first.identity[:2]:
            raise RunError(
                f"{board.out} holds suite {board.suite.file.name!r} with {board.repetitions} "
                f"repetitions, {first.out} {first.suite.file.name!r} with {first.repetitions}; "
                "shares of one leaderboard have both in common"
            )
        slow |= board.slow
        for entry in board.entries:
            own = entry, board.code.get(entry.name)
            if entries.setdefault(entry.name, own) != own:
                raise RunError(
                    f"entry {entry.name!r} of {board.out}, or its code, is not that of the others"
                )
    rows, code = [row for row, _ in entries.values()], {n: c for n, (_, c) in entries.items()}
    return replace(first, entries=rows, out=out, slow=slow, share=(0, 1), code=code)


def _choose(chosen: dict[Path, Path], log: Path, to: Path) -> None:
    """Take a log unless a better one was found; RunError if two finished ones differ."""
    if not log.exists():
        return
    if to not in chosen:
        chosen[to] = log
        return
    old, new = (read_file(path, MOST_LOG_BYTES) for path in (chosen[to], log))
    if len(new) > len(old) and new.startswith(old):
        chosen[to] = log
    elif not old.startswith(new) and _complete(log):
        raise RunError(
            f"{log} differs from {chosen[to]}, the same run: one of them was made by other code or "
            "was changed; leave one out"
        )


def _complete(log: Path) -> bool:
    try:
        return read_run(log).complete
    except (ConfigError, RunError):
        return False
