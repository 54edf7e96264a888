"""The ns-3 backend: one simulation process per environment, connected over ZeroMQ.

ns-3's simulator is a singleton of its process, so a reset is a new process. The first ``open``
builds the ns-3 module if it is not in the cache (docs/reference/ns3.md).
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from dcqcn_gym.core.errors import (
    BackendError,
    ConfigError,
    MissingExtraError,
    StateError,
    UnknownNameError,
)
from dcqcn_gym.core.groups import DeviceSetting, cluster_setting
from dcqcn_gym.core.interval import IntervalReport, LiveFlows
from dcqcn_gym.core.knobs import DCQCN, Setting
from dcqcn_gym.envs.backends.base import SIMULATED, Look, Opens
from dcqcn_gym.envs.scenario.compile import compile_scenario

try:
    import zmq  # noqa: F401
    from google.protobuf import message as _message  # noqa: F401
except ImportError:
    raise MissingExtraError("the ns-3 backend", "ns3") from None

from dcqcn_gym.extras.ns3.bridge import codec
from dcqcn_gym.extras.ns3.bridge import ns3gym_pb2 as pb
from dcqcn_gym.extras.ns3.bridge.build import ensure_built
from dcqcn_gym.extras.ns3.bridge.errors import SchemaMismatchError
from dcqcn_gym.extras.ns3.bridge.link import Deadlines, Ns3Link, Transport
from dcqcn_gym.extras.ns3.bridge.process import SimulationProcess, python_command
from dcqcn_gym.extras.ns3.bridge.report_codec import decode_report
from dcqcn_gym.extras.ns3.bridge.schema import (
    PROTOCOL,
    canonical,
    digest,
    first_difference,
    schema,
)

if TYPE_CHECKING:
    from dcqcn_gym.envs.scenario.scenario import Scenario

SIMULATION = "dcqcn_gym.extras.ns3.bridge.simulation"
SEED_LIMIT = 2**64
_REFUSALS = {"config": ConfigError, "state": StateError}


@dataclass(frozen=True)
class _Watch:
    """Who looks at how many ports."""

    look: Look
    n_ports: int

    def show(self, samples: Iterable[pb.Sample]) -> None:
        for sample in samples:
            self.look(sample.now_ps, *codec.decode_sample(sample, self.n_ports))


class _Session:
    """One running simulation process and where its dialogue stands."""

    def __init__(self, transport: Transport, record: Path | None) -> None:
        self.process = SimulationProcess()
        try:
            self.link = Ns3Link(self.process, transport=transport, record=record)
        except BaseException:
            self.process.stop()
            raise
        self.step = 0
        self.time_ps = 0
        self.done = False
        self.applied = False
        self.waiting: Setting | None = None  # goes with the next advance
        self.watch: _Watch | None = None

    def start(self, command: Sequence[str]) -> None:
        self.process.start(command, {"PYTHONUNBUFFERED": "1"})

    def close(self) -> None:
        self.link.close()
        self.process.stop()


class Ns3Backend(Opens[_Session]):
    """A :class:`~dcqcn_gym.envs.backends.base.Backend` on ns-3 in a process of its own.

    ``ns3`` names an ns-3 installation (None: DCQCN_GYM_NS3, else the wheel in the cache);
    ``transport`` is a private socket file or a port of 127.0.0.1; ``record`` writes the exchanged
    messages to a file; ``pcap`` is the prefix of capture files, one per port; ``command`` replaces
    the simulation process (tests). Picklable before ``open``; usable in the process that opened it.
    Raises UnknownNameError for another transport.
    """

    offers = SIMULATED
    unknown: frozenset[str] = frozenset()

    def __init__(
        self,
        *,
        ns3: str | Path | None = None,
        deadlines: Deadlines | None = None,
        transport: Transport = "ipc",
        record: Path | None = None,
        pcap: Path | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        if transport not in get_args(Transport):
            raise UnknownNameError("transport", transport, get_args(Transport))
        self._ns3 = ns3
        self._deadlines = deadlines or Deadlines()
        self._transport = transport
        self._record = record
        self._pcap = pcap
        self._command = command
        self._table = DCQCN
        self._legal: list[tuple[float, float]] = []
        self._interval_ps = 0
        self.busy_s = 0.0
        """Wall time that simulations spent in the simulator; the rest of a call is the bridge."""

    @property
    def done(self) -> bool:
        """True once all workloads are exhausted and no flow is left; False while closed."""
        return self._open is not None and self._open.done

    @property
    def process_id(self) -> int:
        """The simulation's process id, 0 while closed."""
        return self._open.process.pid if self._open else 0

    def open(self, scenario: Scenario, seed: int) -> None:
        """Start a simulation process and build the network of ``scenario`` at time 0 in it."""
        self._check_closed()
        if not 0 <= seed < SEED_LIMIT:
            raise ConfigError(f"seed {seed} is out of range; expected 0 to 2^64 - 1")
        scenario_hash = digest(compile_scenario(scenario))
        command = list(self._command or self._build_command())
        with _limits_named(scenario.name):
            _check_files()
            session = _Session(self._transport, self._record)
        self._open = session
        self._table, self._interval_ps = scenario.table, scenario.monitor_interval_ps
        rate = scenario.line_rate_bps
        self._legal = [row.legal_at(rate) for row in self._table.rows]
        try:
            file = session.process.folder / "scenario.json"
            with _limits_named(scenario.name):
                file.write_text(json.dumps(scenario.model_dump(mode="json")), encoding="utf-8")
            command += [f"--endpoint={session.link.endpoint}", f"--scenario={file}"]
            command += [f"--simSeed={seed}"]
            if self._pcap is not None:
                command.append(f"--pcap={self._pcap}")
            with _limits_named(scenario.name):
                session.start(command)
            self._handshake(session, scenario_hash, seed)
            state = self._receive(session, "init", self._deadlines.init_s)
            if state.error:
                raise _REFUSALS.get(state.error_kind, BackendError)(state.error)
        except BaseException:
            self._abandon()
            raise

    def apply(self, setting: DeviceSetting) -> None:
        """Put a setting in force from the current instant on."""
        session = self._opened("apply")
        self._send_waiting(session)
        own = isinstance(setting, Setting) and setting.table == self._table
        if isinstance(setting, Setting) and own and self._surely_legal(setting):
            session.waiting = setting  # no answer needed: spares a round trip per step
        else:
            cluster_setting(setting)  # no groups at all would be no setting on the wire
            groups = codec.encode_setting(setting, self._table)
            self._ask(session, pb.EnvActMsg(setting=groups, apply_only=True))
        session.applied = True

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        """Run one monitor interval (or ``duration_ps``) and report it."""
        session = self._opened("advance")
        if not session.applied:
            raise StateError("advance() without a setting; call apply() first")
        span = self._interval_ps if duration_ps is None else duration_ps
        request = pb.EnvActMsg(duration_ps=span)
        if session.waiting is not None:
            request.setting.extend(codec.encode_setting(session.waiting, self._table))
            session.waiting = None
        state = self._ask(session, request)
        session.step += 1
        return decode_report(state)

    def watch(self, every_ps: int, ports: Sequence[int], look: Look) -> None:
        """Call ``look(now_ps, ports, flows)`` for every multiple of ``every_ps``, until close.

        As :meth:`~dcqcn_gym.envs.backends.native.NativeBackend.watch`, but the calls come in
        batches, a little after the simulation has passed the instant.
        """
        session = self._opened("watch")
        if any(not 0 <= port < 2**32 for port in ports):
            raise ConfigError(f"ports: expected numbers of ports; got {list(ports)}")
        watch = pb.Watch(every_ps=every_ps, ports=ports)
        self._ask(session, pb.EnvActMsg(watch=watch, apply_only=True))
        session.watch = _Watch(look, len(ports))

    def live_flows(self) -> LiveFlows | None:
        """Return the flows that have not finished, by source and ordinal; None: not to be known."""
        state = self._ask(
            self._opened("live_flows"), pb.EnvActMsg(live_flows=True, apply_only=True)
        )
        return codec.decode_live(state.live_flows) if state.HasField("live_flows") else None

    def _surely_legal(self, setting: Setting) -> bool:
        """True if the simulation cannot refuse the values; quicker than Setting.check."""
        pairs = zip(setting.numbers, self._legal, strict=True)
        legal = all(low <= value <= high for value, (low, high) in pairs)
        return legal and setting["kmin"] <= setting["kmax"]

    def _send_waiting(self, session: _Session) -> None:
        """Put a setting in force that another one follows at the same instant."""
        if session.waiting is not None:
            groups = codec.encode_setting(session.waiting, self._table)
            session.waiting = None
            self._ask(session, pb.EnvActMsg(setting=groups, apply_only=True))

    def close(self) -> None:
        """End the simulation process; allowed in every state."""
        session, self._open = self._open, None
        if session is None:
            return
        try:
            if session.process.status() is None:
                session.link.send(pb.EnvActMsg(stopSimReq=True))
                session.process.wait(self._deadlines.close_s)
        except Exception:  # a broken dialogue is ended by force below
            pass
        finally:
            session.close()

    def _build_command(self) -> list[str]:
        build = ensure_built(self._ns3, say=lambda line: print(line, file=sys.stderr))
        arguments = [f"--module={build.folder}", f"--build-id={build.build_id}"]
        return python_command(SIMULATION, *arguments, f"--ns3-version={build.ns3.version}")

    def _handshake(self, session: _Session, scenario_hash: str, seed: int) -> None:
        """Read who the simulation is, refuse what does not fit, and say who we are."""
        init = session.link.receive(pb.SimInitMsg, "start", self._deadlines.connect_s)
        ours = schema(self._table)
        text = canonical(ours)
        problem = _mismatch(init, ours, text, scenario_hash, seed)
        if problem is not None:
            session.link.send(pb.SimInitAck(done=True, stopSimReq=True))
            session.process.wait(self._deadlines.close_s)
            raise SchemaMismatchError(f"the simulation does not fit: {problem}")
        hello = pb.Handshake(
            protocol_major=PROTOCOL[0], protocol_minor=PROTOCOL[1], schema_hash=digest(text)
        )
        session.link.send(pb.SimInitAck(done=True, handshake=hello))

    def _ask(self, session: _Session, message: pb.EnvActMsg) -> pb.EnvStateMsg:
        """Send a request and wait for its answer; a failure other than a refusal closes."""
        try:
            session.link.send(message)
            state = self._receive(session, f"step {session.step}", self._deadlines.step_s)
        except BaseException:
            self._abandon()
            raise
        if state.error:
            error = _REFUSALS.get(state.error_kind, BackendError)(state.error)
            if isinstance(error, BackendError):
                self._abandon()
            raise error
        return state

    def _receive(self, session: _Session, phase: str, seconds: float) -> pb.EnvStateMsg:
        """Wait for the answer; show to a watch what comes before and with it."""
        while True:
            state = session.link.receive(pb.EnvStateMsg, phase, seconds, session.time_ps)
            session.time_ps = state.time_ps
            session.done = state.done
            self.busy_s += state.busy_ns * 1e-9
            if session.watch is not None:
                session.watch.show(state.samples)
            if not state.more:
                return state
            session.link.send(pb.EnvActMsg())

    def _abandon(self) -> None:
        session, self._open = self._open, None
        if session is not None:
            session.close()


_NEEDED_FILES = 24
"""Open files of one session; ZeroMQ ends the whole process where it gets none."""
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN)


@contextmanager
def _limits_named(scenario: str) -> Iterator[None]:
    """Turn it into a BackendError if the system has no more files, processes, space or memory."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        where = f" ({error.filename})" if error.filename else ""
        raise BackendError(
            f"the ns-3 process for {scenario!r} cannot be started: {error.strerror}{where}; close "
            "files, free space or memory, or run fewer environments at once"
        ) from None


def _check_files() -> None:
    """Raise OSError if a session could run out of open files."""
    opened: list[int] = []
    try:
        for _ in range(_NEEDED_FILES):
            opened.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _mismatch(
    init: pb.SimInitMsg, ours: dict[str, object], text: str, scenario_hash: str, seed: int
) -> str | None:
    """Return what does not fit, or None."""
    if not init.HasField("handshake"):
        return "it says nothing of this project; is it another ns3-gym program?"
    theirs = init.handshake
    if theirs.protocol_major != PROTOCOL[0]:
        return f"protocol version: ours {PROTOCOL[0]}, theirs {theirs.protocol_major}"
    if theirs.schema_hash != digest(text):
        try:
            return first_difference(ours, json.loads(theirs.schema)) or "schema hash"
        except json.JSONDecodeError:
            return "its schema is not JSON"
    if theirs.scenario_hash != scenario_hash:
        return f"scenario: ours {scenario_hash[:16]}, theirs {theirs.scenario_hash[:16]}"
    return None if theirs.seed == seed else f"seed: ours {seed}, theirs {theirs.seed}"
