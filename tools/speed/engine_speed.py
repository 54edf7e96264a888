"""How fast the packet engine is: packet-hops per CPU second on fixed jobs at the paper's scale.

A packet-hop is one packet (data, ACK or CNP) delivered over one link. Only CPU time inside the
engine counts; every figure is the median of its repetitions. Nothing here enters a result.
Memory is the peak of a process that makes and runs the job and nothing else, Python included.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dcqcn_gym import _core
from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.core.groups import same_everywhere
from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.dcqcn import DcqcnEnv
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.jobs.description import JobDescription, described_graph
from dcqcn_gym.envs.scenario.jobs.figures import figures_of
from dcqcn_gym.envs.scenario.monitor import shared_options
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario

__all__ = ["JOBS", "EnvCost", "JobResult", "engines", "env_cost", "run_job"]

BASE = "fb-hadoop"
STEP_PS = 1_000_000_000
ENGINES = ("window", "event")


@dataclass(frozen=True)
class Job:
    """A network, finite traffic and a setting; run until everything is delivered."""

    name: str
    what: str
    workload: Mapping[str, Any]
    marking: bool = True
    base: str = BASE
    topology: Mapping[str, Any] = field(default_factory=dict)
    monitor: Mapping[str, Any] = field(default_factory=dict)
    scheme: str | None = None

    def scenario(self) -> Scenario:
        """Return the fabric (the paper's: 128 hosts at 100 Gb/s) with the job's traffic."""
        base = load_scenario(self.base)
        fabric = base.model_dump(mode="json")
        if self.scheme is not None:  # with the knobs of its own table
            fabric = {k: v for k, v in fabric.items() if k != "knobs"} | {"scheme": self.scheme}
        kind = str(self.monitor.get("kind", base.monitor.kind))
        changes = {
            "name": f"bench-{self.name}",
            "topology": {**fabric["topology"], **self.topology},
            "monitor": {**shared_options(base.monitor, kind), **self.monitor, "kind": kind},
            "workloads": [dict(self.workload)],
        }
        return Scenario.model_validate({**fabric, **changes}, context={})

    def setting(self, scenario: Scenario) -> Setting:
        """Return NVIDIA's default, without marking where only PFC is to hold the traffic."""
        default = scenario.default_setting()
        return default if self.marking else default.replace({"kmin": 4e6, "kmax": 4e6})


ALL_TO_ALL = {"kind": "alltoall", "hosts": 20, "bytes": 12_000_000, "rounds": 1}
SHORT_LINKS = {"host_delay_us": 1.0, "uplink_delay_us": 1.0}


def _poisson(load: float, load_of: str = "host", ms: int = 10) -> Mapping[str, Any]:
    arrivals = {"stop_us": 1000 * ms, "load": load, "load_of": load_of}
    return {"kind": "poisson", "cdf": "FB_Hadoop", **arrivals}


SERVERS_16 = {"servers": 16, "servers_per_unit": 8, "spines": 8}


def _gpt3(**plan: Any) -> Mapping[str, Any]:
    table = {"plan": {"model": "gpt3-175b", "tp": 8, **plan}}
    return {"kind": "job", "graph": table, "rounds": 1}


JOBS: Mapping[str, Job] = {
    job.name: job
    for job in (
        Job("permutation", "128 x 12 MB, one to one",
            {"kind": "permutation", "bytes": 12_000_000, "rounds": 1}),
        Job("all-to-all", "20 x 19 x 12 MB", ALL_TO_ALL),
        Job("light", "10 ms of FB_Hadoop, 3 % of the host links", _poisson(0.03)),
        Job("uplink30", "10 ms of FB_Hadoop, 30 % of the uplinks", _poisson(0.3, "uplink")),
        Job("pfc-storm", "10 ms of FB_Hadoop, 30 % of the host links, no marking", _poisson(0.3),
            marking=False),
        Job("short-links", "20 x 19 x 12 MB over links of 1 us", ALL_TO_ALL, topology=SHORT_LINKS),
        Job("fat-tree-1024", "1024 x 3 MB, one to one, in a three-tier fat-tree",
            {"kind": "permutation", "bytes": 3_000_000, "rounds": 1}, base="fat-tree-1024"),
        Job("incast-2000", "2000 x 100 kB to one host",
            {"kind": "pairs", "pairs": [[1 + i % 127, 0, 100_000] for i in range(2000)]}),
        *(Job(f"monitor-{kind}", f"3 ms of FB_Hadoop, 30 % of the hosts' links; {kind}",
              _poisson(0.3, ms=3), monitor={"kind": kind})
          for kind in ("none", "exact", "elastic")),
        Job("gpt3-128", "an iteration of gpt3-175b, tp 8, dp 16, 4 of 96 layers, bytes by 1/100",
            _gpt3(dp=16, batch=16, scale=0.01, layers=4), base="job-dense-64", topology=SERVERS_16),
        Job("gpt3-1024", "an iteration of gpt3-175b, tp 8, pp 8, dp 16, bytes by 1/200",
            _gpt3(pp=8, dp=16, batch=64, sequence=2048, scale=0.005, layers=8),
            base="job-dense-1024"),
        Job("rails-128", "32 x 31 x 1 MB, all to all, on the fabric of gpt3-128",
            {"kind": "alltoall", "hosts": 32, "bytes": 1_000_000, "rounds": 1},
            base="job-dense-64", topology=SERVERS_16),
    )
}  # fmt: skip
"""The jobs by name."""


@dataclass(frozen=True)
class JobResult:
    """One job on one engine. Times are CPU seconds of the engine alone."""

    job: str
    engine: str
    hops: int
    packets: int
    pauses: int
    simulated_ms: float
    peak_mb: float
    cpu_s: float
    cpu_s_all: tuple[float, ...]

    @property
    def hops_per_s(self) -> float:
        """Packet-hops per CPU second."""
        return self.hops / self.cpu_s if self.cpu_s > 0 else float("inf")

    @property
    def packets_per_s(self) -> float:
        """Data packets per CPU second."""
        return self.packets / self.cpu_s if self.cpu_s > 0 else float("inf")


def engines() -> list[str]:
    """Return the engines that this build offers, the default one first."""
    tiny = compile_scenario(load_scenario("incast"))
    found = []
    for name in ENGINES:
        try:
            _core.Simulation(tiny, 0, name)
        except ValueError:
            continue
        found.append(name)
    return found


def run_job(name: str, engine: str = "default", repeats: int = 3, seed: int = 1) -> JobResult:
    """Run a job ``repeats`` times and return the median; unknown names raise."""
    if name not in JOBS:
        raise UnknownNameError("job", name, JOBS)
    return _median([run_once(JOBS[name], engine, seed) for _ in range(repeats)])


def run_once(job: Job, engine: str = "default", seed: int = 1) -> JobResult:
    """Run a job until everything is delivered."""
    scenario = job.scenario()
    setting = job.setting(scenario)
    simulation = _core.Simulation(compile_scenario(scenario), seed, engine)
    simulation.apply(*same_everywhere(setting, simulation.n_hosts, simulation.n_ports))
    cpu = 0.0
    while not simulation.done:
        before = time.thread_time()
        simulation.advance(simulation.now_ps + STEP_PS)
        cpu += time.thread_time() - before
        simulation.report()  # drops the finished flows, so that memory does not grow
    totals = simulation.totals()
    return JobResult(
        job=job.name,
        engine=engine,
        hops=int(totals["packet_hops"]),
        packets=int(totals["data_packets"]),
        pauses=int(totals["pauses"]),
        simulated_ms=simulation.now_ps * 1e-9,
        peak_mb=peak_mb(),
        cpu_s=cpu,
        cpu_s_all=(cpu,),
    )


def _median(runs: Sequence[JobResult]) -> JobResult:
    spent = tuple(run.cpu_s for run in runs)
    return replace(runs[0], cpu_s=statistics.median(spent), cpu_s_all=spent)


@dataclass(frozen=True)
class EnvCost:
    """What the environment around the engine costs at the paper's scale."""

    scenario: str
    intervals: int
    engine_s_per_interval: float
    outside_s_per_interval: float
    memory_mb_per_env: float
    two_thread_speedup: float

    @property
    def outside_share(self) -> float:
        """Share of a step's CPU time that is spent outside the engine."""
        total = self.engine_s_per_interval + self.outside_s_per_interval
        return self.outside_s_per_interval / total if total > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return every figure by name."""
        return {**asdict(self), "outside_share": self.outside_share}


def env_cost(intervals: int = 50, added: int = 4, scenario: str = BASE) -> EnvCost:
    """Measure steps of the environment with random actions, added environments, two threads."""
    engine, outside = _step_seconds(scenario, intervals)
    memory = _memory_per_env(scenario, added)
    alone = _threads_wall(scenario, 1, intervals)
    together = _threads_wall(scenario, 2, intervals)
    return EnvCost(scenario, intervals, engine, outside, memory, 2 * alone / together)


def _actions(env: DcqcnEnv, seed: int) -> Iterator[Any]:
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed])))
    while True:
        yield rng.uniform(-1, 1, env.space.n).astype(np.float32)


def _step_seconds(scenario: str, intervals: int) -> tuple[float, float]:
    backend = NativeBackend()
    env = DcqcnEnv(scenario, backend, intervals=intervals)
    env.reset(seed=1)
    actions = _actions(env, 1)
    engine, begin = backend.engine_s, time.thread_time()
    for _ in range(intervals):
        env.step(next(actions))
    total, engine = time.thread_time() - begin, backend.engine_s - engine
    env.close()
    return engine / intervals, (total - engine) / intervals


def _memory_per_env(scenario: str, added: int) -> float:
    def grown(seed: int) -> DcqcnEnv:
        env = DcqcnEnv(scenario, "native", intervals=10)
        env.reset(seed=seed)
        actions = _actions(env, seed)
        for _ in range(10):
            env.step(next(actions))
        return env

    envs = [grown(0)]
    before = _resident_bytes()
    envs += [grown(seed) for seed in range(1, 1 + added)]
    after = _resident_bytes()
    for env in envs:
        env.close()
    return (after - before) / added / 1e6


def peak_mb() -> float:
    """Return the most memory that this process had, in 10^6 bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")  # getrusage has the parent's too
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _threads_wall(scenario: str, threads: int, intervals: int) -> float:
    """Return the wall seconds of ``threads`` environments that step at the same time."""
    envs = [DcqcnEnv(scenario, "native", intervals=intervals) for _ in range(threads)]
    for env in envs:
        env.reset(seed=1)

    def work(env: DcqcnEnv) -> None:
        for _ in range(intervals):
            env.step_setting(None)

    return _timed([threading.Thread(target=work, args=(env,)) for env in envs])


def _timed(threads: Sequence[threading.Thread]) -> float:
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


Progress = Callable[[str], object]
Result = TypeVar("Result")


def measure(
    jobs: Sequence[str], names: Sequence[str], repeats: int, progress: Progress
) -> list[JobResult]:
    """Run every job on every engine, telling ``progress`` what runs.

    The repetitions take turns, so that a slow minute of the machine meets all jobs alike.
    """
    pairs = [(job, engine) for job in jobs for engine in names]
    runs: dict[tuple[str, str], list[JobResult]] = {pair: [] for pair in pairs}
    for repeat in range(1, repeats + 1):
        for job, engine in pairs:
            progress(f"{job} on the {engine} engine, {repeat} of {repeats}")
            runs[job, engine].append(alone(run_once, JOBS[job], engine))
    return [_median(runs[pair]) for pair in pairs]


def alone(work: Callable[..., Result], *words: Any) -> Result:
    """Do it in a new process, whose memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *words).result()


def whole_iteration(job: Job) -> float | None:
    """Return how many times the job's bytes on the fabric an iteration unscaled has.

    That is with all layers of its model, and bytes and times in full; None of other traffic.
    """
    table = job.workload.get("graph")
    if table is None:
        return None
    plan = {key: value for key, value in table["plan"].items() if key not in ("layers", "scale")}
    whole, part = (
        figures_of(made.job, described_graph(made)).fabric_bytes
        for made in (
            JobDescription.model_validate({**table, "plan": plan}),
            JobDescription.model_validate(table),
        )
    )
    return whole / part


def monitor_costs(results: Sequence[JobResult]) -> dict[str, float]:
    """Return what each monitor adds to the window engine's CPU time, as a share of it.

    The median over the repetitions, each compared with the run without a monitor beside it; empty
    unless ``monitor-none`` was measured.
    """
    measured = {r.job: r.cpu_s_all for r in results if r.engine == ENGINES[0]}
    without = measured.get("monitor-none", ())
    return {
        job: statistics.median(a / b for a, b in zip(spent, without, strict=True)) - 1
        for job, spent in measured.items()
        if without and job.startswith("monitor-") and job != "monitor-none"
    }
