"""Fifty cases for decisions: networks of at most 16 hosts with traffic, 16 of which cannot gain.

Without a gain by construction: one host sends, over links none of which is slower than its own, so
no queue builds up and nothing is marked; or two hosts, each the only one that sends to the other.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from dcqcn_gym.core.config import validate
from dcqcn_gym.envs.scenario.scenario import Scenario

CASES = 50
WITHOUT_GAIN = 16
INTERVALS = 60
"""Budget of the search, in intervals of half a millisecond."""

_SEED = 32
_CDFS = ("FB_Hadoop", "CacheFollower", "WebServer", "AliStorage2019", "WebSearch", "Solar2022")


@dataclass(frozen=True)
class Case:
    """A scenario, and whether a gain is impossible by construction."""

    name: str
    scenario: Scenario
    without_gain: bool


def cases() -> list[Case]:
    """Return all cases; the same on every call."""
    draw = random.Random(_SEED)
    made = [_case(i, _lonely(draw)) for i in range(WITHOUT_GAIN)]
    return made + [_case(i, _crowded(draw)) for i in range(WITHOUT_GAIN, CASES)]


def _case(number: int, tables: dict[str, Any]) -> Case:
    name = f"case-{number:02d}"
    common = {"name": name, "description": "a case for decisions", "intervals": INTERVALS}
    weights = {"tp": 0.4, "rtt": 0.4, "pfc": 0.2}
    scenario = validate({**common, "weights": weights, **tables}, Scenario, source=name)
    return Case(name, scenario, number < WITHOUT_GAIN)


def _lonely(draw: random.Random) -> dict[str, Any]:
    """Return a network in which no two flows of different hosts meet."""
    gbps = draw.choice([10, 25, 40])
    hosts = draw.choice([2, 2, 4, 8])
    load = draw.uniform(0.1, 0.4)
    traffic = {"kind": "poisson", "cdf": draw.choice(_CDFS[:4]), "load": round(load, 2)}
    if hosts > 2:
        traffic |= {"hosts": [0], "dsts": list(range(1, hosts))}
    topology = {"kind": "single-switch", "hosts": hosts, "gbps": gbps}
    return {"topology": topology, "workloads": [traffic], **_initial(draw)}


def _crowded(draw: random.Random) -> dict[str, Any]:
    """Return a network in which flows meet: at an uplink, at a receiver or in an incast."""
    gbps = draw.choice([10, 10, 25])
    load = round(draw.uniform(0.2, 0.7), 2)
    kind = draw.choice(["single-switch", "dumbbell", "leaf-spine"])
    of = "host" if kind == "single-switch" else "uplink"
    traffic = {"kind": "poisson", "cdf": draw.choice(_CDFS), "load": load, "load_of": of}
    if kind == "single-switch":
        topology = {"kind": kind, "hosts": draw.choice([4, 6]), "gbps": gbps}
    elif kind == "dumbbell":
        side = draw.choice([3, 4])
        topology = {
            "kind": kind, "left": side, "right": side, "host_gbps": gbps, "bottleneck_gbps": gbps,
        }  # fmt: skip
        traffic["load_of"], traffic["load"] = "host", round(load / side * 2, 2)
    else:
        topology = {
            "kind": kind, "tors": 2, "hosts_per_tor": draw.choice([3, 4]), "spines": 2,
            "host_gbps": gbps, "uplink_gbps": gbps,
        }  # fmt: skip
    workloads: list[dict[str, Any]] = [traffic]
    if draw.random() < 0.3:
        burst = {"kind": "incast", "hosts": [1, 2, 3], "bytes": draw.choice([20_000, 200_000])}
        workloads.append({**burst, "off_us": 1000})
    return {"topology": topology, "workloads": workloads, **_initial(draw)}


def _initial(draw: random.Random) -> dict[str, Any]:
    """Return in a third of the cases a present setting that differs from NVIDIA's default."""
    if draw.random() > 0.34:
        return {}
    kmin = draw.choice([20, 50, 200])
    return {
        "initial": {
            "rp_ai_rate": draw.choice([2, 20, 100]),
            "kmin": kmin,
            "kmax": kmin * draw.choice([2, 8]),
            "pmax": draw.choice([0.05, 0.2, 1.0]),
        }
    }
