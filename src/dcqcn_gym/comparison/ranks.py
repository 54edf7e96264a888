"""Who is ahead of whom in a comparison, and on what evidence.

Tuners are in the order of their score S over the baseline (:mod:`dcqcn_gym.core.score`), which
is at 0; where logs hold too little for it, in the order of their final utility. Neighbours are
compared seed by seed on the same held-out traffic: S, or the difference in utility, of the upper
one over the next with its 95 % interval, and on how many seeds it was better (half for a draw).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dcqcn_gym.comparison.results import EntryResult, Figures, scored
from dcqcn_gym.core.answer import name_of
from dcqcn_gym.core.statistics import Estimate, estimate, paired_change
from dcqcn_gym.core.sums import total
from dcqcn_gym.core.verdict import scores_by_seed
from dcqcn_gym.runs.table import MISSING, Table, count_of, with_interval


def leads(pairs: Sequence[tuple[Figures, Figures]]) -> list[float]:
    """Return S of the first over the second of each pair, as far as logs show it."""
    known = [(a.held_out, b.held_out) for a, b in pairs]
    complete = [(a, b) for a, b in known if a is not None and b is not None]
    found = scores_by_seed([a for a, _ in complete], [b for _, b in complete])
    return [value for value in found if not math.isnan(value)]


@dataclass(frozen=True)
class Rank:
    """One tuner's place; everything about the next one is None or 0 for the last."""

    place: int
    tuner: str
    score: Estimate | None
    """S over the baseline; None for that itself, or where logs hold too little."""
    final: Estimate
    lead: Estimate | None
    """S over the next one; where the places go by utility, the difference in that."""
    gain: Estimate | None
    """Final utility minus the next one's."""
    wins: float
    """Seeds on which it was better than the next one; half a seed for a draw."""
    seeds: int
    """Seeds that both have."""

    @property
    def shown(self) -> bool:
        """True if the lead is above 0 beyond chance."""
        return self.lead is not None and self.lead.sign > 0


def ranks(entries: Sequence[EntryResult]) -> list[Rank]:
    """Return the places of the tuners that finished; ``entries`` are in the order of the table."""
    done, by_score = [entry for entry in entries if entry.seeds], scored(entries)
    found = []
    for place, entry in enumerate(done, start=1):
        pairs = _pairs(entry, done[place], by_score) if place < len(done) else _Pairs()
        wins = total(1.0 if lead > 0 else 0.5 if lead == 0 else 0.0 for lead in pairs.leads)
        own = entry.verdict.score if by_score and entry.verdict else None
        found.append(
            Rank(
                place, entry.tuner, own, entry.final, pairs.lead, pairs.gain, wins, len(pairs.leads)
            )
        )
    return found


@dataclass(frozen=True)
class _Pairs:
    """One entry against another, by the seeds that both have."""

    leads: Sequence[float] = ()
    """What decides the places: S over the other one, or the difference in final utility."""
    gain: Estimate | None = None
    drawn: bool = True

    @property
    def lead(self) -> Estimate | None:
        """The leads over the seeds; None without one."""
        if not self.leads:
            return None
        found = estimate(self.leads)
        return found if self.drawn else found.of_one_trace()


def _pairs(entry: EntryResult, other: EntryResult, by_score: bool) -> _Pairs:
    theirs = {f.seed: f for f in other.figures}
    pairs = [(f, theirs[f.seed]) for f in entry.figures if f.seed in theirs]
    if not pairs:
        return _Pairs()
    gain = paired_change([a.final for a, _ in pairs], [b.final for _, b in pairs])
    drawn = all(f.drawn for f, _ in pairs)
    gain = gain if drawn else gain.of_one_trace()
    if not by_score:
        return _Pairs([a.final - b.final for a, b in pairs], gain, drawn)
    return _Pairs(leads(pairs), gain, drawn)


def rank_table(entries: Sequence[EntryResult]) -> Table:
    """Return the places with the evidence that each is ahead of the next."""
    by_score = scored(entries)
    by = ["S over the baseline", "S over the next"] if by_score else ["ahead of the next by"]
    columns = ("place", "tuner", *by, "better on", "evidence", "final utility")
    if by_score:
        columns += ("utility over the next",)
    cells = []
    for rank in ranks(entries):
        wins = f"{rank.wins:g} of {count_of(rank.seeds, 'seed')}" if rank.lead else MISSING
        lead = with_interval(rank.lead, "+.3f" if by_score else "+.4f", style="brackets")
        own = [with_interval(rank.score, "+.3f", style="brackets")] if by_score else []
        gain = [with_interval(rank.gain, "+.4f", style="brackets")] if by_score else []
        final = with_interval(rank.final)
        cells.append([str(rank.place), rank.tuner, *own, lead, wins, _evidence(rank), final, *gain])
    return Table(columns, cells, words=2)


def _evidence(rank: Rank) -> str:
    if rank.lead is None:
        return MISSING
    if rank.lead.constant:
        return "the same" if rank.lead.mean == 0 else "one trace, no interval"
    if not rank.lead.known:
        return "one seed, no interval"
    return "shown" if rank.shown else "not distinguished"


def leader(entries: Sequence[EntryResult]) -> str:
    """Say in one sentence who leads, and how sure that is."""
    done, by_score = [entry for entry in entries if entry.seeds], scored(entries)
    if not done:
        return "No run has finished."
    first, rest = done[0], done[1:]
    level = [entry.tuner for entry in rest if not _beaten(first, entry, by_score)]
    if not rest:
        text = f"{first.tuner} ran alone"
    elif not level:
        text = f"{first.tuner} is ahead of every other tuner"
    else:
        shown = ", ".join(level[:3]) + (f" and {len(level) - 3} more" if len(level) > 3 else "")
        text = f"{first.tuner} is first, but not distinguished from {shown}"
    if base := next((entry for entry in done if entry.is_baseline), None):
        beat = [entry for entry in done if entry is not base and _beaten(entry, base, by_score)]
        better = "shorter slowdowns" if by_score else "a higher utility"
        text += f"; {len(beat)} of {count_of(len(done) - 1, 'tuner')} have {better} than "
        text += f"{name_of(base.tuner)} beyond chance"
    return f"{text} ({count_of(first.seeds, 'seed')})."


def _beaten(first: EntryResult, other: EntryResult, by_score: bool) -> bool:
    lead = _pairs(first, other, by_score).lead
    return lead is not None and lead.sign > 0
