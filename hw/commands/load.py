"""``dcqcn-gym hw load ...``: traffic on a real fleet, through agents that permit it."""

from __future__ import annotations

import itertools
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.sums import count
from dcqcn_gym.hw.commands.fleet import FleetOption, open_fleet
from dcqcn_gym.hw.commands.output import JsonOption, output
from dcqcn_gym.hw.dependencies import require_grpc
from dcqcn_gym.runs.options import OutFileOption, ScenarioOption, SeedOption, pairs_in

app = typer.Typer(help="Start, show and stop load: perftest and nccl-tests.", no_args_is_help=True)

_Device = Annotated[str, typer.Option("--device", help="The device whose agent runs it.")]


@app.command()
def start(
    program: Annotated[str, typer.Argument(help="As ib_write_bw; the agent's file permits some.")],
    fleet: FleetOption,
    device: _Device,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="As bytes=4096; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Start a program on a device; without the option peer, perftest waits for one.

    Example: `dcqcn-gym hw load start ib_write_bw --fleet fleet.toml --device nic-0`
    """
    from dcqcn_gym.hw.load.jobs import command

    require_grpc()
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    options = pairs_in(option or [], "--option")
    words = command(program, options)
    state = _ask(fleet, device, "StartLoad", pb.LoadJob(program=program, options=options))
    with output(as_json) as out:
        said = f"{device} runs {' '.join(words)}" if state.running else state.output
        out.say(said, device=device, program=program, running=state.running)


@app.command()
def flows(
    fleet: FleetOption,
    scenario: ScenarioOption,
    seconds: Annotated[float, typer.Option(min=0.001, help="How long flows begin.")] = 10.0,
    rate: Annotated[
        float, typer.Option(min=1e-9, max=1.0, help="Share of the scenario's flows per second.")
    ] = 1.0,
    seed: SeedOption = 1,
    address: Annotated[
        list[str] | None,
        typer.Option(metavar="NIC=ADDRESS", help="Where RDMA reaches a NIC; else its agent's."),
    ] = None,
    ib_device: Annotated[
        str | None, typer.Option(help="The RDMA device of every host, as mlx5_0.")
    ] = None,
    first_port: Annotated[int, typer.Option(min=1024, max=65000, help="Of perftest.")] = 18600,
    as_json: JsonOption = False,
) -> None:
    """Start flows of a Poisson process on all NICs: RDMA WRITEs by perftest, one each.

    Sizes, gaps and hosts are those of the scenario's poisson workload. The same seed draws the same
    flows. `hw load show` has what became of them, by size, and
    `hw load stop` ends them.

    Example: `dcqcn-gym hw load flows --fleet fleet.toml --scenario my-fabric.toml`
    """
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.envs.scenario.workloads import Poisson

    require_grpc()
    from dcqcn_gym.hw.load.fleet_flows import jobs_of

    chosen = load_scenario(scenario)
    found = [w for w in chosen.workloads if isinstance(w, Poisson)]
    if len(found) != 1:
        raise ConfigError(f"{scenario}: {len(found)} poisson workloads; expected one")
    per_s = rate * 1e12 / found[0].mean_gap_ps(chosen.fabric)
    options = {"first_port": str(first_port), **({"device": ib_device} if ib_device else {})}
    with open_fleet(fleet) as controller:
        nics = addresses(controller.agents.addresses, controller.agents.nics, address or [])
        jobs = jobs_of(nics, found[0].cdf.points, per_s, seconds, seed, options)
        controller.agents.start_loads(jobs)
    n = count(len(job.flows.to) for job in jobs.values())
    sent = count(size for job in jobs.values() for size in job.flows.bytes)
    with output(as_json) as out:
        said = f"{len(jobs)} NICs: {n} flows, {sent} bytes, within {seconds:g} s"
        out.say(said, nics=len(jobs), flows=n, bytes=sent, seconds=seconds)


def addresses(
    known: Mapping[str, str], nics: Sequence[str], given: Sequence[str]
) -> dict[str, str]:
    """Return NIC -> address for RDMA: as given, or the host of its agent's address."""
    found = {name: known[name].rpartition(":")[0].strip("[]") for name in nics}
    for text in given:
        name, equals, where = text.partition("=")
        if not equals or not where:
            raise ConfigError(f"--address {text}: expected NIC=ADDRESS")
        if name not in found:
            raise UnknownNameError("NIC", name, found)
        found[name] = where
    return found


@app.command()
def show(fleet: FleetOption, device: _Device, as_json: JsonOption = False) -> None:
    """Show whether load runs on a device, and the figures that it printed at its end.

    Example: `dcqcn-gym hw load show --fleet fleet.toml --device nic-0`
    """
    from dcqcn_gym.hw.load.jobs import results
    from dcqcn_gym.runs.table import Table, number, print_tables

    require_grpc()
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    state = _ask(fleet, device, "Load", pb.Nothing())
    with output(as_json) as out:
        facts = {"device": device, "program": state.program, "running": state.running}
        if not state.program or state.running:
            what = f"{state.program} runs" if state.running else "no load"
            out.say(f"{device}: {what}", **facts)
            return
        rows = [asdict(row) for row in results(state.program, state.output)]
        out.facts |= {**facts, "results": rows}
    if as_json:
        return
    cells = [[number(value) for value in row.values()] for row in rows]
    columns = [name.replace("_", " ") for name in rows[0]]
    print_tables([Table(columns, cells, f"{device}: {state.program}", words=0)])


@app.command()
def stop(
    fleet: FleetOption,
    device: Annotated[str | None, typer.Option("--device", help="One; else all.")] = None,
    as_json: JsonOption = False,
) -> None:
    """End the load on a device, or on all.

    Example: `dcqcn-gym hw load stop --fleet fleet.toml`
    """
    require_grpc()
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    if device is not None:
        _ask(fleet, device, "StopLoad", pb.Nothing())
        stopped = [device]
    else:
        with open_fleet(fleet) as controller:
            stopped = list(controller.agents.ask_all("StopLoad", pb.Nothing()))
    with output(as_json) as out:
        out.say(f"{device or f'{len(stopped)} devices'}: no load", stopped=stopped)


def probe(
    out: OutFileOption,
    own: Annotated[int, typer.Option(min=0, help="Number of this host in the scenario.")],
    peer: Annotated[
        list[str], typer.Option(metavar="HOST=ADDRESS", help="Another host; repeatable.")
    ],
    every: Annotated[float, typer.Option(min=0, help="Seconds between two rounds.")] = 0.1,
    iterations: Annotated[int, typer.Option(min=5, help="Round trips of each peer.")] = 20,
    ib_device: Annotated[str | None, typer.Option(help="The RDMA device, as mlx5_0.")] = None,
    service_level: Annotated[
        int | None, typer.Option(min=0, max=15, help="Of the probes: not the tuned queue's.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="End after so many.")] = None,
) -> None:
    """Measure round trips to other hosts by ib_write_lat, until Ctrl-C; run it on every host.

    Writes growing sums to OUT, which the agent's rtt_file names; the NIC's agent reports them.

    Example: `dcqcn-gym hw probe --own 0 --peer 1=10.0.0.2 --out round-trips.jsonl`
    """
    from dcqcn_gym.hw.probe import Prober

    options = [] if ib_device is None else ["-d", ib_device]
    options += [] if service_level is None else ["-S", str(service_level)]
    prober = Prober(own, _peers(peer, own), out, options, iterations)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what waits
    try:
        for done in itertools.count(1):
            silent = prober.round()
            if silent:
                typer.echo(f"no answer from {', '.join(map(str, silent))}", err=True)
            if done == rounds:
                break
            time.sleep(every)
    finally:
        prober.close()


def _peers(given: Sequence[str], own: int) -> dict[int, str]:
    found = {}
    for text in given:
        host, equals, address = text.partition("=")
        if not (equals and address and host.isdecimal()) or int(host) == own:
            raise ConfigError(f"--peer {text}: expected the number of another host and an address")
        found[int(host)] = address
    return found


def _ask(fleet: Path, device: str, method: str, request: Any) -> Any:
    with open_fleet(fleet) as controller:
        if device not in controller.agents.descriptions:
            raise UnknownNameError("device", device, controller.agents.descriptions)
        return controller.agents.ask_all(method, request, [device])[device]
