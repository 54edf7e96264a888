"""What a network costs as it grows: fat-trees of 128 to 65,536 hosts under one load per host.

Each size is measured in a process of its own, so that memory is its own:
``python tools/speed/scale_speed.py K MICROSECONDS``. Times are CPU seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise

from engine_speed import Job, peak_mb

from dcqcn_gym import _core
from dcqcn_gym.core.groups import same_everywhere
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


if __name__ == "__main__":
    print(json.dumps(asdict(_measure(int(sys.argv[1]), int(sys.argv[2])))))
