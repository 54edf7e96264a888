"""Text of others inside Markdown: shown as it is, whatever it holds."""

from __future__ import annotations

import re

from dcqcn_gym.core.errors import printable


class Marked(str):
    """Text that is Markdown already, or figures without any: it is written as it is."""

    __slots__ = ()


def plain(text: str) -> Marked:
    """Return ``text`` so that Markdown shows it as it is: no HTML, no link, no new cell."""
    if isinstance(text, Marked):
        return text
    one_line = printable(" ".join(text.split()))
    no_tag = one_line.replace("&", "&amp;").replace("<", "&lt;")  # a lone > opens nothing
    return Marked(re.sub(r"([\\\[\]|*_`])", r"\\\1", no_tag))


def code(text: str) -> Marked:
    """Return ``text`` as inline code, also in a table."""
    one_line = printable(" ".join(text.split()))
    return Marked(f"`{one_line.replace('`', chr(39)).replace('|', '¦')}`")
