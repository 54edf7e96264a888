"""What a leaderboard costs: CPU minutes by entry, share outside the engine, efficiency.

All from the files of seconds beside the logs (``timing-*.json``), which no promise of equal bytes
covers; results hold nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.protocol import CAMPAIGNS_FILE, Leaderboard
from dcqcn_gym.core.errors import ConfigError, RunError
from dcqcn_gym.core.files import parse_json, read_text
from dcqcn_gym.core.sums import count, total
from dcqcn_gym.runs.entries import Entry
from dcqcn_gym.runs.log import write_json
from dcqcn_gym.runs.table import MISSING, Table
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
    def outside(self) -> float | None:
        """Share of the CPU time outside the packet engine; None without any."""
        return 1 - self.engine_s / self.cpu_s if self.cpu_s > 0 else None

    @property
    def tuner_ms_per_interval(self) -> float | None:
        """Milliseconds of the tuner's own CPU time in an interval of an online run."""
        return 1e3 * self.tuner_s / self.online_intervals if self.online_intervals else None

    @property
    def whole_s(self) -> float | None:
        """CPU seconds of the whole entry, if those of the runs so far are typical."""
        return self.cpu_s * self.wanted / self.runs if self.runs else None


def cost_of(board: Leaderboard) -> list[EntryCost]:
    """Return the cost of every entry of a leaderboard."""
    return [_entry_cost(board, entry) for entry in board.entries]


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
    costs = cost_of(board)
    entries = {
        cost.name: {**asdict(cost), "tuner_ms_per_interval": cost.tuner_ms_per_interval}
        for cost in costs
    }
    write_json(
        (out or board.out) / COST_FILE, {"entries": entries, "campaigns": campaigns(board.out)}
    )
    return costs


def committed_cost(board: Leaderboard) -> list[EntryCost] | None:
    """Return what a committed ``cost.json`` says; None for a leaderboard that has its logs."""
    entries = {} if board.has_logs else cost_entries(board.out)
    names = [field.name for field in fields(EntryCost)]
    return [
        EntryCost(**{name: entry[name] for name in names}) for entry in entries.values()
    ] or None


def cost_entries(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what a folder's ``cost.json`` says of each entry; empty where there is none."""
    path = folder / COST_FILE
    return dict(parse_json(read_text(path))["entries"]) if path.exists() else {}


def campaigns(out: Path) -> list[Mapping[str, Any]]:
    """Return what is known of every call that made runs of a leaderboard."""
    path = out / CAMPAIGNS_FILE
    return list(parse_json(read_text(path))) if path.exists() else []


def efficiency(parallel: Path, serial: Path) -> float:
    """Return what the workers were worth, 1 if n of them took an n-th of the time of one.

    Both folders have to hold a leaderboard of the same runs made at one go, ``serial`` by one
    worker; RunError otherwise.
    """
    one, many = (_at_one_go(folder) for folder in (serial, parallel))
    if one["workers"] != 1 or many["workers"] in (None, 1) or one["runs"] != many["runs"]:
        raise RunError(
            f"{serial} was made by {one['workers']} workers in {one['runs']} runs, {parallel} by "
            f"{many['workers']} in {many['runs']}; expected the same runs by one and by several"
        )
    return float(one["wall_s"] / (many["workers"] * many["wall_s"]))


def _at_one_go(folder: Path) -> Mapping[str, Any]:
    parts = campaigns(folder)
    if len(parts) != 1:
        raise RunError(
            f"{folder} was made in {len(parts)} parts; expected a leaderboard that was made at one "
            "go, in a fresh folder"
        )
    return parts[0]


def cost_tables(costs: Sequence[EntryCost], parts: Iterable[Mapping[str, Any]]) -> list[Table]:
    """Return the table of entries with their sum, and how the leaderboard was made."""
    entries = [_cells(cost) for cost in costs]
    entries.append(_cells(_sum(costs)))
    columns = ("entry", "timed runs", "CPU minutes", "whole entry", "outside the engine",
               "tuner ms per interval", "intervals per CPU second")  # fmt: skip
    lines = [_made_cells(part) for part in parts]
    made = Table(("workers", "runs", "minutes", "workers busy"), lines, "how it was made")
    return [Table(columns, entries, "cost"), *([made] if lines else [])]


def _made_cells(part: Mapping[str, Any]) -> tuple[str, ...]:
    workers = part["workers"]
    busy = None if workers is None else 100 * part["run_wall_s"] / (workers * part["wall_s"])
    return (
        "elsewhere" if workers is None else str(workers),
        str(part["runs"]),
        f"{part['wall_s'] / 60:.2f}",
        _form(busy, ".0f", " %"),
    )


def _sum(costs: Sequence[EntryCost]) -> EntryCost:
    names = ("runs", "wanted", "intervals", "online_intervals")
    whole = {name: count(getattr(cost, name) for cost in costs) for name in names}
    seconds = {
        name: total(getattr(cost, name) for cost in costs)
        for name in ("cpu_s", "engine_s", "tuner_s")
    }
    return EntryCost("all entries", **whole, **seconds)  # type: ignore[arg-type]  # by their names


def _cells(cost: EntryCost) -> tuple[str, ...]:
    speed = cost.intervals / cost.cpu_s if cost.cpu_s > 0 else None
    return (
        cost.name,
        f"{cost.runs} of {cost.wanted}",
        f"{cost.cpu_s / 60:.2f}",
        _form(None if cost.whole_s is None else cost.whole_s / 60, ".2f"),
        _form(None if cost.outside is None else 100 * cost.outside, ".1f", " %"),
        _form(cost.tuner_ms_per_interval, ".3f"),
        _form(speed, ".0f"),
    )


def _form(value: float | None, form: str, unit: str = "") -> str:
    return MISSING if value is None else format(value, form) + unit
