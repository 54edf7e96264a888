"""Older logs: the header of a run as today's program would have written it.

Only line 1 ever changed, so a log of schema 1 is reported and continued like any other; its file
keeps the line 1 that it has.

Schema 2: the scenario's ``rp`` is an option of ``scheme``, and it has ``knobs`` and ``groups``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcqcn_gym.core.knobs import TUNED_KNOBS

__all__ = ["upgraded"]


def upgraded(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header of a log of any earlier schema in the layout of the newest one."""
    if header["schema"] > 1 or not isinstance(header.get("scenario"), Mapping):
        return dict(header)
    scenario = {"knobs": list(TUNED_KNOBS), "groups": [], **header["scenario"]}
    scenario["scheme"] = {"name": "dcqcn", "rp": scenario.pop("rp", "nic")}
    return {**header, "schema": 2, "scenario": scenario}
