"""``dcqcn-gym hw status``: every device against its confirmed setting, and the fleet's record."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import typer

from dcqcn_gym.commands.hw_fleet import FleetOption, open_fleet
from dcqcn_gym.commands.hw_show import JsonOption, Output, output, show_differences
from dcqcn_gym.hw.extra import require_grpc

if TYPE_CHECKING:
    from dcqcn_gym.hw.controller import Controller

__all__ = ["status"]

WARN_DAYS = 30.0
AWAY = ("applied", "broken", "drifted")
"""States in which a device does not hold its confirmed setting."""


def status(fleet: FleetOption, as_json: JsonOption = False) -> None:
    """Show how every device stands, and place by place what it holds that is not confirmed.

    Exit 1 if one is not known to be at its confirmed setting, or if devices hold something else
    than what this fleet's audit log decided for them, or if somebody changed that log.
    """
    require_grpc()
    with output(as_json) as out, open_fleet(fleet, lenient=True) as controller:
        found, left = controller.states()
        broken = controller.audit_broken()
        astray = controller.expected().astray({n: s.confirmed for n, s in found.items()})
        rows = {name: _facts(controller, name, found, astray) for name in controller.addresses}
        played = controller.is_digital_fabric
        _show_rows(out, rows, f"{fleet}{' (a digital fabric)' if played else ''}")
        out.facts["digital_fabric"] = played
        differ, unanswered = show_differences(out, controller, found, ("confirmed", "held"))
        out.left(left | unanswered, "is not known")
        out.facts |= {"split": astray, "audit": broken}
        if astray:
            typer.echo(
                f"the fleet is split: {len(astray)} of {len(rows)} devices do not hold what the "
                "audit log says; `dcqcn-gym hw reconcile` brings them there", err=True,
            )  # fmt: skip
        _warn(out, controller)
        if broken:
            typer.echo(f"somebody changed the audit log: {broken}", err=True)
        away = any(s.state in AWAY for s in found.values())
        if out.facts["left"] or astray or away or differ or broken:
            raise typer.Exit(1)


def _warn(out: Output, controller: Controller) -> None:
    """Say which certificates end within :data:`WARN_DAYS`."""
    now = time.time()
    days = {name: (ends - now) / 86400.0 for name, ends in controller.certificate_ends_s.items()}
    out.facts["certificates_end_in_days"] = {n: round(d, 1) for n, d in days.items() if d < 1e5}
    for name, left in days.items():
        if left < WARN_DAYS:
            typer.echo(f"the certificate of {name} ends in {left:.0f} days: renew it", err=True)


def _facts(
    controller: Controller, name: str, found: dict[str, Any], astray: dict[str, str]
) -> dict[str, Any]:
    """Return what is known of a device."""
    known = controller.descriptions.get(name)
    facts: dict[str, Any] = {"driver": known.driver if known else ""}
    if name not in found:
        return {**facts, "state": "not known", "confirmed": "", "problem": "see below"}
    own = found[name]
    journal = f"{own.bad_lines} lines of its journal are damaged or missing"
    split = f"to hold {astray[name]} by the audit log" if name in astray else ""
    problem = filter(None, [split, own.problem, journal if own.bad_lines else ""])
    return {**facts, "state": own.state, "confirmed": own.confirmed, "problem": "; ".join(problem),
            "transaction": own.transaction, "left_s": own.left_s}  # fmt: skip


def _show_rows(out: Output, rows: dict[str, dict[str, Any]], title: str) -> None:
    out.facts["devices"] = rows
    columns = ("driver", "state", "confirmed", "problem")
    cells = {name: [tuple(str(row[c]) for c in columns)] for name, row in rows.items()}
    out.table(("device", *columns), cells, title)
