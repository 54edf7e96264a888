"""Draws scenarios of suites from a salt: kinds of traffic on fabrics of 25 to 400 Gb/s.

Everything follows from the salt and an index, the number in the scenario's name. TCP beside RoCE
came after ``dev-v2`` and ``test-v2`` were drawn; new suites are drawn of :data:`NEXT_KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dcqcn_gym.benchmarks.leaderboard.salted_choices import choose, shuffled
from dcqcn_gym.benchmarks.leaderboard.training_jobs import JOBS, packed_job
from dcqcn_gym.core.errors import ConfigError

Table = dict[str, Any]

INTERVALS = 100
SEASON_INTERVALS = 300
"""The budget of a season's runs: the longest published search, PARALEON's, takes 280."""
LEAST_MOVED = 0.02
MOST_ATTEMPTS = 100
WARMUP_US = 3_000
SIZES = ("FB_Hadoop", "WebSearch", "CacheFollower", "AliStorage2019", "Solar2022")
INTERVAL_US = {25: 1_000, 40: 1_000, 50: 500, 100: 500, 200: 250, 400: 125}
"""An interval by the hosts' rate: about as many packets in each."""
BUFFERS = (0.25, 0.5, 1.0, 1.0, 2.0)
"""Shares of the usual buffer, 12 MiB at 100 Gb/s."""


WEIGHTS: tuple[Table, ...] = (
    {"tp": 0.2, "rtt": 0.5, "pfc": 0.3},
    {"tp": 0.5, "rtt": 0.2, "pfc": 0.3},
)
"""PARALEON's two settings of the utility's weights."""


@dataclass(frozen=True)
class DrawnScenario:
    """A scenario of a suite: its file's table, its third, and where its phases begin.

    ``phases`` are intervals (0 is the first of the run) at which the traffic changes.
    """

    name: str
    third: str
    table: Table
    phases: tuple[int, ...] = ()


@dataclass(frozen=True)
class Net:
    """A fabric: its table, its hosts, and their rate in Gb/s."""

    name: str
    table: Table
    hosts: int
    gbps: int


def _star(hosts: int, gbps: int, delay_us: float = 5.0) -> Net:
    table = {"kind": "single-switch", "hosts": hosts, "gbps": gbps, "delay_us": delay_us}
    return Net(f"star-{gbps}g", table, hosts, gbps)


def _racks(tors: int, hosts: int, spines: int, gbps: int, up_gbps: int) -> Net:
    over = hosts * gbps // (spines * up_gbps)
    table = {"kind": "leaf-spine", "tors": tors, "hosts_per_tor": hosts, "spines": spines,
             "host_gbps": gbps, "uplink_gbps": up_gbps}  # fmt: skip
    return Net(f"racks-{gbps}g-{over}-to-1", table, tors * hosts, gbps)


def _uneven(gbps: int, slow_gbps: int) -> Net:
    """Two racks of four hosts; one of the two spines is reached at part of the other's rate."""
    links = [
        *({"ends": [f"h{h}", f"s{h // 4}"], "gbps": gbps, "delay_us": 5} for h in range(8)),
        *({"ends": [f"s{t}", "s2"], "gbps": gbps, "delay_us": 5, "parallel": 2} for t in (0, 1)),
        *({"ends": [f"s{t}", "s3"], "gbps": slow_gbps, "delay_us": 5, "parallel": 2}
          for t in (0, 1)),
    ]  # fmt: skip
    table = {"kind": "graph", "hosts": 8, "switches": 4, "links": links, "tiers": [1, 1, 2, 2]}
    return Net(f"uneven-{gbps}g", table, 8, gbps)


NETS = (
    _star(16, 25), _star(12, 100), _star(8, 400, 1.0), _star(24, 50),
    _racks(4, 4, 4, 25, 25), _racks(2, 8, 1, 25, 25), _racks(3, 4, 1, 25, 50),
    _racks(2, 4, 2, 100, 100), _racks(2, 8, 1, 100, 100), _racks(2, 4, 1, 200, 400),
    _racks(2, 4, 1, 400, 200), _uneven(25, 10), _uneven(100, 50),
    Net("fat-tree-25g", {"kind": "fat-tree", "k": 4, "host_gbps": 25, "edge_gbps": 25,
                         "core_gbps": 25}, 16, 25),
    Net("dumbbell-100g", {"kind": "dumbbell", "left": 6, "right": 6, "host_gbps": 100,
                          "bottleneck_gbps": 200}, 12, 100),
)  # fmt: skip
"""Oversubscription 1:1 to 8:1, links at part of their rate, and no two of one shape."""


@dataclass(frozen=True)
class Draws:
    """What a scenario is drawn from: words, such as a salt and an index."""

    words: tuple[str | int, ...]

    def choose(self, options: Sequence[Any], what: str) -> Any:
        """Return one of ``options``, which follows from the words and ``what``."""
        return choose(options, *self.words, what)


@dataclass(frozen=True)
class TrafficCase(Draws):
    """A scenario in the making on a fabric; loads are shares of the host links."""

    net: Net
    intervals: int
    interval_us: int
    loads: Sequence[float]
    steps: Sequence[float] = (0.1, 0.2, 0.35)
    sizes: Sequence[str] = SIZES
    warmup_us: int = WARMUP_US

    def poisson(self, what: str = "", **given: Any) -> Table:
        """Return a table of open-loop traffic; sizes and load are drawn, if not given."""
        return {
            "kind": "poisson",
            "cdf": self.choose(self.sizes, "cdf" + what),
            "load": self.choose(self.loads, "load" + what),
            "load_of": "host",
            **given,
        }

    def at(self, interval: int) -> int:
        """Return when an interval begins, in microseconds."""
        return self.warmup_us + interval * self.interval_us

    def incast(self, off: Sequence[int], share: float = 1.0) -> Table:
        """Return an incast of nearly all hosts; ``share`` of a millisecond of the link a round."""
        senders = self.net.hosts - 1
        size = max(2_000, round(share * self.net.gbps * 125_000 / senders))
        return {"kind": "incast", "dst": 0, "hosts": list(range(1, senders + 1)), "bytes": size,
                "off_us": self.choose(off, "off")}  # fmt: skip


Traffic = tuple[str, list[Table], tuple[int, ...]]
"""What it is in a sentence, its workloads, its phases."""


def _mix(case: TrafficCase) -> Traffic:
    flow = case.poisson()
    return f"{flow['cdf']} at {100 * flow['load']:g} % of the host links", [flow], ()


def swap(case: TrafficCase) -> Traffic:
    """Return traffic whose sizes are others from the middle on."""
    at = case.intervals // 2
    before, after = shuffled(case.sizes, *case.words, "swap")[:2]
    flows = [case.poisson("before", cdf=before, stop_us=case.at(at)),
             case.poisson("after", cdf=after, start_us=case.at(at))]  # fmt: skip
    return f"{before}, from interval {at} on {after}", flows, (0, at)


def steps(case: TrafficCase) -> Traffic:
    """Return traffic whose load goes through all steps, each for as long."""
    loads = shuffled(case.steps, *case.words, "steps")
    each = case.intervals // len(loads)
    flows, starts = [], tuple(k * each for k in range(len(loads)))
    for k, load in enumerate(loads):
        one = case.poisson(load=load)
        if k:
            one["start_us"] = case.at(starts[k])
        if k + 1 < len(loads):
            one["stop_us"] = case.at(starts[k + 1])
        flows.append(one)
    words = ", ".join(f"{100 * load:g} %" for load in loads)
    return f"{flows[0]['cdf']} at {words} in turn", flows, starts


def _flood(case: TrafficCase) -> Traffic:
    first, last = case.intervals // 3, 2 * case.intervals // 3
    flood = case.poisson("flood", start_us=case.at(first), stop_us=case.at(last))
    words = f"a flood of {flood['cdf']} from interval {first} to {last}"
    return words, [case.poisson("base", load=0.15), flood], (0, first, last)


def _onoff(case: TrafficCase) -> Traffic:
    on = case.choose((2, 5), "on") * case.interval_us
    burst = case.poisson("burst", load=0.6, start_us=WARMUP_US, stop_us=WARMUP_US + on,
                         repeat_us=3 * on)  # fmt: skip
    words = f"bursts of {burst['cdf']}, {on} us on and {2 * on} off"
    return words, [case.poisson("base", load=0.1), burst], ()


def _mice_incast(case: TrafficCase) -> Traffic:
    mice = {"kind": "poisson", "cdf": "SolarRPC_approx", "load": 0.08, "load_of": "host"}
    share = case.choose((0.2, 0.5, 1.0), "share")
    flow = case.incast((200, 1_000, 3_000), share)
    return f"{case.net.hosts - 1}:1 incast of {flow['bytes']} B beside RPCs", [flow, mice], ()


def _incast(case: TrafficCase) -> Traffic:
    flow = case.incast((100, 500, 2_000), case.choose((0.5, 2.0, 6.0), "share"))
    return f"{case.net.hosts - 1}:1 incast of {flow['bytes']} B", [flow, case.poisson(load=0.1)], ()


def _alltoall(case: TrafficCase) -> Traffic:
    workers = min(case.net.hosts, case.choose((4, 6, 8), "workers"))
    size = case.choose((100_000, 400_000, 1_000_000), "bytes")
    flow = {"kind": "alltoall", "hosts": workers, "bytes": size,
            "off_us": case.choose((1_000, 3_000), "off")}  # fmt: skip
    return f"all-to-all of {workers} workers, {size} B", [flow, case.poisson(load=0.1)], ()


def _ring(case: TrafficCase) -> Traffic:
    workers = min(case.net.hosts, case.choose((4, 6, 8), "workers"))
    size = case.choose((2_000_000, 8_000_000), "bytes")
    ring = {"kind": "ring", "hosts": workers, "bytes": size, "off_us": 1_000}
    noise = case.poisson("noise", load=0.15)
    return f"ring all-reduce of {workers} ranks beside {noise['cdf']}", [ring, noise], ()


def _permutation(case: TrafficCase) -> Traffic:
    size = case.choose((300_000, 1_000_000, 3_000_000), "bytes")
    flow = {"kind": "permutation", "hosts": "all", "bytes": size, "off_us": 500}
    return f"permutation of {size} B, drawn anew each round", [flow], ()


def _storage(case: TrafficCase) -> Traffic:
    half = case.net.hosts // 2
    flow = {"kind": "storage", "read_share": case.choose((0.3, 0.7), "reads"),
            "block_bytes": [case.choose((8_192, 65_536, 262_144), "block")] * 2,
            "depth": case.choose((2, 8), "depth"), "compute": list(range(half)),
            "storage": list(range(half, case.net.hosts)), "copies": 2}  # fmt: skip
    return f"storage, blocks of {flow['block_bytes'][0]} B", [flow], ()


def _training(case: TrafficCase) -> Traffic:
    size = case.choose((1_000_000, 4_000_000), "bytes")
    workers = list(range(1, min(case.net.hosts, 8)))
    job = {"kind": "parameter-server", "bytes": size, "server": 0, "workers": workers,
           "compute_us": case.choose((500, 2_000), "compute")}  # fmt: skip
    noise = case.poisson("noise", load=0.15)
    return f"training with a parameter server beside {noise['cdf']}", [job, noise], ()


def _job(case: TrafficCase) -> Traffic:
    """Training on eight GPUs, one a host, whose iteration sends for one to three milliseconds."""
    name = case.choose(tuple(JOBS), "job")
    size = case.choose((1.0, 3.0), "share") * case.net.gbps * 125_000
    graph = packed_job(name, size, case.choose((10.0, 40.0), "tflops"))
    job = {"kind": "job", "graph": graph, "hosts": 8, "off_us": 100,
           "placement": case.choose(("round-robin", "packed"), "placement")}  # fmt: skip
    noise = case.poisson("noise", load=0.1)
    return f"training, {name}, on 8 hosts beside {noise['cdf']}", [job, noise], ()


def _beside_tcp(case: TrafficCase) -> Traffic:
    flow = case.incast((500, 2_000), case.choose((0.5, 2.0), "share"))
    lossy = case.poisson("tcp") | {"priority": TCP}
    return f"incast of {flow['bytes']} B beside TCP, {lossy['cdf']}", [flow, lossy], ()


Maker = Callable[[TrafficCase], Traffic]
Kind = tuple[str, Maker]
KINDS: dict[str, Kind] = {
    "mix": ("steady", _mix),
    "swap": ("shifting", swap),
    "steps": ("shifting", steps),
    "flood": ("shifting", _flood),
    "onoff": ("shifting", _onoff),
    "mice-incast": ("closed-loop", _mice_incast),
    "incast": ("closed-loop", _incast),
    "alltoall": ("closed-loop", _alltoall),
    "ring": ("closed-loop", _ring),
    "permutation": ("closed-loop", _permutation),
    "storage": ("closed-loop", _storage),
    "training": ("closed-loop", _training),
    "job": ("closed-loop", _job),
}
"""Kinds of traffic, in turn: which third of a suite they belong to, and how they are made."""
NEXT_KINDS = {**KINDS, "beside-tcp": ("closed-loop", _beside_tcp)}
TCP = 0  # SONiC's lossy priority; 3 and 4 are lossless, CNPs go ahead


def draw(
    salt: str, index: int, intervals: int, attempt: int = 0, kinds: Mapping[str, Kind] = KINDS
) -> DrawnScenario:
    """Return scenario ``index`` of a salt; another ``attempt`` draws another one of its kind."""
    kind = list(kinds)[index % len(kinds)]
    third, maker = kinds[kind]
    words = (salt, "kinds", index, attempt)
    net = choose(NETS, *words, "net")
    loads = (0.2, 0.3, 0.4) if net.gbps < 100 else (0.1, 0.2, 0.3)
    case = TrafficCase(words, net, intervals, INTERVAL_US[net.gbps], loads)
    said, workloads, phases = maker(case)
    buffer = case.choose(BUFFERS, "buffer")
    beside_tcp = any(one.get("priority") == TCP for one in workloads)
    if beside_tcp:  # a quarter would not hold the headroom of two lossless priorities
        buffer = max(buffer, 0.5)
    table: Table = {
        "description": f"{case.net.name}: {said}; {buffer:g} of the usual buffer",
        "intervals": intervals,
        "monitor_interval_us": case.interval_us,
        "warmup_us": WARMUP_US,
        "weights": case.choose(WEIGHTS, "weights"),
        "topology": case.net.table,
        "switch": {"buffer_bytes": round(buffer * 12 * 2**20 * max(1.0, case.net.gbps / 100))},
        "monitor": {"kind": "elastic"},
        "workloads": workloads,
    }
    if beside_tcp:
        table["classes"] = [{"priority": 3}, {"priority": TCP, "transport": "tcp"}]
        table["switch"] |= {"lossless": [3, 4], "ack_class": "data-cnp-first"}
    return DrawnScenario(f"{index:03d}-{case.net.name}-{kind}", third, table, phases)


def draw_season(
    salt: str, count: int, moved: Callable[[DrawnScenario], float]
) -> list[DrawnScenario]:
    """Return the scenarios of a season, before any entry runs.

    Another attempt is drawn in the place of a scenario on which nothing can be gained or lost:
    ``moved``, the largest ``|S|`` of a few settings on it, is below :data:`LEAST_MOVED`. So it is
    for one that shares kind and fabric with an earlier one. Raises ConfigError after
    :data:`MOST_ATTEMPTS` attempts in one place.
    """
    found: list[DrawnScenario] = []
    taken: set[str] = set()
    for index in range(count):
        for attempt in range(MOST_ATTEMPTS):
            one = draw(salt, index, SEASON_INTERVALS, attempt, NEXT_KINDS)
            same = one.name.partition("-")[2]  # without the number
            if same not in taken and moved(one) >= LEAST_MOVED:
                break
        else:
            raise ConfigError(
                f"scenario {index}: none of {MOST_ATTEMPTS} attempts is new and can be moved"
            )
        taken.add(same)
        found.append(one)
    return found
