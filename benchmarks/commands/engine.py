"""Speed of the engine, and of every scheme in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.core.errors import UnknownNameError

if TYPE_CHECKING:
    from dcqcn_gym.benchmarks.speed.engine import EnvCost, JobResult

__all__ = ["engine", "schemes"]


def engine(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Repetitions; the median counts.")] = 3,
    job: Annotated[
        list[str] | None, typer.Option(help="Only this job; repeatable. Default: all.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--engine", help="Only this engine. Default: all.")
    ] = None,
    environment: Annotated[
        bool, typer.Option("--env/--no-env", help="Measure the environment's share as well.")
    ] = True,
) -> None:
    """Packet-hops per CPU second on fixed jobs at the paper's scale (128 hosts).

    A packet-hop is one packet (data, ACK, CNP) delivered over one link.
    """
    from rich.console import Console

    from dcqcn_gym.benchmarks.speed.engine import JOBS, engines, env_cost, measure

    offered = engines()
    for name in only or ():
        if name not in offered:
            raise UnknownNameError("engine", name, offered)
    for name in job or ():
        if name not in JOBS:
            raise UnknownNameError("job", name, JOBS)
    with Console(stderr=True).status("measuring") as status:
        results = measure(job or list(JOBS), only or offered, repeats, status.update)
        status.update("the environment around the engine")
        cost = env_cost() if environment else None
    if as_json:
        typer.echo(_as_json(results, cost))
    else:
        _show(results, cost)


def schemes(
    repeats: Annotated[int, typer.Option(min=1, help="Turns; the median counts.")] = 3,
    job: Annotated[
        list[str] | None, typer.Option(help="Only this job of bench engine; repeatable.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="A page whose table is written, such as docs/engine.md.")
    ] = None,
) -> None:
    """Packet-hops per CPU second under every scheme, on the same jobs, against DCQCN's."""
    from rich.console import Console

    from dcqcn_gym.benchmarks.markdown_page import check_page, insert
    from dcqcn_gym.benchmarks.speed.engine import JOBS
    from dcqcn_gym.benchmarks.speed.schemes import DEFAULT_JOBS, measure_schemes, table

    check_page(write, "schemes")
    for name in job or ():
        if name not in JOBS:
            raise UnknownNameError("job", name, JOBS)
    with Console(stderr=True).status("measuring") as status:
        found = table(measure_schemes(job or DEFAULT_JOBS, repeats, status.update))
    typer.echo(found.markdown())
    if write is not None:
        insert(write, "schemes", found.markdown())


def _as_json(results: list[JobResult], cost: EnvCost | None) -> str:
    from dataclasses import asdict

    from dcqcn_gym.benchmarks.speed.engine import monitor_costs

    jobs = [{**asdict(r), "hops_per_s": r.hops_per_s} for r in results]
    value = {
        "jobs": jobs,
        "monitor_costs": monitor_costs(results),
        "environment": None if cost is None else cost.as_dict(),
    }
    return json.dumps(value, indent=2)


def _show(results: list[JobResult], cost: EnvCost | None) -> None:
    from rich.console import Console

    from dcqcn_gym.benchmarks.speed.engine import monitor_costs
    from dcqcn_gym.runs.table import Table, print_tables

    columns = ("job", "engine", "M hops", "pauses", "simulated ms", "CPU s", "M hops / CPU s")
    rows = [
        (r.job, r.engine, f"{r.hops / 1e6:.2f}", f"{r.pauses}", f"{r.simulated_ms:.0f}",
         f"{r.cpu_s:.2f}", f"{r.hops_per_s / 1e6:.1f}")
        for r in results
    ]  # fmt: skip
    print_tables([Table(columns, rows, words=2)])
    console = Console()
    for job, share in monitor_costs(results).items():
        console.print(f"{job}: {share:+.1%} CPU time against monitor-none, median of the pairs")
    if cost is not None:
        console.print(
            f"{cost.scenario}, per interval: {cost.engine_s_per_interval * 1e3:.1f} ms of CPU in "
            f"the engine, {cost.outside_s_per_interval * 1e3:.2f} ms outside "
            f"({cost.outside_share:.1%}); {cost.memory_mb_per_env:.0f} MB per added environment; "
            f"two environments in two threads: {cost.two_thread_speedup:.2f} times one"
        )
