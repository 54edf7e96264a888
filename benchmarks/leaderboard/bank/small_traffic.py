"""Traffic of the bank's small fabrics: open loops, shifts of load and sizes, closed loops.

Everything follows from a salt and an index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.salted_choices import choose, shuffled

Table = dict[str, Any]

WARMUP_US = 5_000
INTERVAL_US = 1_000

SIZES = ("FB_Hadoop", "WebSearch", "CacheFollower", "Solar2022", "AliStorage2019")
"""Distributions of flow sizes."""

LOADS = (0.15, 0.2, 0.25, 0.3, 0.35)
"""Payload in flight as a share of the host links."""

FLIPS_US = (10_000, 50_000, 100_000)
BURSTS_US = (50, 100, 200, 500)


@dataclass(frozen=True)
class TrafficCase:
    """What the traffic of a scenario is drawn from."""

    salt: str
    index: int
    intervals: int
    hosts: int
    host_gbps: int

    def choose(self, options: Sequence[Any], what: str) -> Any:
        """Return one of ``options``, which follows from salt, index and ``what``."""
        return choose(options, self.salt, self.index, what)

    def poisson(self, what: str = "", cdf: str | None = None, **more: Any) -> Table:
        """Return a table of open-loop traffic; sizes and load are drawn."""
        return {
            "kind": "poisson",
            "cdf": cdf or self.choose(SIZES, "cdf" + what),
            "load": self.choose(LOADS, "load" + what),
            "load_of": "host",
            **more,
        }

    def microseconds(self, interval: int) -> int:
        """Return when an interval of the run begins."""
        return WARMUP_US + interval * INTERVAL_US


Traffic = tuple[str, list[Table], tuple[int, ...]]
"""What it is in a sentence, its workloads, its phases."""


def _steady(case: TrafficCase) -> Traffic:
    flow = case.poisson()
    return f"{flow['cdf']} at {100 * flow['load']:g} % of the host links", [flow], ()


def _influx(case: TrafficCase) -> Traffic:
    first = case.intervals // 3
    last = first + case.intervals // 4
    base = case.poisson("base", cdf="WebSearch", load=0.15)
    flood = case.poisson(
        "flood", cdf=case.choose(("FB_Hadoop", "Solar2022", "AliStorage2019"), "flood"),
        start_us=case.microseconds(first), stop_us=case.microseconds(last),
    )  # fmt: skip
    words = f"WebSearch; {flood['cdf']} on top from interval {first} to {last}"
    return words, [base, flood], (0, first, last)


def _swap(case: TrafficCase) -> Traffic:
    at = case.intervals // 2
    before, after = shuffled(SIZES, case.salt, case.index, "swap")[:2]
    flows = [
        case.poisson("before", cdf=before, stop_us=case.microseconds(at)),
        case.poisson("after", cdf=after, start_us=case.microseconds(at)),
    ]
    return f"{before}, from interval {at} on {after}", flows, (0, at)


def _steps(case: TrafficCase) -> Traffic:
    cdf = case.choose(SIZES, "cdf")
    steps = shuffled((0.1, 0.2, 0.3, 0.4), case.salt, case.index, "steps")
    each = case.intervals // len(steps)
    starts = tuple(k * each for k in range(len(steps)))
    flows = []
    for k, (start, load) in enumerate(zip(starts, steps, strict=True)):
        one = case.poisson(cdf=cdf, load=load)
        if k:
            one["start_us"] = case.microseconds(start)
        if k + 1 < len(steps):
            one["stop_us"] = case.microseconds(starts[k + 1])
        flows.append(one)
    return f"{cdf} at {', '.join(f'{100 * s:g} %' for s in steps)} in turn", flows, starts


def _flips(case: TrafficCase) -> Traffic:
    each = case.choose(FLIPS_US, "each")
    first, second = shuffled(SIZES, case.salt, case.index, "flips")[:2]
    flows = []
    for k, cdf in enumerate((first, second)):
        start = WARMUP_US + k * each
        flows.append(
            case.poisson(str(k), cdf=cdf, start_us=start, stop_us=start + each, repeat_us=2 * each)
        )
    step = each // INTERVAL_US
    phases = tuple(range(0, case.intervals, step))
    return f"{first} and {second} in turns of {each // 1000} ms", flows, phases


def _bursts(case: TrafficCase) -> Traffic:
    burst_us = case.choose(BURSTS_US, "burst")
    senders = min(8, case.hosts - 1)
    size = burst_us * case.host_gbps * 125 // senders
    base = case.poisson("base", load=0.15)
    burst = {"kind": "incast", "dst": 0, "hosts": list(range(1, senders + 1)), "bytes": size,
             "off_us": case.choose((2_000, 5_000, 10_000), "off")}  # fmt: skip
    words = f"{base['cdf']} at 15 % and bursts of {burst_us} us to one host"
    return words, [base, burst], ()


def _alltoall(case: TrafficCase) -> Traffic:
    workers = case.choose((6, 8, 10), "workers")
    size = case.choose((250_000, 500_000, 1_000_000), "bytes")
    off = case.choose((500, 1_000, 2_000), "off")
    flow = {"kind": "alltoall", "hosts": workers, "bytes": size, "off_us": off}
    return f"all-to-all of {workers} workers, {size // 1000} KB per pair", [flow], ()


def _ring(case: TrafficCase) -> Traffic:
    workers = case.choose((6, 8, 10), "workers")
    size = case.choose((4_000_000, 8_000_000), "bytes")
    ring = {"kind": "ring", "hosts": workers, "bytes": size, "off_us": 1_000}
    noise = case.poisson("noise", load=0.15)
    words = f"ring all-reduce of {workers} ranks, {size // 1_000_000} MB, beside {noise['cdf']}"
    return words, [ring, noise], ()


def _incast(case: TrafficCase) -> Traffic:
    senders = min(case.hosts - 1, case.choose((7, 9, 11), "senders"))
    size = case.choose((200_000, 500_000, 1_000_000), "bytes")
    flow = {"kind": "incast", "dst": 0, "hosts": list(range(1, senders + 1)), "bytes": size,
            "off_us": case.choose((200, 1_000), "off")}  # fmt: skip
    return f"{senders}:1 incast of {size // 1000} KB", [flow], ()


def _permutation(case: TrafficCase) -> Traffic:
    size = case.choose((500_000, 1_000_000, 2_000_000), "bytes")
    flow = {"kind": "permutation", "hosts": "all", "bytes": size, "off_us": 200}
    return f"permutation of {size // 1000} KB, drawn anew each round", [flow], ()


Maker = Callable[[TrafficCase], Traffic]
THIRDS: dict[str, tuple[Maker, ...]] = {
    "steady": (_steady,),
    "shifting": (_influx, _swap, _steps, _flips, _bursts),
    "closed-loop": (_alltoall, _ring, _incast, _permutation),
}
"""How traffic is made, by third."""
