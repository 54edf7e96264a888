"""What the board takes from the log of one run: figures for the score, and how the run went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.core.sums import count
from dcqcn_gym.core.verdict import Measured
from dcqcn_gym.report.judged import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.log_line import WIRE_FIELDS

__all__ = ["CHECKPOINTS", "Reading", "read_stage"]

FloatArray = npt.NDArray[np.float64]

CHECKPOINTS = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Shares of the budget at which an online run is scored as if it ended there."""


@dataclass(frozen=True, eq=False)
class Reading:
    """One finished run. ``so_far`` is what was measured up to each of :data:`CHECKPOINTS`.

    Rounds of collectives that were under way count at their age at the end only. ``utility`` has a
    value per interval, 1 where idle. ``wire_bytes`` are those of an interval, for measuring and
    tuning. ``recommended`` is the setting in NVIDIA's units, or one per group of devices.
    """

    whole: Measured
    so_far: tuple[Measured, ...]
    utility: FloatArray
    wire_bytes: float
    recommended: Mapping[str, Any]


def read_stage(path: Path, *, course: bool) -> Reading | None:
    """Return a finished run; None if it is not there or not finished.

    Without ``course`` only the whole is measured, ``so_far`` stays empty.
    """
    try:
        series = Series.of(read_run(path))
    except DcqcnGymError:
        return None
    if series.end is None:
        return None
    whole = measured(series)
    size = len(series)
    stops = [round(share * size) for share in CHECKPOINTS] if course else []
    sent = [r.get("wire", {}).get(name, 0) for r in series.records for name in WIRE_FIELDS]
    return Reading(
        whole=whole,
        so_far=tuple(whole if n == size else measured(series.first(n)) for n in stops),
        utility=series.utility,
        wire_bytes=count(sent) / size if size else 0.0,
        recommended=series.end.get("recommended") or {},
    )
