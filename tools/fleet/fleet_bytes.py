"""What controlling a fleet costs on the wire in each interval, beside PARALEON's table IV.

The settings that PARALEON chooses go out over the digital fabric, and counters come back; the
kernel's figures of every connection are read between.
``python tools/fleet/fleet_study.py bytes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fleet_same import SEED, native_log
from tcp_bytes import Carried, carried

from dcqcn_gym.core.groups import DeviceSetting, setting_of
from dcqcn_gym.core.sums import count
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.hw.backend import HardwareBackend
from dcqcn_gym.hw.fabric.native_fabric import fabric_for_now
from dcqcn_gym.hw.fleet import Member
from dcqcn_gym.runs.log import read_run, write_json
from dcqcn_gym.runs.table import Table

__all__ = ["Cost", "markdown", "produce"]

PAPER = {
    "counters of a switch": "520",
    "counters of a NIC": "12",
    "a change of a device": "76",
}
"""PARALEON (ICNP 2024), table IV: bytes an interval; it leaves open whether of one device."""


@dataclass(frozen=True)
class Cost:
    """Mean bytes of one device and one interval."""

    what: str
    messages: float
    """Of the protocol, both ways, before gRPC compresses the answers."""
    stream: float
    """Of TCP's stream, both ways: messages with their answers compressed, HTTP/2 and TLS."""
    wire: float
    """With the headers of every segment."""
    towards: float
    """Of ``wire``, what goes the way of the news: to the controller, or of a change to devices."""


def produce(out: Path, scenario: Scenario, intervals: int) -> list[Cost]:
    """Measure; leave ``bytes.json`` beside the logs."""
    out.mkdir(parents=True, exist_ok=True)
    log = read_run(native_log(out, scenario, intervals))
    settings = [setting_of(line["setting"]) for line in log.intervals]
    with fabric_for_now(scenario) as fabric:
        backend = HardwareBackend.from_argument(str(fabric.fleet))
        backend.open(scenario, SEED)
        try:
            costs = _measured(backend, settings)
        finally:
            backend.close()
    write_json(out / "bytes.json", {"costs": [vars(cost) for cost in costs]})
    return costs


@dataclass(frozen=True)
class _Step:
    """What one step carried, by address, and its messages by device (sent and received)."""

    tcp: Mapping[str, Carried]
    messages: Mapping[str, int]


class _Meter:
    """Reads the kernel's figures and the clients', and gives what came since the last time."""

    def __init__(self, backend: HardwareBackend, members: Sequence[Member]) -> None:
        self._backend, self._addresses = backend, [m.address for m in members]
        self._tcp, self._messages = self._now()

    def _now(self) -> tuple[dict[str, Carried], dict[str, int]]:
        messages = self._backend.message_bytes
        return carried(self._addresses), {n: sent + got for n, (sent, got) in messages.items()}

    def step(self) -> _Step:
        before, said = self._tcp, self._messages
        self._tcp, self._messages = self._now()
        return _Step(
            {address: now.since(before[address]) for address, now in self._tcp.items()},
            {name: now - said[name] for name, now in self._messages.items()},
        )


def _measured(backend: HardwareBackend, settings: Sequence[DeviceSetting]) -> list[Cost]:
    """Run the intervals; the first, in which everything is new, does not count."""
    fleet = backend.fleet
    backend.apply(settings[0])
    backend.advance()
    meter = _Meter(backend, (*fleet.nics, *fleet.switches))
    changes, counters = [], []
    for setting in settings[1:]:
        backend.apply(setting)
        changes.append(meter.step())
        backend.advance()
        counters.append(meter.step())
    return [
        _cost("counters of a switch", counters, fleet.switches, news_is_sent=False),
        _cost("counters of a NIC", counters, fleet.nics, news_is_sent=False),
        _cost("a change of a device", changes, (*fleet.nics, *fleet.switches), news_is_sent=True),
    ]


def _cost(
    what: str, steps: Sequence[_Step], members: Sequence[Member], *, news_is_sent: bool
) -> Cost:
    ends = [step.tcp[m.address] for step in steps for m in members]
    n = len(ends)
    sent, received = count(e.wire_sent for e in ends), count(e.wire_received for e in ends)
    return Cost(
        what,
        count(step.messages[m.name] for step in steps for m in members) / n,
        count(e.bytes_sent + e.bytes_received for e in ends) / n,
        (sent + received) / n,
        (sent if news_is_sent else received) / n,
    )


def markdown(scenario: str, intervals: int, costs: Sequence[Cost]) -> str:
    """Return the table as Markdown, with the command that makes it."""
    columns = (
        "bytes an interval", "PARALEON, table IV", "messages, both ways",
        "answers compressed, HTTP/2 and TLS", "with every segment's headers",
        "of these, the way of the news",
    )  # fmt: skip
    rows = [
        (c.what, PAPER[c.what], *(f"{x:,.0f}" for x in (c.messages, c.stream, c.wire, c.towards)))
        for c in costs
    ]
    return (
        f"`python tools/fleet/fleet_study.py bytes --scenario {scenario} "
        f"--intervals {intervals}`, "
        f"seed {SEED}, mean of a device:\n\n{Table(columns, rows).markdown()}\n"
    )
