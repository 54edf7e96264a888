"""Why the monitors are less accurate here than on a fluid: the same flows in other networks.

An exact counter labels the flows of the same arrivals while one idealisation after the other is
made: uplinks without collisions, frames without headers and ACKs, rates without DCQCN. What is
lost although nothing is miscounted belongs to the network and not to the monitor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from fluid import fluid_traffic

from dcqcn_gym.benchmarks.papers.monitor_study.accuracy import mean_accuracy, mean_known, sizes_of
from dcqcn_gym.benchmarks.papers.monitor_study.study import (
    MS,
    Plan,
    check_loads,
    with_load,
)
from dcqcn_gym.benchmarks.papers.monitor_study.traces import (
    Packets,
    Probe,
    judge,
    monitor_line,
    replay,
    simulate,
)
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.scenario.topology import LeafSpine
from dcqcn_gym.runs.campaign import JsonJob
from dcqcn_gym.runs.study import Study
from dcqcn_gym.runs.table import MISSING, Table

__all__ = [
    "LOADS",
    "NETWORKS",
    "Account",
    "Network",
    "NetworkJob",
    "accounts",
    "explanation",
    "network_jobs",
]

LOADS = (20, 30)
"""Host loads in per cent unless others are asked for."""


@dataclass(frozen=True)
class Network:
    """A network to carry the flows: the scenario's own, or one with something idealised."""

    what: str
    rates: Literal["dcqcn", "pfc", "fluid"] = "dcqcn"
    """Default DCQCN, line rate with PFC alone, or the max-min fluid."""
    one_uplink: bool = False
    """One uplink per ToR with the capacity of all: no flows that collide on one of them."""
    bare: bool = False
    """Frames are payload; ACKs and CNPs take one byte."""

    def scenario(self, base: Scenario) -> Scenario:
        """Return the scenario with this variant's network, frames and marking."""
        data = base.model_dump(mode="json")
        if self.one_uplink:
            data["topology"] |= _one_uplink(base)
        if self.bare:
            data["wire"] |= {"data_overhead_bytes": 0, "ack_bytes": 1, "cnp_bytes": 1}
        if self.rates == "pfc":
            data["initial"] = {"kmin": 4e6, "kmax": 4e6}
        return Scenario.model_validate(data, context={})


NETWORKS: Mapping[str, Network] = {
    "engine": Network("packets, DCQCN: as benchmarked"),
    "bare": Network("packets, DCQCN, no headers and ACKs", bare=True),
    "one": Network("packets, DCQCN, one uplink per ToR", one_uplink=True),
    "one-bare": Network(
        "packets, DCQCN, one uplink, no headers and ACKs", one_uplink=True, bare=True
    ),
    "one-pfc": Network(
        "packets, no marking (PFC alone), one uplink per ToR", "pfc", one_uplink=True
    ),
    "fluid": Network("fluid, max-min fair", "fluid"),
    "fluid-bare": Network("fluid, max-min fair, no headers and ACKs", "fluid", bare=True),
    "fluid-one-bare": Network(
        "fluid, max-min fair, one uplink, no headers and ACKs", "fluid", True, True
    ),
}
"""From what is measured to what the gates assume (``fluid-bare``), and beyond it."""


def _one_uplink(base: Scenario) -> dict[str, object]:
    topology = base.topology
    if not isinstance(topology, LeafSpine):
        raise ConfigError(f"scenario {base.name!r} is no leaf-spine network, so it has no uplinks")
    links = topology.n_spines * topology.links_per_spine
    return {
        "spines": 1,
        "oversubscription": None,
        "links_per_spine": 1,
        "uplink_gbps": 8000 / topology.step_of("uplink_") * links,
        "uplink_ps_per_byte": None,
    }


@dataclass(frozen=True)
class NetworkJob:
    """The flows of one load and seed in one network."""

    network: str
    base: Scenario
    load: int
    seed: int
    warmup_ms: int
    length_ms: int

    @property
    def name(self) -> str:
        """What it is, but for the seed."""
        return f"network-{self.base.name}-{self.load}-{self.network}"

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario as this variant has it."""
        return NETWORKS[self.network].scenario(self.base)

    def identity(self) -> dict[str, Any]:
        """Return what decides the result, but for the seed."""
        text = monitor_line(compile_scenario(self.scenario), {"kind": "none"})
        return {
            "traffic": hashlib.sha256(text.encode()).hexdigest(),
            "setting": dict(self.scenario.initial_setting()),
            "rates": NETWORKS[self.network].rates,
            "warmup_ms": self.warmup_ms,
            "length_ms": self.length_ms,
        }

    def run(self) -> dict[str, Any]:
        """Let exact counters label the flows every millisecond, with a window and without."""
        study = Packets(self.scenario, self.seed, MS, self.warmup_ms * MS, self.length_ms * MS)
        window, alone = Probe("exact", MS, {"kind": "exact"}), Probe("alone", MS, ALONE)
        fluid = NETWORKS[self.network].rates == "fluid"
        flows = replay(study, [window, alone], fluid_traffic if fluid else simulate)
        tau = self.scenario.monitor.tau_bytes
        with_window, naive = (mean_accuracy(judge(p, flows, tau)) for p in (window, alone))
        large = [int(np.sum(sizes_of(seen.key, *flows) >= tau)) for seen in window.seen]
        account = Account(
            network=self.network,
            load=self.load,
            seed=self.seed,
            label=with_window.label,
            recall=with_window.recall,
            naive=naive.label,
            flows=float(np.mean([len(seen.key) for seen in window.seen])),
            elephants=float(np.mean(large)),
        )
        return {"account": asdict(account)}


ALONE = {"kind": "elastic-naive"}


@dataclass(frozen=True)
class Account:
    """What exact counters make of one network's flows at 1 ms; means over the intervals."""

    network: str
    load: int
    seed: int
    label: float
    """Label accuracy of exact counters with ternary states: the best a sketch could do."""
    recall: float | None
    """Share of the elephants that is found; None where none was active."""
    naive: float
    """Label accuracy of the sketch that judges every interval alone."""
    flows: float
    """Active flows."""
    elephants: float
    """Active flows that end as elephants."""


def network_jobs(plan: Plan) -> list[NetworkJob]:
    """Return every network at every load and seed, seed by seed; ConfigError for a bad load."""
    check_loads(plan.loads)
    base = load_scenario(plan.scenario)
    return [
        NetworkJob(name, with_load(base, load), load, seed, plan.warmup_ms, plan.length_ms)
        for seed in plan.seeds
        for load in sorted(plan.loads, reverse=True)
        for name in NETWORKS
    ]


def accounts(study: Study[JsonJob]) -> list[Account]:
    """Return the result of every network of a finished study."""
    found = (job.result() for job in study.jobs.values())
    return [Account(**one["account"]) for one in found if "account" in one]


def explanation(plan: Plan, found: Sequence[Account]) -> str:
    """Return a Markdown table: one line per load and network, means over the seeds."""
    seeds = ", ".join(str(seed) for seed in plan.seeds)
    head = ["load", "network", "label", f"label, seed {seeds}", "recall", "naive: label",
            "active flows", "elephants among them"]  # fmt: skip
    lines = []
    for load in plan.loads:
        for name, network in NETWORKS.items():
            here = [a for a in found if (a.load, a.network) == (load, name)]
            if not here:
                continue
            mean = {
                figure: float(np.mean([getattr(a, figure) for a in here]))
                for figure in ("label", "naive", "flows", "elephants")
            }
            recall = mean_known([a.recall for a in here])
            lines.append([
                f"{load} %",
                network.what,
                f"{mean['label']:.3f}",
                " ".join(f"{a.label:.3f}" for a in here),
                MISSING if recall is None else f"{recall:.2f}",
                f"{mean['naive']:.3f}",
                f"{mean['flows']:.0f}",
                f"{mean['elephants']:.0f}",
            ])  # fmt: skip
    return Table(head, lines).markdown() + "\n"
