"""How accurate each flow-size monitor is, and what it costs (PARALEON, ICNP'24, section IV-C).

Traffic is simulated once per load and seed under a fixed setting, and every monitor is shown the
same packets at every interval length. The benchmark is a :class:`~dcqcn_gym.runs.study.Study`: each
piece of traffic leaves one file. docs/measured/monitoring.md explains the measures and the gates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field

from dcqcn_gym.benchmarks.papers.monitor_study.accuracy import mean_accuracy
from dcqcn_gym.benchmarks.papers.monitor_study.traces import (
    Packets,
    Probe,
    judge,
    monitor_line,
    replay,
)
from dcqcn_gym.core.config import StrictModel
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.monitors import MONITORS as MONITORS_IN_PYTHON
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.monitor import KINDS, NoMonitor, OwnMonitor, with_kind
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.runs.campaign import JsonJob
from dcqcn_gym.runs.study import Study

KIND = "paper monitors"
MS = 1_000_000_000
REFERENCE_LOAD = 30
LONG_ENOUGH_MS = 1200

OTHER_EXPORTS: Mapping[str, str] = {
    "netflow": "1 packet in 100, exported every interval",
    "netflow-1s": "1 packet in 100, exported every second",
}
"""NetFlow twice: its own export of a second needs a long run, as CHAMELEON does."""

MONITORS: Mapping[str, str] = {
    name: what
    for kind, model in KINDS.items()
    if model is not NoMonitor
    for name, what in (OTHER_EXPORTS.items() if kind == "netflow" else [(kind, model.summary)])
}
"""What is compared: every kind of the engine."""

SHORT = ("elastic", "elastic-naive", "netflow")
FULL = ("elastic", "exact", "elastic-naive", "netflow")


def _options(monitor: str, interval_ms: int) -> dict[str, object]:
    if monitor == "netflow-1s":
        return {"kind": "netflow", "export_ps": 1000 * MS}
    if monitor == "netflow":
        return {"kind": "netflow", "export_ps": interval_ms * MS}
    if monitor not in KINDS:
        return {"kind": "flow-log"}
    return {"kind": monitor}


def _own(monitor: str, scenario: Scenario) -> OwnMonitor | None:
    """Return the table of a monitor in Python, with the scenario's tau and theta."""
    if monitor in MONITORS:
        return None
    own = with_kind(scenario.monitor, monitor, source="--monitor")
    assert isinstance(own, OwnMonitor)  # the engine's kinds are all in MONITORS
    return own


@dataclass(frozen=True)
class Traffic:
    """One piece of traffic and the monitors that watch it."""

    group: str
    scenario: Scenario
    load: int | None
    """Per cent of the host links; None if the scenario has no load."""
    seed: int
    warmup_ms: int
    length_ms: int
    intervals_ms: tuple[int, ...]
    monitors: tuple[str, ...]
    clocked: bool = False

    @property
    def name(self) -> str:
        """Its name, which leaves the seed out."""
        load = "" if self.load is None else f"-{self.load}"
        return f"{self.group}-{self.scenario.name}{load}"

    def identity(self) -> dict[str, Any]:
        """Return what decides the result, besides the seed."""
        text = monitor_line(compile_scenario(self.scenario), {"kind": "none"})
        return {
            "traffic": hashlib.sha256(text.encode()).hexdigest(),
            "length_ms": self.length_ms,
            "intervals_ms": list(self.intervals_ms),
            "monitors": list(self.monitors),
        }

    def run(self) -> dict[str, Any]:
        """Simulate, show every monitor the packets, judge them."""
        packets = Packets(self.scenario, self.seed, MS, self.warmup_ms * MS, self.length_ms * MS)
        probes = [
            Probe(
                monitor,
                interval * MS,
                _options(monitor, interval),
                clocked,
                _own(monitor, self.scenario),
            )
            for clocked in ((False, True) if self.clocked else (False,))
            for interval in (self.intervals_ms if not clocked else self.intervals_ms[:1])
            for monitor in self.monitors
        ]
        flows = replay(packets, probes)
        tau = self.scenario.monitor.tau_bytes
        return {
            "rows": [self._row(p, mean_accuracy(judge(p, flows, tau)))
                     for p in probes if not p.clocked],
            "clock": [_clock(p) for p in probes if p.clocked],
        }  # fmt: skip

    def _row(self, probe: Probe, mean: Any) -> dict[str, Any]:
        costs = probe.costs
        return {
            "group": self.group,
            "scenario": self.scenario.name,
            "load": self.load,
            "seed": self.seed,
            "monitor": probe.name,
            "interval_ms": probe.interval_ps // MS,
            **asdict(mean),
            "wire_bytes": count(c["monitor_bytes"] for c in costs) / len(costs),
            "memory_bytes": max(c["data_plane_bytes"] for c in costs),
            "state_bytes": max(c["control_plane_bytes"] for c in costs),
            "tracked_flows": max(c["tracked_flows"] for c in costs),
            "untracked_flows": max(c["untracked_flows"] for c in costs),
        }


def _clock(probe: Probe) -> dict[str, Any]:
    return {
        "monitor": probe.name,
        "interval_ms": probe.interval_ps // MS,
        "packets_per_interval": probe.packets / len(probe.costs),
        "ns_per_packet": 1e9 * probe.record_s / max(probe.packets, 1),
        "us_per_read_out": 1e6 * probe.close_s / len(probe.costs),
    }


@dataclass(frozen=True)
class MonitorResult:
    """One monitor on one piece of traffic at one interval length; sizes over all ToRs."""

    group: str
    scenario: str
    load: int | None
    seed: int
    monitor: str
    interval_ms: int
    label: float
    causal: float
    share: float
    recall: float | None
    wire_bytes: float
    memory_bytes: int
    state_bytes: int
    tracked_flows: int
    untracked_flows: int


class Plan(StrictModel):
    """What is run, which TOML can hold. Every interval length has to divide the warm-up."""

    loads: tuple[int, ...] = Field(default=(10, 20, 30, 40, 50), description="% of host links")
    intervals_ms: tuple[int, ...] = (1, 2, 5, 10)
    seeds: tuple[int, ...] = Field(default=(1, 2, 3), min_length=1)
    warmup_ms: int = Field(default=10, ge=1)
    length_ms: int = Field(default=40, ge=1)
    scenario: str = "fb-hadoop"
    rounds: str = Field(
        default="llm-alltoall",
        description="All-to-all traffic: flows that a single interval cannot show; empty: none.",
    )
    long: str = Field(
        default="mini-fb-hadoop",
        description="The small network on which exports of a second are judged; empty: none.",
    )
    long_ms: int = 1300
    own: tuple[str, ...] = Field(
        default=(), description="Monitors in Python, NAME or path.py:Class, that watch as well."
    )

    @property
    def monitors(self) -> Mapping[str, str]:
        """What is compared and what each one is."""
        return {**MONITORS, **{name: MONITORS_IN_PYTHON.load(name).summary for name in self.own}}

    def traffic(self) -> list[Traffic]:
        """Return every piece of traffic with every seed, the expensive ones first."""
        self._check()
        base, own = load_scenario(self.scenario), tuple(self.own)
        found = [
            Traffic("load", with_load(base, load), load, seed, self.warmup_ms, self.length_ms,
                tuple(self.intervals_ms), (FULL if load == REFERENCE_LOAD else SHORT) + own,
                clocked=load == REFERENCE_LOAD and seed == self.seeds[0])
            for load in sorted(self.loads, reverse=True)
            for seed in self.seeds
        ]  # fmt: skip
        if self.rounds:
            rounds = load_scenario(self.rounds)
            found += [
                Traffic("rounds", rounds, None, seed, self.warmup_ms, self.length_ms,
                    tuple(i for i in self.intervals_ms if i <= 5) or (1,), SHORT + own)
                for seed in self.seeds
            ]  # fmt: skip
        if self.long:
            small = load_scenario(self.long)
            monitors = tuple(name for name in MONITORS if name != "exact") + own
            found += [
                Traffic("long", small, None, seed, self.warmup_ms, self.long_ms, (1,), monitors)
                for seed in self.seeds
            ]
        return found

    def _check(self) -> None:
        for name in self.own:
            if name in MONITORS or name in KINDS:
                raise ConfigError(f"monitor {name!r} is compared anyway; expected one in Python")
            MONITORS_IN_PYTHON.load(name)
        check_loads(self.loads)
        for interval in self.intervals_ms:
            if interval < 1 or self.warmup_ms % interval or self.length_ms % interval:
                raise ConfigError(
                    f"interval {interval} ms does not divide the warm-up of {self.warmup_ms} ms "
                    f"and the length of {self.length_ms} ms"
                )
        if self.long and self.long_ms < LONG_ENOUGH_MS:
            raise ConfigError(
                f"a long run of {self.long_ms} ms judges exports of a second by their absence; "
                f"expected at least {LONG_ENOUGH_MS} ms"
            )


def check_loads(loads: Sequence[int]) -> None:
    """Raise ConfigError for a load that is none, or is there twice."""
    for load in loads:
        if not 1 <= load <= 100:
            raise ConfigError(f"load {load}: expected 1 to 100 per cent of the host links")
        if loads.count(load) > 1:
            raise ConfigError(f"load {load} is given twice; give it once")


def with_load(scenario: Scenario, load: int) -> Scenario:
    """Return the scenario with its Poisson traffic at ``load`` per cent of the host links."""
    data = scenario.model_dump(mode="json")
    poisson = [w for w in data["workloads"] if w["kind"] == "poisson"]
    if not poisson:
        raise ConfigError(f"scenario {scenario.name!r} has no Poisson traffic to set a load for")
    for workload in poisson:
        workload |= {"load": load / 100, "load_of": "host"}
    return Scenario.model_validate(data, context={})


class Work(Protocol):
    """One result to be made: a piece of :class:`Traffic`, or a job of another such study."""

    @property
    def name(self) -> str:
        """What it is, but for the seed."""
        ...

    @property
    def seed(self) -> int:
        """The seed of its traffic."""
        ...

    def identity(self) -> dict[str, Any]:
        """Return what decides the result, but for the seed."""
        ...

    def run(self) -> dict[str, Any]:
        """Make the result."""
        ...


def study_of(works: Sequence[Work], out: Path, plan: Plan) -> Study[JsonJob]:
    """Return the study of some works of a plan: a file for each."""
    return Study(
        kind=KIND,
        same={"warmup_ms": plan.warmup_ms},
        parts={
            "traffic": {work.name: work.identity() for work in works},
            "seed": {str(work.seed): None for work in works},
        },
        jobs={
            (work.name, str(work.seed)): JsonJob(
                f"{work.name} seed {work.seed}", out / f"{work.name}-seed{work.seed}.json", work.run
            )
            for work in works
        },
        plan=plan.model_dump(mode="json"),
    )


def results_of(study: Study[JsonJob]) -> list[MonitorResult]:
    """Return every result of a finished study."""
    return [MonitorResult(**row) for job in study.jobs.values() for row in job.result()["rows"]]


def clocks_of(study: Study[JsonJob]) -> list[dict[str, Any]]:
    """Return the CPU times: of this machine, and different in every run."""
    return [clock for job in study.jobs.values() for clock in job.result()["clock"]]
