"""Windows of the day in which a fleet must not change: ``"Mon-Fri 08:00-18:00"``, in UTC."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from dcqcn_gym.core.errors import ConfigError, quote

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_FORM = re.compile(
    r"(?:(?P<first>[A-Z][a-z]{2})(?:-(?P<last>[A-Z][a-z]{2}))? )?"
    r"(?P<begin>\d\d:\d\d)-(?P<end>\d\d:\d\d)"
)


@dataclass(frozen=True)
class Window:
    """From ``begin`` to before ``end`` (minutes of the day), on some days; may pass midnight."""

    text: str
    days: frozenset[int]
    begin: int
    end: int

    def holds(self, now: datetime) -> bool:
        """Return whether an instant is within; a window past midnight belongs to its first day."""
        utc = now.astimezone(timezone.utc)
        minute, day = utc.hour * 60 + utc.minute, utc.weekday()
        if self.begin < self.end:
            return day in self.days and self.begin <= minute < self.end
        late = day in self.days and minute >= self.begin
        return late or ((day - 1) % 7 in self.days and minute < self.end)


def window_of(text: str) -> Window:
    """Return the window that a text names; raise ConfigError if it names none."""
    found = _FORM.fullmatch(text)
    named = [d for d in (found["first"], found["last"]) if d] if found else []
    if found is None or any(day not in DAYS for day in named):
        raise _wrong(text)
    first = DAYS.index(named[0]) if named else 0
    last = DAYS.index(named[-1]) if named else 6
    days = frozenset((first + i) % 7 for i in range((last - first) % 7 + 1))
    begin, end = _minute(found["begin"], text), _minute(found["end"], text)
    if begin == end or begin == 24 * 60:
        raise _wrong(text)
    return Window(text, days, begin, end)


def frozen_by(texts: Iterable[str], now: datetime) -> str:
    """Return the window that an instant is in, "" if none."""
    return next((text for text in texts if window_of(text).holds(now)), "")


def open_for_s(freeze: Iterable[str], change: Iterable[str], now: datetime, most_s: float) -> float:
    """Return how long changes are allowed from an instant on, to the minute, at most ``most_s``."""
    freeze, change = list(freeze), list(change)
    passed_s = 0.0
    while passed_s < most_s:
        then = now + timedelta(seconds=passed_s)
        if frozen_by(freeze, then) or (change and not frozen_by(change, then)):
            break
        passed_s += 60.0
    return min(passed_s, most_s)


def _minute(text: str, whole: str) -> int:
    hours, minutes = int(text[:2]), int(text[3:])
    if minutes > 59 or hours * 60 + minutes > 24 * 60:
        raise _wrong(whole)
    return hours * 60 + minutes


def _wrong(text: str) -> ConfigError:
    return ConfigError(
        f"freeze window {quote(text)}: expected [DAY[-DAY] ]HH:MM-HH:MM in UTC, as "
        "'Mon-Fri 08:00-18:00'"
    )
