"""Tables of results, once: as text for a terminal, as Markdown, and as cells for a page.

A cell is a string that was made by one of the formatters here, or a text of somebody else: every
form shows it as it is, and cells that are Markdown already are
:class:`~dcqcn_gym.runs.markdown.Marked`. ``templates/tables.html.j2`` of the package ``report``
draws the same table as HTML.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from dcqcn_gym.core.errors import printable
from dcqcn_gym.core.statistics import Estimate
from dcqcn_gym.core.sums import count
from dcqcn_gym.runs.markdown import Marked, plain

if TYPE_CHECKING:
    import rich.table
    from rich.text import Text

MISSING = "–"
"""What stands in a cell without a value."""

PROSE = 30
"""Characters per line from which on a cell is read as a sentence, which may be folded."""
GAP = 3
"""Characters between two columns on a terminal."""


@dataclass(frozen=True)
class Table:
    """Columns and rows of text; the first ``words`` columns are aligned to the left."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    words: int = 1

    def markdown(self) -> str:
        """Return the table as Markdown, without the title."""
        every = (self.columns, *self.rows)
        head, *lines = ("| " + " | ".join(map(plain, row)) + " |" for row in every)
        return "\n".join([head, "|" + "---|" * len(self.columns), *lines])

    def parts(self, width: int) -> list[Table]:
        """Return the table, or where ``width`` characters are too few, several side by side parts.

        Each part begins with the first column again and is as wide as fits; columns of sentences
        may be folded down to :data:`PROSE` characters, the first one down to its longest word.
        """
        needed = [low + GAP for low, _ in self._widths()]
        groups: list[list[int]] = [[]]
        room = width - 1 - needed[0]
        left = room
        for i in range(1, len(self.columns)):
            if needed[i] > left and groups[-1]:
                groups.append([])
                left = room
            groups[-1].append(i)
            left -= needed[i]
        if len(groups) == 1:
            return [self]
        return [
            self._chosen([0, *group], "" if n else self.title) for n, group in enumerate(groups)
        ]

    def _widths(self) -> list[tuple[int, int]]:
        """Return the fewest characters each column needs so that nothing is cut, and the most."""
        widths = []
        for i, column in enumerate(self.columns):
            longest = max((len(row[i]) for row in self.rows), default=0)
            words = [len(word) for word in column.split()]
            if i == 0:  # names: a cut one would be another
                words += [len(word) for row in self.rows for word in row[0].split()]
            widths.append((max([*words, min(longest, PROSE)]), max(longest, len(column))))
        return widths

    def _fitted(self, width: int) -> list[int]:
        """Return the width of each column in ``width`` characters; the first get what is left."""
        widths = self._widths()
        least = [low for low, _ in widths]
        left = width - 1 - count(least) - GAP * len(least)
        for i, (low, most) in enumerate(widths):
            more = max(0, min(most - low, left))
            least[i] += more
            left -= more
        return least

    def _chosen(self, columns: Sequence[int], title: str) -> Table:
        def pick(row: Sequence[str]) -> list[str]:
            return [row[i] for i in columns]

        words = len([i for i in columns if i < self.words])
        return Table(pick(self.columns), [pick(row) for row in self.rows], title, words)

    def text(self, width: int) -> rich.table.Table:
        """Return the table for a terminal of ``width`` characters."""
        from rich import box
        from rich.table import Table as TerminalTable

        table = TerminalTable(title=_shown(self.title), title_justify="left", box=box.SIMPLE_HEAD)
        for i, wide in enumerate(self._fitted(width)):
            justify: Literal["left", "right"] = "left" if i < self.words else "right"
            table.add_column(_shown(self.columns[i]), justify=justify, width=wide)
        for row in self.rows:
            table.add_row(*map(_shown, row))
        return table


def _shown(text: str) -> Text:
    """Return text for a terminal, which can neither mark up nor steer it."""
    from rich.text import Text

    return Text(printable(text))


def print_tables(tables: Sequence[Table], *, err: bool = False) -> None:
    """Print tables on standard output (or error), in parts that fit; a pipe gets whole rows.

    A pipe is as wide as the variable COLUMNS says, where that is set.
    """
    from rich.console import Console

    console = Console(stderr=err)
    narrow = console.is_terminal or "COLUMNS" in os.environ
    if not narrow:
        console = Console(stderr=err, width=300)
    for table in tables:
        for part in table.parts(console.width) if narrow else [table]:
            console.print(part.text(console.width))


def as_csv(rows: Iterable[Iterable[object]]) -> bytes:
    """Return lines of cells as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def as_markdown(tables: Sequence[Table]) -> str:
    """Return tables as Markdown, each under its title."""
    parts = [f"### {plain(t.title)}\n\n" * bool(t.title) + f"{t.markdown()}\n" for t in tables]
    return "\n".join(parts)


Style: TypeAlias = Literal["pm", "brackets", "words"]


def with_interval(
    value: Estimate | None,
    form: str = ".4f",
    scale: float = 1.0,
    *,
    unit: str = "",
    style: Style = "pm",
) -> str:
    """Return an estimate for a cell, times ``scale``: its mean with ``unit``, then its interval.

    ``pm``: ``mean ± half width``, or brackets where the interval is lopsided; ``brackets``:
    ``mean [low, high]``; ``words``: a phrase for a sentence. A dash without a value, the mean alone
    where no interval is known.
    """
    if value is None or math.isnan(value.mean):
        return MISSING
    text = f"{value.mean * scale:{form}}{unit}"
    if value.low is None or value.high is None:
        return Marked(text)
    low, high = value.low * scale, value.high * scale
    if style == "words":
        return f"{text} (95\u00a0% interval {low:{form}} to {high:{form}}{unit})"
    below, above = (value.mean - value.low) * scale, (value.high - value.mean) * scale
    if style == "pm" and math.isclose(below, above, rel_tol=1e-6, abs_tol=1e-12):
        return Marked(f"{text} ± {above:{form.removeprefix('+')}}")
    return Marked(f"{text} [{low:{form}}, {high:{form}}]")


def point(value: Estimate, form: str = ".4f") -> str:
    """Return an estimate's mean alone for a cell; a dash without a value."""
    return MISSING if math.isnan(value.mean) else f"{value.mean:{form}}"


def number(value: float | None, digits: int = 4) -> str:
    """Format a number for a table cell: ``digits`` significant digits, a dash for none."""
    if value is None or math.isnan(value):
        return MISSING
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}".replace(",", "\u202f").replace("-", "−")
    return f"{value:.{digits}g}".replace("-", "−")


def four(value: float) -> str:
    """Format a utility: always four decimals, a dash for none."""
    return MISSING if math.isnan(value) else f"{value:.4f}"


def times(value: float | None) -> str:
    """Format a slowdown: 1.23, 12.3, 123; a dash for none."""
    if value is None or math.isnan(value):
        return MISSING
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def count_of(n: int, what: str) -> str:
    """Return ``1 seed``, ``2 seeds``."""
    return f"{n} {what}{'s' if n != 1 else ''}"
