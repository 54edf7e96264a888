"""``runs.parquet``: every run of a board as a line, for databases and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.board.protocol import Board
from dcqcn_gym.benchmarks.board.reading import CHECKPOINTS
from dcqcn_gym.benchmarks.board.scoring import RowScores
from dcqcn_gym.runs.results import plain, write_parquet

__all__ = ["write_runs"]


def write_runs(board: Board, rows: Sequence[RowScores], out: Path) -> None:
    """Write ``runs.parquet`` where pyarrow is installed; rows that are not whole are left out."""
    lines = [plain(line) for row in rows for line in _runs(board, row)]
    write_parquet(out / "runs.parquet", lines)


def _runs(board: Board, row: RowScores) -> Iterator[dict[str, Any]]:
    """Yield suite, row, scenario, repetition, S, utility, S so far, wire bytes and flags."""
    if row.course is None:
        return
    online, final = row.parts["online"], row.parts["final"]
    for i, entry in enumerate(board.suite.file.scenarios):
        for repetition in range(row.repetitions):
            so_far = row.course.so_far[:, i, repetition]
            at = (i, repetition)
            yield {
                "suite": board.suite.file.name,
                "row": row.name,
                "scenario": entry.name,
                "third": entry.third,
                "repetition": repetition,
                "score_online": online.score[at],
                "score_final": final.score[at],
                "utility_online": online.utility[at],
                "utility_final": final.utility[at],
                **{
                    f"score_at_{100 * share:.0f}": value
                    for share, value in zip(CHECKPOINTS, so_far, strict=True)
                },
                "wire_bytes": row.course.wire_bytes[at],
                "flags_of_scenario": ", ".join(f.name for f in final.raised.get(entry.name, ())),
                "recommended": row.course.recommended[entry.name][repetition],
            }
