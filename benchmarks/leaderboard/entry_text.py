"""An entry from its text: a tuner or a shipped policy, on this scheme or another."""

from __future__ import annotations

from collections.abc import Iterable

from dcqcn_gym.core.errors import ConfigError, UnknownNameError, did_you_mean, printable, quote
from dcqcn_gym.core.knobs import schemes
from dcqcn_gym.runs.entries import Entry, label
from dcqcn_gym.tuners import TUNERS
from dcqcn_gym.tuners.policy import shipped_policies

AT = "@"


def asked_entries(texts: Iterable[str]) -> dict[str, Entry]:
    """Return the entries that texts such as ``paraleon`` or ``paraleon@dcqcn-plus`` stand for.

    A shipped policy that is no tuner of its own runs as ``policy`` under its name. Raises
    UnknownNameError with a near match for a scheme that does not exist.
    """
    return {text: _entry(text) for text in texts}


def _entry(text: str) -> Entry:
    tuner, at, scheme = text.rpartition(AT)
    if not at or "/" in scheme or ":" in scheme:  # no scheme, or a path that holds an @
        if text in shipped_policies() and text not in TUNERS.builtin:
            return Entry("policy", {"file": text}, given_name=text)
        return Entry(text)
    known = schemes()
    if scheme not in known:
        raise UnknownNameError("scheme", scheme, known)
    name = f"{label(tuner)}-on-{scheme}"
    return Entry(tuner, changes={"scheme": scheme}, given_name=name)


def check_asked(entry: Entry, source: str) -> None:
    """Raise ConfigError, which begins with ``source``, for an entry that no text stands for.

    Whoever hands in an entry must not choose its traffic or network, nor name code by the arguments
    of a built-in tuner: that would run in the verifier's own process.
    """
    for key in entry.changes:
        if key != "scheme":
            raise ConfigError(
                f"{source}: changes.{printable(key)[:80]}: all entries run on the suite's own "
                "scenarios; expected scheme or nothing"
            )
    scheme = entry.changes.get("scheme", schemes()[0])
    if scheme not in schemes():
        raise ConfigError(
            f"{source}: changes.scheme = {quote(scheme)}: unknown scheme"
            f"{did_you_mean(str(scheme), schemes())}"
        )
    for key, value in entry.tuner_args.items():
        if (entry.tuner, key) != ("policy", "file"):
            raise ConfigError(
                f"{source}: tuner_args.{printable(key)[:80]}: an entry runs its tuner as it comes; "
                "make other settings the defaults of a class of your own"
            )
        if value not in shipped_policies():
            raise ConfigError(
                f"{source}: tuner_args.file = {quote(value)}: no policy of the package"
                f"{did_you_mean(str(value), shipped_policies())}"
            )
