"""What commands on a fleet share: the open controller, targets from options, devices by name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.core.errors import ConfigError, UnknownNameError
from dcqcn_gym.core.files import parse_json, read_file
from dcqcn_gym.hw.commands.output import show_left
from dcqcn_gym.hw.dependencies import require_grpc

if TYPE_CHECKING:
    from dcqcn_gym.core.groups import DeviceSetting
    from dcqcn_gym.hw.controller import Controller
    from dcqcn_gym.hw.drivers import Targets


FleetOption = Annotated[Path, typer.Option("--fleet", help="The fleet's file (TOML).")]
WhyOption = Annotated[
    str, typer.Option("--why", help="The reason; journals and audit log keep it.")
]
DevicesOption = Annotated[
    list[str] | None, typer.Option("--device", help="This device alone; repeatable.")
]


@contextmanager
def open_fleet(fleet: Path, *, lenient: bool = False, ask: bool = True) -> Iterator[Controller]:
    """Open a controller until the block ends; ``lenient``: without agents that do not answer.

    Without ``ask`` no agent is asked who it is, which takes time in an emergency.
    """
    require_grpc()
    from dcqcn_gym.hw.controller import Controller
    from dcqcn_gym.hw.fleet import load_fleet

    controller = Controller(load_fleet(fleet), fleet.parent)
    try:
        if ask:
            controller.agents.open(lenient=lenient)
        else:
            controller.agents.connect()
        yield controller
    finally:
        show_left(
            controller.rollback.not_back,
            "may hold what was taken back elsewhere (`hw status` tells)",
        )
        controller.close()


def only(
    controller: Controller,
    targets: Mapping[str, Targets],
    devices: list[str] | None,
    group: str | None = None,
    percent: float = 100.0,
) -> dict[str, Targets]:
    """Return the targets of these devices, or of a group, alone; of those the first ``percent``.

    NICs and switches are counted apart, and rounded up. Raises ConfigError if none is left.
    """
    chosen = known(controller, devices) or list(targets)
    nics = set(controller.agents.nics)
    if group in ("hosts", "switches"):
        chosen = [name for name in chosen if (name in nics) == (group == "hosts")]
    elif group is not None:
        chosen = [name for name in chosen if controller.agents.tiers.get(name) == group]
    kinds = [name for name in chosen if name in nics], [n for n in chosen if n not in nics]
    first = {n for kind in kinds for n in kind[: math.ceil(len(kind) * percent / 100.0)]}
    found = {name: own for name, own in targets.items() if name in first}
    if not found:
        raise ConfigError(
            "no device that has these knobs is among those that were chosen; see --device, "
            "--group, and tier of the fleet's file"
        )
    return found


def known(controller: Controller, devices: list[str] | None) -> list[str]:
    """Return the devices that were named; raise UnknownNameError for one that the fleet lacks."""

    for device in devices or ():
        if device not in controller.agents.addresses:
            raise UnknownNameError("device", device, controller.agents.addresses)
    return devices or []


def chosen_targets(
    controller: Controller,
    assign: list[str] | None,
    best: Path | None,
    *,
    force: bool,
    dry: bool = False,
) -> dict[str, Targets]:
    """Return device -> what it is to get: from --set, from --best, or from both.

    ``force``: from a best.json that does not recommend its setting, too; ``dry``: also from that,
    which is said then.
    """
    from dcqcn_gym.hw.targets import devices_of, targets_of_groups, targets_of_setting

    wanted = _assigned(assign or [])
    if best is None:
        if not wanted:
            raise ConfigError("no setting was given; use --set KNOB=VALUE or --best FILE")
        return targets_of_setting(controller.agents, wanted)
    setting = _setting_in(best, force=force, dry=dry)
    found = targets_of_groups(controller.agents, setting, devices_of(controller.agents, setting))
    for device, own in targets_of_setting(controller.agents, wanted).items():
        found[device] = {port: {**knobs, **own[""]} for port, knobs in found[device].items()}
    return found


def _assigned(assign: list[str]) -> dict[str, float]:
    """Return the knobs of ``KNOB=VALUE``."""
    from dcqcn_gym.core.knobs import DCQCN

    wanted: dict[str, float] = {}
    for text in assign:
        name, _, value = text.partition("=")
        DCQCN[name]  # raises for an unknown one
        try:
            wanted[name] = float(value)
        except ValueError:
            raise ConfigError(f"--set {text!r}: expected KNOB=NUMBER") from None
    return wanted


def _setting_in(best: Path, *, force: bool, dry: bool = False) -> DeviceSetting:
    from dcqcn_gym.core.groups import setting_of

    try:
        values = parse_json(read_file(best))
        recommended = values.get("recommended")
        setting = setting_of(recommended or values.get("choice", values["candidate"]))
        said = str(values["answer"]["title"])
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{best}: not a run's best.json ({error})") from None
    if recommended is None and (force or dry):
        typer.echo(f"NOT RECOMMENDED. {said}" + " (refused without --force)" * dry, err=True)
    elif recommended is None:
        raise ConfigError(f"{best} does not recommend its setting ({said}); --force takes it")
    return setting
