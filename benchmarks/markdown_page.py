"""Tables in the Markdown pages of the documentation, between marks that name them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from dcqcn_gym.core.errors import RunError, printable
from dcqcn_gym.runs.log import write_atomically

__all__ = ["code", "insert", "markdown_table", "plain"]


def plain(text: str) -> str:
    """Return ``text`` so that Markdown shows it as it is: no HTML, no link, no new cell."""
    one_line = printable(" ".join(text.split()))
    return re.sub(r"([\\\[\]|*_`])", r"\\\1", html.escape(one_line, quote=False))


def code(text: str) -> str:
    """Return ``text`` as inline code, also in a table."""
    one_line = printable(" ".join(text.split()))
    return f"`{one_line.replace('`', chr(39)).replace('|', '¦')}`"


def insert(page: Path, name: str, text: str) -> None:
    """Put ``text`` between the marks ``name`` of a Markdown page; RunError if they are missing."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    try:
        whole = page.read_text(encoding="utf-8")
    except OSError as error:
        raise RunError(f"{page} cannot be read: {error.strerror}") from error
    head, found, rest = whole.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise RunError(f"{page} lacks the marks {begin} and {end} around the table's place")
    write_atomically(page, f"{head}{begin}\n\n{text}\n{end}{tail}".encode())


def markdown_table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    cells = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)
