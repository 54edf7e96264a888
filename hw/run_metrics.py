"""What Prometheus is shown of runs in progress, simulated ones too: the last line of their logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dcqcn_gym.core.errors import RunError
from dcqcn_gym.core.files import parse_json
from dcqcn_gym.hw.metrics import Fill, Sheet
from dcqcn_gym.runs.log import Line, RunDir

MOST_LINE = 1 << 24
"""Bytes from the end in which the last two lines of a log have to be."""

FIGURES: dict[str, tuple[str, Callable[[Line], float]]] = {
    "run_interval": ("number of the last interval", lambda line: line["i"]),
    "run_utility": ("of the last interval, 0 to 1", lambda line: line["utility"]),
    "run_paused_share": ("of the last interval, mean of all devices", lambda x: 1 - x["terms"][2]),
    "run_drops": ("packets dropped in the last interval", lambda line: line["drops"]),
    "run_marked_packets": ("in the last interval", lambda line: line["marks"]),
    "run_cnps": ("in the last interval", lambda line: line["cnps"]),
    "run_throughput_bits_per_second": ("in the last interval", lambda x: x["throughput_bps"]),
    "run_rtt_seconds": ("mean of the last interval", lambda line: line["rtt_mean_ps"] * 1e-12),
    "run_network_seconds": ("time of the network at its end", lambda line: line["end_ps"] * 1e-12),
}
"""Gauge -> its meaning and where the log's line has it; one that is unknown there is left out."""


def last_line(path: Path) -> tuple[Line | None, bool]:
    """Return the last interval's line of a log, None before the first, and whether it has ended.

    A line that is being written is passed over. RunError if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - MOST_LINE, 0))
            whole = file.read().rpartition(b"\n")[0].split(b"\n")
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from None
    ended = False
    for text in reversed(whole):
        try:
            line: Any = parse_json(text)
        except ValueError:
            continue
        if isinstance(line, dict) and "end" in line:
            ended = True
        elif isinstance(line, dict) and "i" in line:
            return line, ended
    return None, ended


def of_runs(directories: Sequence[Path]) -> Fill:
    """Return what fills a sheet with figures of these runs; one without a log is passed over."""

    def fill(sheet: Sheet) -> None:
        for directory in directories:
            log, run = RunDir(directory).log, directory.name
            if not log.exists():
                continue
            line, ended = last_line(log)
            sheet.put("run_ended", "1 if the run reached its end", float(ended), run=run)
            sheet.put("run_log_changed_seconds", "Unix time", log.stat().st_mtime, run=run)
            if line is None:
                continue
            for name, (meaning, value) in FIGURES.items():
                found = value(line)
                if found is not None:
                    sheet.put(name, meaning, float(found), run=run)

    return fill
