"""What Prometheus is shown of an agent and of a fleet; names begin with ``dcqcn_gym_``.

An agent has no port for this: it writes a file that node_exporter's textfile collector reads.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dcqcn_gym.core.errors import DcqcnGymError, MissingExtraError
from dcqcn_gym.hw.device_state import STATES

if TYPE_CHECKING:
    from dcqcn_gym.hw.controller import Controller
    from dcqcn_gym.hw.journal import Journal
    from dcqcn_gym.hw.transaction import Guard

WRITE_S = 10.0
"""How often an agent writes its file."""


def require_prometheus() -> Any:
    """Return the module ``prometheus_client``; raise MissingExtraError without it."""
    try:
        import prometheus_client
        import prometheus_client.core
    except ImportError:
        raise MissingExtraError("metrics for Prometheus", "hw") from None
    return prometheus_client


class Sheet:
    """Gauges of one scrape, collected one value at a time."""

    def __init__(self) -> None:
        self._families: dict[str, Any] = {}

    def put(self, name: str, help_: str, value: float, **labels: str) -> None:
        """Add a value of the gauge ``name``; the same labels every time."""
        core = require_prometheus().core
        family = self._families.setdefault(
            name, core.GaugeMetricFamily(f"dcqcn_gym_{name}", help_, labels=list(labels))
        )
        family.add_metric(list(labels.values()), value)

    def take(self, other: Sheet) -> None:
        """Take over everything of another source, whose gauges have other names."""
        self._families |= other._families

    def families(self) -> Iterator[Any]:
        """Yield what Prometheus' client exposes."""
        return iter(self._families.values())


Fill = Callable[[Sheet], None]
"""Puts the figures of now on a sheet."""


class MetricsCollector:
    """Sources of figures by name, as Prometheus' client asks for them."""

    def __init__(self, fills: Mapping[str, Fill]) -> None:
        """A source that raises shows nothing but that it is down; the others go on."""
        self._fills = fills

    def collect(self) -> Iterator[Any]:
        """Yield the metrics of now."""
        whole = Sheet()
        for source, fill in self._fills.items():
            own, up = Sheet(), 1.0
            try:
                fill(own)
                whole.take(own)
            except DcqcnGymError:  # half of a source is none
                up = 0.0
            whole.put("source_up", "1 if its figures could be read", up, source=source)
        return whole.families()


def registry_of(fills: Mapping[str, Fill]) -> Any:
    """Return a registry of these sources, which are read whenever it is asked."""
    registry = require_prometheus().CollectorRegistry(auto_describe=False)
    registry.register(MetricsCollector(fills))
    return registry


def _standing(sheet: Sheet, prefix: str, device: str, status: Any, bad_lines: int) -> None:
    for state in STATES:
        held = float(status.state == state)
        sheet.put(f"{prefix}_state", "1 for the state that it is in", held,
                  device=device, state=state)  # fmt: skip
    sheet.put(f"{prefix}_trial_left_seconds", "until a change on trial goes back", status.left_s,
              device=device)  # fmt: skip
    sheet.put(f"{prefix}_journal_bad_lines", "lines of the journal that are damaged or missing",
              float(bad_lines), device=device)  # fmt: skip


class ShownAgent(Protocol):
    """What is shown of an agent."""

    @property
    def guard(self) -> Guard:
        """What its device is to have."""

    @property
    def journal(self) -> Journal:
        """What became of every change."""

    @property
    def certificate_ends_s(self) -> float:
        """Unix time at which its certificate ends."""


def of_agent(agent: ShownAgent, device: str) -> Fill:
    """Return what fills a sheet with one agent's figures."""

    def fill(sheet: Sheet) -> None:
        _standing(sheet, "agent", device, agent.guard.status, agent.journal.bad_lines)
        sheet.put("agent_certificate_end_seconds", "Unix time", agent.certificate_ends_s,
                  device=device)  # fmt: skip
        for event, number in sorted(Counter(r["event"] for r in agent.guard.history).items()):
            sheet.put("agent_journal_events", "events that the journal has now", float(number),
                      device=device, event=event)  # fmt: skip
        sheet.put("agent_written_seconds", "Unix time of this file", time.time(), device=device)

    return fill


class TextFile:
    """An agent's file, written anew every :data:`WRITE_S` seconds."""

    def __init__(self, path: Path, fill: Fill, clock: Callable[[], float]) -> None:
        self._path, self._registry, self._clock = path, registry_of({"agent": fill}), clock
        self._due_s = clock()

    def write_if_due(self) -> None:
        """Write it if it is time to; an error of the disk waits for the next time."""
        if self._clock() < self._due_s:
            return
        self._due_s = self._clock() + WRITE_S
        require_prometheus().write_to_textfile(str(self._path), self._registry)


def of_fleet(controller: Controller) -> Fill:
    """Return what fills a sheet with a fleet's figures, as `hw status` has them.

    ``controller`` has its connections; every agent is asked anew each time.
    """

    def fill(sheet: Sheet) -> None:
        state = controller.state()
        states, astray = state.states, state.split()
        sheet.put("fleet_healthy", "1 if `hw status` exits 0", float(not state.problems()))
        for device in controller.agents.addresses:
            sheet.put("device_up", "1 if its agent answers", float(device in states), device=device)
            sheet.put("device_split", "1 if it holds another change than was decided",
                      float(device in astray), device=device)  # fmt: skip
            if device in states:
                _standing(sheet, "device", device, states[device], states[device].bad_lines)
        _whole(sheet, controller, states)

    return fill


def _whole(sheet: Sheet, controller: Controller, states: Mapping[str, Any]) -> None:
    """Put what is said of the whole fleet."""
    for holder, ends_s in controller.agents.certificate_ends_s.items():
        if holder in states or holder not in controller.agents.addresses:
            sheet.put("certificate_end_seconds", "Unix time", ends_s, holder=holder)
    broken, played = controller.log.broken(), controller.agents.is_digital_fabric
    sheet.put("audit_log_broken", "1 if somebody changed the audit log", float(bool(broken)))
    sheet.put("fleet_is_digital_fabric", "1 if the packet engine plays it", float(played))
