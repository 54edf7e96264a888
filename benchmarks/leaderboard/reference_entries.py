"""The entries beside which one that comes between two seasons is verified, on its own salt."""

from __future__ import annotations

from dataclasses import asdict

from dcqcn_gym.benchmarks.leaderboard.bootstrap import hierarchical, scenario_mean
from dcqcn_gym.benchmarks.leaderboard.entry_text import asked_entries
from dcqcn_gym.benchmarks.leaderboard.risk import FLOOR
from dcqcn_gym.benchmarks.leaderboard.scoring import EntryScores
from dcqcn_gym.runs.entries import Entry

REFERENCES = ("expert", FLOOR, "paraleon", "keeper")
"""Beside the default: readers compare an entry with them on the same traffic."""


def reference_entries(own: str) -> list[Entry]:
    """Return those that run beside the entry called ``own``."""
    return [one.entry for one in asked_entries(REFERENCES) if one.entry.name != own]


def amounts(entry: EntryScores) -> dict[str, float]:
    """Return the online R with its interval, S and harm of an entry, as verdicts do."""
    online = entry.parts["online"]
    return {
        **asdict(hierarchical(online.risk)),
        "gain": scenario_mean(online.score),
        "harm": online.harm.share,
    }
