"""The network of the DCQCN+ paper, Fig. 2: eight senders, one receiver, one switch.

What it leaves open is ours: links of 1 us; a buffer of which PFC lets the one congested port fill
4.9 MB (section V-A), shared by eight equally loaded ports: with alpha = 1/8 half of it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from dcqcn_gym.envs.scenario.scenario import Scenario

__all__ = ["HELD_BYTES", "ROWS", "SINK", "UNLIMITED", "flows_at_random", "incast"]

SINK = (9, 0)
"""(node, peer) of the congested port: the switch, towards the receiver."""
UNLIMITED = 2**40
"""Bytes of a flow that never ends here."""
HELD_BYTES = 4_900_000
"""The queue at which PFC holds an incast (section III-C and V-A)."""

ROWS: Mapping[str, Mapping[str, Any]] = {
    "dcqcn": {"scheme": {"name": "dcqcn", "rp": "paper"}, "initial": "dcqcn-paper-scaled"},
    "cx4": {"scheme": {"name": "dcqcn", "rp": "paper"}, "initial": "cx4"},
    "dcqcn-plus": {"scheme": "dcqcn-plus", "initial": "dcqcn-plus"},
    "timely": {"scheme": "timely", "initial": "default"},
}
"""Schemes with the setting that the paper gives them."""


def incast(row: Mapping[str, Any], gbps: int, flows: list[dict[str, int]]) -> Scenario:
    """Return the network with a scheme and its setting, and these flows from hosts 1 to 8 to 0."""
    return Scenario.model_validate(
        {
            "name": "incast-of-8",
            "warmup_us": 0,
            "topology": {"kind": "single-switch", "hosts": 9, "gbps": gbps, "delay_us": 1},
            "switch": {"buffer_bytes": 2 * HELD_BYTES, "alpha": 0.125},
            "monitor": {"kind": "none"},
            "workloads": [{"kind": "flows", "flows": flows}],
            **row,
        }
    )


def flows_at_random(count: int, within_ms: float, seed: int, size: int) -> list[dict[str, int]]:
    """Return ``count`` flows of ``size`` bytes, as many from each sender, with random starts."""
    draw = random.Random(seed)
    starts = sorted(draw.randrange(round(within_ms * 1e6)) for _ in range(count))
    return [
        {"src": 1 + i % 8, "dst": 0, "bytes": size, "start_ns": start}
        for i, start in enumerate(starts)
    ]
