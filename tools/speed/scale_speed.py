"""What a network costs as it grows: fat-trees of 128 to 65,536 hosts under one load per host.

Each size is measured in a process of its own, so that memory is its own:
``python tools/speed/scale_speed.py K MICROSECONDS``. Times are CPU seconds.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from engine_speed import STEP_PS, Job, alone, peak_mb

from dcqcn_gym import _core
from dcqcn_gym.core.groups import same_everywhere
from dcqcn_gym.core.knobs import Setting, default_setting, expert_setting
from dcqcn_gym.envs.scenario.compile import compile_scenario

US = 1_000_000


@dataclass(frozen=True)
class Scale:
    """One size: seconds and megabytes (10^6 bytes, the peak) until it is open, then the run."""

    k: int
    hosts: int
    import_mb: float
    scenario_s: float
    compile_s: float
    open_s: float
    open_mb: float
    simulated_us: float
    hops: int
    cpu_s: float
    peak_mb: float

    @property
    def ns_per_hop(self) -> float:
        """CPU nanoseconds per packet-hop of the second half of the run."""
        return self.cpu_s * 1e9 / self.hops

    def row(self) -> tuple[str, ...]:
        """Return the columns of the table."""
        setup = f"{self.scenario_s:.2f} + {self.compile_s:.2f} + {self.open_s:.2f}"
        return (
            f"{self.hosts:,}", setup, f"{self.open_mb:.0f}", f"{self.simulated_us:.0f}",
            f"{self.hops / 1e6:.1f}", f"{self.ns_per_hop:.0f}", f"{self.peak_mb:.0f}",
        )  # fmt: skip


COLUMNS = (
    "hosts", "scenario + compile + open, CPU s", "MB when open", "us", "M packet-hops",
    "ns per hop", "MB at the end",
)  # fmt: skip


def fat_tree(k: int) -> Job:
    """Return the job of this size."""
    traffic = {"kind": "permutation", "bytes": 12_000_000, "rounds": 1}
    return Job("scale", "", traffic, base="fat-tree-1024", topology={"k": k})


def scale_cost(k: int, us: int) -> Scale:
    """Measure a fat-tree of ``k`` ports per switch in another process; 12 MB from every host."""
    words = [sys.executable, __file__, str(k), str(us)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return Scale(**json.loads(done.stdout))


def _measure(k: int, us: int) -> Scale:
    imported, spent = peak_mb(), [time.process_time()]
    job = fat_tree(k)
    scenario = job.scenario()
    hosts = scenario.fabric.n_hosts
    spent.append(time.process_time())
    compiled = compile_scenario(scenario)
    spent.append(time.process_time())
    simulation = _core.Simulation(compiled, 1)
    spent.append(time.process_time())
    scenario_s, compile_s, open_s = (after - before for before, after in pairwise(spent))
    open_mb = peak_mb()
    nic, ecn = same_everywhere(job.setting(scenario), simulation.n_hosts, simulation.n_ports)
    simulation.apply(nic, ecn)
    simulation.advance(us * US // 2)  # until the pipes are full
    simulation.report()  # adds up the totals
    half, before = int(simulation.totals()["packet_hops"]), time.process_time()
    simulation.advance(us * US)
    cpu = time.process_time() - before
    simulation.report()
    hops = int(simulation.totals()["packet_hops"]) - half
    return Scale(
        k, hosts, imported, scenario_s, compile_s, open_s, open_mb, us, hops, cpu, peak_mb()
    )  # fmt: skip


def _iteration(base: str, topology: Mapping[str, Any], **plan: Any) -> Job:
    workload = {"kind": "job", "graph": {"plan": plan}, "rounds": 1}
    return Job("large", "", workload, base=base, topology=topology)


def _experts() -> Job:
    model = {"layers": 16, "hidden": 4096, "ffn": 2048, "heads": 32, "kv_heads": 8}
    sizes = {"servers": 1024, "servers_per_unit": 32, "spines": 16, "links_per_spine": 2}
    return _iteration("job-moe-64", sizes, model={**model, "experts": 32, "active": 2}, pp=16,
                      dp=512, ep=32, batch=1024, scale=0.05)  # fmt: skip


GPT3 = {"model": "gpt3-175b", "tp": 8, "pp": 8, "dp": 16, "batch": 64, "sequence": 2048}
LARGE: Mapping[str, tuple[Job, float, Callable[[float], Setting]]] = {
    "gpt3-175b, 8 of 96 layers, on 1,024 GPUs": (
        _iteration("job-dense-1024", {}, **GPT3, layers=8), math.inf, default_setting),
    "32 experts, 16 layers, bytes and times by 1/20, on 8,192 GPUs": (
        _experts(), math.inf, default_setting),
    "the same, experts' setting": (_experts(), math.inf, expert_setting),
    "fat-tree of 65,536 hosts, 12 MB from each to another, 100 us": (
        fat_tree(64), 100, default_setting),
}  # fmt: skip
"""Job, until which microsecond it runs, and the setting at a line rate."""
LARGE_COLUMNS = (
    "network", "iteration on packets, ms", "on fluid, ms", "apart", "opened after, CPU s",
    "then packets, CPU s", "fluid, CPU s", "packets, MB", "fluid, MB",
)  # fmt: skip


def large_row(name: str, seed: int) -> tuple[str, ...]:
    """Run one of :data:`LARGE` on packets and on fluid, each in a process of its own."""
    packets, fluid = (alone(_run_large, name, seed, engine) for engine in ("default", "fluid"))
    times = ("n/a",) * 3
    if LARGE[name][1] == math.inf:
        ours, theirs = fluid["iteration_ms"], packets["iteration_ms"]
        times = (f"{theirs:.2f}", f"{ours:.2f}", f"{ours / theirs - 1:+.1%}")
    return (
        name, *times, f"{fluid['open_s']:.0f}", f"{packets['cpu_s']:.1f}", f"{fluid['cpu_s']:.1f}",
        f"{packets['mb']:.0f}", f"{fluid['mb']:.0f}",
    )  # fmt: skip


def _run_large(name: str, seed: int, engine: str) -> dict[str, float]:
    job, most_us, setting_at = LARGE[name]
    begin, found = time.process_time(), {}
    scenario = job.scenario()
    simulation = _core.Simulation(compile_scenario(scenario), seed, engine)
    setting = setting_at(scenario.line_rate_bps)
    simulation.apply(*same_everywhere(setting, simulation.n_hosts, simulation.n_ports))
    opened = time.process_time()
    while not simulation.done and simulation.now_ps < most_us * US:
        simulation.advance(int(min(simulation.now_ps + STEP_PS, most_us * US)))
        spans = simulation.report().get("job_spans", np.empty((0, 5)))
        for *_, start, end in spans[spans[:, 2] < 0]:  # a round is no host's
            found["iteration_ms"] = float(end - start) * 1e-9
    spent = time.process_time() - opened
    return {**found, "open_s": opened - begin, "cpu_s": spent, "mb": peak_mb()}


if __name__ == "__main__":
    print(json.dumps(asdict(_measure(int(sys.argv[1]), int(sys.argv[2])))))
