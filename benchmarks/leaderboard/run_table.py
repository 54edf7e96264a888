"""``runs.parquet``: every run of a leaderboard as a line, for databases and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard
from dcqcn_gym.benchmarks.leaderboard.reading import CHECKPOINTS
from dcqcn_gym.benchmarks.leaderboard.scoring import EntryScores
from dcqcn_gym.runs.results import plain, write_parquet

__all__ = ["write_runs"]


def write_runs(board: Leaderboard, entries: Sequence[EntryScores], out: Path) -> None:
    """Write ``runs.parquet`` where pyarrow is installed; incomplete entries are left out."""
    lines = [plain(line) for entry in entries for line in _runs(board, entry)]
    write_parquet(out / "runs.parquet", lines)


def _runs(board: Leaderboard, entry: EntryScores) -> Iterator[dict[str, Any]]:
    """Yield suite, entry, scenario, repetition, S, utility, S so far, wire bytes and flags."""
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
                "score_online": online.score[at],
                "score_final": final.score[at],
                "utility_online": online.utility[at],
                "utility_final": final.utility[at],
                **{
                    f"score_at_{100 * share:.0f}": value
                    for share, value in zip(CHECKPOINTS, so_far, strict=True)
                },
                "wire_bytes": entry.curve.wire_bytes[at],
                "flags_of_scenario": ", ".join(f.name for f in final.raised.get(scenario.name, ())),
                "recommended": entry.curve.recommended[scenario.name][repetition],
            }
