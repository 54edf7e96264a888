"""Measure speeds and costs: ``python tools/speed/measure.py engine|batch|large|schemes|...``.

Wall and CPU times are the machine's: on a busy one they say how long processes wait for a core.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from agents_speed import COLUMNS, agents_speed
from batch_speed import evaluation_speed
from bridge_speed import measure as measure_bridge
from class_speed import COLUMNS as CLASS_COLUMNS
from class_speed import class_rows
from engine_speed import (
    JOBS,
    EnvCost,
    JobResult,
    engines,
    env_cost,
    measure,
    monitor_costs,
    whole_iteration,
)
from more_cores import THREAD_COLUMNS, THREAD_JOBS, thread_speed
from rich.console import Console
from scale_speed import COLUMNS as SCALE_COLUMNS
from scale_speed import LARGE, LARGE_COLUMNS, large_row, scale_cost
from scheme_cost import SCHEMES, cost_of, markdown
from scheme_speed import DEFAULT_JOBS, measure_schemes, table
from steps_speed import copy_cost, training_speed, vector_speed

from dcqcn_gym.core.errors import UnknownNameError
from dcqcn_gym.report.markdown_page import check_page, insert
from dcqcn_gym.runs.command_line import run_command
from dcqcn_gym.runs.options import ScenarioOption
from dcqcn_gym.runs.table import Table, print_tables

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Repeats = Annotated[int, typer.Option(min=1, help="Repetitions; the median counts.")]
Jobs = Annotated[list[str] | None, typer.Option(help="Only this job; repeatable. Default: all.")]
Page = Annotated[Path | None, typer.Option(help="The page to put the table into.")]


@app.command()
def engine(
    as_json: Json = False,
    repeats: Repeats = 3,
    job: Jobs = None,
    only: Annotated[
        list[str] | None, typer.Option("--engine", help="Only this engine. Default: all.")
    ] = None,
    environment: Annotated[
        bool, typer.Option("--env/--no-env", help="Measure the environment's share as well.")
    ] = True,
) -> None:
    """Packet-hops and data packets per CPU second on fixed jobs at the paper's scale (128 hosts).

    A packet-hop is one packet (data, ACK, CNP) delivered over one link. Memory is the peak of the
    job's process, Python and its graph included. What an iteration of a training job with all
    layers and bytes would take is extrapolated from its bytes on the fabric.
    """
    offered = engines()
    _check("engine", only, offered)
    _check("job", job, list(JOBS))
    with _status() as say:
        results = measure(job or list(JOBS), only or offered, repeats, say)
        say("the environment around the engine")
        cost = env_cost() if environment else None
    if as_json:
        typer.echo(_as_json(results, cost))
    else:
        _show(results, cost)


@app.command()
def batch(
    scenario: Annotated[
        list[str] | None, typer.Option(help="Only this scenario; repeatable. Default: mini-*.")
    ] = None,
    repeats: Repeats = 3,
    as_json: Json = False,
) -> None:
    """Intervals per CPU second and the share of CPU time outside the engine.

    Of `evaluate`, Gymnasium's vector interface (fluid, fake too) and a training, 8 networks each.
    """
    with _status() as say:
        found = []
        for name in scenario or ("mini-fb-hadoop", "mini-llm-alltoall", "mini-storm"):
            say(name)
            vectors = [partial(vector_speed, backend=b) for b in ("native", "fluid", "fake")]
            for speed in (partial(evaluation_speed), *vectors, partial(training_speed)):
                runs = [speed(name) for _ in range(repeats)]
                found.append(sorted(runs, key=lambda run: run.outside_share)[repeats // 2])
    if as_json:
        typer.echo(json.dumps([{**asdict(f), "outside_share": f.outside_share} for f in found]))
        return
    rows = [(f.job, f"{f.per_cpu_s:.0f}", f"{f.outside_share:.1%}") for f in found]
    print_tables([Table(("job", "intervals / CPU s", "outside the engine"), rows, words=1)])


@app.command()
def copies(
    scenario: Annotated[
        list[str] | None, typer.Option(help="Only this scenario; repeatable.")
    ] = None,
    repeats: Repeats = 5,
) -> None:
    """Bytes and CPU milliseconds of a copy of an environment in mid-episode."""
    rows = []
    for name in scenario or ("mini-fb-hadoop", "fb-hadoop", "fat-tree-1024"):
        c = copy_cost(name, repeats)
        times = (c.pickle_ms, c.unpickle_ms, c.deepcopy_ms, c.step_ms)
        rows.append((name, f"{c.hosts}", f"{c.mb:.2f}", *(f"{t:.1f}" for t in times)))
    heads = ("scenario", "hosts", "MB", "pickle, ms", "unpickle, ms", "deepcopy, ms", "a step, ms")
    typer.echo(Table(heads, rows, words=1).markdown())


@app.command()
def scale(
    k: Annotated[
        list[int] | None, typer.Option(help="Ports of a switch; repeatable. Hosts: k^3 / 4.")
    ] = None,
    us: Annotated[int, typer.Option(min=2, help="Microseconds; the second half counts.")] = 400,
) -> None:
    """Set-up, memory and cost per packet-hop of fat-trees, every host sending 12 MB to another."""
    with _status() as say:
        rows = []
        for ports in k or (8, 16, 32):
            say(f"k = {ports}")
            rows.append(scale_cost(ports, us).row())
    typer.echo(Table(SCALE_COLUMNS, rows).markdown())


@app.command()
def large(
    network: Annotated[list[str] | None, typer.Option()] = None, seed: int = 1, write: Page = None
) -> None:
    """Thousands of hosts on packets and on the fluid backend; about 10 CPU minutes.

    --network: only this one, in words of its name; repeatable. Default: all.
    """
    check_page(write, "fluid-large")
    with _status() as say:
        rows = []
        for name in LARGE:
            if not network or any(words in name for words in network):
                say(name)
                rows.append(large_row(name, seed))
    found = Table(LARGE_COLUMNS, rows, words=1).markdown()
    typer.echo(found)
    if write is not None:
        insert(write, "fluid-large", found)


@app.command()
def threads(
    n: Annotated[int, typer.Option("--threads", min=2, help="Threads beside one.")] = 2,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of runs per job.")] = 10,
    job: Jobs = None,
) -> None:
    """Wall time of one network in several threads against one, in turns; needs idle cores."""
    _check("job", job, list(THREAD_JOBS))
    with _status() as say:
        rows = []
        for name in job or THREAD_JOBS:
            say(name)
            rows.append(thread_speed(name, n, pairs).row())
    typer.echo(Table(THREAD_COLUMNS, rows, words=1).markdown())


@app.command()
def schemes(repeats: Repeats = 3, job: Jobs = None, write: Page = None) -> None:
    """Packet-hops per CPU second under every scheme, on the same jobs, against DCQCN's."""
    check_page(write, "schemes")
    _check("job", job, list(JOBS))
    with _status() as say:
        found = table(measure_schemes(job or DEFAULT_JOBS, repeats, say))
    typer.echo(found.markdown())
    if write is not None:
        insert(write, "schemes", found.markdown())


@app.command()
def classes(write: Page = None) -> None:
    """Instructions per packet-hop of an all-to-all with one class and with more, by valgrind."""
    check_page(write, "classes")
    with _status():
        found = Table(CLASS_COLUMNS, class_rows(), words=1)
    typer.echo(found.markdown())
    if write is not None:
        insert(write, "classes", found.markdown())


@app.command()
def cost(
    scheme: Annotated[
        list[str] | None, typer.Option(help="Only this scheme; repeatable. Default: all.")
    ] = None,
    instructions: Annotated[
        bool,
        typer.Option("--instructions/--no-instructions", help="Count them too, with valgrind."),
    ] = True,
    write: Page = None,
    as_json: Json = False,
) -> None:
    """Bytes per flow, connection and port, control bytes per second, instructions per packet.

    In an incast of 64 flows without an end, 8 senders to one receiver at 100 Gb/s.
    """
    _check("scheme", scheme, SCHEMES)
    costs = []
    with _status() as say:
        for name in scheme or SCHEMES:
            say(name)
            costs.append(cost_of(name, instructions))
    if as_json:
        typer.echo(json.dumps([asdict(c) for c in costs], indent=2))
    elif write is not None:
        insert(write, "cost", markdown(costs))
        typer.echo(write)
    else:
        typer.echo(markdown(costs))


@app.command()
def ns3(
    scenario: ScenarioOption = "fb-hadoop",
    steps: Annotated[int, typer.Option(min=1, help="Steps that count.")] = 50,
    interval_us: Annotated[
        float | None, typer.Option(min=1.0, help="Monitor interval; default: the scenario's.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Milliseconds per step that are not spent in ns-3: messages, copies, waking up.

    A step is another setting, one interval and its report.
    """
    with _status() as say:
        cost = measure_bridge(
            scenario, steps, interval_us=interval_us, progress=lambda n: say(f"step {n}")
        )
    if as_json:
        typer.echo(json.dumps(cost.as_dict(), indent=2))
        return
    typer.echo(
        f"{cost.scenario} ({cost.hosts} hosts), {cost.steps} steps, reports of "
        f"{cost.report_kb:.0f} kB: the bridge takes {cost.median_ms:.2f} ms per step (median; "
        f"p95 {cost.p95_ms:.2f} ms), ns-3 itself {cost.simulator_ms:.1f} ms"
    )


@app.command()
def agents(
    scenario: ScenarioOption = "mini-fb-hadoop",
    kinds: Annotated[
        str, typer.Option("--agents", help="Kinds of agents: switch, port, nic.")
    ] = "switch,port,nic",
    steps: Annotated[int, typer.Option(min=1, help="Steps per measurement.")] = 200,
    decision_us: Annotated[
        float | None, typer.Option(help="Microseconds per step; default: the monitor interval.")
    ] = None,
) -> None:
    """Steps per second and core with random actions of all agents, and what the engine takes."""
    names = [name.strip() for name in kinds.split(",") if name.strip()]
    rows = [agents_speed(scenario, kind, steps, decision_us) for kind in names]
    print_tables([Table(COLUMNS, rows, words=1)])


@contextmanager
def _status() -> Iterator[Callable[[str], object]]:
    """Show on the terminal what is said to be measured now."""
    with Console(stderr=True).status("measuring") as status:
        yield status.update


def _check(what: str, names: Sequence[str] | None, known: Sequence[str]) -> None:
    for name in names or ():
        if name not in known:
            raise UnknownNameError(what, name, known)


def _as_json(results: list[JobResult], cost: EnvCost | None) -> str:
    wholes = {r.job: whole_iteration(JOBS[r.job]) for r in results}
    jobs = [
        {**asdict(r), "hops_per_s": r.hops_per_s, "packets_per_s": r.packets_per_s,
         "whole_iteration": wholes[r.job]}
        for r in results
    ]  # fmt: skip
    value = {
        "jobs": jobs,
        "monitor_costs": monitor_costs(results),
        "environment": None if cost is None else cost.as_dict(),
    }
    return json.dumps(value, indent=2)


def _show(results: list[JobResult], cost: EnvCost | None) -> None:
    columns = ("job", "engine", "M hops", "pauses", "simulated ms", "CPU s", "M hops / CPU s",
               "M packets / CPU s", "MB")  # fmt: skip
    rows = [
        (r.job, r.engine, f"{r.hops / 1e6:.2f}", f"{r.pauses}", f"{r.simulated_ms:.0f}",
         f"{r.cpu_s:.2f}", f"{r.hops_per_s / 1e6:.1f}", f"{r.packets_per_s / 1e6:.2f}",
         f"{r.peak_mb:.0f}")
        for r in results
    ]  # fmt: skip
    print_tables([Table(columns, rows, words=2)])
    console = Console()
    for r in results:
        times = whole_iteration(JOBS[r.job])
        if times is not None:
            console.print(
                f"{r.job} on the {r.engine} engine: all layers and bytes, extrapolated from "
                f"{times:,.0f} times the bytes on the fabric: {r.hops * times * 1e-9:.1f} G hops, "
                f"{r.cpu_s * times / 60:.1f} CPU minutes"
            )
    for job, share in monitor_costs(results).items():
        console.print(f"{job}: {share:+.1%} CPU time against monitor-none, median of the pairs")
    if cost is not None:
        console.print(
            f"{cost.scenario}, per interval: {cost.engine_s_per_interval * 1e3:.1f} ms of CPU in "
            f"the engine, {cost.outside_s_per_interval * 1e3:.2f} ms outside "
            f"({cost.outside_share:.1%}); {cost.memory_mb_per_env:.0f} MB per added environment; "
            f"two environments in two threads: {cost.two_thread_speedup:.2f} times one"
        )


if __name__ == "__main__":
    run_command(app, sys.argv[1:])
