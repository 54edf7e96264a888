"""The bank: fabrics and traffic far wider than the suites', to fit rules on and to validate them.

12 to 1,024 hosts, 10 to 400 Gb/s, fan-in to 255, oversubscription to 8, buffers from a quarter to
four times the usual, round trips of 5 to 100 us, incasts beside mice of every strength, mixed
classes and closed loops. What is fitted sees :data:`TRAINING` kinds alone, what is validated
:data:`VALIDATION` kinds; no fabric of either is one of a suite. All follows from the salt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dcqcn_gym.benchmarks.leaderboard.bank import small_traffic
from dcqcn_gym.benchmarks.leaderboard.salted_choices import choose, number
from dcqcn_gym.core.config import validate
from dcqcn_gym.envs.scenario.scenario import Scenario

Table = dict[str, Any]
Part = Literal["training", "validation"]

SIZES = ("FB_Hadoop", "WebSearch", "CacheFollower", "AliStorage2019", "WebServer", "Solar2022")
RATES = (10, 25, 50, 100, 200, 400)
ROUND_TRIPS_US = (5, 12, 24, 48, 100)
BUFFERS = (0.25, 0.5, 1.0, 1.0, 2.0, 4.0)
PACKETS_PER_MS = 60_000
"""About so many packets a millisecond at most: what keeps an evaluation below a second."""


@dataclass(frozen=True)
class _BankScenario:
    """One scenario in the making; ``pick`` draws for it."""

    salt: str
    index: int

    def pick(self, options: Sequence[Any], what: str) -> Any:
        return choose(options, self.salt, self.index, what)

    def share(self, what: str) -> float:
        """Return a number in 0..1."""
        return number(self.salt, self.index, what) / 2**64


@dataclass(frozen=True)
class _Net:
    """A drawn fabric: its table, its hosts and their rate."""

    table: Table
    hosts: int
    gbps: int


def _delay(case: _BankScenario, links: int) -> float:
    """Return a link's delay of a path of so many links."""
    return float(case.pick(ROUND_TRIPS_US, "rtt") / 2 / links)


def _star(case: _BankScenario) -> _Net:
    hosts, gbps = case.pick((16, 24, 32, 48, 64, 96, 128, 256), "hosts"), case.pick(RATES, "rate")
    delay = _delay(case, 2)
    return _Net({"kind": "single-switch", "hosts": hosts, "gbps": gbps, "delay_us": delay},
                hosts, gbps)  # fmt: skip


def _racks(case: _BankScenario) -> _Net:
    tors, each = case.pick(((2, 16), (4, 8), (4, 16), (8, 8), (8, 16), (16, 16)), "racks")
    gbps, over = case.pick(RATES, "rate"), case.pick((1, 2, 4, 8), "over")
    delay = _delay(case, 4)
    return _Net({"kind": "leaf-spine", "tors": tors, "hosts_per_tor": each,
                 "oversubscription": over, "host_gbps": gbps, "uplink_gbps": gbps,
                 "host_delay_us": delay, "uplink_delay_us": delay}, tors * each, gbps)  # fmt: skip


def _fat_tree(case: _BankScenario) -> _Net:
    k, gbps = case.pick((4, 6, 8, 16), "k"), case.pick(RATES, "rate")
    up = case.pick((1, 2, k // 2), "up")
    return _Net({"kind": "fat-tree", "k": k, "cores_per_agg": min(up, k // 2), "host_gbps": gbps,
                 "edge_gbps": gbps, "core_gbps": gbps, "delay_us": _delay(case, 6)},
                k**3 // 4, gbps)  # fmt: skip


def _dumbbell(case: _BankScenario) -> _Net:
    side, gbps = case.pick((8, 16), "side"), case.pick(RATES, "rate")
    over = case.pick((2, 4, 8), "over")
    delay = _delay(case, 3)
    return _Net({"kind": "dumbbell", "left": side, "right": side, "host_gbps": gbps,
                 "bottleneck_gbps": min(gbps * side // over, 800), "host_delay_us": delay,
                 "bottleneck_delay_us": delay}, 2 * side, gbps)  # fmt: skip


def _small(case: _BankScenario) -> _Net:
    gbps, delay = case.pick((10, 25, 25, 50, 100), "rate"), case.pick((1.5, 3.0, 6.0, 8.0), "delay")
    kind = case.pick(("single-switch", "leaf-spine", "dumbbell"), "kind")
    half = case.pick((6, 7, 8, 10), "half")
    if kind == "single-switch":
        table: Table = {"hosts": 2 * half, "gbps": gbps, "delay_us": 2 * delay}
    elif kind == "leaf-spine":
        table = {"tors": 2, "hosts_per_tor": half, "host_gbps": gbps, "uplink_gbps": gbps,
                 "spines": case.pick((1, 2, 4), "spines"), "host_delay_us": delay,
                 "uplink_delay_us": delay}  # fmt: skip
    else:
        table = {"left": half, "right": half, "host_gbps": gbps, "host_delay_us": delay,
                 "bottleneck_gbps": 2 * gbps, "bottleneck_delay_us": delay}  # fmt: skip
    return _Net({"kind": kind, **table}, 2 * half, gbps)


def _per_ms(net: _Net, share: float) -> float:
    """Return packets a millisecond of so many host links."""
    return share * net.gbps * 1e6 / 8 / 1062


def _poisson(case: _BankScenario, net: _Net, loads: Sequence[float], what: str = "") -> Table:
    """Return open-loop traffic of as many hosts as the evaluation can afford."""
    load = case.pick(loads, "load" + what)
    most = math.floor(PACKETS_PER_MS / _per_ms(net, load))
    hosts = {} if most >= net.hosts else {"hosts": max(most, 8)}
    return {"kind": "poisson", "cdf": case.pick(SIZES, "cdf" + what), "load": load,
            "load_of": "host", **hosts}  # fmt: skip


def _fan_in(case: _BankScenario, net: _Net, dst: int = 0, what: str = "") -> Table:
    senders = min(case.pick((7, 15, 31, 63, 127, 255), "senders" + what), net.hosts - 1)
    hosts = [(dst + 1 + i * (net.hosts - 1) // senders) % net.hosts for i in range(senders)]
    size = case.pick((0.2, 1.0, 4.0), "bytes" + what) * net.gbps * 125_000 / senders
    return {"kind": "incast", "dst": dst, "hosts": hosts, "bytes": max(round(size), 2_000),
            "off_us": case.pick((100, 500, 2_000), "off" + what)}  # fmt: skip


def _steady(case: _BankScenario, net: _Net) -> list[Table]:
    return [_poisson(case, net, (0.1, 0.2, 0.3, 0.4))]


def _incast(case: _BankScenario, net: _Net) -> list[Table]:
    beside = _poisson(case, net, (0.005, 0.02, 0.05, 0.1))
    if case.share("rpc") < 0.4:
        beside["cdf"] = "SolarRPC_approx"
    return [_fan_in(case, net), beside]


def _two_incasts(case: _BankScenario, net: _Net) -> list[Table]:
    return [_fan_in(case, net), _fan_in(case, net, net.hosts // 2, "two"),
            _poisson(case, net, (0.01, 0.05))]  # fmt: skip


def _exchange(case: _BankScenario, net: _Net) -> list[Table]:
    workers = min(case.pick((8, 12, 16), "workers"), net.hosts)
    size = max(round(case.pick((0.02, 0.05), "bytes") * net.gbps * 125_000), 2_000)
    beside = [_poisson(case, net, (0.02, 0.05))] if case.share("beside") < 0.7 else []
    exchange = {"kind": "alltoall", "hosts": workers, "bytes": size,
                "off_us": case.pick((500, 2_000), "off")}  # fmt: skip
    return [exchange, *beside]


def _ring(case: _BankScenario, net: _Net) -> list[Table]:
    ranks = min(case.pick((8, 16), "ranks"), net.hosts)
    size = max(round(net.gbps * 125_000 * case.pick((0.5, 2.0), "bytes")), 16_000)
    return [{"kind": "ring", "hosts": ranks, "bytes": size, "off_us": 1_000},
            _poisson(case, net, (0.05, 0.1))]  # fmt: skip


def _drawn(case: _BankScenario, net: _Net) -> list[Table]:
    """Return traffic of the kinds that suites have, on a fabric that they have not."""
    thirds = tuple(small_traffic.THIRDS.values())
    makers = thirds[(case.index // 2) % len(thirds)]
    maker = makers[(case.index // (2 * len(thirds))) % len(makers)]
    drawn = small_traffic.TrafficCase(case.salt, case.index, SMALL_INTERVALS, net.hosts, net.gbps)
    return maker(drawn)[1]


Fabric = Callable[[_BankScenario], _Net]
Traffic = Callable[[_BankScenario, _Net], list[Table]]
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
    return [
        _scenario(_BankScenario(f"{part}\x1f{salt}", i), *kinds[i % len(kinds)])
        for i in range(count)
    ]


def _scenario(case: _BankScenario, fabric: Fabric, traffic: Traffic) -> Scenario:
    net = fabric(case)
    name = f"{case.index:03d}{fabric.__name__}{traffic.__name__}".replace("_", "-")
    table: Table = {
        "name": name,
        "intervals": SMALL_INTERVALS if fabric is _small else INTERVALS,
        "warmup_us": 2_000,
        "topology": net.table,
        "monitor": {"kind": "none"},
        "workloads": traffic(case, net),
    }
    whole = validate(table, Scenario, source=name)
    scale = case.pick(BUFFERS, "buffer")
    buffer = round(whole.buffer_bytes * scale)
    buffer = max(buffer, round(1.25 * whole.set_aside_bytes))  # a fifth of it is shared at least
    return validate({**table, "switch": {"buffer_bytes": buffer}}, Scenario, source=name)
