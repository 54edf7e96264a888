"""``dcqcn-gym network``: from what describes a network to a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.options import OutOption

app = typer.Typer(help="Your network: neighbours by LLDP, SONiC's minigraph, GraphML.")


@app.callback()
def _group() -> None:
    """Your network: neighbours by LLDP, SONiC's minigraph, GraphML."""


@app.command("import")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(help="DEVICE.json of `lldpctl -f json`, minigraph.xml, or GraphML."),
    ],
    out: OutOption,
    hosts: Annotated[
        str | None, typer.Option("--hosts", help="Names of hosts, such as 'gpu-*'.")
    ] = None,
    gbps: Annotated[
        float, typer.Option("--gbps", min=1, max=800, help="Speed of links that say none.")
    ] = 100.0,
) -> None:
    """Write scenario.toml with the network, hosts.csv with its names, and a picture.

    Example: `dcqcn-gym network import lldp/*.json --out my-fabric`
    """
    from dcqcn_gym.extras.traffic.network.reading import read_networks
    from dcqcn_gym.extras.traffic.network.writing import SCENARIO, written
    from dcqcn_gym.simulation.files import ResultFiles

    found = read_networks(files)
    joined = found.settle(hosts, gbps)
    texts = written(joined, files[0].name)
    with ResultFiles(out, {}, ()) as results:
        for name, text in texts.items():
            results.write(name, text.encode())
        results.publish()
    typer.echo(
        f"{len(joined.hosts)} hosts, {len(joined.switches)} switches, {len(joined.links)} links"
    )
    for line in found.tally.lines():
        typer.echo(f"  {line}")
    typer.echo(f"{out / SCENARIO}: its [[workloads]] are a stand-in; put your traffic there")
