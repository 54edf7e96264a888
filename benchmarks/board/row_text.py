"""A row of the board from its text: a tuner or a shipped policy, on this scheme or another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.knobs import schemes
from dcqcn_gym.runs.rows import Row, label
from dcqcn_gym.tuners import TUNERS
from dcqcn_gym.tuners.policy import shipped_policies

__all__ = ["AT", "Asked", "asked_rows"]

AT = "@"


@dataclass(frozen=True)
class Asked:
    """A row and whether it is a ``slow`` one, which runs the suite's smaller number of times."""

    row: Row
    slow: bool = False


def asked_rows(texts: Iterable[str], slow: Iterable[str] = ()) -> list[Asked]:
    """Return the rows that texts such as ``paraleon`` or ``paraleon@dcqcn-plus`` stand for.

    A shipped policy that is no tuner of its own runs as ``policy`` under its name.
    ``slow`` names those of them that are repeated less often. Raises UnknownNameError with a near
    match for a scheme that does not exist, or a slow row that is not among ``texts``.
    """
    rows = {text: _row(text) for text in texts}
    less = list(slow)
    for text in less:
        if text not in rows:
            raise UnknownNameError("slow row", text, rows)
    return [Asked(row, text in less) for text, row in rows.items()]


def _row(text: str) -> Row:
    tuner, at, scheme = text.rpartition(AT)
    if not at or "/" in scheme or ":" in scheme:  # no scheme, or a path that holds an @
        if text in shipped_policies() and text not in TUNERS.builtin:
            return Row("policy", {"file": text}, given_name=text)
        return Row(text)
    known = schemes()
    if scheme not in known:
        raise UnknownNameError("scheme", scheme, known)
    name = f"{label(tuner)}-on-{scheme}"
    return Row(tuner, changes={"scheme": scheme}, given_name=name)
