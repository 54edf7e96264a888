"""What a leaderboard costs: the seconds of each entry's runs, and of its tuner's decisions.

All from the files of seconds beside the logs (``timing-*.json``), which no promise of equal bytes
covers; results hold nothing of it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.protocol import Leaderboard
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import parse_json, read_text
from dcqcn_gym.core.sums import count, total
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.runs.log import write_json
from dcqcn_gym.tuners import TUNERS

COST_FILE = "cost.json"


@dataclass(frozen=True)
class EntryCost:
    """Seconds of an entry's timed runs; ``runs`` of ``wanted`` are timed.

    ``cpu_s`` is all CPU time, that of a plug-in's own process too.
    """

    name: str
    runs: int
    wanted: int
    intervals: int
    cpu_s: float
    engine_s: float
    tuner_s: float
    online_intervals: int

    @property
    def tuner_ms_per_interval(self) -> float | None:
        """Milliseconds of the tuner's own CPU time in an interval of an online run."""
        return 1e3 * self.tuner_s / self.online_intervals if self.online_intervals else None


def _entry_cost(board: Leaderboard, entry: Entry) -> EntryCost:
    attempts = board.attempts(entry)
    online = [_seconds(attempt.timings[0]) for attempt in attempts]
    final = [_seconds(attempt.timings[1]) for attempt in attempts]
    known = [one for one in (*online, *final) if one is not None]
    tuner = total(one["tuner_cpu_s"] for one in online if one is not None)
    apart = 0.0 if entry.tuner in TUNERS.builtin else tuner  # in a process of its own
    return EntryCost(
        name=entry.name,
        runs=len(known),
        wanted=2 * len(attempts),
        intervals=count(int(one["intervals"]) for one in known),
        cpu_s=total(one["cpu_s"] for one in known) + apart,
        engine_s=total(one["engine_s"] for one in known),
        tuner_s=tuner,
        online_intervals=count(int(one["intervals"]) for one in online if one is not None),
    )


def _seconds(path: Path) -> dict[str, float] | None:
    """Return a run's seconds; None where they are not there or of an earlier version."""
    try:
        found = parse_json(read_text(path))
    except (ConfigError, ValueError):
        return None
    return found if isinstance(found, dict) and "engine_s" in found else None


def write_cost(board: Leaderboard, out: Path | None = None) -> list[EntryCost]:
    """Write ``cost.json``, which the site reads; return the cost of every entry.

    It goes into ``out``, by default the leaderboard's folder.
    """
    costs = [_entry_cost(board, entry) for entry in board.entries]
    entries = {
        cost.name: {**asdict(cost), "tuner_ms_per_interval": cost.tuner_ms_per_interval}
        for cost in costs
    }
    write_json((out or board.out) / COST_FILE, {"entries": entries})
    return costs


def cost_entries(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what a folder's ``cost.json`` says of each entry; empty where there is none."""
    path = folder / COST_FILE
    return dict(parse_json(read_text(path))["entries"]) if path.exists() else {}
