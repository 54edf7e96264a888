"""What every reader of traffic yields, and the count of what it could not use."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from dcqcn_gym.core.errors import quote

MOST_EXAMPLES = 3


class Record(NamedTuple):
    """One transfer as a file has it."""

    source: str
    target: str
    bytes: int
    """Payload; of sampled packets what the samples stand for."""
    start_ns: int
    """By the file's own clock."""


@dataclass
class Tally:
    """How much was read, and what was left out or set right, by reason."""

    read: int = 0
    taken: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, reason: str, example: object = "", count: int = 1) -> None:
        """Count ``reason``; the first different examples are kept."""
        self.reasons[reason] += count
        if example == "":
            return
        seen = self.examples.setdefault(reason, [])
        if len(seen) < MOST_EXAMPLES and (word := quote(str(example))) not in seen:
            seen.append(word)

    def lines(self) -> list[str]:
        """Return a sentence a reason, the most frequent first."""
        found = []
        for reason, count in self.reasons.most_common():
            examples = ", ".join(self.examples.get(reason, []))
            found.append(f"{count} {reason}" + (f", for example {examples}" if examples else ""))
        return found


def address(raw: bytes) -> str:
    """Return an IPv4 or IPv6 address as text; of another length, its bytes in hexadecimal."""
    if len(raw) == 4:
        return ".".join(map(str, raw))
    if len(raw) != 16:
        return raw.hex()
    import ipaddress

    return str(ipaddress.IPv6Address(raw))
