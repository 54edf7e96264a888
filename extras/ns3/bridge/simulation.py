"""The simulation process: a network behind ns3-gym's protocol. Started by Ns3Backend.

A client of this project gets interval reports and sends settings. What ns3-gym's own client gets,
observations and rewards, is made above the backends: :mod:`dcqcn_gym.extras.ns3.ns3gym` starts this
process with its :class:`Dialogue`. The dialogue is in ``ns3gym.proto``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import select
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

import zmq

from dcqcn_gym.core.errors import BackendError, ConfigError, DcqcnGymError, StateError, quote
from dcqcn_gym.core.knobs import KnobTable
from dcqcn_gym.envs.backends.base import Backend, Watchable, live_flows_of
from dcqcn_gym.envs.backends.native import NativeBackend
from dcqcn_gym.envs.scenario.compile import compile_scenario
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.ns3.bridge import codec
from dcqcn_gym.extras.ns3.bridge import ns3gym_pb2 as pb
from dcqcn_gym.extras.ns3.bridge.build import ensure_built, import_module
from dcqcn_gym.extras.ns3.bridge.process import (
    ALIVE_FD_VARIABLE,
    FOLDER_VARIABLE,
    PARENT_VARIABLE,
)
from dcqcn_gym.extras.ns3.bridge.report_codec import encode_counts, encode_state
from dcqcn_gym.extras.ns3.bridge.schema import PROTOCOL, canonical, digest, schema


class Ns3Engine(NativeBackend):
    """A backend over the compiled module; one per process, for ns-3's simulator is a singleton."""

    def __init__(self, module: Any, pcap: str | None = None) -> None:
        self._module = module
        self._pcap = pcap

    def _simulate(self, compiled: str, seed: int) -> Any:
        simulation = self._module.Simulation(compiled, seed)
        if self._pcap is not None:
            try:
                simulation.enable_pcap(self._pcap)
            except RuntimeError as error:
                raise ConfigError(str(error)) from None
        return simulation


def make_engine(options: argparse.Namespace) -> Ns3Engine:
    """Load the module that the command line names, or build it."""
    folder = Path(options.module) if options.module else None
    if folder is None:
        folder = ensure_built(say=lambda line: print(line, flush=True)).folder
    return Ns3Engine(import_module(folder), options.pcap)


class Dialogue(Protocol):
    """What a client that is not ours sees of a network."""

    def spaces(self, scenario: Scenario) -> tuple[pb.SpaceDescription, pb.SpaceDescription]:
        """Return the observation and the action space."""

    def serve(
        self, ask: Callable[[bytes], bytes], backend: Backend, scenario: Scenario, seed: int
    ) -> None:
        """Hold the dialogue after the handshake, until the client stops or the episode ends."""


CLIENT_WAIT_S = 60.0
"""So long a simulation waits for a client to answer at all; later on a client may take its time."""


@dataclass(frozen=True)
class Identity:
    """What the handshake says of this simulation."""

    scenario: Scenario
    seed: int
    build_id: str = ""
    ns3_version: str = ""

    def handshake(self) -> pb.Handshake:
        """Return the extra field of SimInitMsg."""
        text = canonical(schema(self.scenario.table))
        return pb.Handshake(
            protocol_major=PROTOCOL[0],
            protocol_minor=PROTOCOL[1],
            schema_hash=digest(text),
            schema=text,
            build_id=self.build_id,
            ns3_version=self.ns3_version,
            scenario_hash=digest(compile_scenario(self.scenario)),
            seed=self.seed,
        )


class Peer:
    """A REQ socket to the client; every request waits until the client answers or is gone.

    Raises :class:`ConfigError` for an endpoint that ZeroMQ does not take.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 1000)
        self._socket.setsockopt(zmq.RCVTIMEO, 200)
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise ConfigError(
                f"endpoint {quote(endpoint)}: {zmq.strerror(error.errno or 0)}; expected "
                "tcp://HOST:PORT or ipc://FILE"
            ) from None

    def ask(self, message: bytes, seconds: float = math.inf) -> bytes:
        """Send and wait for the reply; raise :class:`ClientGoneError` if the client goes.

        Raises :class:`BackendError` if nobody has answered after ``seconds``.
        """
        self._socket.send(message)
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(zmq.Again):
                return self._socket.recv()
            if self._monitor.poll(0) and not self._socket.poll(0):
                raise ClientGoneError
            if time.monotonic() > end:
                raise BackendError(
                    f"no client has answered at {self._endpoint} within {seconds:g} s; start the "
                    "client first, or wait longer with --wait"
                )

    def close(self) -> None:
        """Close the socket; what was sent has a second to leave."""
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close()  # what nobody took goes after LINGER
        self._context.term()


def _first_message(identity: Identity, dialogue: Dialogue | None) -> pb.SimInitMsg:
    init = pb.SimInitMsg(
        simProcessId=os.getpid(),
        wafShellProcessId=os.getppid(),
        handshake=identity.handshake(),
    )
    if dialogue is not None:
        observation, action = dialogue.spaces(identity.scenario)
        init.obsSpace.CopyFrom(observation)
        init.actSpace.CopyFrom(action)
    return init


def serve(
    backend: Backend,
    identity: Identity,
    endpoint: str,
    wait_s: float = CLIENT_WAIT_S,
    dialogue: Dialogue | None = None,
) -> None:
    """Hold the whole dialogue with one client; returns when the client is done.

    Raises :class:`BackendError` if no client answers within ``wait_s``, if it goes without asking
    to stop, or if it is not ours and there is no ``dialogue`` for it.
    """
    peer = Peer(endpoint)
    try:
        init = _first_message(identity, dialogue)
        ack = codec.decode(pb.SimInitAck, peer.ask(codec.encode(init), wait_s))
        if ack.stopSimReq:
            return
        if not ack.HasField("handshake"):
            if dialogue is None:
                raise BackendError(
                    "the client does not speak this project's part of the protocol; for a client "
                    "of ns3-gym start `dcqcn-gym ns3 serve`"
                )
            if not ack.done:
                raise BackendError(
                    "the client's first answer does not say that it is ready; expected SimInitAck "
                    "with done = true, as ns3-gym's sends it"
                )
            dialogue.serve(peer.ask, backend, identity.scenario, identity.seed)
        elif ack.handshake.protocol_major == PROTOCOL[0]:
            serve_backend(peer.ask, backend, identity.scenario, identity.seed)
    except ClientGoneError:
        _remove_folder()
        raise BackendError("the client is gone; it ended without asking to stop") from None
    finally:
        backend.close()
        peer.close()


def end_with_parent() -> None:
    """End this process when the one that started it is gone, however it went.

    A pipe whose other end only the parent holds shows it at once; a fork of the parent may hold it
    too, so the parent's process id is looked at as well. (The kernel's parent-death signal would
    not do: it follows the *thread* that forked, which may end long before the process.)
    """
    descriptor, parent = os.environ.get(ALIVE_FD_VARIABLE), os.environ.get(PARENT_VARIABLE)
    if descriptor is None or parent is None:
        return

    def watch() -> NoReturn:
        waiting = [int(descriptor)]
        while not select.select(waiting, [], [], 0.5)[0]:
            if os.getppid() != int(parent):
                break
        time.sleep(0.2)  # a parent that closes us properly has asked for it before
        _remove_folder()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _remove_folder() -> None:
    """Remove our private folder, which a parent that was killed cannot do any more."""
    if folder := os.environ.get(FOLDER_VARIABLE):
        shutil.rmtree(folder, ignore_errors=True)


def run(
    make: Callable[[argparse.Namespace], Backend],
    arguments: Sequence[str] | None = None,
    dialogue: Dialogue | None = None,
) -> int:
    """Read the command line, make the network and serve; return the exit status."""
    options = _parse(arguments)
    end_with_parent()
    try:
        scenario = _scenario(options.scenario)
        seed = options.simSeed
        identity = Identity(scenario, seed, options.build_id, options.ns3_version)
        endpoint = options.endpoint or f"tcp://127.0.0.1:{options.openGymPort}"
        serve(make(options), identity, endpoint, options.wait, dialogue)
    except DcqcnGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _scenario(given: str) -> Scenario:
    """Load a scenario by name or TOML file, or from the JSON that Ns3Backend writes."""
    if given.endswith(".json"):
        return Scenario.model_validate(json.loads(Path(given).read_text(encoding="utf-8")))
    return load_scenario(given)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dcqcn-gym ns3 serve", description=__doc__)
    parser.add_argument("--openGymPort", type=int, default=5555, help="port of ns3-gym's client")
    parser.add_argument("--endpoint", help="ipc://FILE or tcp://HOST:PORT instead of a port")
    parser.add_argument("--simSeed", type=int, default=1)
    parser.add_argument("--scenario", required=True, help="name, TOML file or JSON file")
    parser.add_argument("--module", help="folder of the built module")
    parser.add_argument("--build-id", default="")
    parser.add_argument("--ns3-version", default="")
    parser.add_argument("--wait", type=float, default=CLIENT_WAIT_S, help="seconds for a client")
    parser.add_argument("--pcap", help="prefix of capture files")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, dialogue: Dialogue | None = None) -> int:
    """Serve the network on ns-3."""
    return run(make_engine, arguments, dialogue)


BATCH_BYTES = 2_000_000
"""So much of what a watch saw is buffered before it is sent on."""


class ClientGoneError(Exception):
    """The client closed its end or died; the simulation then just ends."""


class _Samples:
    """What a watch saw, on its way to the client; memory does not grow with the interval."""

    def __init__(self, ask: Callable[[bytes], bytes]) -> None:
        self._ask = ask
        self._bytes = 0
        self.buffered: list[pb.Sample] = []

    def look(self, now_ps: int, ports: Mapping[str, Any], flows: Mapping[str, Any]) -> None:
        sample = codec.encode_sample(now_ps, ports, flows)
        self.buffered.append(sample)
        self._bytes += len(sample.ports) + len(sample.flows)
        if self._bytes < BATCH_BYTES:
            return
        state = pb.EnvStateMsg(time_ps=now_ps, samples=self.take(), more=True)
        if codec.decode(pb.EnvActMsg, self._ask(codec.encode(state))).stopSimReq:
            raise ClientGoneError

    def take(self) -> list[pb.Sample]:
        """Return what is buffered and forget it."""
        taken, self.buffered, self._bytes = self.buffered, [], 0
        return taken


def serve_backend(
    ask: Callable[[bytes], bytes], backend: Backend, scenario: Scenario, seed: int
) -> None:
    """Answer requests of Ns3Backend until it asks to stop."""
    samples = _Samples(ask)
    clock, report = 0, None
    state = pb.EnvStateMsg()
    try:
        backend.open(scenario, seed)
    except DcqcnGymError as error:
        _refuse(state, error)
    while True:
        state.time_ps = clock
        state.done = bool(getattr(backend, "done", False))
        state.samples.extend(samples.take())
        request = codec.decode(pb.EnvActMsg, ask(encode_state(state, report)))
        if request.stopSimReq:
            return
        state, report = pb.EnvStateMsg(), None
        began = time.perf_counter_ns()
        try:
            _put_in_force(backend, request, samples, scenario.table)
            if request.live_flows and (live := live_flows_of(backend)) is not None:
                state.live_flows = codec.encode_live(live)
            if not request.apply_only:
                report = backend.advance(request.duration_ps)
                clock = report.end_ps
                state.info = encode_counts(report)
        except DcqcnGymError as error:
            _refuse(state, error)
        state.busy_ns = time.perf_counter_ns() - began


def _put_in_force(
    backend: Backend, request: pb.EnvActMsg, samples: _Samples, table: KnobTable
) -> None:
    if request.setting:
        backend.apply(codec.decode_setting(request.setting, table))
    if request.HasField("watch"):
        if not isinstance(backend, Watchable):
            raise ConfigError(f"{type(backend).__name__} cannot be looked into; use the native one")
        backend.watch(request.watch.every_ps, list(request.watch.ports), samples.look)


def _refuse(state: pb.EnvStateMsg, error: DcqcnGymError) -> None:
    kinds = ((ConfigError, "config"), (StateError, "state"), (BackendError, "backend"))
    state.error = str(error)
    state.error_kind = next((name for cls, name in kinds if isinstance(error, cls)), "backend")


if __name__ == "__main__":
    sys.exit(main())
