"""Tables in the Markdown pages of the documentation, between marks that name them."""

from __future__ import annotations

from pathlib import Path

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.runs.atomic_file import write_atomically


def insert(page: Path, name: str, text: str) -> None:
    """Put ``text`` between the marks ``name`` of a Markdown page; RunError if they are missing."""
    head, tail = _around(page, name)
    write_atomically(page, f"{head}\n\n{text}\n{tail}".encode())


def check_page(page: Path | None, name: str) -> None:
    """Raise RunError where :func:`insert` would, before hours are spent on what it is to insert."""
    if page is not None:
        _around(page, name)


def _around(page: Path, name: str) -> tuple[str, str]:
    """Return a page up to the first mark and from the second one on, marks included."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    try:
        whole = page.read_text(encoding="utf-8")
    except OSError as error:
        raise RunError(f"{page} cannot be read: {error.strerror}") from error
    head, found, rest = whole.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise RunError(f"{page} lacks the marks {begin} and {end} around the table's place")
    return head + begin, end + tail
