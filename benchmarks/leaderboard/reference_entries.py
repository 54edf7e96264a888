"""The entries beside which one that comes between two seasons is verified, on its own salt."""

from __future__ import annotations

from dataclasses import asdict

from dcqcn_gym.benchmarks.leaderboard.entry_text import asked_entries
from dcqcn_gym.benchmarks.leaderboard.resampled import figured, scenario_mean
from dcqcn_gym.benchmarks.leaderboard.scoring import EntryScores
from dcqcn_gym.runs.entries import Entry

REFERENCES = ("expert", "default-min-rate", "paraleon", "keeper")
"""Beside the default, by protocol 2: readers compare an entry with them on the same traffic, and
what chance does to harm is told from them."""


def reference_entries(protocol: int, own: str) -> list[Entry]:
    """Return those that run beside the entry called ``own``; none by protocol 1."""
    if protocol == 1:
        return []
    return [one.entry for one in asked_entries(REFERENCES) if one.entry.name != own]


def amounts(entry: EntryScores) -> dict[str, float]:
    """Return S with its interval, S online and harm of an entry by protocol 2, as verdicts do."""
    final, harm = entry.parts["final"].score, entry.parts["final"].harm
    assert harm is not None, "protocol 2 has harm"
    return {
        **asdict(figured(final, 2)),
        "online": scenario_mean(entry.parts["online"].score),
        "harm": harm.share,
        "worst": harm.worst,
    }
