"""``dcqcn-gym hw collect``: flow sizes of each interval from the flow exports of switches."""

from __future__ import annotations

import ipaddress
import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dcqcn_gym.core.errors import ConfigError, UnknownNameError, quote
from dcqcn_gym.runs.options import OutFileOption

if TYPE_CHECKING:
    from dcqcn_gym.core.interval import FlowSizeDistribution
    from dcqcn_gym.core.tally import Tally
    from dcqcn_gym.hw.collectors.capture import Capture
    from dcqcn_gym.hw.collectors.collector import Collector

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
    sampling: Annotated[
        int, typer.Option(min=1, help="One packet in N was counted, where no record says so.")
    ] = 1,
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

    OUT is the file that a fleet's `fsd_file` names. What is left out is counted by reason on the
    terminal, the sum at the end.

    Example: `dcqcn-gym hw collect sflow --out flow-sizes.jsonl`
    """
    from dcqcn_gym.envs.backends.flow_log import Trigger
    from dcqcn_gym.hw.collectors.capture import Capture
    from dcqcn_gym.hw.collectors.collector import FORMS, Collector, FlowWindow

    if form not in FORMS:
        raise UnknownNameError("form of flow exports", form, FORMS)
    allowed = frozenset(map(_address, exporter or ()))
    collector = Collector(form, FlowWindow(tau, delta), sampling)
    trigger = Trigger(theta)
    kept = Capture(capture) if capture is not None else None
    with _bound(listen) as link, _summed_up(collector):
        typer.echo(f"listening for {form} on {link.getsockname()[0]}:{link.getsockname()[1]}")
        sequence = 0
        while intervals is None or sequence < intervals:
            _gather(link, (collector, kept), interval_ms / 1e3, allowed)
            fsd = collector.close()
            sequence += 1
            _keep(out, sequence, trigger.complete(fsd))
            flows = fsd.elephants + fsd.potential + fsd.mice
            typer.echo(
                f"{sequence}: {flows:.0f} flows of {collector.datagrams} datagrams so far"
                + _left_out(collector.tally),
                err=True,
            )


def _left_out(tally: Tally) -> str:
    """Return how much was left out so far and the commonest reason, for the end of a line."""
    reasons: Counter[str] = Counter()
    for balance in tally.balances.values():
        reasons.update(balance.left_out)
    if not reasons:
        return ""
    reason, _ = reasons.most_common(1)[0]
    example = next(iter(tally.examples.get(reason, [])), "")
    return f"; {reasons.total()} left out, most: {reason} {example}".rstrip()


@contextmanager
def _summed_up(collector: Collector) -> Iterator[None]:
    """Print what came, what was taken and what was left out when it ends, by Ctrl-C too."""
    try:
        yield
    finally:
        for line in collector.tally.lines():
            typer.echo(f"  {line}", err=True)
        if collector.unannounced and collector.sampling == 1:
            typer.echo(
                f"  {collector.unannounced} records without a sampling rate: every packet was "
                "taken to be counted (else --sampling N)",
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
    from dcqcn_gym.runs.atomic_file import write_atomically

    values = {**asdict(fsd), "bins": fsd.bins.tolist()}
    write_atomically(out, (json.dumps({"sequence": sequence, "fsd": values}) + "\n").encode())
