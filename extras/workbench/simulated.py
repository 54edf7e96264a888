"""A simulation's tables as the series that logs become."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dcqcn_gym.core.files import read_file
from dcqcn_gym.core.interval import IntArray
from dcqcn_gym.report.series import FlowTable, Series

_MOST_BYTES = 2**30


def simulated_series(folder: Path) -> Series:
    """Return ``intervals.csv`` and ``flows.csv`` as a series; its unfinished flows are not known.

    Raises ConfigError for a file that cannot be read, ValueError for one with other columns.
    """
    flows = _table(folder / "flows.csv")
    return Series(
        header={},
        end=None,
        records=[_record(line) for line in _table(folder / "intervals.csv")],
        finished=FlowTable(
            _column(flows, "bytes", 1),
            _column(flows, "start_ns", 1000),
            _column(flows, "ideal_fct_ns", 1000),
        ),
        fct_ps=_column(flows, "fct_ns", 1000),
        flow_interval=np.zeros(len(flows), np.int64),
        left=None,
    )


def _table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(read_file(path, _MOST_BYTES).decode())))


def _column(rows: list[dict[str, str]], name: str, scale: int) -> IntArray:
    try:
        return np.array([round(float(row[name]) * scale) for row in rows], dtype=np.int64)
    except (KeyError, TypeError) as error:
        raise ValueError(f"flows.csv has no column {name}") from error


def _record(line: Mapping[str, str]) -> dict[str, Any]:
    """Return an interval under the names of logs: times in ps, an empty cell as not known."""
    found: dict[str, Any] = {}
    for name, text in line.items():
        if text:
            value = float(text)
            found[f"{name[:-3]}_ps" if name.endswith("_ns") else name] = (
                value * 1000 if name.endswith("_ns") else value
            )
    return {"start_ps": 0.0, "end_ps": 0.0, **found, "idle": bool(found.get("idle"))}
