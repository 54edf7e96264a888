"""What became of each line of a simulator's files, for people, and the balance of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from dcqcn_gym.core.tally import Tally
from dcqcn_gym.runs.table import as_csv

NOT_GIVEN = 0
"""The line number of a key that a file leaves to its simulator's default."""


@dataclass
class Ledger:
    """Sentences by line, and a tally in which in = taken + left out."""

    tally: Tally = field(default_factory=Tally)
    lines: list[tuple[str, int, str, str]] = field(default_factory=list)
    """(file, line or :data:`NOT_GIVEN`, its text, what became of it)."""

    def take(self, file: str, line: int, text: str, became: str) -> None:
        """Say what a line became."""
        if line != NOT_GIVEN:
            self.tally.came(f"lines of {file}")
            self.tally.take(f"lines of {file}")
        self.lines.append((file, line, text, became))

    def leave_out(self, file: str, line: int, text: str, reason: str, why: str = "") -> None:
        """Say that a line is not in the scenario; ``why`` is its own part of the sentence."""
        self.tally.came(f"lines of {file}")
        self.tally.leave_out(f"lines of {file}", reason, text)
        self.lines.append((file, line, text, f"left out: {why or reason}"))

    def csv(self) -> str:
        """Return the sentences as a table."""
        rows: list[tuple[object, ...]] = [("file", "line", "text", "became")]
        for file, line, text, became in self.lines:
            shown = text[:200]
            rows.append((file, line or "", f"'{shown}" if shown[:1] in "=+-@" else shown, became))
        return as_csv(rows).decode()
