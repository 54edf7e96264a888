"""Older logs: the header of a run as today's program would have written it.

Line 1 and the last line are all that ever changed, so an older log is reported and continued like
any other; its file keeps the line 1 that it has.

Since then workloads have ``connections``; a log without them had one for each pair of hosts.

Schema 3: the last line holds ``unfinished`` and ``running_rounds``. They were not recorded before,
so figures that need them are unknown for older logs.

Schema 2: the scenario's ``rp`` is an option of ``scheme``, and it has ``knobs`` and ``groups``;
beside each rate in Gb/s stands one in ``ps_per_byte``; ``switch`` has ``ecmp_salt``, ``ecmp_table``
and ``ack_class``; ``monitor`` has the options of its own kind alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcqcn_gym.core.knobs import TUNED_KNOBS
from dcqcn_gym.envs.scenario.monitor import own_options

__all__ = ["upgraded"]

_CONNECTED = ("poisson", "alltoall", "incast", "permutation", "pairs")
_SWITCH = {"ecmp_salt": 0, "ecmp_table": [], "ack_class": "control"}


def upgraded(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header of a log of any earlier schema in the layout of the newest one."""
    if not isinstance(header.get("scenario"), Mapping):
        return dict(header)
    header = {**header, "scenario": _with_connections(header["scenario"])}
    if header["schema"] >= 2:
        return {**header, "schema": max(header["schema"], 3)}
    scenario = {"knobs": list(TUNED_KNOBS), "groups": [], **header["scenario"]}
    scenario["scheme"] = {"name": "dcqcn", "rp": scenario.pop("rp", "nic")}
    if isinstance(scenario.get("switch"), Mapping):
        scenario["switch"] = {**_SWITCH, **scenario["switch"]}
    if isinstance(scenario.get("monitor"), Mapping):
        scenario["monitor"] = own_options(scenario["monitor"])
    if "topology" in scenario:
        scenario["topology"] = _with_rates(scenario["topology"])
    return {**header, "schema": 3, "scenario": scenario}


def _with_connections(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario whose workloads say how many connections a pair of hosts has."""
    workloads = scenario.get("workloads")
    if not isinstance(workloads, list):
        return dict(scenario)
    filled = [
        {"connections": 1, **w} if isinstance(w, Mapping) and w.get("kind") in _CONNECTED else w
        for w in workloads
    ]
    return {**scenario, "workloads": filled}


def _with_rates(value: Any) -> Any:
    """Return a topology, or a part of one, with a ``ps_per_byte`` for every ``gbps``: None."""
    if isinstance(value, list):
        return [_with_rates(part) for part in value]
    if not isinstance(value, Mapping):
        return value
    rates = {k.replace("gbps", "ps_per_byte"): None for k in value if k.endswith("gbps")}
    return {**rates, **{key: _with_rates(part) for key, part in value.items()}}
