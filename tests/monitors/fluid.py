"""The same flows without packets: a fluid that max-min fairness spreads over the links.

No queue, no delay, no congestion control: at every instant each flow has its fair share. The gates
of the monitors were set on such a model; the packet engine is compared with it on the very same
arrivals, and the very same monitors count both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dcqcn_gym.benchmarks.papers.monitor_study.traces import Packets, Steps, keys_of, simulate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.scenario import Scenario

__all__ = ["Fluid", "arrivals", "fluid_traffic", "max_min"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

SLICE_PS = 10_000_000
"""Shares are worked out anew every 10 us; 5 us moved no accuracy by more than 0.001."""


def max_min(paths: IntArray, wanted: FloatArray, capacity: FloatArray) -> FloatArray:
    """Return what every flow gets: max-min fair, and never more than it wants.

    ``paths`` (flows, hops) are numbers of links, ``capacity`` what each can carry (inf: no limit).
    """
    left, given = capacity.copy(), np.zeros(len(wanted))
    waiting = np.arange(len(wanted))
    while len(waiting):
        path = paths[waiting]
        users = np.bincount(path.ravel(), minlength=len(left))
        share = left / np.maximum(users, 1)
        offered = share[path]
        fair = offered.min(axis=1)
        done = wanted[waiting] <= fair
        if not done.any():
            # a link is settled if it is the narrowest of all its flows
            narrowest = offered == fair[:, None]
            settled = np.bincount(path[narrowest], minlength=len(left)) == users
            done = (settled[path] & narrowest).any(axis=1)
        given[waiting[done]] = np.minimum(wanted[waiting[done]], fair[done])
        used = np.repeat(given[waiting[done]], paths.shape[1])
        left -= np.bincount(path[done].ravel(), weights=used, minlength=len(left))
        np.maximum(left, 0.0, out=left)
        waiting = waiting[~done]
    return given


def arrivals(study: Packets) -> dict[str, IntArray]:
    """Return the flows that the packet engine starts, in order of start.

    Poisson arrivals do not depend on what becomes of them: large packets find the same ones sooner.
    """
    wire = study.scenario.wire.model_copy(update={"payload_bytes": 4096})
    quick = replace(study, scenario=study.scenario.model_copy(update={"wire": wire}))
    parts = [known for *_, known in simulate(quick)]
    names = ("src", "dst", "ordinal", "bytes", "start_ps")
    flows = {name: np.concatenate([part[name] for part in parts]) for name in names}
    order = np.lexsort((flows["src"], flows["start_ps"]))
    return {name: column[order] for name, column in flows.items()}


class Fluid:
    """The links of a network of one or two tiers, and what of each flow is still to be sent.

    A flow between racks takes one spine, drawn from ``seed`` (as a hash would place it). Headers
    and ACKs take their part of every link, as if as much were sent in both directions.
    """

    def __init__(self, scenario: Scenario, flows: dict[str, IntArray], seed: int) -> None:
        net = scenario.fabric
        if not set(net.tiers) <= {0, 1}:
            raise ConfigError(f"scenario {scenario.name!r}: the fluid knows networks of two tiers")
        sizes, payload = scenario.wire.sizes(), scenario.wire.payload_bytes
        useful = payload / (payload + sizes["data"] + sizes["ack"])
        ends = [(link.a, link.b) for link in net.links]
        bytes_per_ps = [useful / link.ps_per_byte for link in net.links]
        # each direction is a link of its own; the last one stands for "no hop"
        self.capacity = np.array([*bytes_per_ps, *bytes_per_ps, np.inf])
        numbers = {pair: i for i, pair in enumerate([*ends, *((b, a) for a, b in ends)])}
        self.start = flows["start_ps"]
        self.left = flows["bytes"].astype(float)
        self.paths = _paths(scenario, flows, numbers, np.random.default_rng([seed, len(ends)]))

    def send(self, begin: int, end: int) -> tuple[IntArray, FloatArray]:
        """Send what goes from ``begin`` to ``end``; return flows and their bytes."""
        started = int(np.searchsorted(self.start, end))
        flows = np.flatnonzero(self.left[:started] > 0)
        path = self.paths[flows]
        present = end - np.maximum(self.start[flows], begin)
        wanted = np.minimum(self.left[flows], self.capacity[path].min(axis=1) * present)
        given = max_min(path, wanted, self.capacity * (end - begin))
        self.left[flows] -= given
        self.left[flows[self.left[flows] < 0.5]] = 0.0  # less than a byte is rounding
        return flows, given


def _paths(
    scenario: Scenario,
    flows: dict[str, IntArray],
    numbers: dict[tuple[int, int], int],
    random: np.random.Generator,
) -> IntArray:
    net = scenario.fabric
    tor = np.array([net.tor(host) for host in range(net.n_hosts)])
    spines = np.flatnonzero(np.array(net.tiers) == 1) + net.n_hosts
    place = np.full((net.n_nodes, net.n_nodes), len(numbers), dtype=np.int64)
    for (a, b), number in numbers.items():
        place[a, b] = number
    src, dst = flows["src"], flows["dst"]
    over = random.choice(spines, len(src)) if len(spines) else tor[src]
    hops = [
        place[src, tor[src]],
        place[tor[src], over],
        place[over, tor[dst]],
        place[tor[dst], dst],
    ]
    for hop in hops[1:3]:
        hop[tor[src] == tor[dst]] = len(numbers)
    return np.stack(hops, axis=1)


def fluid_traffic(study: Packets, slice_ps: int = SLICE_PS) -> Steps:
    """Yield what ``traces.simulate`` yields, of the fluid.

    What a flow sends in a step is counted at its ToR, in packets of the scenario's payload.
    """
    flows = arrivals(study)
    fluid = Fluid(study.scenario, flows, study.seed)
    keys = keys_of(flows)
    net = study.scenario.fabric
    tors = np.array([net.tor(host) - net.n_hosts for host in range(net.n_hosts)])[flows["src"]]
    end, payload = study.warmup_ps + study.length_ps, study.scenario.wire.payload_bytes
    before = flows["bytes"].copy()
    for now in range(study.step_ps, end + 1, study.step_ps):
        for begin in range(now - study.step_ps, now, slice_ps):
            fluid.send(begin, min(begin + slice_ps, now))
        after = np.ceil(fluid.left).astype(np.int64)
        sent, before = before - after, after
        yield now, _packets(keys, tors, sent, payload), {name: flows[name][:0] for name in flows}
    yield end, {}, flows


def _packets(keys: IntArray, tors: IntArray, sent: IntArray, payload: int) -> dict[str, Any]:
    busy = np.flatnonzero(sent)
    count = -(-sent[busy] // payload)
    flow = np.repeat(busy, count)
    size = np.full(len(flow), payload, dtype=np.uint16)
    size[np.cumsum(count) - 1] = sent[busy] - (count - 1) * payload
    return {
        "tor": tors[flow].astype(np.uint16),
        "key": keys[flow].astype(np.uint32),
        "payload_bytes": size,
    }
