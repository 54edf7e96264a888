"""What an agent answers. It knows its guard and driver; gRPC hands it messages and takes errors."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict
from typing import Any

from dcqcn_gym.core.errors import ConfigError, quote
from dcqcn_gym.core.version import __version__
from dcqcn_gym.hw.agent import agent_pb2 as pb
from dcqcn_gym.hw.device_state import Who
from dcqcn_gym.hw.drivers import Driver, Edit, Targets
from dcqcn_gym.hw.load.jobs import LoadJobs
from dcqcn_gym.hw.members import packed, unpacked
from dcqcn_gym.hw.transaction import Clock, Guard

PROTOCOL = 3
"""A controller goes with agents of one version less or more, so that fleets are updated in parts: a
version adds calls and fields and takes none away; what an agent does not know, it leaves out."""
SERVICE = "dcqcn_gym.hw.v1.Agent"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
CALLER = ContextVar("CALLER", default="")
"""The name in the certificate of the call that is answered."""

METHODS: Mapping[str, tuple[Any, Any]] = {
    "Describe": (pb.Nothing, pb.Description),
    "Prepare": (pb.Interval, pb.Nothing),
    "Plan": (pb.Wanted, pb.Plan_),
    "Diff": (pb.Nothing, pb.Plan_),
    "Stage": (pb.Wanted, pb.Plan_),
    "Apply": (pb.Trial, pb.Status_),
    "Confirm": (pb.Named, pb.Status_),
    "Rollback": (pb.Named, pb.Status_),
    "Undo": (pb.Named, pb.Status_),
    "Change": (pb.Named, pb.Change_),
    "Stop": (pb.Switch, pb.Status_),
    "Status": (pb.Nothing, pb.Status_),
    "History": (pb.Nothing, pb.Events),
    "Read": (pb.Nothing, pb.Setting),
    "Counters": (pb.Ask, pb.Figures),
    "StartLoad": (pb.LoadJob, pb.LoadState),
    "Load": (pb.Nothing, pb.LoadState),
    "StopLoad": (pb.Nothing, pb.LoadState),
}
"""Method -> the types of what it takes and gives; ``agent.proto`` says the same."""


class AgentService:
    """One method per call of the protocol; each raises an error of the project or answers."""

    def __init__(
        self,
        device: str,
        driver: Driver,
        guard: Guard,
        bad_lines: Callable[[], int],
        loads: LoadJobs | None = None,
        clock: Clock = time.monotonic,
        dscp: int = 0,
        programs: Sequence[str] = (),
    ) -> None:
        self._device = device
        self._driver = driver
        self._guard = guard
        self._bad_lines = bad_lines
        self._clock, self._dscp, self._programs = clock, dscp, programs
        self._loads = LoadJobs(()) if loads is None else loads

    def Describe(self, request: pb.Nothing) -> pb.Description:  # noqa: N802
        """Say who this is and what it can do."""
        return pb.Description(
            device=self._device,
            kind=self._driver.kind,
            driver=self._driver.name,
            knobs=self._driver.knobs(),
            version=__version__,
            protocol=PROTOCOL,
            ports=self._driver.ports,
            dscp=self._dscp,
            programs=self._programs,
        )

    def Prepare(self, request: pb.Interval) -> pb.Nothing:  # noqa: N802
        """Get ready to report counters so often."""
        if not (math.isfinite(request.ms) and request.ms > 0):
            raise ConfigError(f"an interval of {request.ms:g} ms: expected above 0")
        self._guard.cadence.prepare(request.ms)
        return pb.Nothing()

    def Plan(self, request: pb.Wanted) -> pb.Plan_:  # noqa: N802
        """Say what would change."""
        return _plan(self._guard.plan(targets_of(request.targets)))

    def Diff(self, request: pb.Nothing) -> pb.Plan_:  # noqa: N802
        """Say what the device holds that was not confirmed."""
        return _plan(self._guard.diff())

    def Stage(self, request: pb.Wanted) -> pb.Plan_:  # noqa: N802
        """Begin a transaction."""
        who = _who(request.who, request.why)
        restores = _named(request.restores) if request.restores else ""
        name, targets = _named(request.transaction), targets_of(request.targets)
        return _plan(self._guard.stage(name, targets, who, restores))

    def Apply(self, request: pb.Trial) -> pb.Status_:  # noqa: N802
        """Write it, on trial."""
        self._guard.apply(
            _named(request.transaction), request.revert_after_s, unpacked(request.members)
        )
        return self._status()

    def Confirm(self, request: pb.Named) -> pb.Status_:  # noqa: N802
        """Keep it."""
        self._guard.confirm(_named(request.transaction), _who(request.who, request.why))
        return self._status()

    def Rollback(self, request: pb.Named) -> pb.Status_:  # noqa: N802
        """Go back to the confirmed setting."""
        name = _named(request.transaction) if request.transaction else ""
        withdrawn = unpacked(request.withdrawn_from)
        self._guard.rollback(_who(request.who, request.why), name, withdrawn)
        return self._status()

    def Undo(self, request: pb.Named) -> pb.Status_:  # noqa: N802
        """Go back to the setting before a transaction, if it is the confirmed one."""
        who, withdrawn = _who(request.who, request.why), unpacked(request.withdrawn_from)
        self._guard.undo(_named(request.transaction), who, withdrawn)
        return self._status()

    def Change(self, request: pb.Named) -> pb.Change_:  # noqa: N802
        """Say what this agent knows of a change: its devices, and which are not to have it."""
        known = self._guard.change(_named(request.transaction))
        return pb.Change_(
            members=packed(known.members),
            withdrawn_from=packed(known.withdrawn_from),
            predecessor=known.predecessor,
        )

    def Stop(self, request: pb.Switch) -> pb.Status_:  # noqa: N802
        """Refuse every change from now on, or allow changes again; load ends too."""
        if request.on:
            self._loads.stop()
        self._guard.stop(request.on, _who(request.who, request.why))
        return self._status()

    def Status(self, request: pb.Nothing) -> pb.Status_:  # noqa: N802
        """Say how the device stands."""
        return self._status()

    def History(self, request: pb.Nothing) -> pb.Events:  # noqa: N802
        """Say what happened, oldest first."""
        events = self._guard.history  # all of a bounded journal: far below MOST_REPLY
        return pb.Events(json=[json.dumps(event, sort_keys=True) for event in events])

    def Read(self, request: pb.Nothing) -> pb.Setting:  # noqa: N802
        """Say which knobs the device has in force."""
        return pb.Setting(targets=wanted_targets(self._driver.setting()))

    def Counters(self, request: pb.Ask) -> pb.Figures:  # noqa: N802
        """Say what the device has counted, for which interval, and when that was read."""
        began = self._clock()
        values = self._driver.counters()
        return pb.Figures(
            values=values, interval=request.interval, began_s=began, ended_s=self._clock()
        )

    def StartLoad(self, request: pb.LoadJob) -> pb.LoadState:  # noqa: N802
        """Begin load that the agent's file permits."""
        self._guard.refuse_if_stopped()
        schedule = None
        if request.HasField("flows"):
            flows = request.flows
            schedule = {"peers": list(flows.peers), "seconds": flows.seconds, "to": list(flows.to),
                        "bytes": list(flows.bytes), "at_us": list(flows.at_us)}  # fmt: skip
        self._loads.start(request.program, dict(request.options), schedule)
        return self.Load(pb.Nothing())

    def Load(self, request: pb.Nothing) -> pb.LoadState:  # noqa: N802
        """Say how the load stands and what it printed."""
        running, code, output = self._loads.state()
        return pb.LoadState(program=self._loads.program, running=running, code=code, output=output)

    def StopLoad(self, request: pb.Nothing) -> pb.LoadState:  # noqa: N802
        """End the load."""
        self._loads.stop()
        return self.Load(request)

    def _status(self) -> pb.Status_:
        return pb.Status_(**asdict(self._guard.status), bad_lines=self._bad_lines())


def targets_of(messages: Any) -> Targets:
    """Return port -> knobs of repeated ``Target``; raise ConfigError for a port named twice."""
    found: dict[str, dict[str, float]] = {}
    for message in messages:
        if message.port in found:
            raise ConfigError(f"port {quote(message.port)} is named twice")
        found[message.port] = dict(message.knobs)
    if not found:
        raise ConfigError("no target was given; expected a port (empty for a NIC) and its knobs")
    return found


def wanted_targets(targets: Targets) -> list[pb.Target]:
    """Return the messages of port -> knobs; the inverse of :func:`targets_of`."""
    return [pb.Target(port=port, knobs=dict(knobs)) for port, knobs in targets.items()]


def _plan(lines: list[Edit]) -> pb.Plan_:
    return pb.Plan_(lines=[pb.Line(**asdict(line)) for line in lines])


def _named(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ConfigError(
            f"transaction {quote(text)}: expected 1 to 64 letters, digits, '.', '_', ':' or '-'"
        )
    return text


def _who(name: str, why: str) -> Who:
    if not name or len(name) > 100 or len(why) > 500:
        raise ConfigError("a change names who wants it (1 to 100 characters) and why (to 500)")
    return Who(name, why, CALLER.get())
