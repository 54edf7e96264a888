"""Accuracy and cost of the flow-size monitors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.claim import claim
from dcqcn_gym.runs.interrupt import interruptible
from dcqcn_gym.runs.options import JobsOption, ScenarioOption


def monitor(
    out: Annotated[Path, typer.Option(help="Directory for the results; a rerun continues it.")],
    scenario: ScenarioOption = "fb-hadoop",
    load: Annotated[
        list[int] | None, typer.Option(help="Host load in %; repeatable. Default: 10 to 50.")
    ] = None,
    interval: Annotated[
        list[int] | None, typer.Option(help="Interval in ms; repeatable. Default: 1, 2, 5, 10.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Seeds, from 1 on.")] = 3,
    warmup: Annotated[int, typer.Option(min=1, help="Warm-up in ms.")] = 10,
    length: Annotated[int, typer.Option(min=1, help="Measured time in ms.")] = 40,
    rounds: Annotated[
        bool, typer.Option("--rounds/--no-rounds", help="All-to-all traffic as well.")
    ] = True,
    long: Annotated[
        bool, typer.Option("--long/--no-long", help="The long run for exports of a second.")
    ] = True,
    jobs: JobsOption = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables.")] = False,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put the tables into this Markdown file.")
    ] = None,
    monitor: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A monitor in Python to judge as well; repeatable."),
    ] = None,
) -> None:
    """Judge what each monitor says of the flow sizes; writes OUT/monitor.html.

    All monitors see the same packets, under the scenario's initial setting.
    """
    from dcqcn_gym.benchmarks.papers.monitor_study.gates import gates
    from dcqcn_gym.benchmarks.papers.monitor_study.page import build_page, markdown
    from dcqcn_gym.benchmarks.papers.monitor_study.study import Plan, produce, rows
    from dcqcn_gym.report.markdown_page import check_page, insert
    from dcqcn_gym.runs.progress import open_progress

    check_page(write, "monitor")
    standard = Plan()
    plan = Plan(
        loads=tuple(load or standard.loads),
        intervals_ms=tuple(interval or standard.intervals_ms),
        seeds=tuple(range(1, seeds + 1)),
        warmup_ms=warmup,
        length_ms=length,
        scenario=scenario,
        rounds=standard.rounds if rounds else None,
        long=standard.long if long else None,
        own=tuple(monitor or ()),
    )
    with claim(out, "benchmarks monitor"):
        count = len(plan.jobs())
        kept = f"{out} holds every finished result: the same command continues it"
        with interruptible(kept), open_progress(expected=count) as progress:
            produce(plan.jobs(), out, jobs, progress)
        page = build_page(plan, out)
    table = rows(plan, out)
    if write is not None:
        insert(write, "monitor", markdown(plan, table))
    if as_markdown:
        typer.echo(markdown(plan, table), nl=False)
        return
    for gate in gates(table):
        typer.echo(f"{'holds' if gate.holds else 'FAILS'}  {gate.worst:+.3f}  {gate.what}")
    typer.echo(page)
