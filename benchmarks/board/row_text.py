"""A row of the board from its text: a tuner or a shipped policy, on this scheme or another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dcqcn_gym.core.errors import ConfigError, UnknownNameError, did_you_mean, printable, quote
from dcqcn_gym.core.knobs import schemes
from dcqcn_gym.runs.rows import Row, label
from dcqcn_gym.tuners import TUNERS
from dcqcn_gym.tuners.policy import shipped_policies

__all__ = ["AT", "Asked", "asked_rows", "check_asked"]

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


def check_asked(row: Row, source: str) -> None:
    """Raise ConfigError, which begins with ``source``, for a row that no text stands for.

    Whoever hands in a row must not choose its traffic or network, nor name code by the arguments of
    a built-in tuner: that would run in the verifier's own process.
    """
    for key in row.changes:
        if key != "scheme":
            raise ConfigError(
                f"{source}: changes.{printable(key)[:80]}: all rows run on the suite's own "
                "scenarios; expected scheme or nothing"
            )
    scheme = row.changes.get("scheme", schemes()[0])
    if scheme not in schemes():
        raise ConfigError(
            f"{source}: changes.scheme = {quote(scheme)}: unknown scheme"
            f"{did_you_mean(str(scheme), schemes())}"
        )
    for key, value in row.tuner_args.items():
        if (row.tuner, key) != ("policy", "file"):
            raise ConfigError(
                f"{source}: tuner_args.{printable(key)[:80]}: a row runs its tuner as it comes; "
                "make other settings the defaults of a class of your own"
            )
        if value not in shipped_policies():
            raise ConfigError(
                f"{source}: tuner_args.file = {quote(value)}: no policy of the package"
                f"{did_you_mean(str(value), shipped_policies())}"
            )
