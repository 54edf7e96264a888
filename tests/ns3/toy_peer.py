"""A simulation process without ns-3: the fake network behind the real protocol, with faults.

``python toy_peer.py [--fault=NAME] --endpoint=... --scenario=... --simSeed=...``
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

import zmq

from dcqcn_gym.core.groups import DeviceSetting
from dcqcn_gym.core.interval import IntervalReport
from dcqcn_gym.core.knobs import DCQCN, KnobTable
from dcqcn_gym.envs.backends.fake import FakeBackend
from dcqcn_gym.envs.scenario.scenario import Scenario
from dcqcn_gym.extras.ns3.bridge import schema, simulation
from dcqcn_gym.extras.ns3.ns3gym import GymDialogue

FAULT_STEP = 2


class FaultyWorld(FakeBackend):
    """The fake network; something goes wrong in its third interval."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self._fault = fault
        self._calls = 0

    def open(self, scenario: Scenario, seed: int) -> None:
        if self._fault == "exit-in-open":
            print("cannot build this network", file=sys.stderr)
            os._exit(3)
        super().open(scenario, seed)

    def apply(self, setting: DeviceSetting) -> None:
        super().apply(setting)

    def advance(self, duration_ps: int | None = None) -> IntervalReport:
        self._calls += 1
        if self._calls > FAULT_STEP:
            print("something is wrong", file=sys.stderr, flush=True)
            if self._fault == "exit":
                os._exit(3)
            if self._fault == "segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            if self._fault == "hang":
                time.sleep(3600)
        return super().advance(duration_ps)


def speak_garbage(endpoint: str) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.REQ)
    socket.connect(endpoint)
    socket.send(b"\xff\xff\xff this is no protobuf")
    socket.recv()


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--fault", default="none")
    own, rest = parser.parse_known_args()
    if own.fault == "silent":
        simulation.end_with_parent()
        time.sleep(3600)
    if own.fault == "garbage":
        speak_garbage(next(a for a in rest if a.startswith("--endpoint=")).partition("=")[2])
        return 0
    if own.fault == "other-schema":
        original = schema.schema

        def changed(table: KnobTable = DCQCN) -> dict[str, object]:
            description = original(table)
            description["knobs"][3][1] = "furlong"
            return description

        simulation.schema = changed  # type: ignore[attr-defined]
    return simulation.run(lambda _: FaultyWorld(own.fault), rest, GymDialogue())


if __name__ == "__main__":
    sys.exit(main())
