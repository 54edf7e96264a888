"""Iterations of jobs in a study: how long they take, and how much of that is communication."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dcqcn_gym.comparison.plan import Plan, TableOf, Trials
from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.statistics import paired_change
from dcqcn_gym.core.sums import mean
from dcqcn_gym.envs.scenario.job import JobLoad
from dcqcn_gym.envs.scenario.jobs.description import DescribedGraph, JobDescription
from dcqcn_gym.envs.scenario.jobs.figures import chain_ps
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.table import Table, with_interval
from dcqcn_gym.runs.trials import Trial


def iterations(plan: Plan, table: TableOf, trials: Trials) -> Iterator[Table]:
    """Yield the times of iterations by case, in % of the entry ``against``'s, paired by seed.

    Where none was over in a run, the one under way counts at its age, which is too little.
    ``exposed`` is what an iteration of that entry takes beyond its longest chain of computation.
    """
    (usual,) = table.against
    others = [entry.name for entry in plan.entries if entry.name != usual]
    lines = []
    for case in plan.cases:
        base, exposed = _means(trials[case.title, usual], case.loaded)
        cells = [case.title, f"{mean(base) * 1e-9:.3f}", f"{100 * mean(exposed) / mean(base):.0f}"]
        for name in others:
            ours, _ = _means(trials[case.title, name], case.loaded)
            share = [100 * a / b for a, b in zip(ours, base, strict=True)]
            change = paired_change(share, [100.0] * len(share))
            cells.append(with_interval(change, "+.1f", style="brackets"))
        lines.append(cells)
    columns = ("scenario", f"iteration of {usual}, ms", "of it exposed, %")
    yield Table((*columns, *(f"{name}, % longer" for name in others)), lines)


def _means(trials: Sequence[Trial], scenario: Scenario) -> tuple[list[float], list[float]]:
    """Return the mean time of each run's iterations, and of that beyond computation, in ps."""
    computing = {
        i: _chain(job) for i, job in enumerate(scenario.workloads) if isinstance(job, JobLoad)
    }
    times, beyond = [], []
    for trial in trials:
        log = read_run(trial.log)
        done = [one for record in log.intervals for one in record.get("rounds", ())]
        end = log.intervals[-1]["end_ps"]
        running = [
            {**one, "time_ps": end - one["start_ps"]}
            for one in (log.end or {}).get("running_rounds") or ()
        ]
        rounds = [
            (float(one["time_ps"]), computing[one["workload"]])
            for one in done or running
            if one["workload"] in computing
        ]
        if not rounds:
            raise ConfigError(f"{trial.log}: no iteration was over; give the study more intervals")
        times.append(mean([time for time, _ in rounds]))
        beyond.append(mean([time - chain for time, chain in rounds]))
    return times, beyond


def _chain(job: JobLoad) -> int:
    """Return the longest chain of computation; 0 of a graph from a file."""
    graph = job.graph
    if not isinstance(graph, DescribedGraph):
        return 0
    return chain_ps(JobDescription.model_validate(graph.source).job)
