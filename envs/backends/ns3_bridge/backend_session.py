"""The dialogue with Ns3Backend, in the simulation process: settings in, interval reports out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from dcqcn_gym.core.errors import BackendError, ConfigError, DcqcnGymError, StateError
from dcqcn_gym.core.knobs import KnobTable
from dcqcn_gym.envs.backends.base import Backend, Watchable, live_flows_of
from dcqcn_gym.envs.backends.ns3_bridge import codec
from dcqcn_gym.envs.backends.ns3_bridge import ns3gym_pb2 as pb
from dcqcn_gym.envs.backends.ns3_bridge.report_codec import encode_counts, encode_state
from dcqcn_gym.envs.scenario.scenario import Scenario

BATCH_BYTES = 2_000_000
"""So much of what a watch saw is held before it is sent on."""


class ClientGoneError(Exception):
    """The client closed its end or died; the simulation then just ends."""


class _Samples:
    """What a watch saw, on its way to the client; memory does not grow with the interval."""

    def __init__(self, ask: Callable[[bytes], bytes]) -> None:
        self._ask = ask
        self._bytes = 0
        self.kept: list[pb.Sample] = []

    def look(self, now_ps: int, ports: Mapping[str, Any], flows: Mapping[str, Any]) -> None:
        sample = codec.encode_sample(now_ps, ports, flows)
        self.kept.append(sample)
        self._bytes += len(sample.ports) + len(sample.flows)
        if self._bytes < BATCH_BYTES:
            return
        state = pb.EnvStateMsg(time_ps=now_ps, samples=self.take(), more=True)
        if codec.decode(pb.EnvActMsg, self._ask(codec.encode(state))).stopSimReq:
            raise ClientGoneError

    def take(self) -> list[pb.Sample]:
        """Return what is held and forget it."""
        taken, self.kept, self._bytes = self.kept, [], 0
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
