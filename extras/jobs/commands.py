"""``dcqcn-gym jobs``: training jobs from Chakra traces, SimAI's workload files and plans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.options import OptionalOutFile

_MOST = 20
"""Kinds of operations that are listed."""


def jobs(
    file: Annotated[
        Path, typer.Argument(help="A folder of Chakra traces, a SimAI .txt, or a plan .toml.")
    ],
    out: OptionalOutFile = None,
    ranks: Annotated[
        int | None, typer.Option(min=1, help="For SimAI files that do not say how many.")
    ] = None,
    server: Annotated[
        int, typer.Option(min=1, max=1024, help="Neighbouring ranks that share a server.")
    ] = 8,
    layers: Annotated[
        int | None, typer.Option(min=1, help="Only the first N layers of a SimAI file.")
    ] = None,
    drop_missing: Annotated[
        bool,
        typer.Option("--drop-missing", help="Leave out dependencies on nodes that are not there."),
    ] = False,
    repeat: Annotated[
        int, typer.Option(min=0, help="The trace of rank 0 alone stands for N ranks.")
    ] = 0,
) -> None:
    """Say what a training job has: ranks, collectives, bytes, computation, its longest chain.

    With --out, also write its graph of transfers, for `graph` of a workload of kind `job`.

    Example: `dcqcn-gym jobs traces/ --out job.graph`
    """
    from dcqcn_gym.envs.scenario.jobs.figures import figures_of
    from dcqcn_gym.envs.scenario.jobs.links import Algorithms
    from dcqcn_gym.envs.scenario.jobs.lowering import graph_of
    from dcqcn_gym.extras.jobs.chakra import ChakraOptions
    from dcqcn_gym.extras.jobs.files import read_job
    from dcqcn_gym.runs.atomic_file import check_writable, write_atomically
    from dcqcn_gym.runs.table import Table, print_tables

    if out is not None:
        check_writable(out)
    job = read_job(file, ranks, reading=ChakraOptions(drop_missing, repeat), layers=layers)
    graph = graph_of(job, Algorithms(), server)
    f = figures_of(job, graph)
    rows = [
        (kind, str(n), f"{size:,}", f"{many:,}") for kind, n, size, many in f.operations[:_MOST]
    ]
    print_tables([Table(("operation", "ranks", "bytes", "times"), rows)])
    if len(f.operations) > _MOST:
        typer.echo(f"and {len(f.operations) - _MOST} more kinds and sizes")
    typer.echo(
        f"{f.ranks} ranks, {len(job.ops):,} operations, {f.nodes:,} nodes of the graph\n"
        f"bytes of an iteration: {f.fabric_bytes:,} on the fabric, {f.server_bytes:,} inside "
        f"servers of {server}\n"
        f"computation of a rank: {f.compute_ps[0] * 1e-9:,.6g} to {f.compute_ps[1] * 1e-9:,.6g} ms"
        f"; longest chain {f.critical_ps * 1e-9:,.6g} ms, its messages left out\n"
        "bytes of a collective: what a rank has (all-reduce, all-to-all), what the group has "
        "(all-gather, reduce-scatter)"
    )
    for note, many in job.notes.most_common():
        typer.echo(f"  {many} {note}")
    if out is not None:
        write_atomically(out, graph.to_bytes())
        typer.echo(f"{out}: {graph.endpoints} ranks, {len(graph):,} nodes")
