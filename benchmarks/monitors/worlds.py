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
from pathlib import Path
from typing import Any, Literal

import numpy as np

import dcqcn_gym
from dcqcn_gym.benchmarks.monitors.accuracy import mean_accuracy, mean_known, sizes_of
from dcqcn_gym.benchmarks.monitors.fluid import fluid_traffic
from dcqcn_gym.benchmarks.monitors.study import MS, check_loads, results, with_load
from dcqcn_gym.benchmarks.monitors.traces import Probe, Study, judge, monitor_line, replay, simulate
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.envs.scenario.topology import LeafSpine
from dcqcn_gym.runs.table import MISSING, Table

__all__ = ["WORLDS", "Account", "World", "WorldPlan", "accounts", "explanation"]


@dataclass(frozen=True)
class World:
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


WORLDS: Mapping[str, World] = {
    "engine": World("packets, DCQCN: as benchmarked"),
    "bare": World("packets, DCQCN, no headers and ACKs", bare=True),
    "one": World("packets, DCQCN, one uplink per ToR", one_uplink=True),
    "one-bare": World(
        "packets, DCQCN, one uplink, no headers and ACKs", one_uplink=True, bare=True
    ),
    "one-pfc": World("packets, no marking (PFC alone), one uplink per ToR", "pfc", one_uplink=True),
    "fluid": World("fluid, max-min fair", "fluid"),
    "fluid-bare": World("fluid, max-min fair, no headers and ACKs", "fluid", bare=True),
    "fluid-one-bare": World(
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
class WorldJob:
    """The flows of one load and seed in one network."""

    world: str
    base: Scenario
    load: int
    seed: int
    warmup_ms: int
    length_ms: int

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"world-{self.base.name}-{self.load}-{self.world}-seed{self.seed}"

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario as this variant has it."""
        return WORLDS[self.world].scenario(self.base)

    def identity(self) -> dict[str, Any]:
        """Return what decides the result; an old result of another identity is made again."""
        text = monitor_line(compile_scenario(self.scenario), {"kind": "none"})
        return {
            "version": dcqcn_gym.__version__,
            "traffic": hashlib.sha256(text.encode()).hexdigest(),
            "setting": dict(self.scenario.initial_setting()),
            "rates": WORLDS[self.world].rates,
            "seed": self.seed,
            "warmup_ms": self.warmup_ms,
            "length_ms": self.length_ms,
        }

    def run(self) -> dict[str, Any]:
        """Let exact counters label the flows every millisecond, with a window and without."""
        study = Study(self.scenario, self.seed, MS, self.warmup_ms * MS, self.length_ms * MS)
        window, alone = Probe("exact", MS, {"kind": "exact"}), Probe("alone", MS, ALONE)
        fluid = WORLDS[self.world].rates == "fluid"
        flows = replay(study, [window, alone], fluid_traffic if fluid else simulate)
        tau = self.scenario.monitor.tau_bytes
        with_window, naive = (mean_accuracy(judge(p, flows, tau)) for p in (window, alone))
        large = [int(np.sum(sizes_of(seen.key, *flows) >= tau)) for seen in window.seen]
        account = Account(
            world=self.world,
            load=self.load,
            seed=self.seed,
            label=with_window.label,
            recall=with_window.recall,
            naive=naive.label,
            flows=float(np.mean([len(seen.key) for seen in window.seen])),
            elephants=float(np.mean(large)),
        )
        return {"identity": self.identity(), "account": asdict(account)}


ALONE = {"kind": "elastic-naive"}


@dataclass(frozen=True)
class Account:
    """What exact counters make of one network's flows at 1 ms; means over the intervals."""

    world: str
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


@dataclass(frozen=True)
class WorldPlan:
    """Every network at every load and seed. Lengths in ms, as in the main study."""

    loads: Sequence[int] = (20, 30)
    seeds: Sequence[int] = (1, 2, 3)
    warmup_ms: int = 10
    length_ms: int = 40
    scenario: str = "fb-hadoop"
    worlds: Sequence[str] = tuple(WORLDS)

    def jobs(self) -> list[WorldJob]:
        """Return every combination, seed by seed; ConfigError for a load that is none."""
        check_loads(self.loads)
        base = load_scenario(self.scenario)
        return [
            WorldJob(world, with_load(base, load), load, seed, self.warmup_ms, self.length_ms)
            for seed in self.seeds
            for load in sorted(self.loads, reverse=True)
            for world in self.worlds
        ]


def accounts(plan: WorldPlan, out: Path) -> list[Account]:
    """Return the result of every job of a finished plan."""
    return [Account(**result["account"]) for result in results(plan, out)]


def explanation(plan: WorldPlan, found: Sequence[Account]) -> str:
    """Return a Markdown table: one line per load and network, means over the seeds."""
    seeds = ", ".join(str(seed) for seed in plan.seeds)
    head = ["load", "network", "label", f"label, seed {seeds}", "recall", "naive: label",
            "active flows", "elephants among them"]  # fmt: skip
    lines = []
    for load in plan.loads:
        for world in plan.worlds:
            here = [a for a in found if (a.load, a.world) == (load, world)]
            mean = {
                name: float(np.mean([getattr(a, name) for a in here]))
                for name in ("label", "naive", "flows", "elephants")
            }
            recall = mean_known([a.recall for a in here])
            lines.append([
                f"{load} %",
                WORLDS[world].what,
                f"{mean['label']:.3f}",
                " ".join(f"{a.label:.3f}" for a in here),
                MISSING if recall is None else f"{recall:.2f}",
                f"{mean['naive']:.3f}",
                f"{mean['flows']:.0f}",
                f"{mean['elephants']:.0f}",
            ])  # fmt: skip
    return Table(head, lines).markdown() + "\n"
