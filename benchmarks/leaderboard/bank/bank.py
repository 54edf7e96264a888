"""The bank: fabrics and traffic far wider than the suites', to fit rules on and to validate them.

12 to 1,024 hosts, 10 to 400 Gb/s, fan-in to 255, oversubscription to 8, buffers from a quarter to
four times the usual, round trips of 5 to 100 us, incasts beside mice of every strength, mixed
classes and closed loops. What is fitted sees :data:`TRAINING` kinds alone, what is validated
:data:`VALIDATION` kinds; no fabric of either is one of a suite. All follows from the salt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from dcqcn_gym.benchmarks.leaderboard.generator import Draws, Net, Table, TrafficCase, steps, swap
from dcqcn_gym.benchmarks.leaderboard.salted_choices import number, shuffled
from dcqcn_gym.core.config import validate
from dcqcn_gym.envs.scenario.scenario import Scenario

Part = Literal["training", "validation"]

SIZES = ("FB_Hadoop", "WebSearch", "CacheFollower", "AliStorage2019", "WebServer", "Solar2022")
SMALL_SIZES = ("FB_Hadoop", "WebSearch", "CacheFollower", "Solar2022", "AliStorage2019")
RATES = (10, 25, 50, 100, 200, 400)
ROUND_TRIPS_US = (5, 12, 24, 48, 100)
BUFFERS = (0.25, 0.5, 1.0, 1.0, 2.0, 4.0)
PACKETS_PER_MS = 60_000
"""About so many packets a millisecond at most: what keeps an evaluation below a second."""


def _delay(of: Draws, links: int) -> float:
    """Return a link's delay of a path of so many links."""
    return float(of.choose(ROUND_TRIPS_US, "rtt") / 2 / links)


def _star(of: Draws) -> Net:
    hosts, gbps = of.choose((16, 24, 32, 48, 64, 96, 128, 256), "hosts"), of.choose(RATES, "rate")
    table = {"kind": "single-switch", "hosts": hosts, "gbps": gbps, "delay_us": _delay(of, 2)}
    return Net("star", table, hosts, gbps)


def _racks(of: Draws) -> Net:
    tors, each = of.choose(((2, 16), (4, 8), (4, 16), (8, 8), (8, 16), (16, 16)), "racks")
    gbps, over = of.choose(RATES, "rate"), of.choose((1, 2, 4, 8), "over")
    delay = _delay(of, 4)
    table = {"kind": "leaf-spine", "tors": tors, "hosts_per_tor": each, "oversubscription": over,
             "host_gbps": gbps, "uplink_gbps": gbps, "host_delay_us": delay,
             "uplink_delay_us": delay}  # fmt: skip
    return Net("racks", table, tors * each, gbps)


def _fat_tree(of: Draws) -> Net:
    k, gbps = of.choose((4, 6, 8, 16), "k"), of.choose(RATES, "rate")
    up = of.choose((1, 2, k // 2), "up")
    table = {"kind": "fat-tree", "k": k, "cores_per_agg": min(up, k // 2), "host_gbps": gbps,
             "edge_gbps": gbps, "core_gbps": gbps, "delay_us": _delay(of, 6)}  # fmt: skip
    return Net("fat-tree", table, k**3 // 4, gbps)


def _dumbbell(of: Draws) -> Net:
    side, gbps = of.choose((8, 16), "side"), of.choose(RATES, "rate")
    over = of.choose((2, 4, 8), "over")
    delay = _delay(of, 3)
    table = {"kind": "dumbbell", "left": side, "right": side, "host_gbps": gbps,
             "bottleneck_gbps": min(gbps * side // over, 800), "host_delay_us": delay,
             "bottleneck_delay_us": delay}  # fmt: skip
    return Net("dumbbell", table, 2 * side, gbps)


def _small(of: Draws) -> Net:
    gbps, delay = of.choose((10, 25, 25, 50, 100), "rate"), of.choose((1.5, 3.0, 6.0, 8.0), "delay")
    kind = of.choose(("single-switch", "leaf-spine", "dumbbell"), "kind")
    half = of.choose((6, 7, 8, 10), "half")
    if kind == "single-switch":
        table: Table = {"hosts": 2 * half, "gbps": gbps, "delay_us": 2 * delay}
    elif kind == "leaf-spine":
        table = {"tors": 2, "hosts_per_tor": half, "host_gbps": gbps, "uplink_gbps": gbps,
                 "spines": of.choose((1, 2, 4), "spines"), "host_delay_us": delay,
                 "uplink_delay_us": delay}  # fmt: skip
    else:
        table = {"left": half, "right": half, "host_gbps": gbps, "host_delay_us": delay,
                 "bottleneck_gbps": 2 * gbps, "bottleneck_delay_us": delay}  # fmt: skip
    return Net("small", {"kind": kind, **table}, 2 * half, gbps)


def _poisson(case: TrafficCase, loads: Sequence[float], what: str = "") -> Table:
    """Return open-loop traffic of as many hosts as the evaluation can afford."""
    load, net = case.choose(loads, "load" + what), case.net
    most = math.floor(PACKETS_PER_MS / (load * net.gbps * 1e6 / 8 / 1062))
    hosts = {} if most >= net.hosts else {"hosts": max(most, 8)}
    return {"kind": "poisson", "cdf": case.choose(SIZES, "cdf" + what), "load": load,
            "load_of": "host", **hosts}  # fmt: skip


def _fan_in(case: TrafficCase, dst: int = 0, what: str = "") -> Table:
    net = case.net
    senders = min(case.choose((7, 15, 31, 63, 127, 255), "senders" + what), net.hosts - 1)
    hosts = [(dst + 1 + i * (net.hosts - 1) // senders) % net.hosts for i in range(senders)]
    size = case.choose((0.2, 1.0, 4.0), "bytes" + what) * net.gbps * 125_000 / senders
    return {"kind": "incast", "dst": dst, "hosts": hosts, "bytes": max(round(size), 2_000),
            "off_us": case.choose((100, 500, 2_000), "off" + what)}  # fmt: skip


def _share(case: TrafficCase, what: str) -> float:
    """Return a number in 0..1."""
    return number(*case.words, what) / 2**64


def _steady(case: TrafficCase) -> list[Table]:
    return [_poisson(case, (0.1, 0.2, 0.3, 0.4))]


def _incast(case: TrafficCase) -> list[Table]:
    beside = _poisson(case, (0.005, 0.02, 0.05, 0.1))
    if _share(case, "rpc") < 0.4:
        beside["cdf"] = "SolarRPC_approx"
    return [_fan_in(case), beside]


def _two_incasts(case: TrafficCase) -> list[Table]:
    return [_fan_in(case), _fan_in(case, case.net.hosts // 2, "two"),
            _poisson(case, (0.01, 0.05))]  # fmt: skip


def _exchange(case: TrafficCase) -> list[Table]:
    workers = min(case.choose((8, 12, 16), "workers"), case.net.hosts)
    size = max(round(case.choose((0.02, 0.05), "bytes") * case.net.gbps * 125_000), 2_000)
    beside = [_poisson(case, (0.02, 0.05))] if _share(case, "beside") < 0.7 else []
    exchange = {"kind": "alltoall", "hosts": workers, "bytes": size,
                "off_us": case.choose((500, 2_000), "off")}  # fmt: skip
    return [exchange, *beside]


def _ring(case: TrafficCase) -> list[Table]:
    ranks = min(case.choose((8, 16), "ranks"), case.net.hosts)
    size = max(round(case.net.gbps * 125_000 * case.choose((0.5, 2.0), "bytes")), 16_000)
    return [{"kind": "ring", "hosts": ranks, "bytes": size, "off_us": 1_000},
            _poisson(case, (0.05, 0.1))]  # fmt: skip


def _mix(case: TrafficCase) -> list[Table]:
    return [case.poisson()]


def _influx(case: TrafficCase) -> list[Table]:
    first = case.intervals // 3
    flood = case.choose(("FB_Hadoop", "Solar2022", "AliStorage2019"), "flood")
    start, stop = case.at(first), case.at(first + case.intervals // 4)
    return [case.poisson(cdf="WebSearch", load=0.15),
            case.poisson("flood", cdf=flood, start_us=start, stop_us=stop)]  # fmt: skip


def _flips(case: TrafficCase) -> list[Table]:
    each = case.choose((10_000, 50_000, 100_000), "each")
    starts = (case.warmup_us, case.warmup_us + each)
    sizes = shuffled(case.sizes, *case.words, "flips")
    return [
        case.poisson(str(k), cdf=sizes[k], start_us=at, stop_us=at + each, repeat_us=2 * each)
        for k, at in enumerate(starts)
    ]


def _bursts(case: TrafficCase) -> list[Table]:
    senders = min(8, case.net.hosts - 1)
    size = case.choose((50, 100, 200, 500), "burst") * case.net.gbps * 125 // senders
    burst = {"kind": "incast", "dst": 0, "hosts": list(range(1, senders + 1)), "bytes": size,
             "off_us": case.choose((2_000, 5_000, 10_000), "off")}  # fmt: skip
    return [case.poisson("base", load=0.15), burst]


def _small_alltoall(case: TrafficCase) -> list[Table]:
    return [{"kind": "alltoall", "hosts": case.choose((6, 8, 10), "workers"),
             "bytes": case.choose((250_000, 500_000, 1_000_000), "bytes"),
             "off_us": case.choose((500, 1_000, 2_000), "off")}]  # fmt: skip


def _small_ring(case: TrafficCase) -> list[Table]:
    ring = {"kind": "ring", "hosts": case.choose((6, 8, 10), "workers"),
            "bytes": case.choose((4_000_000, 8_000_000), "bytes"), "off_us": 1_000}  # fmt: skip
    return [ring, case.poisson("noise", load=0.15)]


def _small_incast(case: TrafficCase) -> list[Table]:
    senders = min(case.net.hosts - 1, case.choose((7, 9, 11), "senders"))
    return [{"kind": "incast", "dst": 0, "hosts": list(range(1, senders + 1)),
             "bytes": case.choose((200_000, 500_000, 1_000_000), "bytes"),
             "off_us": case.choose((200, 1_000), "off")}]  # fmt: skip


def _permutation(case: TrafficCase) -> list[Table]:
    size = case.choose((500_000, 1_000_000, 2_000_000), "bytes")
    return [{"kind": "permutation", "hosts": "all", "bytes": size, "off_us": 200}]


Traffic = Callable[[TrafficCase], list[Table]]
_THIRDS: tuple[tuple[Traffic, ...], ...] = (
    (_mix,),
    (_influx, lambda case: swap(case)[1], lambda case: steps(case)[1], _flips, _bursts),
    (_small_alltoall, _small_ring, _small_incast, _permutation),
)
"""Traffic of the small fabrics: steady, shifting, closed loops."""


def _drawn(case: TrafficCase) -> list[Table]:
    """Return traffic of the kinds that suites have, on a fabric that they have not."""
    turn = int(case.words[1]) // 2
    makers = _THIRDS[turn % len(_THIRDS)]
    return makers[turn // len(_THIRDS) % len(makers)](case)


Fabric = Callable[[Draws], Net]
TRAINING: tuple[tuple[Fabric, Traffic], ...] = (
    (_star, _incast), (_small, _drawn), (_racks, _steady), (_small, _drawn), (_racks, _incast),
    (_small, _drawn), (_star, _steady), (_small, _drawn), (_racks, _exchange), (_small, _drawn),
)  # fmt: skip
VALIDATION: tuple[tuple[Fabric, Traffic], ...] = (
    (_fat_tree, _incast), (_dumbbell, _steady), (_racks, _two_incasts), (_fat_tree, _steady),
    (_star, _ring), (_dumbbell, _incast),
)  # fmt: skip
"""Kinds (fabric, traffic) in turn; the two parts have none in common."""

INTERVALS, SMALL_INTERVALS = 10, 24


def bank(salt: str, count: int, part: Part = "training") -> list[Scenario]:
    """Return ``count`` scenarios of a part; each has room in its buffer for headroom."""
    kinds = TRAINING if part == "training" else VALIDATION
    return [_scenario((f"{part}\x1f{salt}", i), *kinds[i % len(kinds)]) for i in range(count)]


def _scenario(words: tuple[str, int], fabric: Fabric, traffic: Traffic) -> Scenario:
    net = fabric(Draws(words))
    case = TrafficCase(
        words, net, SMALL_INTERVALS, 1_000, loads=(0.15, 0.2, 0.25, 0.3, 0.35),
        steps=(0.1, 0.2, 0.3, 0.4), sizes=SMALL_SIZES, warmup_us=5_000,
    )  # fmt: skip
    name = f"{words[1]:03d}-{net.name}{traffic.__name__}".replace("_", "-")
    table: Table = {
        "name": name,
        "intervals": SMALL_INTERVALS if fabric is _small else INTERVALS,
        "warmup_us": 2_000,
        "topology": net.table,
        "monitor": {"kind": "none"},
        "workloads": traffic(case),
    }
    whole = validate(table, Scenario, source=name)
    scale = case.choose(BUFFERS, "buffer")
    buffer = round(whole.buffer_bytes * scale)
    buffer = max(buffer, round(1.25 * whole.set_aside_bytes))  # a fifth of it is shared at least
    return validate({**table, "switch": {"buffer_bytes": buffer}}, Scenario, source=name)
