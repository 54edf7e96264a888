"""``python tests/leaderboard/keeper_hardships.py``: where Keeper was not made for.

Twenty scenarios by hand, of kinds that its bank lacks (other shapes and sizes of traffic, flips
that last as long as a duel's blocks); broken sensors; facts of the fabric that are wrong by 4.
Printed is S over the whole run against the default's run on the same traffic, and the points of
pause that it had more. ``FEWEST`` is what no row may fall below.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dcqcn_gym.core.config import validate
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.sums import mean
from dcqcn_gym.core.verdict import Measured, changes, scores_by_seed
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.report.measurements import measured
from dcqcn_gym.report.series import Series
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import run
from dcqcn_gym.runs.spec import RunSpec
from dcqcn_gym.tuners import Outcome, TunerContext
from dcqcn_gym.tuners.keeper import KeeperTuner

__all__ = ["CASES", "FAULTS", "FEWEST", "STALE", "main", "runs_of", "series_of"]

FEWEST = -0.05
SEEDS, INTERVALS = (1, 2, 3, 4, 5, 6), 60
Table = dict[str, Any]


def _star(hosts: int, gbps: int, delay_us: float = 5.0) -> Table:
    return {"kind": "single-switch", "hosts": hosts, "gbps": gbps, "delay_us": delay_us}


def _racks(tors: int, hosts: int, spines: int, gbps: int = 25, uplink_gbps: int = 25) -> Table:
    return {"kind": "leaf-spine", "tors": tors, "hosts_per_tor": hosts, "spines": spines,
            "host_gbps": gbps, "uplink_gbps": uplink_gbps}  # fmt: skip


def _flows(cdf: str, load: float, **more: Any) -> Table:
    return {"kind": "poisson", "cdf": cdf, "load": load, "load_of": "host", **more}


def _incast(senders: int, size: int, off_us: int, dst: int = 0, **more: Any) -> Table:
    hosts = [h for h in range(dst, dst + senders + 1) if h != dst]
    return {"kind": "incast", "dst": dst, "hosts": hosts, "bytes": size, "off_us": off_us, **more}


def _flip(each_us: int, *parts: Table) -> list[Table]:
    """Return parts in turn, each for so long, until the run ends."""
    turns = range((INTERVALS + 2) * 1_000 // each_us)
    return [
        {**parts[k % len(parts)], "start_us": k * each_us, "stop_us": (k + 1) * each_us}
        for k in turns
    ]


RPC, MIXED, WEB = "SolarRPC_approx", "FB_Hadoop", "WebSearch"
CASES: dict[str, tuple[Table, list[Table]]] = {
    "rpc alone": (_star(16, 25), [_flows(RPC, 0.2)]),
    "elephants alone": (_star(16, 25), [_flows(WEB, 0.7)]),
    "one quiet pair": (_star(12, 100), [{"kind": "permutation", "hosts": 2, "bytes": 100_000_000}]),
    "overload": (_racks(2, 8, 1), [_flows(MIXED, 0.4)]),
    "empty network, then a burst": (_star(16, 25), [_incast(15, 400_000, 500, start_us=30_000)]),
    "tiny rounds": (_star(16, 25), [_incast(15, 3_000, 50), _flows(MIXED, 0.1)]),
    "one round as long as the run": (_star(16, 25), [_incast(15, 12_000_000, 100)]),
    "every host asks every host": (_star(20, 25), [{"kind": "alltoall", "hosts": 20,
                                   "bytes": 20_000, "off_us": 100}, _flows(RPC, 0.05)]),
    "two incasts to one rack": (_racks(4, 6, 2), [_incast(11, 150_000, 300), _flows(MIXED, 0.1),
                                _incast(11, 150_000, 700, dst=1)]),
    "storage write behind a ring": (_racks(2, 8, 2), [{"kind": "ring", "hosts": 8,
                                    "bytes": 4_000_000, "off_us": 500}, _incast(7, 250_000, 900)]),
    "long links": (_star(16, 25, 50.0), [_flows(MIXED, 0.25)]),
    "short links": (_star(16, 100, 0.5), [_flows(MIXED, 0.15), _incast(9, 200_000, 400)]),
    "uplinks alone are full": (_racks(4, 4, 1, 25, 25), [_flows(WEB, 0.2)]),
    "23:1 beside rpc": (_star(24, 25), [_incast(23, 60_000, 200), _flows(RPC, 0.05)]),
    "31:1 beside rpc": (_star(32, 25), [_incast(31, 60_000, 200), _flows(RPC, 0.05)]),
    "flips of 3 ms": (_star(16, 25), _flip(3_000, _incast(15, 200_000, 100), _flows(RPC, 0.1))),
    "flips of 4 ms": (_star(16, 25), _flip(4_000, _incast(15, 200_000, 100), _flows(MIXED, 0.3))),
    "flips of 7 ms": (_star(32, 25), _flip(7_000, _incast(31, 100_000, 100), _flows(WEB, 0.3))),
    "flips of 20 ms": (_racks(2, 8, 2), _flip(20_000, _incast(15, 200_000, 300),
                       _flows(WEB, 0.2))),
    "an incast that wanders": (_star(16, 25), [_flows(RPC, 0.05), *_flip(5_000, *(
                               _incast(12, 150_000, 100, dst=d) for d in (0, 1, 2)))]),
}  # fmt: skip
"""Fabric and traffic by name."""

BROKEN_ON = ("overload", "23:1 beside rpc", "31:1 beside rpc", "flips of 4 ms")
"""Where sensors break and facts are stale."""


def scenario_of(name: str) -> Scenario:
    """Return a case."""
    topology, workloads = CASES[name]
    table = {"intervals": INTERVALS, "warmup_us": 2_000, "topology": topology,
             "monitor": {"kind": "elastic"}, "workloads": workloads}  # fmt: skip
    return validate(table, Scenario, source=name)


class _Faulty(KeeperTuner):
    """A keeper whose sensors are broken in some way."""

    def start(self, context: TunerContext) -> None:
        super().start(context)
        self._before: list[IntervalReport] = []
        self._draws = np.random.default_rng(context.seed)

    def broken(self, report: IntervalReport) -> IntervalReport:
        """Return what is seen of a report."""
        return report

    def tell(self, outcome: Outcome) -> None:
        self._before.append(outcome.report)
        super().tell(replace(outcome, report=self.broken(outcome.report)))


def _blind(report: IntervalReport) -> IntervalReport:
    """Return a report without its sensors; a table is known whole or not at all."""
    trips = {field.name for field in fields(report) if field.name.startswith("rtt_")}
    return replace(report, unknown=report.unknown | trips | {"port_pause_ps"})


class Stuck(_Faulty):
    """Everything stays as it was in the first interval."""

    def broken(self, report: IntervalReport) -> IntervalReport:
        return self._before[0]


class StuckHigh(_Faulty):
    """Pauses read half of the time, whatever happens."""

    def broken(self, report: IntervalReport) -> IntervalReport:
        half = np.full_like(report.port_pause_ps, report.duration_ps // 2)
        return replace(report, port_pause_ps=half)


class Late(_Faulty):
    """Four intervals late."""

    def broken(self, report: IntervalReport) -> IntervalReport:
        return self._before[max(0, len(self._before) - 5)]


class Noisy(_Faulty):
    """Pauses and round trips times a number of exp(N(0, 1)), each interval's own."""

    def broken(self, report: IntervalReport) -> IntervalReport:
        pause, trips = np.exp(self._draws.normal(size=2))
        return replace(
            report,
            port_pause_ps=(report.port_pause_ps * pause).astype(report.port_pause_ps.dtype),
            rtt_sum_ps=(report.rtt_sum_ps * trips).astype(np.int64),
        )


class Gaps(_Faulty):
    """Every other interval tells nothing."""

    def broken(self, report: IntervalReport) -> IntervalReport:
        if len(self._before) % 2:
            return report
        return _blind(report)


class Missing(_Faulty):
    """Neither pauses nor round trips are known: it can only hold the rule's setting."""

    def broken(self, report: IntervalReport) -> IntervalReport:
        return _blind(report)


class _Stale(KeeperTuner):
    """A keeper that believes something wrong of the fabric."""

    factors: tuple[float, float] = (1.0, 1.0)
    """Of line rate and of hosts that can meet."""

    def start(self, context: TunerContext) -> None:
        facts = context.fabric
        assert facts is not None
        rate, hosts = self.factors
        meeting = max(1, round(facts.meeting_hosts * hosts))
        wrong = replace(facts, line_rate_gbps=facts.line_rate_gbps * rate, meeting_hosts=meeting)
        super().start(replace(context, fabric=wrong))


class RateHigh(_Stale):
    factors = (4.0, 1.0)


class RateLow(_Stale):
    factors = (0.25, 1.0)


class ManyHosts(_Stale):
    factors = (1.0, 4.0)


class FewHosts(_Stale):
    factors = (1.0, 0.25)


FAULTS = (Stuck, StuckHigh, Late, Noisy, Gaps, Missing)
STALE = (RateHigh, RateLow, ManyHosts, FewHosts)


def runs_of(
    scenario: Scenario,
    tuner: str,
    seeds: tuple[int, ...] = SEEDS,
    given: dict[str, Any] | None = None,
) -> list[Measured]:
    """Return what a tuner with these arguments does to the whole run, by seed."""
    return [measured(series_of(scenario, tuner, seed, given)) for seed in seeds]


def series_of(
    scenario: Scenario, tuner: str, seed: int, given: dict[str, Any] | None = None
) -> Series:
    """Return one run of a tuner with these arguments as arrays."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        run(RunSpec(scenario, tuner, seed, scenario.intervals, "native", given or {}), log)
        return Series.of(read_run(log))


def _rows(names: tuple[str, ...], tuners: dict[str, str]) -> Iterator[float]:
    """Print a line for each case, and yield the S of each."""
    for name in names:
        scenario = scenario_of(name)
        default = runs_of(scenario, "default")
        cells = []
        for tuner in tuners.values():
            ours = runs_of(scenario, tuner)
            pause = next(c for c in changes(ours, default) if c.key == "pause").change.mean
            s = mean([v for v in scores_by_seed(ours, default) if np.isfinite(v)] or [0.0])
            cells.append(f"{s:+.3f} ({100 * pause:+.1f})")
            yield s
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> int:
    """Print both tables; return 1 if a row is below :data:`FEWEST`."""
    print("| scenario | S of keeper (points of pause) | S of advise |")
    worst = list(_rows(tuple(CASES), {"keeper": "keeper", "advise": "advise"}))[::2]
    places = {one.__name__: f"{__file__}:{one.__name__}" for one in (*FAULTS, *STALE)}
    print(f"| scenario | {' | '.join(places)} |")
    broken = list(_rows(BROKEN_ON, places))
    print(f"worst of {len(worst)} scenarios {min(worst):+.3f}, with faults {min(broken):+.3f}")
    return int(min(*worst, *broken) < FEWEST)


if __name__ == "__main__":
    sys.exit(main())
