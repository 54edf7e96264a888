"""Trained policies beside other tuners on fresh traffic: the same seeds for all of them.

A policy acts in every interval, as it would in deployment; a static tuner keeps its setting. Each
run is an event log like any other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dcqcn_gym.core.errors import ConfigError, RunError, quote
from dcqcn_gym.core.statistics import (
    ALL_SIZES,
    Estimate,
    estimate,
    paired_change,
    slowdown_by_seed,
)
from dcqcn_gym.envs.scenario.scenario import load_scenario
from dcqcn_gym.report.data import Series
from dcqcn_gym.report.headline import mean_utility
from dcqcn_gym.runs.log import read_run
from dcqcn_gym.runs.loop import RunSpec, run
from dcqcn_gym.runs.pool import worker_pool
from dcqcn_gym.runs.session import evaluation_seeds
from dcqcn_gym.tuners.policy import shipped_policies

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Plan", "Row", "as_json", "as_markdown", "as_tables", "evaluate"]

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What is run: every policy and every tuner beside them, on every scenario and seed."""

    policies: Sequence[str]
    scenarios: Sequence[str]
    beside: Sequence[str] = ("default", "expert", "do-nothing")
    seeds: int = 5
    intervals: int = 100
    seed: int = 1
    backend: str = "native"

    def contenders(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Return (name in the table, tuner, its arguments), policies first."""
        shipped = shipped_policies()
        rows: list[tuple[str, str, dict[str, Any]]] = []
        for text in self.policies:
            name = text if text in shipped else _short(Path(text))
            rows.append((name, "policy", {"file": text}))
        rows += [(name, name, {}) for name in self.beside]
        names = [name for name, _, _ in rows]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(
                    f"{quote(name)} is named twice; every row needs a name of its own"
                )
        return rows


def _short(path: Path) -> str:
    """Return a file's name, or that of a training's directory."""
    named = path.parent if path.name == "policy.npz" else path
    return named.absolute().name.removesuffix(".npz")


@dataclass(frozen=True)
class Row:
    """One contender on one scenario: means over the seeds, gains paired by seed."""

    scenario: str
    name: str
    utility: Estimate
    gain: dict[str, Estimate]
    """Utility minus that of each tuner beside."""
    slowdown: Estimate
    p99: Estimate


@dataclass(frozen=True)
class _Job:
    spec: RunSpec
    path: Path


def evaluate(plan: Plan, out: Path | None, workers: int | None, progress: Progress) -> list[Row]:
    """Carry out every run and return the rows; logs are kept if ``out`` is given.

    Raises ConfigError for anything that cannot run, before the first run.
    """
    with ExitStack() as stack:
        folder = out if out is not None else Path(stack.enter_context(TemporaryDirectory()))
        todo = _jobs(plan, folder)
        for job in todo.values():
            job.spec.check()
        for job in todo.values():
            job.path.parent.mkdir(parents=True, exist_ok=True)
        _carry_out(list(todo.values()), workers, progress)
        return _rows(plan, todo)


def _jobs(plan: Plan, folder: Path) -> dict[tuple[str, str, int], _Job]:
    todo = {}
    for name, tuner, arguments in plan.contenders():
        for text in plan.scenarios:
            scenario = load_scenario(text)
            for seed in evaluation_seeds(plan.seed, plan.seeds):
                spec = RunSpec(scenario, tuner, seed, plan.intervals, plan.backend, arguments)
                stem = name.replace("/", "-")  # a tuner may be a path.py:Class
                path = folder / scenario.name / f"{stem}-seed{seed}.jsonl"
                todo[text, name, seed] = _Job(spec, path)
    return todo


def _carry_out(todo: Sequence[_Job], workers: int | None, progress: Progress) -> None:
    try:
        with worker_pool(workers) as pool:
            futures = [pool.submit(_work, job) for job in todo]
            for done, future in enumerate(as_completed(futures), start=1):
                progress(f"{done} of {len(todo)} runs: {future.result()}")
    except BrokenProcessPool as error:
        raise RunError("a worker process died (out of memory?)") from error


def _work(job: _Job) -> str:
    run(job.spec, job.path)
    return f"{job.path.parent.name}/{job.path.stem}"


def _rows(plan: Plan, todo: dict[tuple[str, str, int], _Job]) -> list[Row]:
    seeds = evaluation_seeds(plan.seed, plan.seeds)
    names = [name for name, _, _ in plan.contenders()]
    rows = []
    for text in plan.scenarios:
        series = {n: [Series.of(read_run(todo[text, n, s].path)) for s in seeds] for n in names}
        utility = {n: [mean_utility(one) for one in found] for n, found in series.items()}
        for name in names:
            flows = [(one.flow_bytes, one.flow_slowdown) for one in series[name]]
            rows.append(
                Row(
                    scenario=load_scenario(text).name,
                    name=name,
                    utility=estimate(utility[name]),
                    gain={
                        other: paired_change(utility[name], utility[other])
                        for other in plan.beside
                        if other != name
                    },
                    slowdown=estimate(slowdown_by_seed(flows, ALL_SIZES, "mean")),
                    p99=estimate(slowdown_by_seed(flows, ALL_SIZES, "p99")),
                )
            )
    return rows


def _head(row: Row) -> list[str]:
    return ["tuner", "utility", *(f"minus {n}" for n in row.gain), "mean slowdown", "p99 slowdown"]


def _cells(row: Row, columns: Sequence[str]) -> list[str]:
    gains = [_change(row.gain.get(name)) for name in columns]
    tail = [f"{row.slowdown.mean:.2f}", f"{row.p99.mean:.2f}"]
    return [row.name, f"{row.utility.mean:.4f}", *gains, *tail]


def _change(gain: Estimate | None) -> str:
    if gain is None:
        return "–"
    if gain.low is None or gain.high is None:
        return f"{gain.mean:+.4f}"
    return f"{gain.mean:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"


def _by_scenario(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.scenario, []).append(row)
    return found


def as_tables(rows: Sequence[Row]) -> list[Table]:
    """Return one table per scenario for a terminal."""
    from rich.markup import escape
    from rich.table import Table

    tables = []
    for scenario, found in _by_scenario(rows).items():
        table = Table(title=escape(scenario), title_justify="left")
        for i, title in enumerate(_head(found[0])):
            table.add_column(title, justify="right" if i else "left")
        for row in found:
            table.add_row(*map(escape, _cells(row, list(found[0].gain))))
        tables.append(table)
    return tables


def as_markdown(plan: Plan, rows: Sequence[Row]) -> str:
    """Return the tables as Markdown; brackets are 95 % intervals over the seeds, paired."""
    lines: list[str] = []
    for scenario, found in _by_scenario(rows).items():
        head = _head(found[0])
        lines += [f"### {scenario}", "", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
        lines += [f"| {' | '.join(_cells(row, list(found[0].gain)))} |" for row in found]
        lines.append("")
    return "\n".join(lines)


def as_json(plan: Plan, rows: Sequence[Row]) -> str:
    """Return plan and rows as JSON."""
    return json.dumps({"plan": asdict(plan), "rows": [asdict(row) for row in rows]}, indent=2)
