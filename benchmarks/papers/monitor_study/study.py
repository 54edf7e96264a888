"""How accurate each flow-size monitor is, and what it costs (PARALEON, ICNP'24, section IV-C).

Traffic is simulated once per load and seed under a fixed setting, and every monitor is shown the
same packets at every interval length. The benchmark is a :class:`~dcqcn_gym.runs.study.Study`: each
piece of traffic leaves one file. docs/measured/monitoring.md explains the measures and the gates.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from dcqcn_gym.benchmarks.papers.monitor_study.accuracy import mean_accuracy
from dcqcn_gym.benchmarks.papers.monitor_study.traces import (
    IntArray,
    Packets,
    Sample,
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

MONITORS = tuple(
    name
    for kind, model in KINDS.items()
    if model is not NoMonitor
    for name in ((kind, "netflow-1s") if kind == "netflow" else (kind,))
)
"""What is compared: every kind of the engine, and NetFlow that exports every second as well, which
needs a long run, as CHAMELEON does."""

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
class Watched:
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
            Sample(
                monitor, interval * MS, _options(monitor, interval), _own(monitor, self.scenario)
            )
            for interval in self.intervals_ms
            for monitor in self.monitors
        ]
        flows = replay(packets, probes)
        return {"results": [asdict(self._result(probe, flows)) for probe in probes]}

    def _result(self, probe: Sample, flows: IntArray) -> MonitorResult:
        costs = probe.costs
        found = mean_accuracy(judge(probe, flows, self.scenario.monitor.tau_bytes))
        return MonitorResult(
            self.group, self.scenario.name, self.load, self.seed, probe.name,
            probe.interval_ps // MS, found.label, found.causal, found.share, found.recall,
            wire_bytes=count(c["monitor_bytes"] for c in costs) / len(costs),
            memory_bytes=max(c["data_plane_bytes"] for c in costs),
            state_bytes=max(c["control_plane_bytes"] for c in costs),
            tracked_flows=max(c["tracked_flows"] for c in costs),
            untracked_flows=max(c["untracked_flows"] for c in costs),
        )  # fmt: skip


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


class MonitorStudy(StrictModel):
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

    def traffic(self) -> list[Watched]:
        """Return every piece of traffic with every seed, the expensive ones first."""
        self._check()
        base, own = load_scenario(self.scenario), self.own
        found = [
            Watched("load", with_load(base, load), load, seed, self.warmup_ms, self.length_ms,
                self.intervals_ms, (FULL if load == REFERENCE_LOAD else SHORT) + own)
            for load in sorted(self.loads, reverse=True)
            for seed in self.seeds
        ]  # fmt: skip
        if self.rounds:
            rounds = load_scenario(self.rounds)
            found += [
                Watched("rounds", rounds, None, seed, self.warmup_ms, self.length_ms,
                    tuple(i for i in self.intervals_ms if i <= 5) or (1,), SHORT + own)
                for seed in self.seeds
            ]  # fmt: skip
        if self.long:
            small = load_scenario(self.long)
            monitors = tuple(name for name in MONITORS if name != "exact") + own
            found += [
                Watched("long", small, None, seed, self.warmup_ms, self.long_ms, (1,), monitors)
                for seed in self.seeds
            ]
        return found

    def _check(self) -> None:
        for name in self.own:
            if name in MONITORS or name in KINDS:
                raise ConfigError(f"monitor {name!r} is compared anyway; expected one in Python")
            MONITORS_IN_PYTHON.load(name)
        for load in self.loads:
            if not 1 <= load <= 100:
                raise ConfigError(f"load {load}: expected 1 to 100 per cent of the host links")
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


def with_load(scenario: Scenario, load: int) -> Scenario:
    """Return the scenario with its Poisson traffic at ``load`` per cent of the host links."""
    data = scenario.model_dump(mode="json")
    poisson = [w for w in data["workloads"] if w["kind"] == "poisson"]
    if not poisson:
        raise ConfigError(f"scenario {scenario.name!r} has no Poisson traffic to set a load for")
    for workload in poisson:
        workload |= {"load": load / 100, "load_of": "host"}
    return Scenario.model_validate(data, context={})


def study_of(plan: MonitorStudy, out: Path) -> Study[JsonJob]:
    """Return the study of a plan: a file for each piece of traffic and seed."""
    every = plan.traffic()
    return Study(
        kind=KIND,
        same={"warmup_ms": plan.warmup_ms},
        parts={
            "traffic": {one.name: one.identity() for one in every},
            "seed": {str(one.seed): None for one in every},
        },
        jobs={
            (one.name, str(one.seed)): JsonJob(
                f"{one.name} seed {one.seed}", out / f"{one.name}-seed{one.seed}.json", one.run
            )
            for one in every
        },
        plan=plan.model_dump(mode="json"),
    )


def results_of(study: Study[JsonJob]) -> list[MonitorResult]:
    """Return every result of a finished study."""
    return [MonitorResult(**one) for job in study.jobs.values() for one in job.result()["results"]]
