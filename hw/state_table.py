"""The states of a device under change and what each event makes of them: one table.

The guard (:mod:`dcqcn_gym.hw.transaction`) does it; `tests/hw/test_state_table.py` walks every
arrow of this table on a device. ``refused`` leaves the state, the setting and the journal's
confirmed setting as they were.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from dcqcn_gym.hw.device_state import State

Event = Literal[
    "stage", "apply", "confirm", "rollback", "undo", "stop", "release", "time", "meddled",
    "mended", "restart",
]  # fmt: skip
EVENTS: tuple[Event, ...] = get_args(Event)
REFUSED: Final = "refused"

TABLE: dict[State, dict[Event, str]] = {
    "idle": {
        "stage": "staged", "apply": REFUSED, "confirm": REFUSED, "rollback": "idle",
        "undo": "idle", "stop": "stopped", "release": "idle", "time": "idle",
        "meddled": "drifted", "mended": "idle", "restart": "idle",
    },
    "staged": {
        "stage": "staged", "apply": "applied", "confirm": REFUSED, "rollback": "idle",
        "undo": "idle", "stop": "stopped", "release": "staged", "time": "idle",
        "meddled": "drifted", "mended": "staged", "restart": "idle",
    },
    "applied": {
        "stage": REFUSED, "apply": "applied", "confirm": "idle", "rollback": "idle",
        "undo": REFUSED, "stop": "stopped", "release": "applied", "time": "idle",
        "meddled": "idle", "mended": "applied", "restart": "idle",
    },
    "broken": {
        "stage": REFUSED, "apply": REFUSED, "confirm": REFUSED, "rollback": "broken",
        "undo": "broken", "stop": "broken", "release": "broken", "time": "broken",
        "meddled": "broken", "mended": "idle", "restart": "broken",
    },
    "stopped": {
        "stage": REFUSED, "apply": REFUSED, "confirm": REFUSED, "rollback": "stopped",
        "undo": REFUSED, "stop": "stopped", "release": "idle", "time": "stopped",
        "meddled": "stopped", "mended": "stopped", "restart": "stopped",
    },
    "drifted": {
        "stage": REFUSED, "apply": REFUSED, "confirm": REFUSED, "rollback": "idle",
        "undo": "idle", "stop": "stopped", "release": "drifted", "time": "drifted",
        "meddled": "drifted", "mended": "drifted", "restart": "idle",
    },
}  # fmt: skip
"""State -> event -> the state after it. A trial of 5 s is over when a meddler is looked for."""
