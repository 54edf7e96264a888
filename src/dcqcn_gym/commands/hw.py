"""``dcqcn-gym hw ...``: certificates, agents, the digital fabric, and changes by hand."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dcqcn_gym.commands.hw_collect import collect
from dcqcn_gym.commands.hw_fleet import chosen_targets, open_fleet, show_plans
from dcqcn_gym.commands.hw_load import app as load_app
from dcqcn_gym.commands.hw_load import probe
from dcqcn_gym.commands.hw_trial import whole_trial
from dcqcn_gym.commands.hw_tune import tune
from dcqcn_gym.commands.interrupt import undisturbed
from dcqcn_gym.hw.extra import require_grpc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dcqcn_gym.hw.agent.server import Agent
    from dcqcn_gym.hw.controller import Controller

app = typer.Typer(
    name="hw",
    help="Real devices: agents, fleets, and a digital fabric that stands for them.",
    no_args_is_help=True,
)
agent_app = typer.Typer(help="Run the agent of one device.", no_args_is_help=True)
app.add_typer(agent_app, name="agent")
app.add_typer(load_app, name="load")
app.command()(tune)
app.command()(collect)
app.command()(probe)

_Config = Annotated[Path, typer.Option("--config", help="The agent's file (TOML).")]
_Fleet = Annotated[Path, typer.Option("--fleet", help="The fleet's file (TOML).")]
_Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KNOB=VALUE", help="A knob in its own unit; repeatable."),
]
_Best = Annotated[
    Path | None, typer.Option("--best", help="Take the setting that a run's best.json recommends.")
]
_PLACES = ("device", "place", "now", "then", "unit", "note")
_Why = Annotated[str, typer.Option("--why", help="The reason; journals and audit log keep it.")]


@app.command()
def certs(
    folder: Annotated[Path, typer.Argument(help="Where the fleet's authority is, or will be.")],
    agent: Annotated[
        list[str] | None, typer.Option(help="A device to make a certificate for; repeatable.")
    ] = None,
    controller: Annotated[
        list[str] | None, typer.Option(help="A controller to make one for; repeatable.")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long they hold.")] = 365,
) -> None:
    """Make the certificates of a fleet; ca.key signs them and stays in FOLDER."""
    from dcqcn_gym.hw.certs import write_all

    write_all(folder, agent or [], controller or [], days)
    names = [*(agent or []), *(controller or [])]
    typer.echo(f"{folder}: ca.pem for everybody, ca.key for nobody")
    for name in names:
        typer.echo(f"{folder}/{name}.pem, {folder}/{name}.key: for {name}")


@agent_app.command("nic")
def agent_nic(config: _Config) -> None:
    """Run the agent of a NIC, until Ctrl-C."""
    _run_agent(config, "nic")


@agent_app.command("switch")
def agent_switch(config: _Config) -> None:
    """Run the agent of a switch, until Ctrl-C."""
    _run_agent(config, "switch")


def _run_agent(config: Path, kind: str) -> None:
    from dcqcn_gym.hw.agent.privileges import KEPT, keep_only

    keep_only(KEPT[kind])  # before there are other threads
    require_grpc()
    from dcqcn_gym.hw.agent.server import load_agent

    agent: Agent = load_agent(config, kind)
    agent.start()
    status = agent.guard.status
    typer.echo(f"listening on {agent.address}; confirmed setting: {status.confirmed}", err=True)
    if status.problem:
        typer.echo(f"not at its confirmed setting: {status.problem}", err=True)
    try:
        agent.wait()
    finally:
        agent.close()


@app.command()
def unit(
    kind: Annotated[Literal["nic", "switch"], typer.Argument(help="nic or switch.")],
    config: Annotated[str, typer.Option(help="The agent's file on the device.")],
    program: Annotated[str | None, typer.Option(help="dcqcn-gym there; else this one.")] = None,
) -> None:
    """Print the systemd unit of an agent."""
    from dcqcn_gym.hw.agent.units import unit_text

    typer.echo(unit_text(kind, program or str(Path(sys.argv[0]).absolute()), config), nl=False)


@app.command()
def fabric(
    scenario: Annotated[str, typer.Option("--scenario", "-s", help="A name or a TOML file.")],
    folder: Annotated[Path, typer.Option("--dir", help="A new folder for devices and keys.")],
    shared_profiles: Annotated[
        bool, typer.Option("--shared-profiles", help="One WRED profile for all ports of a switch.")
    ] = False,
    fuse: Annotated[
        bool,
        typer.Option("--fuse", help="NICs' files through FUSE; DIR/calls.jsonl has every call."),
    ] = False,
) -> None:
    """Run a fleet without hardware: files, Redis servers and agents, played by the engine."""
    require_grpc()
    from dcqcn_gym.envs.backends.played import world_plan
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.hw.fabric.fabric import DigitalFabric

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # close what was started
    plan = world_plan(load_scenario(scenario))
    played = DigitalFabric(folder, plan, shared_profiles=shared_profiles, fuse=fuse)
    try:
        played.start()
        typer.echo(f"{len(played.agents)} agents run; fleet: {played.fleet}; Ctrl-C ends them")
        played.wait()
    finally:
        with undisturbed():  # else servers of switches would stay behind
            played.close()


@app.command()
def drivers() -> None:
    """List the ways to a device."""
    from dcqcn_gym.hw.drivers import DRIVERS
    from dcqcn_gym.runs.table import Table, print_tables

    rows = [(n, (d := DRIVERS.load(n)).kind, d.summary) for n in DRIVERS.names()]
    print_tables([Table(("driver", "kind", "what it does"), rows, "drivers")])


@app.command()
def plan(fleet: _Fleet, assign: _Set = None, best: _Best = None) -> None:
    """Show what a setting would change on every device; changes nothing."""
    with open_fleet(fleet) as controller:
        plans = controller.plan(chosen_targets(controller, assign, best))
        found = {device: plan.lines for device, plan in plans.items()}
        show_plans(found, _PLACES, "nothing would change")


@app.command()
def diff(fleet: _Fleet) -> None:
    """Show what devices hold against their confirmed setting; exit 1 if one differs."""
    with open_fleet(fleet) as controller:
        differ = _show_differences(controller, controller.descriptions, ("confirmed", "held"))
    if differ:
        raise typer.Exit(1)


def _show_differences(
    controller: Controller, devices: Iterable[str], words: tuple[str, str]
) -> int:
    """Print what devices hold against their confirmed setting; return how many places differ."""
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    plans = controller.ask_all("Diff", pb.Nothing(), devices)
    found = {device: plan.lines for device, plan in plans.items()}
    columns = ("device", "place", *words, "unit", "note")
    return show_plans(found, columns, "every device holds its confirmed setting")


@app.command()
def apply(
    fleet: _Fleet,
    assign: _Set = None,
    best: _Best = None,
    why: _Why = "by hand",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="The same as `hw plan`.")] = False,
    hold: Annotated[
        float | None,
        typer.Option(metavar="S", help="Leave it on trial for S seconds; `hw confirm` keeps it."),
    ] = None,
) -> None:
    """Change all devices in one transaction: staged, on trial, read back, confirmed; or none."""
    if dry_run:
        plan(fleet, assign, best)
        return
    with open_fleet(fleet) as controller:
        targets = chosen_targets(controller, assign, best)
        if hold is None:
            done = controller.carry_out(targets, why)
            state = "changed and confirmed"
        else:
            done = controller.try_out(targets, why, hold)
            state = f"on trial for {hold:g} s"
        typer.echo(
            f"{len(done.changed)} devices {state} (transaction {done.transaction}); "
            f"{done.skew_s * 1e3:.1f} ms between the first and the last"
        )
        if done.needs_reset:
            typer.echo(f"in force only after a reset of: {', '.join(done.needs_reset)}")


@app.command()
def confirm(
    fleet: _Fleet,
    why: _Why = "by hand",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be kept.")] = False,
) -> None:
    """Keep what is on trial, on every device or on none."""
    require_grpc()
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    with open_fleet(fleet) as controller:
        states = controller.ask_all("Status", pb.Nothing())
        name, devices = whole_trial(controller, states, dry_run)
        if dry_run:
            _show_differences(controller, devices, ("confirmed", "on trial"))
            return
        controller.confirm(name, devices, why)
        typer.echo(f"{len(devices)} devices confirmed (transaction {name})")


@app.command()
def rollback(
    fleet: _Fleet,
    transaction: Annotated[
        str | None, typer.Option(help="A confirmed one to undo; default: the newest.")
    ] = None,
    trial_only: Annotated[
        bool, typer.Option("--trial-only", help="Take back only what is on trial, or by hand.")
    ] = False,
    why: _Why = "by hand",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go back.")] = False,
) -> None:
    """Take back what is on trial; if nothing is, undo the newest confirmed change."""
    from dcqcn_gym.core.errors import StateError

    require_grpc()
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    with open_fleet(fleet) as controller:
        states = controller.ask_all("Status", pb.Nothing())
        trials = [name for name, status in states.items() if status.state == "applied"]
        if not dry_run:
            controller.rollback(why)
        if trial_only or (trials and transaction is None):
            if dry_run:
                _show_differences(controller, states, ("goes back to", "holds"))
                return
            typer.echo(f"{len(trials)} devices were on trial; all are at their confirmed setting")
            return
        name = transaction or controller.newest()
        if not name:
            raise StateError("no confirmed change is left to undo (see the audit log)")
        if dry_run:
            show_plans(controller.undoing(name), _PLACES, "no device holds it")
            return
        undone = controller.undo(name, why)
        typer.echo(f"{len(undone)} devices are back (transaction {name} undone)")


@app.command()
def discover(
    scenario: Annotated[str, typer.Option("--scenario", "-s", help="A name or a TOML file.")],
    rows: Annotated[int, typer.Option(min=1, help="How many hosts to show.")] = 5,
) -> None:
    """Propose where the controller should run: the hosts with the fewest hops to all devices."""
    from dcqcn_gym.envs.scenario.scenario import load_scenario
    from dcqcn_gym.hw.placement import hops_to_all
    from dcqcn_gym.runs.table import Table, print_tables

    fabric = load_scenario(scenario).fabric
    hops = hops_to_all(fabric.n_nodes, [(x.a, x.b) for x in fabric.links], range(fabric.n_hosts))
    best = sorted(hops, key=lambda host: (hops[host], host))[:rows]
    table = [(str(host), str(hops[host])) for host in best]
    print_tables([Table(("host", "hops to all devices"), table, "controller")])


@app.command()
def stop(
    fleet: _Fleet,
    release: Annotated[bool, typer.Option("--release", help="Allow changes again.")] = False,
    why: _Why = "by hand",
) -> None:
    """Take back what is on trial everywhere and refuse every change, until --release.

    Exit 1 if a device did not answer, could not go back, or is still stopped by its stop file.
    """
    with open_fleet(fleet, lenient=True) as controller:
        states, failed = controller.stop(not release, why)
    wrong = [str(error) for error in failed.values()]
    held = [name for name, s in states.items() if release and s.state == "stopped"]
    wrong += [f"{name} refuses changes still: its stop file exists; delete it" for name in held]
    wrong += [
        f"{name} is not at its confirmed setting, and its agent tries again: {s.problem}"
        for name, s in states.items()
        if s.problem
    ]
    word = "allow changes again" if release else "refuse every change"
    typer.echo(f"{len(states) - len(held)} devices {word}")
    for sentence in wrong:
        typer.echo(sentence, err=True)
    if wrong:
        raise typer.Exit(1)


@app.command()
def status(fleet: _Fleet) -> None:
    """Show how every device stands; exit 1 if one is not at a confirmed setting."""
    require_grpc()
    from dcqcn_gym.hw.agent import agent_pb2 as pb
    from dcqcn_gym.runs.table import Table, print_tables

    with open_fleet(fleet) as controller:
        found = controller.ask_all("Status", pb.Nothing())
        rows = [
            (name, controller.descriptions[name].driver, s.state, s.confirmed, s.problem)
            for name, s in found.items()
        ]
    columns = ("device", "driver", "state", "confirmed", "problem")
    print_tables([Table(columns, rows, str(fleet))])
    if any(s.state in ("applied", "broken") for s in found.values()):
        raise typer.Exit(1)


@app.command()
def history(
    fleet: _Fleet,
    device: Annotated[str, typer.Option("--device", help="The device whose journal is shown.")],
) -> None:
    """Print what a device's journal holds, one JSON object a line, oldest first."""
    from dcqcn_gym.core.errors import UnknownNameError

    require_grpc()
    from dcqcn_gym.hw.agent import agent_pb2 as pb

    with open_fleet(fleet) as controller:
        if device not in controller.descriptions:
            raise UnknownNameError("device", device, controller.descriptions)
        events = controller.ask_all("History", pb.Nothing(), [device])[device]
        for event in events.json:
            typer.echo(json.dumps(json.loads(event)))
