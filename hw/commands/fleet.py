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
from dcqcn_gym.hw.commands.show import show_left
from dcqcn_gym.hw.extra import require_grpc

if TYPE_CHECKING:
    from dcqcn_gym.core.groups import Devices, DeviceSetting
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
            controller.open(lenient=lenient)
        else:
            controller.connect()
        yield controller
    finally:
        show_left(controller.not_back, "may hold what was taken back elsewhere (`hw status` tells)")
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
    from dcqcn_gym.core.errors import ConfigError

    chosen = known(controller, devices) or list(targets)
    nics = set(controller.nics)
    if group in ("hosts", "switches"):
        chosen = [name for name in chosen if (name in nics) == (group == "hosts")]
    elif group is not None:
        chosen = [name for name in chosen if controller.tiers.get(name) == group]
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
        if device not in controller.addresses:
            raise UnknownNameError("device", device, controller.addresses)
    return devices or []


def chosen_targets(
    controller: Controller, assign: list[str] | None, best: Path | None, *, force: bool
) -> dict[str, Targets]:
    """Return device -> what it is to get: from --set, from --best, or from both.

    ``force``: from a best.json that does not recommend its setting, too.
    """
    wanted = _assigned(assign or [])
    if best is None:
        if not wanted:
            raise ConfigError("no setting was given; use --set KNOB=VALUE or --best FILE")
        return targets_of_setting(controller, wanted)
    setting = _setting_in(best, force)
    found = targets_of_groups(controller, setting, _devices(controller, setting))
    for device, own in targets_of_setting(controller, wanted).items():
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


def targets_of_setting(controller: Controller, wanted: Mapping[str, float]) -> dict[str, Targets]:
    """Return device -> those of the knobs that devices of its kind have."""
    from dcqcn_gym.core.knobs import ECN_KNOBS, NIC_KNOBS

    own = {
        "nic": {n: wanted[n] for n in NIC_KNOBS if n in wanted},
        "switch": {n: wanted[n] for n in ECN_KNOBS if n in wanted},
    }
    found = controller.descriptions.items()
    return {name: {"": own[d.kind]} for name, d in found if own[d.kind]}


def targets_of_groups(
    controller: Controller, setting: DeviceSetting, devices: Devices
) -> dict[str, Targets]:
    """Return device -> its knobs of a setting per group; ``devices`` tells who is in which.

    Raises ConfigError if a group names no device, or if switches have other ports than ``devices``.
    """
    from dcqcn_gym.core.groups import cluster_setting, resolve

    table = cluster_setting(setting).table
    nic, ecn = resolve(setting, devices, table)
    found: dict[str, Targets] = {
        name: {"": dict(zip(table.nic, row.tolist(), strict=True))}
        for name, row in zip(controller.nics, nic, strict=True)
    }
    rows = iter(ecn[devices.n_hosts :].tolist())
    for name, node in zip(controller.switches, sorted(devices.tiers), strict=True):
        ports = list(controller.descriptions[name].ports)
        if len(ports) != list(devices.port_node).count(node):
            raise ConfigError(f"switch {name} has other ports in its agent's file than the network")
        own = {port: dict(zip(table.ecn, next(rows), strict=True)) for port in ports}
        first = own[ports[0]]
        found[name] = {"": first} if all(knobs == first for knobs in own.values()) else own
    return found


def _devices(controller: Controller, setting: DeviceSetting) -> Devices:
    """Return the devices of a fleet, as far as its file tells; raise if it does not tell enough.

    Which ports lead up it never does, so that groups such as tor-uplinks are refused later.
    """
    from dcqcn_gym.core.groups import TIERS, Devices, by_group

    asked = [group for group, _ in by_group(setting) if group in TIERS]
    hosts = range(len(controller.nics))
    owners, numbers, tiers = [*hosts], [0 for _ in hosts], {}
    for node, (name, tier) in enumerate(controller.tiers.items(), len(hosts)):
        if asked and tier is None:
            raise ConfigError(
                f"the setting is one per tier ({', '.join(asked)}), and the fleet's file does not "
                f'say the tier of {name}; add tier = "tor", "spine" or "core" to each switch'
            )
        tiers[node] = TIERS.index(tier or TIERS[0])
        ports = range(len(controller.descriptions[name].ports))
        owners, numbers = [*owners, *(node for _ in ports)], [*numbers, *ports]
    return Devices(len(hosts), owners, numbers, tiers)


def _setting_in(best: Path, force: bool) -> DeviceSetting:
    from dcqcn_gym.core.groups import setting_of

    try:
        values = parse_json(read_file(best))
        recommended = values.get("recommended")
        setting = setting_of(recommended or values.get("candidate", values["found"]))
        said = str(values["answer"]["title"])
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{best}: not a run's best.json ({error})") from None
    if recommended is None and not force:
        raise ConfigError(f"{best} does not recommend its setting ({said}); --force takes it")
    return setting
