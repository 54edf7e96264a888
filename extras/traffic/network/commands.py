"""``dcqcn-gym network``: from what describes a network to a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.runs.options import OutOption, ScenarioOption

app = typer.Typer(help="Your network: LLDP, SONiC, GraphML, HPCC's simulator, htsim.")


@app.callback()
def _group() -> None:
    """Your network: LLDP, SONiC, GraphML, HPCC's simulator, htsim."""


@app.command("import")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="DEVICE.json of `lldpctl -f json`, minigraph.xml, GraphML, or a run folder."
        ),
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

    A run folder of HPCC's simulator (config.txt, topology.txt, flow.txt) or of htsim (one .topo,
    one .cm) is taken whole, with its traffic; lines.csv says what each line became.

    Example: `dcqcn-gym network import lldp/*.json --out my-fabric`
    """
    if len(files) == 1 and files[0].is_dir():
        _import_run(files[0], out)
        return
    from dcqcn_gym.extras.traffic.network.reading import read_networks
    from dcqcn_gym.extras.traffic.network.writing import SCENARIO, written
    from dcqcn_gym.simulation.files import write_files

    found = read_networks(files)
    joined = found.settle(hosts, gbps)
    write_files(out, written(joined, files[0].name))
    typer.echo(
        f"{len(joined.hosts)} hosts, {len(joined.switches)} switches, {len(joined.links)} links"
    )
    for line in found.tally.lines():
        typer.echo(f"  {line}")
    typer.echo(f"{out / SCENARIO}: its [[workloads]] are a stand-in; put your traffic there")


@app.command()
def export(
    out: OutOption,
    scenario: ScenarioOption,
    to: Annotated[str, typer.Option("--to", help="hpcc or htsim.")] = "hpcc",
) -> None:
    """Write a scenario as the run folder of another simulator, and say what that cannot hold.

    Example: `dcqcn-gym network export --scenario mine.toml --to hpcc --out hpcc-run`
    """
    from dcqcn_gym.core.errors import UnknownNameError
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.extras.traffic.exchange.exporting import EXPORTS
    from dcqcn_gym.simulation.files import write_files

    if to not in EXPORTS:
        raise UnknownNameError("simulator", to, EXPORTS)
    files, unsaid = EXPORTS[to](load_scenario(scenario))
    write_files(out, files)
    for line in unsaid:
        typer.echo(f"  not said: {line}")
    typer.echo(f"{out}: {', '.join(files)}")


def _import_run(folder: Path, out: Path) -> None:
    from dcqcn_gym.core.errors import ConfigError
    from dcqcn_gym.extras.traffic.exchange.hpcc_folder import DIFFERENCES, import_hpcc
    from dcqcn_gym.extras.traffic.exchange.htsim import import_htsim
    from dcqcn_gym.simulation.files import write_files

    differences: Sequence[str] = ()
    if (folder / "config.txt").is_file():
        (texts, said), differences = import_hpcc(folder), DIFFERENCES
    elif any(folder.glob("*.topo")):
        texts, said = import_htsim(folder)
    else:
        raise ConfigError(f"{folder}: neither config.txt (HPCC's simulator) nor a .topo (htsim)")
    write_files(out, texts)
    for file, line, text, became in said.lines:
        typer.echo(f"{file}{f' line {line}' if line else ''}: {text[:80]} -> {became}")
    for sentence in (*said.tally.lines(), *differences):
        typer.echo(f"  {sentence}")
    typer.echo(f"{out}: {', '.join(texts)}")
