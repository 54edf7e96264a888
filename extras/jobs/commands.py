"""``dcqcn-gym jobs``: training jobs from Chakra traces, SimAI's workload files and plans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.runs.options import OutFileOption

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.job_graph import JobGraph
    from dcqcn_gym.envs.scenario.jobs.model import Job

app = typer.Typer(help="Training jobs: Chakra traces, SimAI workload files, plans of your own.")

FileArgument = Annotated[
    Path, typer.Argument(help="A folder of Chakra traces, a SimAI .txt, or a plan .toml.")
]
RanksOption = Annotated[
    int | None, typer.Option("--ranks", min=1, help="For SimAI files that do not say how many.")
]
ServerOption = Annotated[
    int, typer.Option("--server", min=1, max=1024, help="Neighbouring ranks that share a server.")
]
LayersOption = Annotated[
    int | None, typer.Option("--layers", min=1, help="Only the first N layers of a SimAI file.")
]
DropOption = Annotated[
    bool,
    typer.Option("--drop-missing", help="Leave out dependencies on nodes that are not there."),
]
RepeatOption = Annotated[
    int, typer.Option("--repeat", min=0, help="The trace of rank 0 alone stands for N ranks.")
]


@app.command()
def inspect(
    file: FileArgument,
    ranks: RanksOption = None,
    server: ServerOption = 8,
    layers: LayersOption = None,
    drop_missing: DropOption = False,
    repeat: RepeatOption = 0,
) -> None:
    """Say what a job has: ranks, collectives, bytes, computation, its longest chain.

    Example: `dcqcn-gym jobs inspect traces/ --server 8`
    """
    from dcqcn_gym.envs.scenario.jobs.figures import figures_of
    from dcqcn_gym.runs.table import Table, print_tables

    job, graph = _read(file, ranks, server, layers, drop_missing, repeat)
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
    _tell(job)


@app.command()
def convert(
    file: FileArgument,
    out: OutFileOption,
    ranks: RanksOption = None,
    server: ServerOption = 8,
    layers: LayersOption = None,
    drop_missing: DropOption = False,
    repeat: RepeatOption = 0,
) -> None:
    """Write the graph of transfers of a job, for `graph` of a workload of kind `job`.

    Example: `dcqcn-gym jobs convert traces/ --out job.graph`
    """
    from dcqcn_gym.runs.atomic_file import check_writable, write_atomically

    check_writable(out)
    job, graph = _read(file, ranks, server, layers, drop_missing, repeat)
    write_atomically(out, graph.to_bytes())
    typer.echo(f"{out}: {graph.endpoints} ranks, {len(graph):,} nodes")
    _tell(job)


_MOST = 20


def _read(
    file: Path,
    ranks: int | None,
    server: int,
    layers: int | None,
    drop_missing: bool,
    repeat: int,
) -> tuple[Job, JobGraph]:
    from dcqcn_gym.envs.scenario.jobs.links import Algorithms
    from dcqcn_gym.envs.scenario.jobs.lowering import graph_of
    from dcqcn_gym.extras.jobs.chakra import ChakraOptions
    from dcqcn_gym.extras.jobs.files import read_job

    reading = ChakraOptions(drop_missing, repeat)
    job = read_job(file, ranks, reading=reading, layers=layers)
    return job, graph_of(job, Algorithms(), server)


def _tell(job: Job) -> None:
    for note, many in job.notes.most_common():
        typer.echo(f"  {many} {note}")
