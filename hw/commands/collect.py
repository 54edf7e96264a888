"""``dcqcn-gym hw collect``: flow sizes of each interval from the flow exports of switches."""

from __future__ import annotations

import ipaddress
import json
import socket
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.core.errors import ConfigError, UnknownNameError, quote
from dcqcn_gym.runs.options import OutFileOption

if TYPE_CHECKING:
    from dcqcn_gym.core.interval import FlowSizeDistribution
    from dcqcn_gym.envs.monitors.collector import Collector
    from dcqcn_gym.hw.collectors.capture import Capture

MOST_DATAGRAM = 65_535


def collect(
    form: Annotated[str, typer.Argument(help="sflow, netflow or ipfix.")],
    out: OutFileOption,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen.")
    ] = "127.0.0.1:6343",
    interval_ms: Annotated[float, typer.Option(min=1, help="Monitor interval.")] = 1000.0,
    tau: Annotated[int, typer.Option(min=1, help="Bytes of payload of an elephant.")] = 1_000_000,
    delta: Annotated[int, typer.Option(min=1, help="Intervals of a potential elephant.")] = 3,
    theta: Annotated[float, typer.Option(min=0, help="Divergence that triggers tuning.")] = 0.01,
    exporter: Annotated[
        list[str] | None, typer.Option(help="Only from this address; repeatable.")
    ] = None,
    intervals: Annotated[
        int | None, typer.Option(min=1, help="End after so many; default: Ctrl-C.")
    ] = None,
    capture: Annotated[
        Path | None, typer.Option(help="Keep every datagram in this pcap file, for `traffic`.")
    ] = None,
) -> None:
    """Read sFlow v5, NetFlow v9 or IPFIX and write the flow-size distribution of each interval.

    OUT is the file that a fleet's `fsd_file` names. What is no datagram is left out as a whole and
    counted on the terminal.

    Example: `dcqcn-gym hw collect sflow --out flow-sizes.jsonl`
    """
    from dcqcn_gym.envs.backends.flow_log import Trigger
    from dcqcn_gym.envs.monitors.collector import FORMS, Collector, FlowWindow
    from dcqcn_gym.hw.collectors.capture import Capture

    if form not in FORMS:
        raise UnknownNameError("form of flow exports", form, FORMS)
    allowed = frozenset(map(_address, exporter or ()))
    collector = Collector(form, FlowWindow(tau, delta))
    trigger = Trigger(theta)
    kept = Capture(capture) if capture is not None else None
    with _bound(listen) as link:
        typer.echo(f"listening for {form} on {link.getsockname()[0]}:{link.getsockname()[1]}")
        sequence = 0
        while intervals is None or sequence < intervals:
            _gather(link, (collector, kept), interval_ms / 1e3, allowed)
            fsd = collector.close()
            sequence += 1
            _keep(out, sequence, trigger.complete(fsd))
            flows = fsd.elephants + fsd.potential + fsd.mice
            bad = f"; {collector.refused} refused: {collector.last_refusal}"
            typer.echo(
                f"{sequence}: {flows:.0f} flows of {collector.datagrams} datagrams so far"
                + (bad if collector.refused else ""),
                err=True,
            )


def _address(given: str) -> str:
    """Return an address as sockets write it."""
    try:
        return str(ipaddress.ip_address(given))
    except ValueError:
        raise ConfigError(
            f"--exporter {quote(given)} is no address; expected one such as 192.0.2.1"
        ) from None


def _bound(listen: str) -> socket.socket:
    host, _, port = listen.rpartition(":")
    try:
        link = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        link.bind((host.strip("[]"), int(port)))
    except (OSError, ValueError, OverflowError) as error:
        raise ConfigError(f"--listen {listen}: cannot listen there ({error})") from None
    return link


def _gather(
    link: socket.socket,
    to: tuple[Collector, Capture | None],
    seconds: float,
    allowed: frozenset[str],
) -> None:
    """Feed every datagram of the coming interval; others than ``allowed`` are not looked at."""
    collector, kept = to
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        link.settimeout(left)
        try:
            data, sender = link.recvfrom(MOST_DATAGRAM)
        except TimeoutError:
            return
        if not allowed or sender[0] in allowed:
            collector.feed(data, sender[0])
            if kept is not None:
                kept.add(data, sender[0], link.getsockname()[1])


def _keep(out: Path, sequence: int, fsd: FlowSizeDistribution) -> None:
    from dcqcn_gym.runs.whole_file import write_atomically

    values = {**asdict(fsd), "bins": fsd.bins.tolist()}
    write_atomically(out, (json.dumps({"sequence": sequence, "fsd": values}) + "\n").encode())
