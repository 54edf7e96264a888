"""What more cores give: threads for one network."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from engine_speed import JOBS, Job
from scale_speed import US, fat_tree

from dcqcn_gym import _core
from dcqcn_gym.core.groups import same_everywhere
from dcqcn_gym.envs.scenario.compile import compile_scenario

THREAD_JOBS = {"all-to-all": (JOBS["all-to-all"], 0, 10_000), "8192 hosts": (fat_tree(32), 50, 100)}
"""Job, and from which to which microsecond it counts."""


@dataclass(frozen=True)
class Threads:
    """One job: wall seconds of each pair of runs, in one thread and in ``threads``."""

    job: str
    threads: int
    wall_s: tuple[tuple[float, float], ...]

    def row(self) -> tuple[str, ...]:
        """Return the columns of the table."""
        ratios = sorted(one / many for one, many in self.wall_s)
        one, many = (statistics.median(column) for column in zip(*self.wall_s, strict=True))
        span = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        ratio = f"{statistics.median(ratios):.2f}"
        return (self.job, f"{one:.2f}", f"{many:.2f}", f"{self.threads}", ratio, span)


THREAD_COLUMNS = ("job", "wall s, one thread", "wall s", "threads", "times as fast", "of all pairs")


def thread_speed(name: str, threads: int, pairs: int) -> Threads:
    """Run a job of :data:`THREAD_JOBS` in turns; SystemExit if both do not do the same."""
    job, begin, end = THREAD_JOBS[name]
    compiled = compile_scenario(job.scenario())
    spent = []
    for pair in range(pairs):
        order = (1, threads) if pair % 2 == 0 else (threads, 1)
        found = {n: _wall(job, compiled, n, (begin * US, end * US)) for n in order}
        if found[1][1] != found[threads][1]:
            raise SystemExit(f"{name}: {threads} threads do not do what one does")
        spent.append((found[1][0], found[threads][0]))
    return Threads(name, threads, tuple(spent))


def _wall(job: Job, compiled: str, threads: int, span: tuple[int, int]) -> tuple[float, str]:
    simulation = _core.Simulation(compiled, 1, threads=threads)
    setting = job.setting(job.scenario())
    simulation.apply(*same_everywhere(setting, simulation.n_hosts, simulation.n_ports))
    simulation.advance(span[0])
    before = time.perf_counter()
    simulation.advance(span[1])
    wall = time.perf_counter() - before
    simulation.report()
    return wall, repr(simulation.totals())
