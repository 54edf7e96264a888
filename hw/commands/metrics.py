"""``dcqcn-gym hw metrics``: a fleet and runs in progress, for Prometheus."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from dcqcn_gym.core.errors import ConfigError
from dcqcn_gym.hw.commands.fleet import open_fleet


def metrics(
    fleet: Annotated[Path | None, typer.Option("--fleet", help="The fleet's file (TOML).")] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option("--run", help="Folder of a run, a simulated one too; repeatable."),
    ] = None,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where Prometheus asks.")
    ] = "127.0.0.1:9471",
) -> None:
    """Serve metrics of a fleet, and of runs in progress, until Ctrl-C. It changes nothing.

    A certificate of `readers` is enough. Rules of alerts and a dashboard: configs/monitoring.

    Example: `dcqcn-gym hw metrics`
    """
    if fleet is None and not run:
        raise ConfigError("nothing to show; give --fleet, --run, or both")
    from dcqcn_gym.hw.metrics import of_fleet, registry_of, require_prometheus
    from dcqcn_gym.hw.run_metrics import of_runs

    client = require_prometheus()
    host, _, port = listen.rpartition(":")
    fills = {"runs": of_runs(run)} if run else {}
    if fleet is None:
        _serve(client, host, port, registry_of(fills))
        return
    with open_fleet(fleet, ask=False) as controller:
        _serve(client, host, port, registry_of({"fleet": of_fleet(controller), **fills}))


def _serve(client: object, host: str, port: str, registry: object) -> None:
    """Answer until the process ends."""
    try:
        server, _ = client.start_http_server(int(port), host.strip("[]"), registry)  # type: ignore[attr-defined]
    except (OSError, ValueError, OverflowError) as error:
        raise ConfigError(f"--listen {host}:{port}: cannot listen there ({error})") from None
    typer.echo(f"metrics at http://{host}:{server.server_port}/metrics; Ctrl-C ends it")
    try:
        while True:
            time.sleep(3600)
    finally:
        server.shutdown()
