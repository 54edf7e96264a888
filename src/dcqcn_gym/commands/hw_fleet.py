"""What commands on a fleet share: the open controller, targets from options, tables of places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dcqcn_gym.hw.extra import require_grpc

if TYPE_CHECKING:
    from dcqcn_gym.core.groups import DeviceSetting
    from dcqcn_gym.hw.controller import Controller
    from dcqcn_gym.hw.drivers import Targets

__all__ = ["chosen_targets", "open_fleet", "show_plans", "targets_of_setting"]


@contextmanager
def open_fleet(fleet: Path, *, lenient: bool = False) -> Iterator[Controller]:
    """Open a controller until the block ends; ``lenient``: without agents that do not answer."""
    require_grpc()
    from dcqcn_gym.hw.controller import Controller
    from dcqcn_gym.hw.fleet import load_fleet

    controller = Controller(load_fleet(fleet), fleet.parent)
    try:
        controller.open(lenient=lenient)
        yield controller
    finally:
        controller.close()


def chosen_targets(
    controller: Controller, assign: list[str] | None, best: Path | None
) -> dict[str, Targets]:
    """Return device -> what it is to get: from --set, from --best, or from both."""
    from dcqcn_gym.core.errors import ConfigError
    from dcqcn_gym.core.groups import cluster_setting
    from dcqcn_gym.core.knobs import DCQCN

    wanted: dict[str, float] = {}
    if best is not None:
        wanted |= cluster_setting(_recommended(best))
    for text in assign or []:
        name, _, value = text.partition("=")
        row = DCQCN[name]
        try:
            wanted[name] = row.to_si(float(value))
        except ValueError:
            raise ConfigError(f"--set {text!r}: expected KNOB=NUMBER") from None
    if not wanted:
        raise ConfigError("no setting was given; use --set KNOB=VALUE or --best FILE")
    return targets_of_setting(controller, wanted)


def targets_of_setting(controller: Controller, wanted: Mapping[str, float]) -> dict[str, Targets]:
    """Return device -> those of the knobs (SI units) that devices of its kind have."""
    from dcqcn_gym.core.knobs import ECN_KNOBS, NIC_KNOBS

    own = {
        "nic": {n: wanted[n] for n in NIC_KNOBS if n in wanted},
        "switch": {n: wanted[n] for n in ECN_KNOBS if n in wanted},
    }
    found = controller.descriptions.items()
    return {name: {"": own[d.kind]} for name, d in found if own[d.kind]}


def _recommended(best: Path) -> DeviceSetting:
    from dcqcn_gym.core.errors import ConfigError
    from dcqcn_gym.core.files import parse_json, read_file
    from dcqcn_gym.core.groups import setting_of

    try:
        return setting_of(parse_json(read_file(best))["recommended"])
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{best}: not a run's best.json ({error})") from None


def show_plans(plans: Mapping[str, Any], columns: tuple[str, ...], none: str) -> int:
    """Print a table of places, or ``none``; return how many there are."""
    from dcqcn_gym.runs.table import Table, print_tables

    rows = []
    for device, lines in plans.items():
        for line in lines:
            notes = ["at the next reset"] if line.needs_reset else []
            notes += [f"shared by {', '.join(line.shared_by)}"] if line.shared_by else []
            rows.append((device, line.place, line.before, line.after, line.unit, "; ".join(notes)))
    if rows:
        print_tables([Table(columns, rows, "what differs")])
    else:
        typer.echo(none)
    return len(rows)
