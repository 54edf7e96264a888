"""What a reader of strangers' files was given: in = taken + left out by reason.

Every reader counts each unit it meets (frames, records, lines, operations) as come in, and then
either as taken or as left out for a reason. :meth:`Tally.check` holds the sum, so that a reader
that drops something without a reason fails instead of being believed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from dcqcn_gym.core.errors import DcqcnGymError, quote

MOST_EXAMPLES = 3
MOST_EXAMPLE = 80
"""Characters of an example that are shown."""


class BalanceError(DcqcnGymError):
    """A reader lost something without saying why; a fault of the reader, not of the file."""


@dataclass
class Balance:
    """The account of one unit."""

    came: int = 0
    taken: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def missing(self) -> int:
        """Units that were neither taken nor left out for a reason; 0 in a sound reader."""
        return self.came - self.taken - self.left_out.total()


@dataclass
class Tally:
    """The accounts of one file, and what was set right on the way (notes), with examples."""

    balances: dict[str, Balance] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def of(self, unit: str) -> Balance:
        """Return the account of a unit, such as ``"records"``."""
        return self.balances.setdefault(unit, Balance())

    def came_in(self) -> dict[str, int]:
        """Return what came in so far, by unit."""
        return {unit: account.came for unit, account in self.balances.items()}

    def came(self, unit: str, count: int = 1) -> None:
        """Count units that the file holds."""
        self.of(unit).came += count

    def take(self, unit: str, count: int = 1) -> None:
        """Count units that the result holds."""
        self.of(unit).taken += count

    def leave_out(self, unit: str, reason: str, example: object = "", count: int = 1) -> None:
        """Count units that the result does not hold, and why; some examples are remembered."""
        self.of(unit).left_out[reason] += count
        self._show(reason, example)

    def note(self, reason: str, example: object = "", count: int = 1) -> None:
        """Count what was taken but set right, or what the reader of the result should know."""
        self.notes[reason] += count
        self._show(reason, example)

    def _show(self, reason: str, example: object) -> None:
        if example == "":
            return
        seen = self.examples.setdefault(reason, [])
        if len(seen) < MOST_EXAMPLES:
            word = quote(str(example)[:MOST_EXAMPLE])
            if word not in seen:
                seen.append(word)

    def check(self) -> None:
        """Raise :class:`BalanceError` unless every unit was taken or left out for a reason."""
        for unit, balance in self.balances.items():
            if balance.missing:
                raise BalanceError(
                    f"{balance.came} {unit} came in, {balance.taken} were taken and "
                    f"{balance.left_out.total()} left out: {balance.missing} are unaccounted for; "
                    "this is a fault of the reader, please report it"
                )

    def lines(self) -> list[str]:
        """Return sentences: a sum a unit if anything was left out, then reasons and notes."""
        found = []
        for unit, balance in self.balances.items():
            if not balance.left_out:
                continue
            found.append(
                f"of {balance.came} {unit} {balance.taken} were taken and "
                f"{balance.left_out.total()} left out"
            )
            found += [self._line(count, reason) for reason, count in balance.left_out.most_common()]
        return found + [self._line(count, reason) for reason, count in self.notes.most_common()]

    def as_dict(self) -> dict[str, object]:
        """Return the accounts for a result file: in, taken, left out by reason, notes."""
        return {
            **{
                unit: {"in": b.came, "taken": b.taken, "left_out": dict(b.left_out.most_common())}
                for unit, b in self.balances.items()
            },
            "notes": dict(self.notes.most_common()),
        }

    def _line(self, count: int, reason: str) -> str:
        examples = ", ".join(self.examples.get(reason, []))
        return f"{count} {reason}" + (f", for example {examples}" if examples else "")
