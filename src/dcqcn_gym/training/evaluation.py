"""Trained policies beside other tuners on fresh traffic: the same seeds for all of them.

A policy acts in every interval, as it would in deployment; a static tuner keeps its setting. Each
run is an event log like any other; a second call with the same directory makes only what is missing
and what was made with another policy of that name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.report.paired import ONE_TRACE, PairedRow, one_trace, paired_rows, series_of
from dcqcn_gym.runs.campaign import Progress, carry_out, raise_failures
from dcqcn_gym.runs.log import write_json
from dcqcn_gym.runs.markdown import plain as shown
from dcqcn_gym.runs.recorded import RunJob
from dcqcn_gym.runs.results import plain, tuner_digest, write_results
from dcqcn_gym.runs.rows import Row, evaluation_seeds, load_scenarios, unique
from dcqcn_gym.runs.table import Table, point, with_interval
from dcqcn_gym.training.sampling import FIRST_TRAINING_SEED
from dcqcn_gym.tuners.policy import shipped_policies

__all__ = ["Plan", "as_json", "as_markdown", "as_tables", "evaluate"]

Rows = Mapping[str, Sequence[PairedRow]]
"""The rows of each scenario by its name."""


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

    def contenders(self) -> list[Row]:
        """Return the rows, policies first; ConfigError if two have one name."""
        shipped = shipped_policies()
        given = [(text, text if text in shipped else _short(Path(text))) for text in self.policies]
        rows = [Row("policy", {"file": text}, given_name=name) for text, name in given]
        rows += [Row(name, given_name=name) for name in self.beside]
        texts = [*self.policies, *self.beside]
        unique("row", [(text, row.name, row) for text, row in zip(texts, rows, strict=True)])
        return rows

    def fresh_seeds(self) -> list[int]:
        """Return the seeds of the traffic; ConfigError if one may have been trained on."""
        found = evaluation_seeds(self.seed, self.seeds)
        if found[-1] >= FIRST_TRAINING_SEED:
            raise ConfigError(
                f"seed = {self.seed}: its traffic seeds end at {found[-1]}, and from "
                f"{FIRST_TRAINING_SEED} on they are those of trainings; give a smaller one"
            )
        return found


def _short(path: Path) -> str:
    """Return a file's name, or that of a training's directory."""
    named = path.parent if path.name == "policy.npz" else path
    return named.absolute().name.removesuffix(".npz")


def evaluate(
    plan: Plan, out: Path | None, workers: int | None, progress: Progress | None = None
) -> Rows:
    """Carry out every run and return the rows; logs and ``results.json`` are kept in ``out``.

    Raises ConfigError for anything that cannot run, before the first run, and RunError that names
    every run that failed, after the last one.
    """
    if not plan.scenarios:
        raise ConfigError("an evaluation needs at least one scenario")
    with ExitStack() as stack:
        folder = out if out is not None else Path(stack.enter_context(TemporaryDirectory()))
        todo = _jobs(plan, folder)
        for job in todo.values():
            job.spec.check()
        for job in todo.values():
            job.path.parent.mkdir(parents=True, exist_ok=True)
        _forget_others(plan, folder, todo)
        raise_failures(carry_out(list(todo.values()), workers=workers, progress=progress))
        rows = _rows(plan, todo)
        _write_figures(plan, rows, folder)
        return rows


def _jobs(plan: Plan, folder: Path) -> dict[tuple[str, str, int], RunJob]:
    """Return the run of each scenario, row and seed."""
    todo = {}
    for row in plan.contenders():
        for scenario in load_scenarios(plan.scenarios):
            for seed in plan.fresh_seeds():
                spec = row.spec(scenario, seed, plan.intervals, plan.backend)
                stem = row.name.replace("/", "-")  # a tuner may be a path.py:Class
                path = folder / scenario.name / f"{stem}-seed{seed}.jsonl"
                todo[scenario.name, row.name, seed] = RunJob(spec, path)
    return todo


def _forget_others(plan: Plan, folder: Path, todo: Mapping[tuple[str, str, int], RunJob]) -> None:
    """Remove logs that another policy, or other code, of the same name has left.

    A log names the file of a policy and not what it held, so that is kept beside the logs, for each
    of them: this call may want a few of those that are there. Old logs go before the record says
    what comes, so that one that is left by an interrupt is never taken for another's.
    """
    record = folder / "evaluate.json"
    try:
        known = dict(parse_json(read_file(record))["logs"])
    except (ValueError, KeyError, TypeError):  # a ConfigError is one
        known = {}
    now = {row.name: tuner_digest(row.tuner, row.tuner_args) for row in plan.contenders()}
    for (_, name, _), job in todo.items():
        log = job.path.relative_to(folder).as_posix()
        if now[name] is None or known.get(log) != now[name]:
            job.path.unlink(missing_ok=True)
        known[log] = now[name]
    write_json(record, {"logs": known})


def _rows(plan: Plan, todo: Mapping[tuple[str, str, int], RunJob]) -> Rows:
    runs: dict[str, dict[str, list[Path]]] = {}
    for (scenario, name, _), job in todo.items():
        runs.setdefault(scenario, {}).setdefault(name, []).append(job.path)
    return {
        scenario: paired_rows({n: series_of(paths) for n, paths in logs.items()}, plan.beside)
        for scenario, logs in runs.items()
    }


def _write_figures(plan: Plan, rows: Rows, out: Path) -> None:
    write_results(
        out,
        "evaluate",
        [{"scenario": name, **plain(row)} for name, found in rows.items() for row in found],
        scenarios=load_scenarios(plan.scenarios),
        tuners={row.name: (row.tuner, row.tuner_args) for row in plan.contenders()},
        seeds={"fresh": plan.fresh_seeds()},
        figures={"plan": plan},
    )


def as_tables(rows: Rows) -> list[Table]:
    """Return one table per scenario."""
    tables = []
    for scenario, found in rows.items():
        others = list(found[0].utility_gain)
        columns = ["tuner", "utility", *(f"minus {n}" for n in others), "mean slowdown",
                   "p99 slowdown", "finished only, mean", "p99", "unfinished"]  # fmt: skip
        title = f"{scenario} ({ONE_TRACE})" if one_trace(found) else scenario
        tables.append(Table(columns, [_cells(row, others) for row in found], title))
    return tables


def _cells(row: PairedRow, others: Sequence[str]) -> list[str]:
    gains = [with_interval(row.utility_gain.get(name), "+.4f", style="brackets") for name in others]
    tail = [
        point(kind[statistic], ".2f")
        for kind in (row.slowdown, row.slowdown_finished)
        for statistic in ("mean", "p99")
    ]
    return [row.name, point(row.utility), *gains, *tail, point(row.unfinished, ".0f")]


def as_markdown(rows: Rows) -> str:
    """Return the tables as Markdown; brackets are 95 % intervals over the seeds, paired."""
    return "\n".join(f"### {shown(t.title)}\n\n{t.markdown()}\n" for t in as_tables(rows))


def as_json(plan: Plan, rows: Rows) -> str:
    """Return plan and rows as JSON."""
    found = [
        {
            "scenario": scenario, "name": row.name, "utility": row.utility,
            "gain": row.utility_gain, "slowdown": row.slowdown["mean"], "p99": row.slowdown["p99"],
            "slowdown_finished": row.slowdown_finished["mean"],
            "p99_finished": row.slowdown_finished["p99"], "unfinished": row.unfinished,
        }
        for scenario, some in rows.items() for row in some
    ]  # fmt: skip
    return json.dumps(plain({"plan": plan, "rows": found}), indent=2)
